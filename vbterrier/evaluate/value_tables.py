"""Tables of values per topic, and runs with suspiciously many empty topics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, nearest, warn
from vbterrier.frames.contracts import is_linearised
from vbterrier.measures.entity import DiscRatio
from vbterrier.measures.external import is_mean
from vbterrier.measures.linking import LinkingR
from vbterrier.measures.text import measures_from
from vbterrier.remedies import COMMON_TOPICS
from vbterrier.stats.topic_intervals import topic_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vbterrier.annotations import Floats, Ints

    _Column = tuple[list[str], Floats]


# Means are summed in an order that may differ between systems.
_PLACES = 12
COLUMNS = ("name", "measure", "n_qids", "n_missing", "n_zero", "flag")


@dataclass(frozen=True, eq=False)
class ValueTable:
    """Scores of systems by one measure, the system with the highest mean first."""

    measure: str
    names: list[str]
    qids: list[str]
    values: Floats  # shape (n_qids, n_systems)

    def frame(self) -> pd.DataFrame:
        """The table as a V frame."""
        columns = {"name": np.repeat(np.array(self.names, dtype=object), len(self.qids))}
        columns |= {"qid": np.tile(np.array(self.qids, dtype=object), len(self.names))}
        return pd.DataFrame(columns).assign(measure=self.measure, value=self.values.T.ravel())


def value_tables(values: Any, asked: Sequence[Any], *, common: bool = False) -> list[ValueTable]:
    """Tables of a V frame by measure; ``common`` drops topics that some system lacks, instead of raising."""
    placed = [
        (place, (measure, name), (table.qids, column))
        for table in topic_values(values)
        for place, measure, name, column in zip(table.places, table.measures, table.names, table.values.T, strict=True)
    ]
    # In order of appearance.
    columns = {key: column for _, key, column in sorted(placed, key=lambda entry: entry[0])}
    measures = list(dict.fromkeys(measure for measure, _ in columns))
    names = list(dict.fromkeys(name for _, name in columns))
    if len(names) < 2:  # noqa: PLR2004 - a comparison needs two
        raise InputError(f"wanted at least two systems, found {examples(names) or 'none'}; give another")
    wanted = list(dict.fromkeys(_named_as(measure, measures) for measure in asked)) or measures
    require_means(wanted)
    nothing: _Column = ([], np.empty(0))
    return [
        _table(measure, {name: columns.get((measure, name), nothing) for name in names}, common=common)
        for measure in wanted
    ]


def _table(measure: str, columns: dict[str, _Column], *, common: bool) -> ValueTable:
    first, *rest = columns
    qids = columns[first][0]
    odd = next((other for other in rest if columns[other][0] != qids), None)
    if odd is not None:
        if not common:
            others = columns[odd][0]
            raise InputError(
                f"values: of {measure}, {first!r} has {len(qids)} topics, {odd!r} has {len(others)}, and they differ "
                f"in {examples(sorted(set(qids) ^ set(others)))}: means over different topics are not comparable; ask "
                f"for {COMMON_TOPICS.text()} (only those that all systems have), or give each missing topic a value (0 "
                "where a run retrieved nothing)"
            )
        qids = sorted(set(qids).intersection(*(topics for topics, _ in columns.values())))
        if not qids:
            raise InputError(f"values: of {measure}, no topic is common to all systems")
        columns = {name: (qids, values[np.isin(topics, qids)]) for name, (topics, values) in columns.items()}
    values = np.stack([values for _, values in columns.values()], axis=1)
    means = values.mean(axis=0).round(_PLACES)
    names = list(columns)
    order = sorted(range(len(names)), key=lambda at: (-means[at], names[at]))
    return ValueTable(measure, [names[at] for at in order], qids, values[:, order])


def _named_as(measure: Any, measures: Sequence[str]) -> str:
    """The name of a measure in the values."""
    if str(measure) in measures:
        return str(measure)
    same = str(measures_from(measure)[0])
    if same not in measures:
        raise ParameterError(f"measures: no values of {measure}; found {examples(measures)}.{nearest(same, measures)}")
    return same


def require_means(names: Iterable[str]) -> None:
    """Refuse measures whose value for a collection is not a mean over topics: sums of counts, ratios of means."""
    for name in names:
        for measure in _parsed(name):
            is_ratio = isinstance(measure, type(DiscRatio))
            if is_ratio or not is_mean(measure):
                raise ParameterError(
                    f"{name}: its value for a collection is not a mean over topics"
                    f"{' (see coverage_report)' if is_ratio else ''}, so a comparison of means is misleading; leave it "
                    "out of measures"
                )


def _parsed(name: str) -> list[ir_measures.Measure]:
    """Parse a name of ir_measures or trec_eval (pt.Experiment writes both); empty for an unknown name."""
    try:
        return measures_from(name)
    except ParameterError:
        try:
            return list(ir_measures.parse_trec_measure(name))
        except ValueError:
            return []


def suspect_runs(tables: Sequence[ValueTable], missing: pd.DataFrame | None = None) -> pd.DataFrame:
    """Missing and zero topics of each system, and a flag for systems with too many of them.

    ``missing``: name, n_qids, n_missing of the runs; ``None`` if they are unknown. ``n_zero`` counts topics on which a
    system scores exactly 0, and at least half of the other systems (of those that score above 0 on any topic) do not.
    ``flag`` is empty, or says that a system retrieved nothing for more than half of its topics; if the runs are
    unknown, that it scores 0 on more than half of all topics and of the topics on which other systems do not.
    """
    rows: list[tuple[Any, ...]] = []
    missing_by_name: Mapping[Any, Any] = {} if missing is None else missing.set_index("name").to_dict("index")
    for table in tables:
        n_zero, n_contested = _zeros(table.values)
        # A system with a score above 0 on most topics is not suspect.
        is_mostly_zero = 2 * np.count_nonzero(table.values, axis=0) < len(table.qids)
        counts = zip(table.names, n_zero.tolist(), n_contested.tolist(), is_mostly_zero, strict=True)
        for name, zero, contested, suspect in counts:
            n_missing, flag = None, ""
            if name in missing_by_name:
                n_missing, n_qids = missing_by_name[name]["n_missing"], missing_by_name[name]["n_qids"]
                flag = f"retrieved nothing for {n_missing} of {n_qids} topics" if 2 * n_missing > n_qids else ""
            elif suspect and 2 * zero > contested:
                flag = (
                    f"scores exactly 0 on {zero} of the {contested} topics on which other systems do not: it may have "
                    "retrieved nothing"
                )
            rows.append((name, table.measure, len(table.qids), n_missing, zero, flag))
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"n_missing": "Int64"})


def _zeros(table: Floats) -> tuple[Ints, Ints]:
    """For each column, the number of topics on which it is 0 and others are not, and on which others are not."""
    scored = table != 0
    others = scored.sum(axis=1)[:, None] - scored
    # Systems that are 0 on all topics do not count as others, so that several empty runs are all found.
    n_others = scored.any(axis=0).sum() - scored.any(axis=0)
    contested = (others > 0) & (2 * others >= n_others)
    return (contested & ~scored).sum(axis=0), contested.sum(axis=0)


def flagged(pairs: pd.DataFrame, flags: pd.DataFrame) -> pd.DataFrame:
    """Add a column ``flag`` to the pairs, and warn once of all suspect runs."""
    suspect = flags[flags["flag"] != ""]
    sentence = {(row.name, row.measure): f"{row.name} {row.flag}" for row in suspect.itertuples(index=False)}
    keys = (zip(pairs[side], pairs["measure"], strict=True) for side in ("name_a", "name_b"))
    texts = ["; ".join(filter(None, map(sentence.get, both))) for both in zip(*keys, strict=True)]
    if sentence:
        warn(
            f"{'; '.join(dict.fromkeys(sentence.values()))}; the file may be incomplete, so that differences "
            "say nothing about the quality of the system: such pairs are flagged"
        )
    return pairs.assign(flag=texts)


def answered_by(measures: Iterable[str]) -> list[str]:
    """For linearised linking measures, LinkingR with the same parameters, whose value is 1 for a correct answer.

    >>> answered_by(["LinkingF1(nil='O')", "LinkP(nil='O')", "AP"])
    ["LinkingR(nil='O')"]
    """
    linearised = filter(is_linearised, measures)
    return list(dict.fromkeys(re.sub(r"^\w+", str(LinkingR), measure) for measure in linearised))


def count_answers(pairs: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """Fill wins, losses and ties of linearised measures with queries that one, the other, or both or neither answer.

    The counts remain missing unless LinkingR is among the values.
    """
    counts = ["wins", "losses", "ties"]
    table = pairs.copy()
    for measure in filter(is_linearised, pairs["measure"].unique()):
        correct = values[values["measure"].astype(str) == answered_by([measure])[0]]
        if len(correct):
            wide = correct.pivot(index="qid", columns="name", values="value")
            rows = table.index[table["measure"] == measure]
            a, b = (wide[table.loc[rows, side]].to_numpy() > 0 for side in ("name_a", "name_b"))
            table.loc[rows, counts] = np.stack([some.sum(axis=0) for some in (a & ~b, b & ~a, a == b)], axis=1)
    return table
