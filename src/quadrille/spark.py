"""Data that stay on a Spark cluster: the plans and scores of one machine, and a release made where the data are.

A draw looks at counts and gives places. So the cluster counts combinations of values block by block, the plan is drawn
here from the counts, and a pass over the columns that matter finds the records at its places. A block is a stretch of
the table that one task reads from its first record to its last; only the blocks are in an order, and what a task does
depends on nothing but the records of its blocks, so a task that fails can be run again.

Seeds never leave this process. The functions that tasks run are sent by value: the workers need numpy, pyarrow, pandas
and, for a release, cryptography, but not this package.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.codebook import Codebook, Variable
from quadrille.data import Column, Combinations, Data, Ints, Rows, hash_of, head_of, salt_of
from quadrille.delta import Delta
from quadrille.errors import InputError, OutputError, ParameterError, unknown_name, unless
from quadrille.io.atomic import INSECURE_NOTE, NOTE, as_json, check_free, new_folder, private_folder, write_file
from quadrille.io.frames import restore
from quadrille.io.frames.columns import given_by, settled
from quadrille.io.frames.identifiers import MOST_ORDINAL, names_identifier
from quadrille.io.frames.values import is_text, too_large, type_name
from quadrille.io.parquet import Batches, Facts, coded_by, complete, needs_the_whole
from quadrille.io.space import bytes_of, memory_limit
from quadrille.measure import beside_exposed, beside_the_n_rule
from quadrille.plan import Move, Plan
from quadrille.randomness import fresh_seed, is_secret
from quadrille.recipe import Recipe
from quadrille.release.dossier import methods_note
from quadrille.release.policy import asked_policies
from quadrille.release.release import DEFAULT, default_measures, plan_bytes, without_roles
from quadrille.score.contradictions import refuse_contradictions
from quadrille.score.evaluator import Evaluator, Scores, score
from quadrille.summary import Counted, Distinct, Statistic, Summary
from quadrille.swap.designed import DesignedSwap
from quadrille.swap.designed.pairs import DesignedPairs
from quadrille.swap.permutation import PermutationSwap
from quadrille.swap.private import PrivateSwap
from quadrille.swap.random import RandomSwap

__all__ = ["Source"]

ROW, BLOCK, ID = "_quadrille_row", "_quadrille_block", "_quadrille_id"
"""Columns that passes over a table work with: the number of a record, of its block, and its identifier."""
_FILE, _START, _INDEX, _COUNT = "_quadrille_file", "_quadrille_start", "_quadrille_index", "_quadrille_count"
_TYPES = ("string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date")
_BLOCK_ROWS = 1 << 20
"""About so many records make a block of a table that is sorted by an identifier."""
_CROSS = 1 << 24
"""Tables are counted together as long as their cross has no more possible cells."""
_SAMPLE = 1 << 18
"""What columns say about one another is looked for in so many records, one from each stretch of the table."""
_TEXT_VALUES = 1 << 16

Task = Callable[[Iterator[Any]], Iterator[Any]]
"""What a task does with its batches of records."""
Work = Callable[[Any, Ints, Ints], "Any | None"]
"""What is done with a batch, given the block and the number of each record; None where nothing comes of it."""


def _spark(module: str) -> Any:
    try:
        return import_module(f"pyspark.{module}")
    except ImportError:
        raise InputError(
            "This needs pyspark, which is not installed. Install it with: pip install 'quadrille[spark]'."
        ) from None


def _frame(table: Any) -> pl.DataFrame:
    return cast("Any", pl).from_arrow(table)


def _arrow(frame: pl.DataFrame) -> Any:
    return cast("Any", frame).to_arrow()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _plainly(table: Any, names: Sequence[str], more: Sequence[Any] = ()) -> Any:
    """Return some columns under names that every part of Spark takes, and some more."""
    functions = _spark("sql.functions")
    return table.select(*(functions.col(_quoted(name)).alias(f"c{i}") for i, name in enumerate(names)), *more)


def _schema(table: Any, name: str) -> Any:
    """Return the schema of a table with another column of whole numbers."""
    types = _spark("sql.types")
    return types.StructType([*table.schema.fields, types.StructField(name, types.LongType())])


class Source:
    """A table on a Spark cluster.

    Its records have an order: that of the files, by name, and of the rows in each; or that of `order`, a column that
    tells all records apart. The order decides which records a seed picks, as it does on one machine.

    Parameters
    ----------
    spark : the session.
    table : the path of Parquet files, or a DataFrame, which needs `order`.
    codebook : as for `quadrille.read`: a Codebook or the path of a TOML file. What it leaves open is guessed.
    columns : the columns to work with; all of them unless named. Only these are released.
    order : a column without gaps or repetitions that sorts the records: whole numbers or text.
    weight : the column of weights, where the codebook names none.
    memory : how much the columns that must be collected may take, such as "8GB"; half of what is free without it.

    Example
    -------
        import quadrille as qd, quadrille.spark

        source = quadrille.spark.Source(spark, "hdfs:///census/people", columns=["age", "sex", "county"])
        recipe = qd.RandomSwap(["county"], rate=0.02, same=["age", "sex"])
        plan = source.plan(recipe)
        scores = source.score(plan, ["exposed", "hellinger"])
    """

    def __init__(
        self,
        spark: Any,
        table: Any,
        *,
        codebook: Codebook | str | Path | None = None,
        columns: Sequence[str] | None = None,
        order: str | None = None,
        weight: str | None = None,
        memory: str | None = None,
    ) -> None:
        _spark("sql")
        _spark("cloudpickle").register_pickle_by_value(sys.modules[__name__])
        self._session = spark
        self._memory = memory_limit() if memory is None else bytes_of(memory, "memory")
        whole = spark.read.parquet(str(table)) if isinstance(table, str | Path) else table
        if not isinstance(table, str | Path) and order is None:
            raise ParameterError(
                "A DataFrame has no order of its own. Name a column that tells all records apart: order=."
            )
        for name in [*(columns or ()), *([] if order is None else [order])]:
            if name not in whole.columns:
                raise unknown_name("column", name, whole.columns, where="the table")
        self._table = whole
        book = codebook if isinstance(codebook, Codebook | None) else Codebook.read(codebook)
        named = [name for name in (whole.columns if columns is None else columns) if name != order]
        self._order = _Files(whole) if order is None else _Sorted(whole, order)
        self.n = self._order.n
        """The number of records."""
        self._known = _described(whole, named, book, weight, self.n)
        self.weight = self._known.weight
        self._counts: dict[tuple[str, ...], _Counts] = {}

    @property
    def columns(self) -> list[str]:
        """The columns that the source works with; identifiers are left out."""
        return [column.variable.name for column in self._known.columns]

    @property
    def codebook(self) -> Codebook:
        """What the columns are."""
        return Codebook(tuple(column.variable for column in self._known.columns))

    def plan(self, recipe: Recipe) -> Plan:
        """Draw the plan of a recipe: the same as on one machine, where the records stand in the order of the source.

        It is drawn from counts where the method needs no more; else the columns that it needs are collected, if they
        fit into the memory.
        """
        for parameter, names in recipe.columns().items():
            self._require(names, f"'{parameter}' of {recipe.method_name}")
        data = self._counted(self._needed(recipe)).data if self._from_counts(recipe) else self._collected(recipe)
        return SourcePlan(self, recipe.plan(data))

    def score(self, plan: Plan, measures: Sequence[str] | None = None, *, by: Sequence[str] | None = None) -> Scores:
        """Score a plan by some measures, with the values that they have on one machine."""
        stand_in = self._stand_in()
        judge = _FromCounts(stand_in, measures, by, self._distinct)
        names = tuple(dict.fromkeys(name for summary in judge.summaries(plan.columns) for name in summary.needs))
        levels = tuple(name for level in judge.levels.values() for name in level)
        names = tuple(dict.fromkeys((*names, *levels)))
        counted = all(isinstance(summary, Counted) for summary in judge.summaries(plan.columns))
        if not counted or self.weight is not None:
            data = self._collect(tuple(dict.fromkeys((*names, *plan.columns))), "These measures look at records")
            return score(data, _without_source(plan, data), measures, by=by)
        self._count_together([summary.needs for summary in judge.summaries(plan.columns)])
        return judge.score_touched(*self._touched(plan, names))

    def release(
        self,
        recipe: Recipe,
        out: str | Path = "release",
        *,
        measures: Sequence[str] = DEFAULT,
        files: int | None = None,
        insecure: bool = False,
    ) -> Plan:
        """Swap on the cluster and write `out/public/` and `out/confidential/`; both appear whole or not at all.

        `out` is a folder that all workers can write to. The records come out as Parquet files in `out/public/data/`, in
        random order: files by name and rows in each. The order is drawn afresh and is not kept. `files` is the number
        of files. What a policy demands is checked on one machine only, so where the variable QUADRILLE_POLICY names one
        nothing is released.
        """
        guessable = not is_secret(recipe.parameters()["seed"])
        self._refuse_release(recipe, guessable and not insecure)
        folder = Path(out)
        check_free(folder, overwrite=False, holds=())
        refuse_contradictions(self._sample(), recipe)
        plan = self.plan(recipe)
        if not len(plan.rows):
            raise InputError("The recipe swaps nothing in these data, so the public file would be the original.")
        stand_in, steering = self._stand_in(), recipe.steering_columns
        wanted = default_measures(stand_in, plan.columns) if measures is DEFAULT else measures
        scores = self.score(plan, beside_exposed(beside_the_n_rule(wanted), stand_in))
        released = [name for name in self.columns if name not in steering]
        public = without_roles(Data([stand_in[name] for name in released], weight=self.weight, nested=True))
        note_name = INSECURE_NOTE if guessable else NOTE
        note = methods_note(Data([stand_in[name] for name in released], weight=self.weight, nested=True), shuffled=True)
        with new_folder(folder) as fresh:
            outside, inside = fresh / "public", private_folder(fresh / "confidential")
            outside.mkdir()
            hashes = self._write(plan, released, outside / "data", files)
            texts = {"codebook.toml": public.codebook.to_toml().encode(), note_name: note.encode()}
            for name, contents in texts.items():
                write_file(outside / name, contents)
                hashes[name] = hashlib.sha256(contents).hexdigest()
            manifest = {
                "sha256": hashes,
                "records": self.n,
                "fingerprint": {"before": plan.before, "after": plan.after},
            }
            private = {
                "recipe.json": (recipe.to_json() + "\n").encode(),
                "plan.parquet": plan_bytes(plan),
                "scores.json": (as_json(scores.as_dict()) + "\n").encode(),
                "manifest.json": (as_json(manifest) + "\n").encode(),
            }
            for name, contents in private.items():
                write_file(inside / name, contents, private=True)
        return plan

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the records, as `Data.fingerprint` has it: a pass over all columns of the source."""
        parts = [(f"c{i}", salt_of(name), self._known.code_of(name)) for i, name in enumerate(self.columns)]
        found = self._order.mapped(self.columns, partial(_hash_batch, columns=parts), "total bigint").toArrow()
        total = sum(found.column("total").to_pylist()) & _MASK
        return f"{head_of(self._stand_in(), self.n)}{total:016x}"

    def fingerprint_after(self, plan: Plan) -> str:
        """Return the fingerprint of the records after a plan."""
        touched, local = self._touched(plan, plan.columns)
        rows, body = _touched_rows(plan), int(self.fingerprint[16:], 16)
        for name, (places, codes) in local.changed(touched).items():
            body += hash_of(name, rows[places], codes) - hash_of(name, rows[places], touched[name].values[places])
        return f"{self.fingerprint[:16]}{body & _MASK:016x}"

    def _require(self, names: Iterable[str], where: str) -> None:
        for name in names:
            if name not in self.columns:
                raise unknown_name("column", name, self.columns, where=where)

    def _from_counts(self, recipe: Recipe) -> bool:
        """Tell whether a recipe can be drawn from counts alone."""
        if self.weight is not None:
            return False
        if isinstance(recipe, RandomSwap):  # rules that tie two variables are judged on the file as the first left it
            return recipe.order == "together" or not recipe.rules
        if isinstance(recipe, DesignedSwap):
            return not recipe.different and not recipe.fit
        return isinstance(recipe, PermutationSwap | PrivateSwap)

    def _needed(self, recipe: Recipe) -> tuple[str, ...]:
        """Return the columns that a draw may look at."""
        if isinstance(recipe, PrivateSwap):
            return tuple(self.columns)
        named = {name for names in recipe.columns().values() for name in names} | set(self.codebook.geography)
        if isinstance(recipe, DesignedPairs):  # its tables are those of the key variables where none is named
            named |= set(self.codebook.keys)
        return tuple(name for name in self.columns if name in named or name == self.weight)

    def _collected(self, recipe: Recipe) -> Data:
        units = [variable.name for variable in self.codebook if variable.role == "unit"]
        names = tuple(dict.fromkeys((*self._needed(recipe), *units)))
        return self._collect(names, f"{recipe.method_name} looks at records")

    def _collect(self, names: tuple[str, ...], why: str) -> Data:
        """Bring columns of all records here, in their order."""
        size = self.n * (16 + 24 * len(names))
        if size > self._memory:
            raise InputError(
                f"{why}, so {len(names)} columns of {self.n:,} records must be collected: about {size / 1e9:.1f} GB, "
                f"and {self._memory / 1e9:.1f} GB may be used. Allow more (memory=), or choose what works from counts."
            )
        kept = (*names, *([self.weight] if self.weight is not None and self.weight not in names else []))
        table = self._mapped(kept, _whole_batch)
        return self._encoded(table, kept)

    def _mapped(self, names: Sequence[str], work: Work) -> Any:
        """Collect what something makes of these columns: records and their numbers, by which they are sorted."""
        schema = _schema(_plainly(self._table, names), ROW)
        return self._order.mapped(names, work, schema).toArrow().rename_columns([*names, ROW]).sort_by(ROW)

    def _encoded(self, table: Any, names: Sequence[str]) -> Data:
        """Turn records that were collected into data."""
        frame = _frame(table.select(list(names)))
        columns = [self._known.coded(name, frame[name]) for name in names]
        return Data(columns, weight=self.weight if self.weight in names else None, nested=True)

    def _stand_in(self) -> Data:
        """Return a few made-up records in which every value of every column occurs, for what is known beforehand."""
        rows = max((len(self._known.seen[name]) for name in self.columns), default=1)
        columns = [
            self._known.coded(name, self._known.seen[name].gather(_cycled(self._known.seen[name], rows)))
            for name in self.columns
        ]
        return Data(columns, weight=self.weight, nested=True)

    def _sample(self) -> Data:
        """Return one record from each stretch of the table."""
        rows = np.unique(np.linspace(0, self.n - 1, min(self.n, _SAMPLE)).astype(np.int64))
        return self._fetched(rows, self.columns)

    def _fetched(self, rows: Rows, names: Sequence[str]) -> Data:
        """Return some records, which are in ascending order."""
        table = self._mapped(names, partial(_pick_batch, rows=rows))
        if not np.array_equal(table.column(ROW).to_numpy(), rows):
            raise InputError(_CHANGED)
        return self._encoded(table, names)

    def _touched(self, plan: Plan, names: Sequence[str]) -> tuple[Data, Plan]:
        """Return the records that a plan touches, and the plan with their places among these for their numbers."""
        rows = _touched_rows(plan)
        columns = tuple(dict.fromkeys((*names, *plan.columns)))
        data = self._fetched(rows, columns)
        moves = [_replaced(move, rows) for move in plan.moves]
        return data, Plan(moves, data=data, asked=plan.asked, steering_columns=plan.steering_columns)

    def _counted(self, names: tuple[str, ...]) -> _Counts:
        """Count the combinations of some columns, block by block."""
        if names not in self._counts:
            self._counts[names] = _Counts.of(self._order.counted(names), names, self._known, self._find)
        return self._counts[names]

    def _distinct(self, names: tuple[str, ...]) -> Distinct:
        counts = next((c for known, c in self._counts.items() if set(names) <= set(known)), None)
        data = (counts or self._counted(names)).data
        return Distinct(data, data.times)

    def _count_together(self, tables: Sequence[tuple[str, ...]]) -> None:
        """Count the cross of as many tables as go together, so that few passes over the table are made."""
        chosen: tuple[str, ...] = ()
        for names in sorted(set(tables), key=lambda table: (-len(table), table)):
            union = tuple(dict.fromkeys((*chosen, *names)))
            if prod(len(self._known.seen[name]) + 1 for name in union) <= _CROSS:
                chosen = union
        if chosen and not any(set(chosen) <= set(known) for known in self._counts):
            self._counted(chosen)

    def _find(self, counts: _Counts, of: Ints, start: Ints, places: Ints) -> Rows:
        """Find the records at some places, of groups of combinations: a pass with a counter for each group."""
        wanted, back = np.unique(places, return_inverse=True)
        sought = _sought(counts, of, start, wanted)
        work = partial(_find_batch, columns=counts.lookups, keys=counts.keys, of=of, sought=sought, state={})
        found = self._order.mapped(counts.names, work, f"{_INDEX} bigint, {ROW} bigint").toArrow()
        rows = np.full(len(wanted), -1, dtype=np.int64)
        rows[found.column(_INDEX).to_numpy()] = found.column(ROW).to_numpy()
        if found.num_rows != len(wanted) or (rows < 0).any():
            raise InputError(_CHANGED)
        return rows[back].reshape(places.shape)

    def _refuse_release(self, recipe: Recipe, guessable: bool) -> None:
        """Refuse what a release on a cluster cannot do."""
        if guessable:
            text = (
                "The seed is a number that can be guessed, and with it the release can be undone. Leave the seed out, "
                "so that it is drawn from the operating system; for tests alone, allow it with"
            )
            raise unless(ParameterError, text, "insecure")
        if asked_policies("release", None):
            raise InputError(
                "A policy is checked on one machine only. Export the columns that the swap needs, release there, or "
                "apply the plan as a file."
            )
        if isinstance(recipe, PrivateSwap):
            raise InputError("The guarantee of PrivateSwap is kept account of on one machine only. Release there.")
        units = [variable.name for variable in self.codebook if variable.role == "unit"]
        if units:
            raise InputError(
                f"Column {units[0]!r} numbers units such as households, which a release numbers anew and keeps "
                "together. Release on one machine, or leave the column out (columns=)."
            )

    def _write(self, plan: Plan, names: Sequence[str], out: Path, files: int | None) -> dict[str, str]:
        """Write the swapped records in random order; return the hash of each file."""
        functions = _spark("sql.functions")
        touched, local = self._touched(plan, plan.columns)
        swapped = local.apply(touched)
        rows, key = _touched_rows(plan), bytes.fromhex(fresh_seed())
        numbered = self._order.numbered(names)
        moved = [name for name in names if name in plan.columns]
        columns = [pl.Series(ROW, rows), *(restore(swapped[name]).alias(f"_new {i}") for i, name in enumerate(moved))]
        new = self._session.createDataFrame(_arrow(pl.DataFrame(columns))).withColumn("_new", functions.lit(True))
        joined = numbered.join(functions.broadcast(new), ROW, "left")
        values = [
            functions.when(functions.col("_new"), functions.col(f"`_new {moved.index(name)}`").cast(kind))
            .otherwise(functions.col(_quoted(name)))
            .alias(name)
            if name in moved
            else functions.col(_quoted(name))
            for name in names
            for kind in [self._table.schema[name].dataType]
        ]
        place = functions.pandas_udf(_keyed(key), "bigint")(functions.col(ROW)).alias(ID)
        count = files or max(1, -(-self.n // (4 * _BLOCK_ROWS)))
        ordered = joined.select(*values, place).repartitionByRange(count, ID).sortWithinPartitions(ID).drop(ID)
        ordered.write.parquet(out.resolve().as_uri())
        return _tidied(out)


_CHANGED = (
    "The table has changed between two passes over it, or was split in another way. Work on files that nobody writes "
    "to."
)
_MASK = (1 << 64) - 1


class SourcePlan(Plan):
    """A plan for records on a cluster; their fingerprints are worked out when they are asked for."""

    def __init__(self, source: Source, plan: Plan) -> None:
        super().__init__(plan.moves, asked=plan.asked, details=plan.details, steering_columns=plan.steering_columns)
        self._source = source
        self._fingerprint_after: str | None = None

    @property
    def before(self) -> str:
        """Fingerprint of the data that the plan is for."""
        return self._source.fingerprint

    @property
    def after(self) -> str:
        """Fingerprint of the data that the plan makes."""
        if self._fingerprint_after is None:
            self._fingerprint_after = self._source.fingerprint_after(self)
        return self._fingerprint_after


class _FromCounts(Evaluator):
    """Measures of tables that are counted elsewhere; `data` has every value, and not the records."""

    def __init__(
        self,
        data: Data,
        measures: Sequence[str] | None,
        by: Sequence[str] | None,
        distinct: Callable[[tuple[str, ...]], Distinct],
    ) -> None:
        self._from = distinct
        super().__init__(data, measures, by=by)

    def _fused_for(self, summaries: Sequence[Summary]) -> dict[Any, Any]:
        return {}

    def before(self, summary: Summary) -> Statistic:
        """Return a table before, counted on the cluster."""
        if summary not in self._before:
            assert isinstance(summary, Counted)
            self._before[summary] = summary.of_distinct(self._from(summary.needs))
        return self._before[summary]

    def score_touched(self, touched: Data, plan: Plan) -> Scores:
        """Score a plan, given the records that it touches alone."""
        return self._scored(Delta(touched, plan), self._parts_for(plan.columns, plan.steering_columns))


def _without_source(plan: Plan, data: Data) -> Plan:
    return Plan(plan.moves, data=data, asked=plan.asked, steering_columns=plan.steering_columns)


def _touched_rows(plan: Plan) -> Rows:
    """Return the records that a plan takes values from or gives them to, ascending; one where it moves nothing."""
    parts = [part for move in plan.moves for part in move.expanded]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(1, dtype=np.int64)


def _replaced(move: Move, rows: Rows) -> Move:
    """Return a move of the same records, by their places among these."""
    receivers, givers = (np.searchsorted(rows, part) for part in move.expanded)
    pairs = None if move.row_pairs is None else np.searchsorted(rows, move.row_pairs)
    return Move(move.columns, (receivers, givers), pairs)


def _cycled(values: pl.Series, rows: int) -> list[int]:
    return [i % len(values) for i in range(rows)]


@dataclass(frozen=True)
class _Known:
    """What is known of the columns: variables and types, and the values that occur, null among them."""

    columns: tuple[Column, ...]
    facts: Mapping[str, Facts]
    seen: Mapping[str, pl.Series]
    weight: str | None

    def coded(self, name: str, values: pl.Series) -> Column:
        """Return values of a column as a column."""
        known, empty = self[name], self.seen[name].clear()
        source = values.cast(empty.dtype)
        batches = Batches(pl.DataFrame([empty]), len(values), lambda _: iter([source]))
        return coded_by(batches, known.variable, self.facts[name], known.dtype, "the table")

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.variable.name == name)

    def code_of(self, name: str) -> dict[object, int] | None:
        """Return the code of each value of a column; None for numbers."""
        column = self[name]
        if not column.variable.coded:
            return None
        values = self.seen[name]
        return dict(zip(values.to_list(), self.coded(name, values).values.tolist(), strict=True))


def _described(table: Any, named: Sequence[str], book: Codebook | None, weight: str | None, n: int) -> _Known:
    """Find out what the columns are, as reading a file does: two passes, of which the second collects values."""
    where, types = "the table", {field.name: field.dataType.simpleString() for field in table.schema}
    given = {variable.name: variable for variable in book or ()}
    ids = {v.name for v in given.values() if v.role == "id"}
    names = [name for name in named if name not in ids]
    for name in names:
        if types[name] not in _TYPES:
            raise InputError(
                f"Column {name!r} of the table has the type {types[name]}, which is not understood. Cast it to one of "
                f"{', '.join(_TYPES)}, or leave it out (columns=)."
            )
    empty = _frame(table.select(*map(_quoted, names)).limit(0).toArrow())
    # A number that is called like an identifier is one; it would be known by its values on one machine.
    names = [name for name in names if name in given or types[name] not in _WHOLE or not names_identifier(name)]
    first = _first_look(table, names, types)
    wanted = [name for name in names if _lists_values(name, types[name], given.get(name), first)]
    found = _values(table, wanted, empty)
    about = [v for name, v in given.items() if name in names]
    open_ones = {v.name: settled(v, found.get(v.name, empty[v.name])) for v in about if v.kind_open}
    book = Codebook(tuple(open_ones.get(v.name, v) for v in about)) if about else None
    settled_ones = given_by(empty.select(names), book, weight, where)
    columns, facts, seen = list[Column](), dict[str, Facts](), dict[str, pl.Series]()
    for name in names:
        series, mine = empty[name], settled_ones.get(name)
        _refuse_unreadable(series, mine)
        distinct = found.get(name)
        few = (
            is_text(series)
            or mine is not None
            or not series.dtype.is_integer()
            or (distinct is not None and len(distinct) <= MOST_ORDINAL)
        )
        facts[name] = Facts(first[name].empty, few, first[name].large, distinct if few else None)
        dtype = type_name(series, where)
        variable = complete(series, mine, facts[name], dtype, where, n)
        if variable.role == "id":
            continue
        listed = distinct if variable.coded and distinct is not None else pl.Series(name, [0, 1]).cast(series.dtype)
        holes = pl.Series(name, [None] if first[name].empty else [], dtype=series.dtype)
        seen[name] = pl.concat([listed, holes]).alias(name)
        columns.append(
            Column(
                variable,
                np.empty(0, dtype=np.uint8 if variable.coded else np.float64),
                dtype,
                nullable=variable.coded and first[name].empty > 0,
            )
        )
    if not columns:
        raise InputError("The table has no columns but identifiers. Name other ones (columns=).")
    weights = [column.variable.name for column in columns if column.variable.role == "weight"]
    return _Known(tuple(columns), facts, seen, weights[0] if weights else None)


_WHOLE = ("tinyint", "smallint", "int", "bigint")


def _refuse_unreadable(series: pl.Series, given: Variable | None) -> None:
    if needs_the_whole(series, given) or (given is not None and (given.recodes or (given.missing and not given.coded))):
        raise InputError(
            f"Column {series.name!r} of the table is not as its codebook says: text that stands for numbers, missing "
            "codes among numbers, or categories to be merged. Write it as it shall be, or leave it out (columns=)."
        )


@dataclass(frozen=True)
class _Look:
    """What a first pass finds out about a column: empty fields, about how many values, whole numbers beyond floats."""

    empty: int
    about: int
    large: bool


def _first_look(table: Any, names: Sequence[str], types: Mapping[str, str]) -> dict[str, _Look]:
    functions = _spark("sql.functions")
    asked: list[Any] = []
    for i, name in enumerate(names):
        column = functions.col(_quoted(name))
        asked += [
            functions.count(column).alias(f"held {i}"),
            functions.approx_count_distinct(column).alias(f"about {i}"),
        ]
        if types[name] in _WHOLE:
            asked += [functions.min(column).alias(f"low {i}"), functions.max(column).alias(f"high {i}")]
    row = table.agg(functions.count("*").alias("n"), *asked).toArrow().to_pylist()[0]
    looks: dict[str, _Look] = {}
    for i, name in enumerate(names):
        ends = pl.Series([row.get(f"low {i}"), row.get(f"high {i}")], dtype=pl.Int64)
        looks[name] = _Look(row["n"] - row[f"held {i}"], row[f"about {i}"], too_large(ends))
    return looks


def _lists_values(name: str, kind: str, given: Variable | None, looks: Mapping[str, _Look]) -> bool:
    """Tell whether the values of a column are listed: text and few whole numbers, unless a codebook says numbers."""
    if given is not None and not given.coded and not given.kind_open:
        return False
    if kind in ("float", "double"):
        return given is not None and given.coded and not given.kind_open
    if kind in _WHOLE and given is None:
        return looks[name].about <= 2 * MOST_ORDINAL
    if looks[name].about > 2 * _TEXT_VALUES:
        raise InputError(
            f"Column {name!r} has about {looks[name].about:,} different values. Leave it out (columns=), or give it "
            "the role id in the codebook if it names persons or records."
        )
    return True


def _values(table: Any, names: Sequence[str], empty: pl.DataFrame) -> dict[str, pl.Series]:
    """Return the different values of some columns, null left out."""
    if not names:
        return {}
    functions = _spark("sql.functions")
    sets = [functions.collect_set(_quoted(name)).alias(f"values {i}") for i, name in enumerate(names)]
    row = table.agg(*sets).toArrow().to_pylist()[0]
    return {name: pl.Series(name, row[f"values {i}"], dtype=empty[name].dtype).sort() for i, name in enumerate(names)}


Lookup = tuple[str, dict[object, int], int]
"""A column, the place of each of its values, and what a step adds to the key of a combination."""
Sought = dict[int, tuple[Ints, Ints]]
"""By block: group and rank of the records that are looked for, as ascending keys, and the number of each."""
_RANKS = np.int64(1 << 32)


@dataclass(frozen=True, eq=False)
class _Counts:
    """The combinations of some columns and how often each occurs in each block."""

    names: tuple[str, ...]
    lookups: tuple[Lookup, ...]
    keys: Ints
    block: Ints
    combination: Ints
    times: Ints
    data: Combinations

    @classmethod
    def of(
        cls, table: Any, names: tuple[str, ...], known: _Known, find: Callable[[_Counts, Ints, Ints, Ints], Rows]
    ) -> _Counts:
        """Take up a table of blocks and combinations with their counts."""
        frame = _frame(table)
        key, stride, lookups = np.zeros(frame.height, dtype=np.int64), 1, list[Lookup]()
        for name in names:
            values = frame[name].unique(maintain_order=True).to_list()
            place: dict[object, int] = {value: code for code, value in enumerate(values)}
            if stride * len(values) >= 1 << 62:
                raise InputError("The combinations of these columns are too many to be numbered. Name fewer columns.")
            lookups.append((f"c{len(lookups)}", place, stride))
            key += stride * np.array([place[value] for value in frame[name].to_list()], dtype=np.int64)
            stride *= len(values)
        keys, first, of = np.unique(key, return_index=True, return_inverse=True)
        count = frame[_COUNT].to_numpy().astype(np.int64)
        total = np.zeros(len(keys), dtype=np.int64)
        np.add.at(total, of, count)
        columns = [known.coded(name, frame[name].gather(first)) for name in names] or [_nothing(len(keys))]
        box = list[_Counts]()
        data = Combinations(columns, total, lambda group, start, places: find(box[0], group, start, places))
        box.append(cls(names, tuple(lookups), keys, frame[BLOCK].to_numpy().astype(np.int64), of, count, data))
        return box[0]


def _nothing(rows: int) -> Column:
    """Return a column of one category, for a draw that looks at no column."""
    return Column(Variable("(all)", categories=("all",)), np.zeros(rows, dtype=np.uint8))


def _sought(counts: _Counts, of: Ints, start: Ints, wanted: Ints) -> Sought:
    """Say which records are looked for in each block: the rank-th of a group, counted from the block's first record."""
    group = of[counts.combination]
    kept = group >= 0
    blocks = int(counts.block.max(initial=0)) + 1
    cell, place = np.unique(group[kept] * blocks + counts.block[kept], return_inverse=True)
    held = np.zeros(len(cell), dtype=np.int64)
    np.add.at(held, place, counts.times[kept])
    ends = np.cumsum(held)  # groups follow one another, and in each of them its blocks: places run through them
    at = np.searchsorted(ends, wanted, side="right")
    rank = wanted - (ends - held)[at]
    keys, block = cell[at] // blocks * _RANKS + rank, cell[at] % blocks
    found: Sought = {}
    for b in np.unique(block).tolist():
        inside = np.flatnonzero(block == b)
        found[b] = keys[inside], inside
    return found


class _Files:
    """The order of Parquet files: by name, and by row in each. A block is the part of a file that a task reads."""

    def __init__(self, table: Any) -> None:
        self._table = table
        functions = _spark("sql.functions")
        index = functions.col(_INDEX)
        found = (
            table.select(*_metadata())
            .groupBy(_FILE, _START)
            .agg(
                functions.count("*").alias(_COUNT),
                functions.min(index).alias("low"),
                functions.max(index).alias("high"),
            )
            .orderBy(_FILE, _START)
            .toArrow()
            .to_pylist()
        )
        self.blocks: dict[tuple[str, int], tuple[int, int, int, int]] = {}
        first, file, offset = 0, "", 0
        for number, part in enumerate(found):
            if part[_FILE] != file:
                file, offset = part[_FILE], first
            if part["low"] != first - offset or part["high"] - part["low"] + 1 != part[_COUNT]:
                raise InputError(_CHANGED)
            self.blocks[file, part[_START]] = number, offset, part["low"], part["high"]
            first += part[_COUNT]
        self.n = first
        if not self.n:
            raise InputError("The table has no records.")

    def counted(self, names: Sequence[str]) -> Any:
        """Count the combinations of some columns in each block."""
        columns = [_quoted(name) for name in names]
        table = self._table.select(*columns, *_metadata()).groupBy(_FILE, _START, *columns).count().toArrow()
        files, starts = table.column(_FILE).to_pylist(), table.column(_START).to_pylist()
        try:
            blocks = [self.blocks[place][0] for place in zip(files, starts, strict=True)]
        except KeyError:
            raise InputError(_CHANGED) from None
        return _with_blocks(table, names, blocks)

    def mapped(self, names: Sequence[str], work: Work, schema: Any) -> Any:
        """Run something on every batch of records."""
        table = _plainly(self._table, names, _metadata())
        return table.mapInArrow(_task(partial(_place_in_file, blocks=self.blocks), work), schema)

    def numbered(self, names: Sequence[str]) -> Any:
        """Return some columns and the number of each record."""
        functions = _spark("sql.functions")
        offsets = {file: offset for (file, _), (_, offset, _, _) in self.blocks.items()}
        rows = _arrow(pl.DataFrame({_FILE: list(offsets), _START: list(offsets.values())}))
        listed = functions.broadcast(self._table.sparkSession.createDataFrame(rows))
        table = self._table.select(*map(_quoted, names), *(each for each in _metadata()[:1]), _metadata()[2])
        return (
            table.join(listed, _FILE)
            .withColumn(ROW, functions.col(_INDEX) + functions.col(_START))
            .drop(_FILE, _START, _INDEX)
        )


def _metadata() -> list[Any]:
    functions = _spark("sql.functions")
    return [
        functions.col("_metadata.file_path").alias(_FILE),
        functions.col("_metadata.file_block_start").alias(_START),
        functions.col("_metadata.row_index").alias(_INDEX),
    ]


def _with_blocks(table: Any, names: Sequence[str], blocks: Sequence[int]) -> Any:
    arrow = import_module("pyarrow")
    made = table.select(list(names)).append_column(_COUNT, table.column("count"))
    return made.append_column(BLOCK, arrow.array(blocks, type=arrow.int64()))


class _Sorted:
    """The order of a column that tells all records apart. A block is what lies between two of its values."""

    def __init__(self, table: Any, name: str) -> None:
        functions = _spark("sql.functions")
        self._kind = table.schema[name].dataType.simpleString()
        if self._kind not in (*_WHOLE, "string"):
            raise InputError(f"Column {name!r} has the type {self._kind}, and order= needs whole numbers or text.")
        column = functions.col(_quoted(name))
        row = (
            table.agg(
                functions.count("*").alias("n"),
                functions.count(column).alias("held"),
                functions.countDistinct(column).alias("k"),
            )
            .toArrow()
            .to_pylist()[0]
        )
        self.n = row["n"]
        if not self.n:
            raise InputError("The table has no records.")
        if row["k"] != self.n:
            raise InputError(
                f"Column {name!r} is missing or has a value twice in {self.n - row['k']:,} records, so it cannot order "
                "them. Name a column that tells all records apart."
            )
        self._table, self._name = table, name
        self._parts = max(1, -(-self.n // _BLOCK_ROWS))
        self._edges = self._boundaries()
        counts = self.counted(())
        held = np.zeros(self._parts, dtype=np.int64)
        held[counts.column(BLOCK).to_numpy()] = counts.column(_COUNT).to_numpy()
        self._first = (np.cumsum(held) - held).tolist()

    def _boundaries(self) -> list[Any]:
        """Choose values between which about equally many records lie, from a sample."""
        if self._parts == 1:
            return []
        share = min(1.0, 200.0 * self._parts / self.n)
        sample = self._table.select(_quoted(self._name)).sample(share, seed=1).toArrow().column(0).to_pylist()
        values = sorted(set(sample))
        return [values[i * len(values) // self._parts] for i in range(1, self._parts) if values]

    def _in_blocks(self, names: Sequence[str]) -> Any:
        identifier = _spark("sql.functions").col(_quoted(self._name)).alias(ID)
        table = _plainly(self._table, names, [identifier])
        return table.mapInArrow(_block_task(self._edges), _schema(table, BLOCK))

    def counted(self, names: Sequence[str]) -> Any:
        """Count the combinations of some columns in each block."""
        places = [f"c{i}" for i in range(len(names))]
        table = self._in_blocks(names).groupBy(BLOCK, *places).count().toArrow()
        table = table.select([*places, BLOCK, "count"]).rename_columns([*names, BLOCK, "count"])
        return _with_blocks(table, names, table.column(BLOCK).to_pylist())

    def _ordered(self, names: Sequence[str]) -> Any:
        return self._in_blocks(names).repartition(self._parts, BLOCK).sortWithinPartitions(BLOCK, ID)

    def mapped(self, names: Sequence[str], work: Work, schema: Any) -> Any:
        """Run something on every batch of records."""
        return self._ordered(names).mapInArrow(_task(partial(_place_in_order, first=self._first), work), schema)

    def numbered(self, names: Sequence[str]) -> Any:
        """Return some columns and the number of each record."""
        return self.mapped(names, _whole_batch, _schema(_plainly(self._table, names), ROW)).toDF(*names, ROW)


# What follows runs in tasks: it is sent there by value, and may use nothing of this package.


def _task(place: Callable[[Any, dict[Any, Any]], tuple[Ints, Ints]], work: Work) -> Task:
    """Return a task that places the records of every batch and does something with them."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        state: dict[Any, Any] = {}
        for batch in batches:
            if batch.num_rows:
                made = work(batch, *place(batch, state))
                if made is not None and made.num_rows:
                    yield made

    return task


def _codes(values: Any, place: Mapping[object, int]) -> Ints:
    """Return the place of each value of a column of a batch."""
    encoded = values.dictionary_encode()
    listed = encoded.dictionary.to_pylist()
    table = np.array([*(place[value] for value in listed), place.get(None, -1)], dtype=np.int64)
    codes: Ints = table[encoded.indices.fill_null(len(listed)).to_numpy(zero_copy_only=False)]
    return codes


def _place_in_file(
    batch: Any, _: dict[Any, Any], *, blocks: Mapping[tuple[str, int], tuple[int, int, int, int]]
) -> tuple[Ints, Ints]:
    """Return the block and the number of each record of files."""
    files, starts = batch.column(_FILE).dictionary_encode(), batch.column(_START).dictionary_encode()
    names, begins = files.dictionary.to_pylist(), starts.dictionary.to_pylist()
    cell = files.indices.to_numpy().astype(np.int64) * len(begins) + starts.indices.to_numpy()
    index = batch.column(_INDEX).to_numpy()
    block, row = np.empty(len(cell), dtype=np.int64), np.empty(len(cell), dtype=np.int64)
    for each in np.unique(cell).tolist():
        inside = cell == each
        number, offset, low, high = blocks[names[each // len(begins)], begins[each % len(begins)]]
        if index[inside].min() < low or index[inside].max() > high:
            raise ValueError("The table was split in another way than before.")
        block[inside], row[inside] = number, index[inside] + offset
    return block, row


def _place_in_order(batch: Any, state: dict[Any, Any], *, first: Sequence[int]) -> tuple[Ints, Ints]:
    """Return the block and the number of each record of a table that is sorted by block and identifier."""
    block = batch.column(BLOCK).to_numpy()
    row = np.empty(len(block), dtype=np.int64)
    for each in np.unique(block).tolist():
        inside = np.flatnonzero(block == each)
        seen = state.get(each, 0)
        row[inside] = first[each] + seen + np.arange(len(inside))
        state[each] = seen + len(inside)
    return block, row


def _block_task(edges: Sequence[Any]) -> Task:
    """Return a task that adds the block of each record."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import bisect

        pa: Any = import_module("pyarrow")

        for batch in batches:
            values = batch.column(ID)
            if not edges or isinstance(edges[0], str):
                block = np.array([bisect.bisect_right(edges, value) for value in values.to_pylist()], dtype=np.int64)
            else:
                numbers: Ints = values.to_numpy().astype(np.int64)
                block = np.searchsorted(np.array(edges, dtype=np.int64), numbers, side="right")
            yield pa.RecordBatch.from_arrays([*batch.columns, pa.array(block)], [*batch.schema.names, BLOCK])

    return task


def _plain(batch: Any, row: Ints) -> Any:
    """Return the columns of a batch, and the number of each record."""
    pa: Any = import_module("pyarrow")

    own = (_FILE, _START, _INDEX, BLOCK, ID)
    names = [name for name in batch.schema.names if name not in own]
    return pa.RecordBatch.from_arrays([*(batch.column(name) for name in names), pa.array(row)], [*names, ROW])


def _whole_batch(batch: Any, _: Ints, row: Ints) -> Any:
    return _plain(batch, row)


def _pick_batch(batch: Any, _: Ints, row: Ints, *, rows: Ints) -> Any:
    """Return the records with these numbers."""
    at = np.minimum(np.searchsorted(rows, row), len(rows) - 1)
    picked = np.flatnonzero(rows[at] == row)
    return _plain(batch, row).take(picked) if len(picked) else None


def _find_batch(
    batch: Any,
    block: Ints,
    row: Ints,
    *,
    columns: Sequence[Lookup],
    keys: Ints,
    of: Ints,
    sought: Sought,
    state: dict[int, Any],
) -> Any:
    """Return the records that are looked for: of each group of a block those of some ranks."""
    pa: Any = import_module("pyarrow")

    key = np.zeros(len(row), dtype=np.int64)
    for name, place, stride in columns:
        key += stride * _codes(batch.column(name), place)
    group = of[np.searchsorted(keys, key)]
    ranks, found, numbers = np.int64(1 << 32), list[Ints](), list[Ints]()
    for each in np.unique(block).tolist():
        if each not in sought:
            continue
        inside = np.flatnonzero((block == each) & (group >= 0))
        held: Ints = state.setdefault(each, np.zeros(int(of.max()) + 1, dtype=np.int64))
        order = inside[np.argsort(group[inside], kind="stable")]
        groups = group[order]
        rank = np.arange(len(groups)) - np.searchsorted(groups, groups, side="left") + held[groups]
        np.add.at(held, groups, 1)
        wanted, number = sought[each]
        mine = groups * ranks + rank
        at = np.minimum(np.searchsorted(wanted, mine), len(wanted) - 1)
        hit = wanted[at] == mine
        found.append(number[at[hit]])
        numbers.append(row[order[hit]])
    if not found:
        return None
    return pa.RecordBatch.from_arrays(
        [pa.array(np.concatenate(found)), pa.array(np.concatenate(numbers))], [_INDEX, ROW]
    )


def _hash_batch(
    batch: Any, _: Ints, row: Ints, *, columns: Sequence[tuple[str, np.uint64, dict[object, int] | None]]
) -> Any:
    """Return the sum, modulo 2^64, of the hashes of all values of a batch."""
    pa: Any = import_module("pyarrow")

    total = np.zeros(1, dtype=np.uint64)
    for name, salt, place in columns:
        values = batch.column(name)
        if place is not None:
            bits = _codes(values, place).astype(np.uint64)
        else:
            numbers = values.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
            bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
        total += _mixed(_mixed(row.astype(np.uint64) + salt) ^ bits).sum(dtype=np.uint64)
    return pa.RecordBatch.from_arrays([pa.array(total.view(np.int64))], ["total"])


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64 bits, as the kernels do."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _keyed(key: bytes) -> Callable[[Any], Any]:
    """Return what gives each record its place: half a block of the cipher of its number, a function of nothing else."""
    series = import_module("pandas").Series

    def place(row: Any) -> Any:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import ECB

        numbers = np.zeros((len(row), 2), dtype="<i8")
        numbers[:, 0] = row.to_numpy()
        drawn = Cipher(AES(key), ECB()).encryptor().update(numbers.tobytes())
        return series(np.frombuffer(drawn, dtype="<i8")[::2])

    place.__annotations__ = {"row": series, "return": series}  # by which Spark knows what to hand over
    return place


def _tidied(folder: Path) -> dict[str, str]:
    """Take away what Spark leaves beside its files, give them plain names, and return their hashes."""
    parts = sorted(folder.glob("part-*.parquet"))
    if not parts:
        raise OutputError(f"The workers cannot write to {str(folder)!r}. Name a folder that all of them see.")
    for other in [*folder.glob("_*"), *folder.glob(".*")]:
        other.unlink()
    hashes: dict[str, str] = {}
    for number, part in enumerate(parts):
        plain = part.rename(folder / f"part-{number:05}.parquet")
        with plain.open("rb") as file:
            hashes[f"data/{plain.name}"] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashes
