"""Tables of an experiment: means with tests, values of topics, marks of the best cells, and files."""

from __future__ import annotations

import html
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    ParameterError,
    choice,
    examples,
    excerpt,
    number,
    require_system,
    warn,
    whole,
)
from vbterrier.frames.answer import Answer, Caveat, sentence
from vbterrier.frames.files.writing import replacing
from vbterrier.frames.ranges import is_linearised
from vbterrier.remedies import call_in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats
    from vbterrier.evaluate.scores import Scores

MEAN_RESPONSE_TIME = "mrt"
# Corrections of statsmodels by their full names; it also takes short ones.
_STATSMODELS_CORRECTIONS = ("bonferroni", "sidak", "holm", "holm-sidak", "simes-hochberg", "hommel", "fdr_bh", "fdr_by")
_TESTS = {"t": "ttest_rel", "wilcoxon": "wilcoxon"}
# The styles of the best cells of a column and of the last one of them.
_BOLD = ("font-weight: bold", "font-weight: bold")
_COLOURS = ("background-color: antiquewhite", "background-color: lightgreen")
STYLES = {"bold": _BOLD, "color": _COLOURS, "colour": _COLOURS}
# Columns of tests that have no best value.
_UNMARKED = (" p-value", " p-value corrected", " reject")
# Arguments of the same experiment for values of topics.
_NEXT_STEP_ARGUMENTS = (
    "retr_systems",
    "topics",
    "qrels",
    "eval_metrics",
    "names",
    "filter_by_qrels",
    "filter_by_topics",
    "system",
)
# Limits of messages: items, and characters of a name.
_MAX_NAMED, _EXCERPT_LENGTH = 6, 80


def _require_correction(correction: Any) -> None:
    """Refuse what statsmodels does not correct by, before systems are run."""
    from statsmodels.stats.multitest import multipletests

    try:
        multipletests([0.5, 1.0], method=correction)
    except (ValueError, TypeError, KeyError):
        choice("correction", correction, _STATSMODELS_CORRECTIONS)


def system_keys(names: Sequence[Any]) -> list[Any]:
    """The names by which messages and scores identify systems: numbers if names repeat, or are texts of frames."""
    are_words = all(isinstance(name, str) and "\n" not in name for name in names) and len(set(names)) == len(names)
    return list(names) if are_words else [f"system {place}" for place in range(len(names))]


class ExperimentTable(pd.DataFrame):
    """A table of :func:`vbterrier.Experiment`: a data frame with its answer, which notebooks show above it.

    ``attrs["answer"]`` is the answer as a mapping (``docs/reference/answer.md``), which copies of the frame keep.
    Operations return plain data frames.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    @classmethod
    def of(cls, frame: pd.DataFrame, answer: Answer) -> ExperimentTable:
        """Return a frame with its answer."""
        table = cls(frame)
        table.attrs |= {**frame.attrs, "answer": answer.record()}
        return table

    def answer(self) -> Answer:
        """Return the verdict with its reason, next step and caveats, and the call that made the table."""
        return Answer.of(self.attrs["answer"])

    def rows_html(self) -> str | None:
        """Return the table alone, which scrolls inside itself; ``None`` if pandas shows no HTML."""
        table = super()._repr_html_()  # type: ignore[misc] # no types in pandas
        return None if table is None else f'<div style="overflow-x:auto">{table}</div>'

    def _repr_html_(self) -> str | None:
        rows = self.rows_html()
        return None if rows is None else f"<div>{self.answer().html()}\n{rows}</div>"


@dataclass(frozen=True)
class BaselineTests:
    """Tests of differences from a baseline."""

    place: int
    function: Callable[..., Any]
    correction: str | None
    alpha: float

    @classmethod
    def of(
        cls, baseline: Any, test: Any, correction: str | None, alpha: float, names: Sequence[Any], *, perquery: bool
    ) -> BaselineTests | None:
        """Return the requested tests, ``None`` without a baseline."""
        if baseline is None:
            if correction is not None:
                raise ParameterError(
                    f"correction={excerpt(correction)}: there are no tests without a baseline; give baseline="
                )
            return None
        if perquery:
            raise ParameterError("baseline: tests are columns of means; leave it out, or ask for perquery=False")
        if isinstance(baseline, str):
            if names.count(baseline) != 1:
                require_system("baseline", baseline, names)
                raise ParameterError(f"baseline={excerpt(baseline)}: {names.count(baseline)} systems have this name")
            place = names.index(baseline)
        else:
            place = whole("baseline", baseline, low=0, high=len(names) - 1, meaning=", the position of a system")
        if not callable(test):
            from scipy import stats

            test = getattr(stats, _TESTS[choice("test", test, _TESTS)])
        number("correction_alpha", alpha, low=0, high=1)
        if correction is not None:
            _require_correction(correction)
        return cls(place, test, correction, alpha)

    def columns(self, measure: str, values: Floats) -> dict[str, Any]:
        """Columns of a measure: topics with higher and lower values than the baseline, p-values and their correction.

        ``values``: shape (n_systems, n_topics). Topics without a value of both systems are left out.
        """
        base = values[self.place]
        p_values = np.full(len(values), nan)
        for place, of_system in enumerate(values):
            both = np.isfinite(of_system) & np.isfinite(base)
            if place != self.place and both.any():
                p_values[place] = self.function(of_system[both], base[both])[1]
        higher, lower = ((values > base).sum(axis=1), (values < base).sum(axis=1))
        columns: dict[str, Any] = {}
        for sign, counts in (("+", higher), ("-", lower)):
            # The values of ratios of sums are no scores of topics.
            left_out = range(len(counts)) if is_linearised(measure) else [self.place]
            columns[f"{measure} {sign}"] = [None if at in left_out else n for at, n in enumerate(counts.tolist())]
        columns[f"{measure} p-value"] = p_values
        if self.correction is not None:
            columns[f"{measure} reject"], columns[f"{measure} p-value corrected"] = self._correct_p_values(p_values)
        return columns

    def sentence(self, measure: str, names: Sequence[str], means: Floats, p_values: Floats) -> str:
        """A sentence on the differences of all systems from the baseline by a measure; arrays have a value a system."""
        others = [place for place in range(len(names)) if place != self.place]
        differences = means - means[self.place]
        with np.errstate(invalid="ignore"):
            differing = [place for place in others if p_values[place] <= self.alpha]
        shown = max(differing or others, key=lambda place: abs(differences[place]))
        p_value = "p is undefined" if np.isnan(p_values[shown]) else f"p = {p_values[shown]:.2g}"
        test = p_value if self.correction is None else f"{p_value}, {self.correction}"
        by = f"by {measure}: {differences[shown]:+.3f} ({test})"
        differ = "differs" if len(differing) == 1 else "differ"
        if len(others) == 1:
            kind = "differs significantly" if differing else "does not differ significantly"
            return f"{names[shown]} {kind} from {names[self.place]} {by}."
        which = "that" if len(differing) == 1 else "the largest difference is that"
        return (
            f"{len(differing)} of {len(others)} systems {differ} significantly from {names[self.place]} by {measure} "
            f"at the level {self.alpha:g}; {which} of {names[shown]}: {differences[shown]:+.3f} ({test})."
        )

    def _correct_p_values(self, p_values: Floats) -> tuple[NDArray[np.bool_], Floats]:
        """Return which hypotheses are rejected, and corrected p-values.

        Undefined p-values, as of equal values, remain undefined and are tests whose hypothesis is not rejected.
        """
        from statsmodels.stats.multitest import multipletests

        reject, corrected = np.zeros(len(p_values), dtype=bool), np.full(len(p_values), nan)
        tested, finite = np.arange(len(p_values)) != self.place, np.isfinite(p_values)
        if finite.any():
            every = np.where(finite, p_values, 1.0)[tested]
            corrected_tests = multipletests(every, alpha=self.alpha, method=self.correction)
            reject[tested], corrected[tested] = corrected_tests[0], corrected_tests[1]
            corrected[~finite] = nan
        return reject, corrected


@dataclass(frozen=True, eq=False)
class ExperimentValues:
    """Values and means of systems: names, columns, topics, of which the first are judged, and the array of values."""

    names: list[Any]
    columns: list[str]
    topics: list[str]
    n_judged: int
    values: Floats  # NaN where a measure is undefined, shape (n_systems, n_measures, n_topics)
    means: Floats  # over the judged topics with a value, shape (n_systems, n_measures)
    models: list[str]  # digests of the models of estimated measures, empty for other measures, shape (n_measures,)
    notes: tuple[str, ...]
    reported: frozenset[str] = frozenset()  # the warnings of the evaluation, which may be notes, too
    scores: Scores | None = None  # of the judged topics, with intervals

    @property
    def keys(self) -> list[str]:
        """The names of systems in messages."""
        return system_keys(self.names)

    def answer(self, averages: pd.DataFrame, tests: BaselineTests | None) -> Answer:
        """The answer of the scores, or of the tests; the next step compares all pairs of systems."""
        answer = self.scores.answer() if self.scores is not None else Answer("")
        if tests is not None and len(self.names) > 1:
            column = f"p-value{' corrected' if tests.correction else ''}"
            verdict, *reason = (
                tests.sentence(measure, self.keys, means, averages[f"{measure} {column}"].to_numpy(dtype=float))
                for measure, means in zip(self.columns, self.means.T, strict=True)
            )
            n_tests = (len(self.names) - 1) * len(self.columns)
            caveats = answer.caveats
            if tests.correction is None and n_tests > 1:
                text = f"{n_tests} p-values are not corrected for their number; correction='holm' does so."
                caveats = (*caveats, Caveat("Tests", text, serious=False))
            means = " ".join(filter(None, [answer.verdict, answer.reason]))
            answer = replace(answer, verdict=verdict, reason=" ".join([*reason, means]), caveats=caveats)
        call = call_in_use()
        if call is None or len(self.names) == 1:
            return answer
        values = call.next(
            "compare", "Experiment", [name for name in call.words if name in _NEXT_STEP_ARGUMENTS], perquery=True
        )
        return replace(answer, next=f"vbterrier.compare({values})")

    def n_undefined(self) -> dict[Any, dict[str, int]]:
        """Numbers of judged topics for which a measure is undefined, by system and measure, where there are any."""
        counts = np.isnan(self.values[:, :, : self.n_judged]).sum(axis=2)
        return {
            self.names[place]: {column: int(n) for column, n in zip(self.columns, of_system, strict=True) if n}
            for place, of_system in enumerate(counts)
            if of_system.any()
        }

    def warn(self, *, of_means: bool) -> None:
        """Warn of judged topics that means leave out."""
        undefined = [
            f"{column} of {str(name)[:_EXCERPT_LENGTH]!r}: {n}"
            for name, counts in self.n_undefined().items()
            for column, n in counts.items()
        ]
        if undefined and of_means:
            more = f"; and {len(undefined) - _MAX_NAMED} more" if len(undefined) > _MAX_NAMED else ""
            warn(
                f"means leave out topics for which their measure is undefined (of {self.n_judged} topics): "
                f"{'; '.join(undefined[:_MAX_NAMED])}{more}"
            )

    def averages(
        self, rounded: Callable[[str, float], float], tests: BaselineTests | None, times: Sequence[float] | None
    ) -> pd.DataFrame:
        """One row per system: name, means, mrt, and the columns of tests."""
        table: dict[str, Any] = {"name": self.names}
        for column, means in zip(self.columns, self.means.T.tolist(), strict=True):
            table[column] = [rounded(column, mean) for mean in means]
        if times is not None:
            table[MEAN_RESPONSE_TIME] = [rounded(MEAN_RESPONSE_TIME, elapsed) for elapsed in times]
        for column, values in zip(self.columns, self.values.swapaxes(0, 1), strict=True):
            if tests is not None:
                table |= tests.columns(column, values)
        frame = pd.DataFrame(table)
        frame.attrs |= {"n_undefined": self.n_undefined(), "notes": list(self.notes)}
        return frame

    def per_query(self, rounded: Callable[[str, float], float]) -> pd.DataFrame:
        """One row per system, topic and measure: name, qid, measure, value; by name and topic."""
        n_systems, n_measures, n_topics = self.values.shape
        measures = self.columns * (n_systems * n_topics)
        values = self.values.swapaxes(1, 2).ravel().tolist()
        frame = pd.DataFrame(
            {
                "name": np.repeat(np.array(self.names, dtype=object), n_topics * n_measures),
                "qid": np.tile(np.repeat(np.array(self.topics, dtype=object), n_measures), n_systems),
                "measure": measures,
                "value": list(map(rounded, measures, values)),
            }
        )
        if any(self.models):
            frame["model"] = self.models * (n_systems * n_topics)
        return frame.sort_values(["name", "qid"], kind="stable", ignore_index=True)

    def by_name(self, times: Sequence[float] | None) -> dict[Any, dict[str, float]]:
        """Means by name of the system and measure."""
        tables = {
            name: dict(zip(self.columns, row, strict=True))
            for name, row in zip(self.names, self.means.tolist(), strict=True)
        }
        if times is not None:
            for row, elapsed in zip(tables.values(), times, strict=True):
                row[MEAN_RESPONSE_TIME] = elapsed
        return tables

    def by_place(self) -> dict[int, dict[str, dict[str, float]]]:
        """Values by the position of the system, topic and measure."""
        return {
            place: {
                qid: dict(zip(self.columns, row, strict=True))
                for qid, row in zip(self.topics, values.T.tolist(), strict=True)
            }
            for place, values in enumerate(self.values)
        }


def highlighting_style(table: pd.DataFrame, style: tuple[str, str]) -> Any:
    """A pandas style that marks the best cells of measures, times and numbers of topics, and the last one of them.

    Notes about models become the caption.
    """
    marked, last = style

    def marks(column: pd.Series[Any]) -> list[str]:
        name = str(column.name)
        if name == "name" or name.endswith(_UNMARKED):
            return [""] * len(column)
        is_lower_better = name == MEAN_RESPONSE_TIME or name.endswith(" -")
        is_best = (column == (column.min() if is_lower_better else column.max())).to_numpy(dtype=bool)
        signs = np.where(is_best, marked, "").astype(object)
        signs[np.flatnonzero(is_best)[-1:]] = last
        return list(map(str, signs))

    styled = table.style.apply(marks, axis=0)
    notes = table.attrs["notes"]
    return styled.set_caption(html.escape(" ".join(map(sentence, notes)))) if notes else styled


def merge_into(path: Path, table: pd.DataFrame, models: Sequence[str] = ()) -> None:
    """Write a table as CSV; rows of an existing file about other systems are kept.

    ``models``: digests of the models of its values, in a column; values by other models are an error.
    """
    digests = ",".join(sorted(set(models) - {""}))
    if digests and "model" not in table.columns:
        table = table.assign(model=digests)
    if path.exists():
        ids = dict.fromkeys(("name", "qid", "measure"), str)
        old = pd.read_csv(path, dtype=ids, keep_default_na=False, na_values=[""])
        if set(old.columns) != set(table.columns):
            odd = examples(sorted(set(old.columns) ^ set(table.columns)))
            warn(f"{path}: its columns and those of this experiment differ ({odd}); missing values are left empty")
        old = old[~old["name"].isin(set(table["name"]))]
        former = set(old["model"].dropna()) if "model" in old.columns else set[str]()
        if digests and former and former != set(table["model"]) - {""}:
            raise InputError(
                f"{path}: has values by the models {examples(sorted(former))}, and those of this experiment are by "
                f"{digests}, which are not comparable: use another save_dir, or name one model, as "
                "ENDCG(model='name')@10"
            )
        table = pd.concat([table, old], ignore_index=True) if len(old) else table
    with replacing(path) as file:
        table.to_csv(file, index=False)
