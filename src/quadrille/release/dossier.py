"""The two texts of a release: the methods note for everybody, the dossier for the holder of the data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from quadrille import __version__
from quadrille.codebook import Variable
from quadrille.data import Data
from quadrille.delta import PlanReport
from quadrille.expressions import rules_told
from quadrille.plan import Details, Plan
from quadrille.present.designed import designed_section
from quadrille.present.markdown import table, value_text
from quadrille.randomness import is_secret
from quadrille.recipe import Recipe
from quadrille.release.judge import Verdict, policy_section
from quadrille.release.note import Published
from quadrille.score.evaluator import Scores
from quadrille.text import shown

Sections = dict[str, list[str]]
MOST_ROWS = 50


def targets_section(details: Details | None) -> Sections:
    """Tell how many targets each stratum has, how they were paired, and which have no partner."""
    if details is None or "targets" not in details.rows:
        return {}
    facts = cast("Mapping[str, Any]", details.facts)
    lines = [
        f"- Targets: {facts['targets']:,}, of which certain by their size: {facts['certain']:,}",
        f"- Pairs: {facts['pairs']:,}, found in {facts['rounds']:,} rounds",
        f"- Total swapping bias: {facts['bias']:.6g}",
        f"- Targets without partner, left as they were: {facts['without_partner']:,}",
        *(f"  - {reason}: {count:,}" for reason, count in facts["reasons"].items()),
    ]
    alone = details.rows["without partner"]
    if len(alone):
        more = f" and {len(alone) - MOST_ROWS:,} more" if len(alone) > MOST_ROWS else ""
        lines.append(f"  - Their rows, counted from 0: {', '.join(map(str, alone[:MOST_ROWS]))}{more}")
    lines.append("- All targets are listed in `targets.parquet`, their partners in `plan.parquet`.")
    head = ("stratum", "records", "never", "asked", "must", "certain", "drawn")
    strata = cast("list[dict[str, object]]", facts["strata"])
    rows = [[str(row[name]) for name in head] for row in strata[:MOST_ROWS]]
    more_strata = len(strata) - len(rows)
    rest = ["", f"{more_strata:,} more strata are in `account.json`."] if more_strata else []
    return {"Targets and partners": [*lines, "", *table(head, rows), *rest]}


def rivals_section(details: Details | None, scores: Scores, rivals: Mapping[str, Scores]) -> Sections:
    """Set the plan beside those the method decided against: cost, bias and every score."""
    if details is None or not rivals:
        return {}
    facts = cast("Mapping[str, Any]", details.facts)
    names = list(rivals)
    rows = [
        [name, value_text(facts[name]), *(value_text(facts[rival][name]) for rival in names)]
        for name in ("pairs", "cost", "bias")
    ]
    rows += [
        [address, value_text(value), *(value_text(rivals[rival][address]) for rival in names)]
        for address, value in scores.items()
    ]
    told = "The same targets matched in another way, for comparison; the first column was released."
    return {"Rivals": [told, "", *table(("", "released", *names), rows)]}


def methods_note(public: Data, *, shuffled: bool, published: Published | None = None, weight_stays: bool = True) -> str:
    """Return the note that goes out with the file.

    It is made from the public file alone, and from the factor f where that is to be published. It does not know the
    recipe, the plan or the original, so it cannot give them away.
    """
    about_weight = _WEIGHTED if weight_stays else _WEIGHT_MOVED
    weight = f"\n{about_weight.format(weight=shown(public.weight))}" if public.weight is not None else ""
    order = "The order of the records carries no information. " if shuffled else ""
    secret = _ALL_SECRET if published is None else _REST_SECRET
    variables = " or which variables" if published is None else ""
    note = _METHODS.format(weight=weight, order=order, secret=secret, variables=variables, version=__version__)
    return note if published is None else note.rstrip("\n") + "\n" + published.section()


_METHODS = """\
# Methods note: data swapping

These microdata describe real persons, households or organisations. To protect them, the file was
treated by data swapping before it was released.

## What data swapping is

Some records were chosen and exchanged the values of some variables with other records.
Each value in the file is a true value of some record, but not always of the record in which it
stands. Nothing in the file tells which records{variables} took part. Swapping does not
invent, round or remove any value.

## What is exactly as in the original

- The number of records.
- The distribution of every single variable over the records: each category has as many records as
  before; a numeric variable has the same values, so that its mean, quantiles and variance are
  unchanged.
{weight}
## What users should know

- Tables, correlations and models of several variables can differ from the original. On average,
  swapping makes an association somewhat weaker than it was.
- The difference matters most in small cells and small groups. Draw no conclusion from a handful of
  records.
- Standard errors computed in the usual way leave out the uncertainty that swapping adds.
- A record that is alone in its combination of categories need not describe anybody. Do not try to
  find out whom a record belongs to: the answer would be unreliable, and the attempt is misuse.
- {order}Columns that the data provider
  declared to be direct identifiers, or that the software recognised as such, were left out.
- `codebook.toml` describes the columns: kind, order of the categories, labels, missing codes.
- {secret} stays confidential,
  because it would help to undo the protection. The data provider answers questions about a
  particular result.

## How to cite

State that the data were treated by data swapping, and cite the software as: Quadrille, version
{version}.

Literature: Dalenius and Reiss, Data-swapping: a technique for disclosure control, Journal of
Statistical Planning and Inference. Gomatam and Karr, Distortion measures for categorical data
swapping, National Institute of Statistical Sciences.
"""

_ALL_SECRET = "How much was swapped, which variables took part and how the records were chosen"
_REST_SECRET = "Which records took part and how they were chosen"
_WEIGHT_MOVED = """\
Weighted totals, by `{weight}`, can differ a little from the original.
"""
_WEIGHTED = """\
The weight, `{weight}`, stayed with its record. Numbers of records are therefore exact for each
variable, whereas weighted totals by category can differ a little from the original.
"""


@dataclass(frozen=True)
class Record:
    """Everything the dossier tells."""

    data: Data
    public: Data
    recipe: Recipe
    plan: Plan
    account: PlanReport
    scores: Scores
    rivals: Mapping[str, Scores]
    hashes: Mapping[str, str]
    warnings: tuple[str, ...]
    shuffled: bool
    written: datetime
    verdict: Verdict | None = None


def dossier(record: Record) -> str:
    """Return the readable record of a release, for the confidential folder."""
    sections = {
        "Files": _files(record),
        "Warnings": [f"- {warning}" for warning in record.warnings] or ["None."],
        **policy_section(record.verdict),
        "Data": _data(record),
        "Recipe": _recipe(record.recipe),
        "What was swapped": _account(record.account, record.plan),
        **targets_section(record.plan.details),
        **_rules(record.plan.details),
        **designed_section(record.account, record.recipe.parameters().get("tables", ())),
        "Scores": _scores(record.scores),
        **rivals_section(record.plan.details, record.scores, record.rivals),
        "What swapping does not protect against": _LIMITS,
    }
    head = [
        "# Release dossier: confidential",
        "",
        f"Written by Quadrille {__version__} on {record.written:%Y-%m-%d at %H:%M:%S} UTC.",
        "Whoever has the seed or the plan in this folder can undo the release. Never publish any part of it.",
    ]
    body = [line for title, lines in sections.items() for line in ("", f"## {title}", "", *lines)]
    return "\n".join(map(shown, (*head, *body))) + "\n"


def _rules(details: Details | None) -> dict[str, list[str]]:
    """Tell what the plausibility rules exclude."""
    told = rules_told({} if details is None else details.facts)
    return {"Plausibility rules": [f"- `{name}`: {words}" for name, words in told]} if told else {}


def _files(record: Record) -> list[str]:
    rows = [(f"`public/{name}`", f"`{digest}`") for name, digest in record.hashes.items()]
    order = (
        "The rows of the public file are in random order, by a stream of their own."
        if record.shuffled
        else "The rows of the public file are in their original order, as asked."
    )
    return [*table(("file", "SHA-256"), rows), "", order]


def _data(record: Record) -> list[str]:
    data = record.data
    dropped = [name for name in data.columns if name not in record.public.codebook]
    weight = data.weight or "none"
    if data.ticks is not None:
        weight += ", " + ("represented exactly" if data.ticks.exact else "rounded to the finest binary tick")
    facts = [
        f"- Records: {data.n:,}",
        f"- Weight: {weight}",
        f"- Key variables: {', '.join(data.keys) or 'none'}",
        f"- Columns left out of the public file (identifiers; what steers the draw): {', '.join(dropped) or 'none'}",
        *(["- To release one of these on purpose, give it another role than id in the codebook."] if dropped else []),
        f"- Fingerprint before: `{record.plan.before}`",
        f"- Fingerprint after, rows in their original order: `{record.plan.after}`",
        "",
    ]
    return facts + table(("column", "kind", "role", "categories"), [_column(v) for v in data.codebook])


def _column(variable: Variable) -> tuple[str, str, str, str]:
    categories = f"{len(variable.categories):,}" if variable.coded else ""
    return variable.name, variable.kind, variable.role or "", categories


def _recipe(recipe: Recipe) -> list[str]:
    seed = (
        "64 hexadecimal digits (drawn from the operating system unless they were given)"
        if is_secret(recipe.parameters()["seed"])
        else "a number that can be guessed: for tests and papers, not for a release"
    )
    design: dict[str, object] = json.loads(recipe.design_json())
    rows = [(name, _text(value)) for name, value in design.items()]
    listed = table(("parameter", "value"), [*rows, ("seed", seed)])
    return [*listed, "", "The seed itself is in `recipe.json`."]


def _account(account: PlanReport, plan: Plan) -> list[str]:
    facts = [
        f"- Pairs asked for: {_number(account.asked)}",
        f"- Pairs drawn: {_number(account.pairs)}",
        f"- Records that took part: {account.records:,} of {account.n:,} ({account.records / account.n:.2%})",
        f"- Records that changed: {account.changed:,} ({account.changed / account.n:.2%})",
        f"- False swaps (nothing changed): {account.false_swaps:,}",
        f"- Compensating swaps (changed, yet the table does not show it): {account.compensating:,}",
        "",
    ]
    rows = [
        (
            m.variable,
            _number(m.pairs),
            _number(m.records),
            _number(m.changed),
            _share(m.rate_paired),
            _share(m.rate_changed),
        )
        for m in account.variables
    ]
    listed = table(("variable", "pairs", "records", "changed", "share paired", "share changed"), rows)
    moves = [f"- Move {i} of `plan.parquet`: {', '.join(move.columns)}" for i, move in enumerate(plan.moves)]
    return [*facts, *listed, "", *moves]


def _scores(scores: Scores) -> list[str]:
    rows = [
        (address, value_text(score.value), kind.side, kind.direction, score.note)
        for address, (kind, score) in scores.results.items()
    ]
    kinds = dict.fromkeys(kind for kind, _ in scores.results.values())
    definitions = [f"- **{kind.name}**: {kind.definition}. Source: {kind.reference}." for kind in kinds]
    return [*table(("measure", "value", "side", "better", "note"), rows), "", *definitions]


_LIMITS = """\
- Values that were not swapped stand in the public file as they were. A variable that identifies a
  person by itself still does.
- The margins are exact: a rare category or an extreme number is known to exist, though not in which
  record.
- Somebody who knows much about a person can notice that a record fits, or that it does not.
- A second release of the same data by another recipe can be compared with this one. Release once.
- Tables of the original published elsewhere can show, beside this file, where records were swapped.
- Swapping gives no formal guarantee such as differential privacy.
""".splitlines()


def _number(value: int | None) -> str:
    return "not in pairs" if value is None else f"{value:,}"


def _share(value: float) -> str:
    return f"{value:.4%}"


def _text(value: object) -> str:
    """Write a parameter: lists with commas, sets of columns with stars, weights beside what they weigh."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(each)}" for name, each in cast("dict[str, object]", value).items())
    if not isinstance(value, list):
        return str(value)
    listed = cast("list[object]", value)
    parts = ["*".join(map(str, cast("list[object]", each))) if isinstance(each, list) else str(each) for each in listed]
    return ", ".join(parts)
