"""`quadrille error`, `guarantee`, `correct`: errors of cells, what a private swap promises, tables without bias."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.inputs import check_new, load
from quadrille.cli.options import read_recipe
from quadrille.errors import InputError, OutputError, ParameterError, bad_parameter
from quadrille.text import percent, read_text

if TYPE_CHECKING:
    import polars as pl

    from quadrille.chart.theme import Figure
    from quadrille.data import Data
    from quadrille.release.dossier import Published
    from quadrille.swap.permutation import PermutationSwap
    from quadrille.swap.private import PrivateSwap
    from quadrille.swap.rank import RankSwap
    from quadrille.theory.tables import CellErrors


MOST_ROWS = 60
_SHOWN = {
    **dict.fromkeys(("before", "bias", "sd", "rmse"), ""),
    **{"relative_rmse": "share", "rounding_rmse": "rounding", "records": "k", "sampling": ""},
}
"""The columns of numbers, and how their heads are called where that differs."""
_SUFFIXES = (".png", ".svg", ".html", ".json")


def error(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A microdata file or dataset:NAME; with --swapped a table of counts.")
    ],
    recipe: Annotated[
        Path, opt.value("FILE", "A recipe of permutation, private or rank swapping, JSON: see swap.", "--recipe")
    ],
    margin: Annotated[str | None, opt.value("A*B", "The table to look at.")] = None,
    swapped: opt.Swapped = None,
    chart: opt.Chart = None,
    base: Annotated[int, opt.value("NUMBER", "Base of random rounding, to compare with.")] = 5,
    sampling: opt.Sampling = None,
    realised: Annotated[
        Path | None,
        opt.value("FILE", "Draw predicted against realised change into this .png, .svg or .html."),
    ] = None,
    draws: opt.Draws = None,
    seed: opt.Seed = None,
    no_totals: opt.NoTotals = False,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    layout: opt.Layout = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Predict the error of a table, or how far ranks change, before any swap."""
    check_new(chart, realised, overwrite=overwrite, source=file)
    _check_suffixes(chart, realised)
    _check_numbers(base, sampling)
    for name, value, least in (("--draws", draws, 1), ("--seed", seed, 0)):
        if value is not None and realised is None:
            raise ParameterError(f"{name} goes with --realised, which draws the swap. Without it nothing is drawn.")
        if value is not None and value < least:
            raise ParameterError(f"{name} must be a whole number of {least} or more. Got {value}.")
    if swapped is not None and (margin or codebook or weight):
        raise ParameterError(
            "--swapped says that FILE is a table of counts. --margin, --weight and --codebook are for a microdata file."
        )
    if swapped not in (None, "row", "column"):
        raise bad_parameter("the command", "--swapped", "one of 'row', 'column'", swapped)
    if swapped is None and no_totals:
        raise ParameterError("--no-totals is for a table of counts, with --swapped.")
    if (ranked := _rank_swap(recipe)) is not None:
        given = {"--margin": margin, "--swapped": swapped, "--chart": chart, "--realised": realised}
        _refuse_stray([name for name, each in given.items() if each is not None])
        _error_of_ranks(file, load(file, codebook, weight, layout=layout), ranked, as_json=as_json)
        return
    import quadrille as qd
    from quadrille.swap.private import PrivateSwap

    swap = _permutation(recipe, of_table=swapped is not None)
    if swapped is None and margin is None:
        also = " What a private swap promises: quadrille guarantee." if isinstance(swap, PrivateSwap) else ""
        raise ParameterError(f"Name the table with --margin, as in Age*MS.{also}")
    with show.working("Reading and working out the error"):
        table = load(file, codebook, weight, layout=layout) if swapped is None else read_table(file)
        errors = qd.theory.compare_errors(table, swap, margin, base=base, sampling=sampling, no_totals=no_totals)
        made: list[tuple[Path, Figure]] = [] if chart is None else [(chart, _sizes_chart(errors, _named(swap)))]
        if realised is not None:
            cells = qd.theory.realised(table, swap, margin, draws=draws or 1, seed=1 if seed is None else seed)
            made.append((realised, _realised_chart(cells, draws or 1)))
        _save(made)
    heads = {name: head for name, head in _SHOWN.items() if head}
    not_given = {heads.get(name, name): reason for name, reason in errors.not_given.items()}
    if as_json:
        drawn = {"chart": chart and str(chart), "realised_chart": realised and str(realised)}
        show.emit({"file": file, "cells": errors.cells, "not_given": not_given, **drawn})
        return
    _show_errors(errors, not_given, base, sampling)
    for path, _ in made:
        show.note(f"\nDrew {path}.")


def _rank_swap(path: Path) -> RankSwap | None:
    from quadrille.swap.rank import RankSwap

    recipe = read_recipe(path)
    return recipe if isinstance(recipe, RankSwap) else None


def _refuse_stray(given: Sequence[str]) -> None:
    if given:
        raise ParameterError(
            f"{given[0]} is about a table, and a rank swap has no closed form for tables. Leave it out: ranks and "
            "correlations are predicted."
        )


def _error_of_ranks(file: str, data: Data, recipe: RankSwap, *, as_json: bool) -> None:
    """Show what a rank swap is expected to do to ranks and correlations."""
    import quadrille as qd
    from quadrille.present.words import expected_ranks

    with show.working("Sorting the values"):
        rows = qd.theory.expected_ranks(data, recipe).to_dicts()
    if as_json:
        show.emit({"file": file, "ranks": rows})
    else:
        show.render(expected_ranks(rows))


def read_table(file: str) -> pl.DataFrame:
    """Read a table of counts, labels in the first column; it may have any number of columns."""
    import quadrille as qd

    return qd.read(file).frame()


def _permutation(path: Path, *, of_table: bool) -> PermutationSwap | PrivateSwap:
    from quadrille.swap.permutation import PermutationSwap
    from quadrille.swap.private import PrivateSwap

    recipe = read_recipe(path)
    if isinstance(recipe, PrivateSwap) and not of_table:
        return recipe
    if not isinstance(recipe, PermutationSwap):
        raise ParameterError(
            f"The error is known in closed form for permutation{'' if of_table else ', private and rank'} swapping, "
            f"and the recipe {str(path)!r} is of {recipe.method_name}. Keep one with: quadrille swap FILE "
            "--method permutation --save-recipe FILE."
        )
    if of_table and isinstance(recipe.rate, str):
        raise ParameterError("A table of counts has no column of class rates: the rate of the recipe must be a number.")
    return PermutationSwap("column", rate=recipe.rate, records=recipe.records, kind=recipe.kind) if of_table else recipe


def _check_suffixes(*paths: Path | None) -> None:
    """Refuse a chart that cannot be saved before another one is written."""
    for path in filter(None, paths):
        if path.suffix.lower() not in _SUFFIXES:
            raise OutputError(
                f"A chart cannot be saved as {path.name!r}. The suffix must be one of: {', '.join(_SUFFIXES)}."
            )


def _check_numbers(base: int, sampling: float | None) -> None:
    """Check numbers by the names of their options."""
    from quadrille.theory.equivalent import MOST_BASE

    if not 1 <= base <= MOST_BASE:
        raise ParameterError(f"--base must be a whole number from 1 to {MOST_BASE:,}. Got {base}.")
    if sampling is not None and not 0 < sampling <= 1:
        raise ParameterError(f"--sampling must be a number in (0, 1]. Got {sampling}.")


def _save(figures: Sequence[tuple[Path, Figure]]) -> None:
    """Write all charts; nothing is written before all of them are drawn."""
    if figures:
        from quadrille import chart

        for path, figure in figures:
            chart.save(figure, path)


def _named(recipe: PermutationSwap | PrivateSwap) -> str:
    """Name a swap in few words, for a legend."""
    from quadrille.swap.private import PrivateSwap

    if isinstance(recipe, PrivateSwap):
        return f"private, {f'chance {recipe.chance:.4g}' if recipe.chance else f'epsilon {recipe.epsilon:.4g}'}"
    rate, records = recipe.rate, recipe.records
    much = f"{records:,} records" if rate is None else percent(rate) if isinstance(rate, float) else "by class"
    return f"{recipe.kind}, {much}"


def _sizes_chart(errors: CellErrors, group: str) -> Figure:
    """Draw error against the size of the cell; `group` says what swap it is."""
    from quadrille import chart
    from quadrille.data import tidy

    points = [
        {
            "label": ", ".join(str(cell[name]) for name in errors.labels),
            "group": group,
            "count": cell["before"],
            "rmse": cell["rmse"],
            "rounding": cell.get("rounding_rmse"),
            "sampling": cell.get("sampling"),
        }
        for cell in errors.cells
        if cell["rmse"] is not None
    ]
    empty = [name for name in ("rounding", "sampling") if all(point[name] is None for point in points)]
    size = "Weighted total of the cell" if errors.weighted else "Records in the cell"
    return chart.error_by_size(tidy(points).drop(empty), size=size)


def _realised_chart(cells: pl.DataFrame, draws: int) -> Figure:
    """Draw predicted against realised change."""
    from quadrille import chart

    return chart.predicted_realised(cells.select("label", "bias", "sd", "realised"), draws=draws)


_LEAST_LABEL, _MOST_LABEL = 10, 24
_DROPPED = ("rounding", "k", "sampling", "sd", "bias", "share")
"""The columns that go first where the terminal is narrow."""


def show_cells(label_heads: list[str], number_heads: list[str], lines: list[list[str]]) -> list[str]:
    """Print cells so that they fit the terminal; return the columns of numbers that had no room.

    Where the labels do not fit side by side they share a column; where that does not do either, numbers are left out.
    """
    width, labels_ = show.console().width - 2, len(label_heads)
    table = [[*label_heads, *number_heads], *lines]
    wide = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
    if sum(wide) + 3 * (len(wide) - 1) <= width:
        right = range(labels_, len(wide))
        show.grid(table[0], lines, numbers=right, whole=right)
        return []
    longest = min(max(max(wide[:labels_]) + 1, _LEAST_LABEL), _MOST_LABEL)
    kept = list(range(labels_, len(wide)))
    for name in _DROPPED:
        if longest + sum(wide[place] + 3 for place in kept) > width:
            kept = [place for place in kept if table[0][place] != name]
    joined = [[", ".join(line[:labels_]), *(line[place] for place in kept)] for line in table]
    right = range(1, len(kept) + 1)
    show.grid(joined[0], joined[1:], numbers=right, whole=right)
    return [name for place, name in enumerate(table[0]) if place >= labels_ and place not in kept]


def _show_errors(errors: CellErrors, not_given: dict[str, str], base: int, sampling: float | None) -> None:
    cells, labelled = errors.cells, list(errors.labels)
    if not cells:
        raise InputError("The table has no cell that can change.")
    shown = [name for name in _SHOWN if any(cell.get(name) is not None for cell in cells)]
    show.title("Expected error of each cell")
    lines = [
        [*(str(cell[name]) for name in labelled), *(_number(cell.get(name), name) for name in shown)] for cell in cells
    ]
    head = [_SHOWN[name] or name for name in shown]
    no_room = show_cells(labelled, head, lines[:MOST_ROWS])
    if len(lines) > MOST_ROWS:
        show.note(f"  {MOST_ROWS} of {len(lines):,} cells are shown; --json lists all.")
    known = {
        "rmse": "root of bias² + sd²",
        "share": "rmse / before",
        "rounding": f"error of random rounding to base {base}",
        "k": "so many records moved put as much error into the cell as rounding does",
        "sampling": f"standard error of a simple random sample of {percent(sampling or 0)} of a population",
        "no room": f"for {', '.join(no_room)}; a wider terminal or --json shows all",
    }
    show.note("")
    listed = [name for name in head if name not in no_room] + ["no room"] * bool(no_room)
    said = [(name, text) for name, text in known.items() if name in listed]
    show.facts([*said, *((name, f"not given: {reason}") for name, reason in not_given.items())])
    for note in dict.fromkeys(str(cell["note"]) for cell in cells if cell.get("note") not in (None, "", "exact")):
        show.note(f"\n{note}")


def _number(value: float | None, name: str) -> str:
    if value is None:
        return "never" if name == "records" else ""
    if name in ("before", "records"):
        return f"{value:,.0f}"
    if name == "relative_rmse":
        return show.percent(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"


def correct(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A table of counts, CSV; labels in the first column.")],
    f: Annotated[float | None, opt.value("NUMBER", "The factor that the publisher gives.")] = None,
    methods_note: Annotated[Path | None, opt.value("FILE", "Read f from this methods note instead.")] = None,
    of_class: Annotated[
        str | None,
        opt.value("LABEL", "The class that TABLE counts, where the note gives f by class.", "--class"),
    ] = None,
    class_column: Annotated[
        str | None,
        opt.value("COLUMN", "The column of TABLE that holds the classes; the result is their sum."),
    ] = None,
    swapped: opt.Swapped = None,
    kind: Annotated[
        str | None, opt.value("WORD", "pairs, cycles or private. [default: what the note says, or pairs]")
    ] = None,
    out: Annotated[Path | None, opt.value("FILE", "Write the corrected table to this CSV.")] = None,
    no_totals: opt.NoTotals = False,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Remove the bias of swapping from a published table."""
    import quadrille as qd

    check_new(out, overwrite=overwrite, source=str(table))
    said = _published(f, methods_note, of_class, class_column)
    counts, place = read_table(str(table)), swapped or "column"
    how = cast(
        "Literal['pairs', 'cycles', 'private']", kind or ("pairs" if said is None else said.kind)
    )  # checked where it is used
    if said is None:
        corrected = qd.theory.correct(counts, f, swapped=place, kind=how, no_totals=no_totals)
    else:
        corrected = qd.theory.correct_published(
            counts,
            said.f,
            records=said.records,
            sizes=said.sizes,
            kind=how,
            of_class=of_class,
            class_column=class_column,
            swapped=place,
            no_totals=no_totals,
            where=f"the note {str(methods_note)!r}",
        )
    if out is not None:
        qd.write(qd.from_frame(corrected.frame()), out)
    rows = corrected.frame().to_dicts()
    if as_json:
        notes = {"note": corrected.note, "unchecked": corrected.unchecked, "out": out and str(out)}
        show.emit({"table": str(table), "f": f if said is None else corrected.f, "cells": rows, **notes})
        return
    _show(rows, [corrected.note, corrected.unchecked])


def _show(rows: list[dict[str, Any]], notes: list[str]) -> None:
    show.title("Corrected table")
    head = [name for name in rows[0] if name != "note"]
    lines = [[str(row[name]) if isinstance(row[name], str) else f"{row[name]:,.2f}" for name in head] for row in rows]
    show.grid(head, lines[:MOST_ROWS], numbers=range(2, len(head)), whole=range(2, len(head)))
    if len(lines) > MOST_ROWS:
        show.note(f"  {MOST_ROWS} of {len(lines):,} cells are shown; --json lists all.")
    for note in filter(None, notes):
        show.note(f"\n{note}")


def _published(f: float | None, note: Path | None, of_class: str | None, class_column: str | None) -> Published | None:
    """Return what the note says, None where f is given by itself."""
    if f is not None and note is not None:
        raise ParameterError("Give --f or --methods-note, not both: the note has its own f.")
    if f is None and note is None:
        raise ParameterError("Give the factor with --f, or the methods note that publishes it with --methods-note.")
    if of_class is not None and class_column is not None:
        raise ParameterError("Give --class for a table of one class, or --class-column for one of all of them.")
    if note is None:
        if of_class is not None or class_column is not None:
            option = "--class" if class_column is None else "--class-column"
            raise ParameterError(
                f"{option} needs --methods-note, which gives each class its own f. With --f leave it out."
            )
        return None
    from quadrille.release.dossier import read_published

    said = read_published(read_text(note, "the note"), f"The note {str(note)!r}")
    if (of_class is not None or class_column is not None) and "" in said.f:
        raise ParameterError(f"The note {str(note)!r} has one f for the whole file and no classes. Name none.")
    return said


def guarantee(
    file: opt.File,
    recipe: Annotated[Path, opt.value("FILE", "A recipe of private swapping, JSON: see swap.", "--recipe")],
    chart: opt.Chart = None,
    about: opt.FileOptions = opt.NOTHING_SAID,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Say what a private swap promises, and what each epsilon costs. Draws nothing."""
    import quadrille as qd

    check_new(chart, overwrite=overwrite, source=file)
    swap = _private(recipe)
    with show.working("Working out what is promised and what it costs"):
        data = about.load(file)
        found, curve = swap.guarantee(data), qd.theory.epsilon_curve(data, swap)
        if chart is not None:
            from quadrille import chart as charts

            charts.save(charts.epsilon_loss(curve), chart)
    if as_json:
        told = {"guarantee": found.as_dict(), "curve": curve.to_dicts()}
        show.emit({"file": file, **told, "chart": chart and str(chart)})
        return
    from quadrille.present import words

    show.render([*words.guarantee(found), *words.curve_blocks(curve.to_dicts())])
    if chart is not None:
        show.note(f"\nDrew {chart}.")


def _private(file: Path) -> PrivateSwap:
    """Return the recipe; refuse one of a method that promises nothing."""
    from quadrille.swap.private import PrivateSwap

    made = read_recipe(file)
    if not isinstance(made, PrivateSwap):
        raise ParameterError(
            f"{made.method_name} promises nothing: some of its releases are possible for one file and impossible for "
            "another that differs by one exchange, so it has no epsilon. Give the recipe of a private swap; "
            " `quadrille attack` measures what an intruder finds in any release."
        )
    return made
