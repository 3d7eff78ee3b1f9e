"""Scores of systems as one array; the V frame is read and written at the border alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.ranges import is_linearised, is_ratio_of_means
from vbterrier.frames.values import KEY, values_frame
from vbterrier.kernels import linking
from vbterrier.kernels.tolerances import SUM_DECIMALS
from vbterrier.remedies import COMMON_TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from vbterrier.annotations import Floats, Ints
    from vbterrier.kernels.mean_limits import SampledQueries


# The parameter of LinkingR whose values are the answers.
ANSWER_PART = "part='answer'"


class View(NamedTuple):
    """The values of some systems by one measure on the same topics, shape (n_topics, n_systems).

    ``answers``: of a ratio of sums over topics, the kind of the answer of each system, of the same shape.
    """

    measure: str
    names: list[str]
    qids: list[str]
    values: Floats
    answers: Floats | None = None


class Columns(NamedTuple):
    """The values of m pairs of a system and a measure that share their topics, shape (n_topics, m); topics are sorted.

    ``places``: the places of system and measure in the table, shape (m, 2).
    """

    places: Ints
    qids: list[str]
    values: Floats


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Values of M measures, S systems and T topics, shape (M, S, T), each in order of appearance.

    NaN: the measure is undefined for the topic, or the system has no value for it.
    """

    measures: list[str]
    names: list[str]
    qids: list[str]
    values: Floats

    @classmethod
    def of_frame(cls, values: Any) -> ScoreTable:
        """Read a V frame, and check it."""
        frame = values_frame(values)
        return cls._of_columns(frame["name"], frame["qid"], frame["measure"], frame["value"].to_numpy())

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[str, str, str, float]]) -> ScoreTable:
        """The table of computed values: rows of name, topic, measure and value, each key once."""
        # Several times faster than a frame of the rows.
        name, qid, measure, value = np.array(rows, dtype=object).reshape(-1, 4).T
        numbers = value.astype(np.float64)
        if not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers)))
            raise InputError(
                f"values: {numbers[row]} (system {name[row]!r}, topic {qid[row]!r}, {measure[row]}), wanted a finite "
                "number"
            )
        return cls._of_columns(name, qid, measure, numbers)

    @classmethod
    def _of_columns(cls, name: Any, qid: Any, measure: Any, value: Floats) -> ScoreTable:
        places, labels = zip(*map(pd.factorize, (measure, name, qid)), strict=True)
        values = np.full([len(each) for each in labels], np.nan)
        values[places] = value
        measures, names, qids = map(list, labels)
        return cls(measures, names, qids, values)

    @classmethod
    def join_collections(cls, tables: Mapping[str, ScoreTable]) -> ScoreTable:
        """One table of several collections, whose topics are different topics: ``dataset/qid``."""
        if list(tables) == [""]:
            return tables[""]
        measures, names = (
            list(dict.fromkeys(label for table in tables.values() for label in getattr(table, axis)))
            for axis in ("measures", "names")
        )
        parts = []
        for table in tables.values():
            part = np.full((len(measures), len(names), len(table.qids)), np.nan)
            part[np.ix_(_places(table.measures, measures), _places(table.names, names))] = table.values
            parts.append(part)
        qids = [f"{dataset}/{qid}" for dataset, table in tables.items() for qid in table.qids]
        return cls(measures, names, qids, np.concatenate(parts, axis=2))

    def frame(self) -> pd.DataFrame:
        """Return the V frame: rows by system, measure and topic."""
        values = self.values.transpose(1, 0, 2)
        name, measure, qid = np.nonzero(~np.isnan(values))
        axes = (self.names, name), (self.qids, qid), (self.measures, measure)
        columns = {key: np.array(labels, dtype=object)[at] for key, (labels, at) in zip(KEY, axes, strict=True)}
        return pd.DataFrame({**columns, "value": values[name, measure, qid]})

    def of(self, measures: Iterable[str]) -> ScoreTable:
        """The table of those of some measures that it has, in their order."""
        kept = [measure for measure in dict.fromkeys(measures) if measure in self.measures]
        return ScoreTable(kept, self.names, self.qids, self.values[_places(kept, self.measures)])

    def on(self, qids: Collection[str]) -> ScoreTable:
        """The table of some topics."""
        kept = [place for place, qid in enumerate(self.qids) if qid in qids]
        return ScoreTable(self.measures, self.names, [self.qids[place] for place in kept], self.values[:, :, kept])

    def system_scores(self, name: str, measure: str) -> Floats:
        """The values of a system by a measure; without topics for which it is undefined."""
        if measure not in self.measures or name not in self.names:
            return np.empty(0)
        values = self.values[self.measures.index(measure), self.names.index(name)]
        return np.asarray(values[~np.isnan(values)])

    def rows(self, measure: str, names: Sequence[str], qids: Sequence[str]) -> Floats:
        """The values of a measure for systems and topics in this order, shape (S, T); NaN for those without a value."""
        values = np.full((len(names), len(qids)), np.nan)
        if measure in self.measures:
            name, qid = (
                pd.Index(labels).get_indexer(pd.Index(keys, dtype=object))
                for labels, keys in ((self.names, names), (self.qids, qids))
            )
            cells = np.ix_(np.flatnonzero(name >= 0), np.flatnonzero(qid >= 0))
            values[cells] = self.values[self.measures.index(measure)][np.ix_(name[name >= 0], qid[qid >= 0])]
        return values

    def views(self, *, common: bool = False, by_id: bool = True, of_all: bool = False) -> list[View]:
        """The values by measure, of the systems that have any (or ``of_all``), on their topics, sorted if ``by_id``.

        ``common`` drops topics that some system lacks, instead of raising.
        """
        views = []
        for measure, every in zip(self.measures, self.values, strict=True):
            has_value = ~np.isnan(every)
            systems = np.flatnonzero(has_value.any(axis=1) | of_all)
            names, has_value = [self.names[system] for system in systems], has_value[systems]
            if not common:
                self._require_same(measure, names, has_value)
            topics = np.flatnonzero(has_value.all(axis=0))
            if names and not len(topics):
                raise InputError(f"values: of {measure}, no topic is common to all systems")
            if by_id:
                topics = np.array(sorted(topics.tolist(), key=self.qids.__getitem__), dtype=np.int64)
            values = np.ascontiguousarray(every[np.ix_(systems, topics)].T)
            views.append(View(measure, names, [self.qids[topic] for topic in topics], values))
        return views

    def _require_same(self, measure: str, names: Sequence[str], has_value: Any) -> None:
        odd = np.flatnonzero((has_value != has_value[:1]).any(axis=1))
        if odd.size:
            differing = [
                qid for qid, differs in zip(self.qids, has_value[0] != has_value[odd[0]], strict=True) if differs
            ]
            common = COMMON_TOPICS.available_text() or COMMON_TOPICS.of("compare", "values")
            raise InputError(
                f"values: of {measure}, {names[0]!r} has {has_value[0].sum()} topics, {names[odd[0]]!r} has "
                f"{has_value[odd[0]].sum()}, and they differ in {examples(sorted(differing))}: means over different "
                f"topics are not comparable; ask for {common} (only those that all systems have), or give each "
                "missing topic a value (0 where a run retrieved nothing)"
            )

    def columns(self) -> Iterator[Columns]:
        """Pairs of a system and a measure, grouped by their topics."""
        order = sorted(range(len(self.qids)), key=self.qids.__getitem__)
        values = self.values.transpose(1, 0, 2)[:, :, order]
        has_value = ~np.isnan(values)
        groups: dict[bytes, list[tuple[int, int]]] = {}
        for system, measure in np.argwhere(has_value.any(axis=2)).tolist():
            groups.setdefault(has_value[system, measure].tobytes(), []).append((system, measure))
        for group in groups.values():
            topics, places = np.flatnonzero(has_value[group[0]]), np.array(group)
            chosen = values[places[:, 0], places[:, 1]][:, topics]
            yield Columns(places, [self.qids[order[topic]] for topic in topics], np.ascontiguousarray(chosen.T))


def by_mean(view: View) -> View:
    """The view with the system with the highest mean first."""
    means = view.values.mean(axis=0).round(SUM_DECIMALS)
    order = sorted(range(len(view.names)), key=lambda at: (-means[at], view.names[at]))
    answers = None if view.answers is None else np.take(view.answers, order, axis=1)
    names, values = [view.names[at] for at in order], np.take(view.values, order, axis=1)
    return view._replace(names=names, values=values, answers=answers)


def answers_by(measures: Iterable[str]) -> dict[str, str]:
    """For ratios of sums over topics (linking measures), the measure of the answers that they count.

    >>> answers_by(["LinkP(nil='O',undefined='zero')", "AP"])
    {"LinkP(nil='O',undefined='zero')": "LinkingR(nil='O',part='answer')"}
    """
    made = {}
    for measure in filter(is_linearised, measures):
        options = [each for each in measure.partition("(")[2].rstrip(")").split(",") if each]
        kept_options = [each for each in options if not each.startswith("undefined=")]
        made[measure] = f"LinkingR({','.join([*kept_options, ANSWER_PART])})"
    return made


def answer_codes(frame: pd.DataFrame) -> Ints:
    """Return the cell of a table of answers of each row, from its columns gold and answer."""
    pairs = product(range(len(linking.GOLD)), range(len(linking.ANSWERS)))
    cells = {(linking.GOLD[gold], linking.ANSWERS[place]): 4 * gold + place for gold, place in pairs}
    cell = np.array([cells.get(pair, -1) for pair in zip(frame["gold"], frame["answer"], strict=True)], dtype=np.int64)
    if (cell < 0).any():
        row = int(np.argmax(cell < 0))
        raise InputError(
            f"values: row {row} has gold {frame['gold'].iloc[row]!r} and answer {frame['answer'].iloc[row]!r}, wanted "
            "those of the values of vbterrier.score or of the answers of a linking_report"
        )
    return cell


def with_answers(table: ScoreTable, values: pd.DataFrame) -> ScoreTable:
    """Add the answers that a V frame has in its columns gold and answer."""
    answer_measures = answers_by(table.measures)
    if not answer_measures or not {"gold", "answer"} <= set(values.columns):
        return table
    rows = values[values["measure"].astype(str).isin(list(answer_measures)).to_numpy()]
    measure = rows["measure"].astype(str).map(answer_measures)
    coded = rows[["name", "qid"]].assign(measure=measure, value=answer_codes(rows).astype(np.float64))
    coded = coded.drop_duplicates(["name", "qid", "measure"])
    return ScoreTable.of_frame(pd.concat([table.frame(), coded], ignore_index=True))


def with_answers_of_ratios(views: Iterable[View], table: ScoreTable) -> list[View]:
    """Views with the answers of ratios, if the table has them for all of their systems and topics."""
    made = []
    for view in views:
        answer_measures = answers_by([view.measure])
        answers = table.rows(answer_measures.get(view.measure, ""), view.names, view.qids).T
        made.append(view._replace(answers=answers) if answer_measures and not np.isnan(answers).any() else view)
    return made


def linearised_view(view: View, mean: Callable[[Floats], Floats]) -> View:
    """The view of a ratio with values linearised on its topics, whose mean is the ratio; other views as they are.

    ``mean``: the mean of rows of topics, (n, m) to (m,), which has the weights of topics.
    """
    if view.answers is None:
        return view
    values = np.stack([linearised_values(each, view.measure, mean) for each in view.answers.T], axis=1)
    return view._replace(values=values)


def linearised_values(answers: Floats, measure: str, mean: Callable[[Floats], Floats]) -> Floats:
    """The value of each topic of a ratio of the answers of some topics, shape (n,); NaN if it is undefined."""
    kind, figure = answers.astype(np.int64), linking.figure_index(measure)
    shares = mean(np.eye(linking.N_ANSWERS)[kind])
    values = linking.influence(shares.reshape(2, -1)).reshape(-1, len(linking.FIGURES))[kind, figure]
    return np.where(np.isnan(values), 0.0, values) if "undefined='zero'" in measure else values


def linearised_on(scores: ScoreTable, sample: Callable[[Sequence[str]], SampledQueries] | None = None) -> ScoreTable:
    """The table with ratios linearised on its topics, and at their weights: means of values are the ratios.

    Systems without answers keep their values.
    """
    made = scores.values.copy()
    for measure, of_answers in answers_by(scores.measures).items():
        answers = scores.rows(of_answers, scores.names, scores.qids)
        for values, n_answers in zip(made[scores.measures.index(measure)], answers, strict=True):
            topics = np.flatnonzero(~np.isnan(values) & ~np.isnan(n_answers))
            if len(topics):
                how = None if sample is None else sample([scores.qids[topic] for topic in topics])
                values[topics] = linearised_values(n_answers[topics], measure, plain_mean if how is None else how.mean)
    return replace(scores, values=made)


def plain_mean(values: Floats) -> Floats:
    """Return the mean of the rows."""
    return np.asarray(values.mean(axis=0))


def table_on_own_topics(values: Any) -> ScoreTable:
    """The table of a V frame, with ratios of sums linearised on the topics of the frame, and without their answers.

    The frame may have some of the topics of its evaluation: ratios need its columns gold and answer. Ratios of means
    are refused.
    """
    table = with_answers(ScoreTable.of_frame(values), pandas_frame(values, "values"))
    refuse_ratios_of_means(table.measures)
    of_answers = answers_by(table.measures).values()
    return linearised_on(table).of(measure for measure in table.measures if measure not in of_answers)


def refuse_ratios_of_means(measures: Iterable[str]) -> None:
    """Refuse measures whose value for a collection is a ratio of means over topics."""
    for measure in filter(is_ratio_of_means, measures):
        raise ParameterError(
            f"{measure}: the value of a collection is a ratio of means, and no mean of the ratios of topics; use "
            "vbterrier.coverage_report or stats.disc_ratio, or RelCov and NonRelCov, which are means"
        )


def refuse_ratios(measures: Iterable[str], remedy: str) -> None:
    """Refuse ratios of sums and of means over topics, which means of the values of some topics are not.

    ``remedy``: another call that serves ratios of sums.
    """
    measures = list(measures)
    refuse_ratios_of_means(measures)
    for measure, of_answers in answers_by(measures).items():
        recall = of_answers.replace(f"({ANSWER_PART})", "").replace(f",{ANSWER_PART}", "")
        raise ParameterError(
            f"{measure}: a ratio of sums over queries, whose value for a part of them is no mean of their values; use "
            f"{recall}, a mean, or {remedy}"
        )


def table_of_views(views: Sequence[View]) -> ScoreTable:
    """The table of views with the same systems."""
    names, qids = views[0].names, list(dict.fromkeys(qid for view in views for qid in view.qids))
    values = np.full((len(views), len(names), len(qids)), np.nan)
    for place, view in enumerate(views):
        values[place][np.ix_(_places(view.names, names), _places(view.qids, qids))] = view.values.T
    return ScoreTable([view.measure for view in views], names, qids, values)


def _places(labels: Sequence[str], among: Sequence[str]) -> list[int]:
    place = {label: at for at, label in enumerate(among)}
    return [place[label] for label in labels]
