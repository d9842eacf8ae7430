"""The command that tells what plausibility rules cost: pairs excluded, pairs made, measures with and without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.designs import Design, takes_design
from quadrille.cli.inputs import addresses, load
from quadrille.cli.show import number_of_any_size as number
from quadrille.errors import ParameterError

if TYPE_CHECKING:
    from quadrille.recipe import Recipe


@takes_design
def rules(
    file: opt.File,
    design: Design,
    draws: Annotated[int, typer.Option(metavar="NUMBER", help="Draws with the rules, and as many without.")] = 10,
    measures: opt.Measures = None,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    geography: opt.Geography = None,
    as_json: opt.Json = False,
) -> None:
    """Tell what plausibility rules cost: pairs they exclude, and measures with and without them. Writes nothing."""
    import quadrille as qd
    from quadrille.present.account import rule_facts

    recipe = design.recipe()
    if not recipe.parameters().get("rules"):
        raise ParameterError("Give the rules whose cost is asked: --rule 'Age<16 & MS=Widowed'.")
    with show.working("Reading"):
        data = load(file, codebook, weight, geography)
    with show.progress_bar("Swapping and scoring") as progress:
        both: dict[str, Recipe] = {"without": replace(cast("Any", recipe), rules=()), "with_rules": recipe}
        wanted = ["pairs", *addresses(measures, data)]
        found = _compared(qd.score_recipes(data, both, wanted, draws=draws, progress=progress).frame().to_dicts())
    details = recipe.plan(data).details
    facts: Mapping[str, object] = {} if details is None else details.facts
    if as_json:
        kept = ("rules", "pairs_excluded", "pairs_without_rules")
        show.emit({**{name: facts[name] for name in kept if name in facts}, "draws": draws, "measures": found})
        return
    show.title("What the rules exclude")
    show.facts(rule_facts(facts))
    _show(found, draws)


def _compared(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per measure: what it is without the rules and with them."""
    free, bound = ([row for row in rows if row["recipe"] == name] for name in ("without", "with_rules"))
    return [
        {
            **{name: one[name] for name in ("measure", "better")},
            **{"without": one["mean"], "with_rules": other["mean"]},
            **{"difference": other["difference"], "standard_error": other["difference_error"]},
            "draws": min(one["draws"], other["draws"]),
        }
        for one, other in zip(free, bound, strict=True)
    ]


def _show(found: Sequence[Mapping[str, Any]], draws: int) -> None:
    """Print the table, and how to read it."""
    show.title(f"Means over {draws:,} {'draw' if draws == 1 else 'draws'} without the rules and with them")
    named = ("without", "with_rules", "difference", "standard_error")
    rows = [(row["measure"], row["better"], *(number(row[name], 4) for name in named)) for row in found]
    heads = ("", "better", "without", "with them", "difference", "its s.e.")
    show.grid(heads, rows, numbers=(2, 3, 4, 5), whole=(0,))
    show.note("\nA difference within two of its standard errors (s.e.) may be chance: more --draws tell.")
