"""The options that describe a recipe: one list for all commands that take them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from quadrille.cli import options as opt
from quadrille.cli.inputs import names, read_recipe, seed_of
from quadrille.errors import ParameterError, bad_parameter

if TYPE_CHECKING:
    from quadrille.recipe import Recipe

_RANDOM: dict[str, object] = {
    "rate": opt.Rate,
    "pairs": opt.Pairs,
    "same": opt.Same,
    "different": opt.Different,
    "differ": opt.Differ,
    "order": opt.Order,
    "sampler": opt.Sampler,
}
_CONTROLLED: dict[str, object] = {
    "targets": opt.Targets,
    "size": opt.Size,
    "must": opt.Must,
    "never": opt.Never,
    "stratum": opt.Stratum,
    "sort": opt.Sort,
    "boundary": opt.Boundary,
    "bias": opt.Bias,
    "linked": opt.Linked,
    "variant": opt.Variant,
    "matching": opt.Matching,
    "on_missing": opt.OnMissing,
    "strict": opt.Strict,
}
_PERMUTATION: dict[str, object] = {
    "rate": opt.Rate,
    "records": opt.Records,
    "kind": opt.PermutationKind,
    "within": opt.Within,
    "groups": opt.Groups,
    "move_weight": opt.MoveWeight,
}
_DESIGNED: dict[str, object] = {
    "n": opt.SmallBelow,
    "share": opt.Share,
    "choose": opt.Choose,
    "treatment": opt.Treatment,
    "loss": opt.DesignLoss,
    "spread": opt.Spread,
    "price": opt.Price,
    "no_improve": opt.NoImprove,
    "together": opt.Together,
    "tables": opt.Tables,
    "max_pairs": opt.MaxPairs,
    "same": opt.Same,
    "different": opt.Different,
    "never": opt.Never,
}
METHODS: dict[str, dict[str, object]] = {
    "random": _RANDOM,
    "controlled": _CONTROLLED,
    "permutation": _PERMUTATION,
    "designed": _DESIGNED,
}
OPTIONS: dict[str, object] = {
    "swap": opt.Swap,
    "method": opt.Method,
    **_RANDOM,
    **_CONTROLLED,
    **_PERMUTATION,
    **_DESIGNED,
    "rules": opt.Rules,
    "seed": opt.Seed,
    "recipe": opt.RecipeFile,
}
_LISTS = ("swap", "same", "different", "within", "stratum", "sort", "boundary")


class Design:
    """The options of a recipe that were given, by name."""

    def __init__(self, words: Mapping[str, Any]) -> None:
        self.given: dict[str, Any] = {
            name: value for name, value in words.items() if value is not None and value is not False
        }

    def recipe(self) -> Recipe:
        """Make the recipe, or read it from its file."""
        given = dict(self.given)
        file = cast("Path | None", given.pop("recipe", None))
        if file is not None:
            if given:
                raise ParameterError(f"Give --recipe or {_flag(next(iter(given)))}, not both: the recipe says it all.")
            return read_recipe(file)
        method = given.pop("method", "random")
        if method not in METHODS:
            raise bad_parameter("the command", "--method", "one of " + ", ".join(METHODS), method)
        if "swap" not in given and method != "designed":
            raise ParameterError("Name the variables to swap with --swap, or a recipe with --recipe.")
        self._check_options(method, given)
        for name in _LISTS:
            if name in given:
                given[name] = names(given[name])
        if "rate" in given:
            given["rate"] = rate_of(given["rate"], column=method == "permutation")
        if "seed" in given:
            given["seed"] = seed_of(given["seed"])
        return _MAKERS[method](given)

    @staticmethod
    def _check_options(method: str, given: Mapping[str, object]) -> None:
        for other, options in METHODS.items():
            stray = [name for name in given if name in options and name not in METHODS[method]]
            if stray:
                raise ParameterError(f"{_flag(stray[0])} belongs to --method {other}, and this is {method} swapping.")


def _random(given: dict[str, Any]) -> Recipe:
    from quadrille.swap.random import RandomSwap

    return RandomSwap(**given)


def _permutation(given: dict[str, Any]) -> Recipe:
    from quadrille.swap.permutation import PermutationSwap

    if given.pop("move_weight", False):
        given["weight"] = "moves"
    return PermutationSwap(**given)


def _controlled(given: dict[str, Any]) -> Recipe:
    from quadrille.swap.controlled import ControlledSwap

    if "targets" not in given:
        raise ParameterError("Controlled swapping needs --targets: the share of records drawn as targets, or a column.")
    given["targets"] = _number_or_name(given["targets"])
    given["linked"] = _links(given.get("linked") or ())
    if "variant" in given:
        given["method"] = given.pop("variant")
    return ControlledSwap(**given)


def _designed(given: dict[str, Any]) -> Recipe:
    from quadrille.swap.designed import DesignedSwap

    if given.pop("no_improve", False):
        given["improve"] = False
    for name in ("together", "tables"):
        if name in given:
            given[name] = _column_sets(given[name])
    if "loss" in given:
        given["loss"] = _losses(given["loss"])
    return DesignedSwap(**given)


_MAKERS: dict[str, Callable[[dict[str, Any]], Recipe]] = {
    "random": _random,
    "controlled": _controlled,
    "permutation": _permutation,
    "designed": _designed,
}


def _column_sets(texts: Sequence[str]) -> list[list[str]]:
    """Read sets of columns, A*B,C*D, as often as they are given; quotes keep a name together."""
    from quadrille.expressions import split_outside_quotes, unquoted

    sets = [part for text in texts for part in split_outside_quotes(text, ",")]
    return [[unquoted(name) for name in split_outside_quotes(each, "*")] for each in sets]


def _losses(texts: Sequence[str]) -> str | dict[str, float]:
    """Read a loss, or several with weights: hellinger=1,hellinger(Age*Sex)=5; without a weight it is 1."""
    from quadrille.expressions import split_outside_quotes

    listed = [part.strip() for text in texts for part in split_outside_quotes(text, ",")]
    if len(listed) == 1 and "=" not in listed[0].rpartition(")")[2]:
        return listed[0]
    found: dict[str, float] = {}
    for part in listed:
        margin, bracket, weight = part.rpartition(")")
        name, sign, weight = weight.partition("=")
        address = margin + bracket + name.strip()
        try:
            if address in found:
                raise ValueError
            found[address] = float(weight) if sign else 1.0
        except ValueError:
            must = 'measures with their weights, each once, like "hellinger=1,hellinger(Age*Sex)=5"'
            raise bad_parameter("the command", "--loss", must, part) from None
    return found


def rate_of(text: str, *, column: bool) -> float | str:
    """Read a rate: a number, or the name of a column with the rate of each class where that is possible."""
    found = _number_or_name(text)
    if isinstance(found, str) and not column:
        raise ParameterError(
            f"--rate must be a number in (0, 1] here. Got {text!r}. A column with the rate of each class is for "
            "permutation swapping of a microdata file, with --within."
        )
    return found


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _links(texts: Sequence[str]) -> dict[str, list[str]] | None:
    """Read PARENT=A,B as often as it is given."""
    links: dict[str, list[str]] = {}
    for text in texts:
        parent, sign, followers = text.partition("=")
        if not sign or not parent.strip() or not followers.strip():
            raise bad_parameter("the command", "--linked", "like Edu=Degree,Years", text)
        links.setdefault(names([parent])[0], []).extend(names([followers]))
    return links or None


def _flag(name: str) -> str:
    return "--rule" if name == "rules" else "--" + name.replace("_", "-")


def takes_design(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that describe a recipe; it receives them together, as `design`."""
    own = inspect.signature(command, eval_str=True).parameters
    kept = [parameter for name, parameter in own.items() if name != "design"]
    added = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=kind)
        for name, kind in OPTIONS.items()
    ]
    # First the file, then the design, then the rest, as the help lists them.
    listed = [*kept[:1], *added, *kept[1:]]

    @wraps(command)
    def run(**words: Any) -> None:
        design = Design({name: words.pop(name) for name in OPTIONS})
        command(**words, design=design)

    cast("Any", run).__signature__ = inspect.Signature(listed)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in listed}
    return run
