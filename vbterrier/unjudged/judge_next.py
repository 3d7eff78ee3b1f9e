"""Choice of the unjudged documents whose judgment narrows the interval of a mean most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError
from vbterrier.frames.answer import Finding
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.files.exports import guarded_texts
from vbterrier.frames.files.writing import write_table
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.pictures import Bar, IntervalPicture, Rule
from vbterrier.frames.results import Shown, measure_text
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.grades.value_of_judging import ResidualVariance, Step, gain_covariance, greedy, linear_weights
from vbterrier.kernels.resample import stream
from vbterrier.unjudged.distribution import BootstrapDistribution, ScoreDistributions
from vbterrier.unjudged.estimated import EstimatedDistribution

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from vbterrier.annotations import Floats, Ints
    from vbterrier.remedies import Call

__all__ = ["JudgingPlan", "plan_judging", "write_judging"]


COLUMNS = ("qid", "docno", "rank", "n_runs", "worth", "width_before", "width_after", "reason")
# The largest number of cells of all covariance matrices: 1.6 GB.
MAX_COVARIANCE_CELLS = 200_000_000
# Draws per document for the weights of a score that is not a sum, and the smallest number of draws per topic.
_DRAWS_EACH, _LEAST_DRAWS = 8, 1000


@dataclass(frozen=True, eq=False, repr=False)
class JudgingPlan(Shown):
    """Documents to judge, in this order, with the expected width of the interval.

    - ``documents``: a row per document: qid, docno, rank (the best, from 1), n_runs (that retrieve it up to the
      cutoff), worth (the share of the current variance that its judgment is expected to remove, given the judgments
      above it), width_before and width_after (of the interval, before and after this judgment), reason (a text for
      assessors)
    - ``width_before``, ``width_after``: width of the normal interval of the mean (or mean difference) now and after all
      these judgments, from the expected remaining variance, an upper bound of the expected width. For several runs, the
      mean of their widths. With measures of the E family, errors of the model that topics share are in both, of which
      judgments are taken to remove the same part as of the others
    - ``level``, ``look``: the level of the interval, and the number of this inspection; ``None`` if the interval is
      inspected once, otherwise the level is that of the intervals of all looks together
    - ``measure``, ``difference``, ``n_runs``: the measure, the two runs of a difference (``None`` for the runs
      themselves), and the number of runs
    - ``estimand``: the score that a measure of the E family estimates, as ``"nDCG@10, judged to depth 28"``
    - ``n_unjudged``: number of distinct unjudged documents of all runs up to the cutoff. Documents that are not in
      ``documents`` exceed the budget or do not change the variance
    - ``value``: the expected mean, or mean difference, now; for several runs, the mean over them
    """

    documents: pd.DataFrame
    width_before: float
    width_after: float
    level: float
    measure: str
    n_unjudged: int
    difference: tuple[str, str] | None = None
    n_runs: int = 1
    value: float = float("nan")
    look: int | None = None
    estimand: str = ""

    @property
    def low(self) -> float:
        """The lower limit of the interval now."""
        return max(self.value - self.width_before / 2, 0.0 if self.difference is None else -1.0)

    @property
    def high(self) -> float:
        """The upper limit of the interval now."""
        return min(self.value + self.width_before / 2, 1.0)

    def __len__(self) -> int:
        return len(self.documents)

    def to_frame(self) -> pd.DataFrame:
        """Return ``documents``: a row per document, in this order."""
        return self.documents

    def _line(self) -> str:
        return self.summary()

    def _verdict(self) -> Iterator[str]:
        """Yield the width that these judgments change, and the interval now."""
        n = count_text(self.n_unjudged, "unjudged document")
        if not len(self):
            yield f"No judgment of the {n} narrows the {self.level:.0%} interval of {self.target}."
        else:
            yield (
                f"Judging {len(self)} of {n} is expected to narrow the {self.level:.0%} interval of {self.target} from "
                f"±{self.width_before / 2:.4f} to ±{self.width_after / 2:.4f}."
            )
        looks = "" if self.look is None else f", at look {self.look}, valid for all looks together"
        yield f"Now it is {self.low:.4f} to {self.high:.4f}{looks}."

    def _picture(self) -> IntervalPicture:
        after, least = self.width_after / 2, 0.0 if self.difference is None else -1.0
        bars = (
            Bar("now", self.value, self.low, self.high),
            Bar("expected after", self.value, max(self.value - after, least), min(self.value + after, 1.0)),
        )
        rules = () if self.difference is None else (Rule(0.0, "no difference"),)
        return IntervalPicture(f"{self.measure}, {self.level:.0%} intervals", bars, rules)

    def _evidence(self) -> Iterator[Finding]:
        for row in self.documents.to_dict("records"):
            yield Finding(str(row["qid"]), str(row["docno"]), str(row["reason"]))

    def _next(self, call: Call) -> str:
        if call.name.rpartition(" ")[2] == "judge" and len(self) and "output" not in call.words:
            return call.again(output="judge.tsv")
        return ""

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Judge next, in this order", self.documents, heads=2)

    def summary(self) -> str:
        """A summary of the plan in one line."""
        looks = "" if self.look is None else f" at look {self.look}, valid for all looks together"
        return (
            f"{len(self)} of {self.n_unjudged} unjudged documents; {self.level:.0%} interval of {self.target}{looks}: "
            f"{self.low:.4f} to {self.high:.4f}, width {self.width_before:.4f}, {self.width_after:.4f} expected after"
        )

    @property
    def target(self) -> str:
        """The quantity that the interval estimates."""
        measure = measure_text(self.measure, self.estimand)
        if self.difference is not None:
            return f"{measure}, {' minus '.join(self.difference)}"
        return measure if self.n_runs == 1 else f"the mean {measure} of {self.n_runs} runs"


def plan_judging(
    distributions: Mapping[str, ScoreDistributions],
    n: int,
    *,
    level: float,
    measure: str,
    difference: tuple[str, str] | None = None,
    look: int | None = None,
    each_level: float | None = None,
    quota: Mapping[str, int] | None = None,
    costs: Mapping[str, float] | None = None,
    weights: Floats | None = None,
) -> JudgingPlan:
    r"""Choose the n unjudged documents that narrow the interval most; see :func:`vbterrier.judge_next`.

    ``distributions``: those of runs by name, with the same judgments, two for a difference. ``look, each_level``: the
    number of this inspection, and the level of its interval. ``quota, costs``: the largest number of judgments, and the
    cost of a judgment, of each topic; n is then the sum of the costs. ``weights``: the weight of each topic in the
    mean, at least 0, shape (n_topics,); equal by default.
    """
    from scipy import special

    scores = list(distributions.values())
    share = np.ones(len(scores[0])) if weights is None else weights / weights.mean()
    pool = _Documents(list(distributions), scores, share, signed=difference is not None)
    start = np.array([residual.variance for residual in pool.residuals]).reshape(-1, pool.n_scores).sum(axis=0)
    names = [scores[0].topics[topic] for topic in pool.topics.tolist()]
    limits = [quota[name] for name in names] if quota else []
    prices = [costs[name] for name in names] if costs else []
    steps = list(greedy(pool.residuals, n, limits, prices))
    # Variances are sums over topics; the width is that of a mean over topics, averaged over the scores.
    variances = np.array([start, *(step.variance for step in steps)])
    # Judgments remove at least as much of the errors that topics share as of the other ones.
    variances *= 1 + np.divide(pool.shared, start, out=np.zeros_like(start), where=start > 0)
    reach = special.ndtri((1 + (level if each_level is None else each_level)) / 2) / len(scores[0])
    widths: Floats = 2 * reach * np.sqrt(np.maximum(variances, 0.0)).mean(axis=1)
    means = [np.average(each.mean, weights=share) for each in scores]
    return JudgingPlan(
        pool.frame(steps, widths),
        float(widths[0]),
        float(widths[-1]),
        level,
        measure,
        len(pool.docno),
        difference,
        len(scores),
        float(means[0] - means[1] if difference is not None else np.mean(means)),
        look,
    )


class _Documents:
    """The distinct unjudged documents of all runs, by topic in the order of the qrels, then by docno.

    The prior of a document is the mean of its priors in the runs that retrieve it.
    """

    def __init__(
        self, names: Sequence[str], distributions: Sequence[ScoreDistributions], share: Floats, *, signed: bool
    ) -> None:
        self.names, self.distributions, self._signed, self._share = names, distributions, signed, share
        self.n_scores = 1 if signed else len(names)
        parts = [_unjudged_rows(place, each) for place, each in enumerate(distributions)]
        self.unjudged = pd.concat([frame for frame, _ in parts], ignore_index=True)
        key = self.unjudged.groupby(["topic", "docno"], sort=True)
        self.unjudged["document"] = key.ngroup()
        firsts = self.unjudged.drop_duplicates("document").sort_values("document")
        self.docno, topic = firsts["docno"].tolist(), firsts["topic"].to_numpy()
        document = self.unjudged["document"].to_numpy(dtype=np.int64)
        prob = np.zeros((len(self.docno), len(distributions[0].grades)))
        np.add.at(prob, document, np.concatenate([probs for _, probs in parts]))
        self.n_runs = np.bincount(document, minlength=len(self.docno))
        self.prob = prob / self.n_runs[:, None]
        self.topics = np.unique(topic)
        self.ends = np.searchsorted(topic, [*self.topics, len(distributions[0])])
        # Variance of the sum over topics from errors of the model that topics share, of each score.
        self.shared: Floats = np.zeros(self.n_scores)
        self.residuals = self._residual_variances(document)

    def _residual_variances(self, document: Ints) -> list[ResidualVariance]:
        sizes = np.diff(self.ends).astype(np.float64)
        if (sizes**2).sum() > MAX_COVARIANCE_CELLS:
            raise ParameterError(
                f"{len(self.docno):,} unjudged documents in {len(self.topics)} topics have more than "
                f"{MAX_COVARIANCE_CELLS:,} covariances, the limit; use a smaller cutoff, or fewer runs"
            )
        estimated = [each for each in self.distributions if isinstance(each, EstimatedDistribution)]
        if estimated:
            return self._drawn_residuals(estimated)
        # The correlation of two documents of a topic is the mean over its runs.
        owner, alike = self.unjudged["topic"].to_numpy(), self.unjudged["alike"].to_numpy()
        correlation = np.bincount(owner, weights=alike) / np.maximum(np.bincount(owner), 1)
        run, weight = self.unjudged["run"].to_numpy(), self.unjudged["weight"].to_numpy()
        score = np.zeros_like(run) if self._signed else run
        weight = np.where(run == 1, -weight, weight) if self._signed else weight
        order = np.argsort(document, kind="stable")
        residuals = []
        for place, topic in enumerate(self.topics.tolist()):
            start, stop = self.ends[place], self.ends[place + 1]
            rows = order[slice(*np.searchsorted(document[order], [start, stop]))]
            weights = np.zeros((self.n_scores, stop - start))
            np.add.at(weights, (score[rows], document[rows] - start), weight[rows])
            gain = _bootstrap(self.distributions[0]).model.gain
            covariance = gain_covariance(self.prob[start:stop], gain, correlation[topic])
            residuals.append(ResidualVariance.of_weights(self._share[topic] * weights, covariance))
        return residuals

    def _drawn_residuals(self, distributions: Sequence[EstimatedDistribution]) -> list[ResidualVariance]:
        """From joint draws of scores and grades, in which a grade also changes the ideal ranking."""
        first = self.unjudged.drop_duplicates("document").sort_values("document")
        columns, grades = first["column"].to_numpy(), distributions[0].drawn_grades
        scores = np.stack([distribution.draws for distribution in distributions], axis=2) * self._share[:, None]
        if self._signed:
            scores = scores[:, :, :1] - scores[:, :, 1:]
        self.shared = np.maximum(scores.sum(axis=1).var(axis=0) - scores.var(axis=0).sum(axis=0), 0.0)
        return [
            ResidualVariance.of_draws(scores[:, topic], grades(columns[self.ends[place] : self.ends[place + 1]]))
            for place, topic in enumerate(self.topics.tolist())
        ]

    def frame(self, steps: Sequence[Step], widths: Floats) -> pd.DataFrame:
        """The plan, with a row per judgment."""
        document = np.array([self.ends[step.topic] + step.document for step in steps], dtype=np.int64)
        listed = self.unjudged[self.unjudged["document"].isin(document)].sort_values(["document", "rank", "run"])
        places: dict[int, list[tuple[int, int]]] = {}
        for which, run, rank in listed[["document", "run", "rank"]].itertuples(index=False):
            places.setdefault(which, []).append((run, rank))
        names = self.distributions[0].topics
        narrowing = -np.diff(widths) / max(float(widths[0]), np.finfo(np.float64).tiny)
        rows = []
        for turn, (step, which) in enumerate(zip(steps, document.tolist(), strict=True)):
            what = (names[self.topics[step.topic]], self.docno[which], places[which][0][1], int(self.n_runs[which]))
            reason = self._reason(places[which], 1 - float(self.prob[which, 0]), float(narrowing[turn]))
            rows.append((*what, step.value, *widths[turn : turn + 2].tolist(), reason))
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def _reason(self, places: Sequence[tuple[int, int]], relevant: float, narrowing: float) -> str:
        reasons = [f"rank {rank} of {self.names[run]}" for run, rank in places]
        if self._signed:
            there = {run for run, _ in places}
            reasons += [f"beyond the cutoff of {name}" for run, name in enumerate(self.names) if run not in there]
        elif len(reasons) > 1:
            reasons = [reasons[0], f"in {len(reasons) - 1} more run{'s' if len(reasons) > 2 else ''}"]  # noqa: PLR2004
        what = f"the interval{' of the difference' if self._signed else ''}"
        return f"{', '.join(reasons)}; relevant with probability {relevant:.0%}; narrows {what} by {narrowing:.2%}"


def _bootstrap(distribution: ScoreDistributions) -> BootstrapDistribution:
    """The distribution that intervals describe."""
    if not isinstance(distribution, BootstrapDistribution):
        raise TypeError(distribution)
    return distribution.of_complete


def _unjudged_rows(place: int, distribution: ScoreDistributions) -> tuple[pd.DataFrame, Floats]:
    """The unjudged documents of a run (topic, docno, run, rank, weight) and their priors, shape (n_rows, L)."""
    judged = distribution.judged
    if isinstance(distribution, EstimatedDistribution):
        topic, rank, column = distribution.documents
        further: dict[str, Ints | Floats] = {"column": column}
        prob = distribution.probabilities
    else:
        distribution = _bootstrap(distribution)
        model, n_unjudged = distribution.model, distribution.n_unjudged
        topic = np.repeat(np.arange(len(distribution)), n_unjudged)
        turn = np.arange(len(topic)) - np.repeat(np.cumsum(n_unjudged) - n_unjudged, n_unjudged)
        rank, weight = distribution.visits[topic, turn], model.weights[topic, turn]
        for nonlinear in np.flatnonzero(model.binds | (model.value is not None)).tolist():
            weight[topic == nonlinear] = _linear_weights(distribution, nonlinear)
        further = {"weight": weight, "alike": 1 / (distribution.strength[topic] + 1)}
        prob = model.attainable_prob[topic, np.zeros_like(turn) if model.is_shared else turn]
    docno = judged.run.docno.take(judged.rows[topic, rank]).text.to_pylist()
    return pd.DataFrame({"topic": topic, "docno": docno, "run": place, "rank": rank + 1, **further}), prob


def _linear_weights(distribution: BootstrapDistribution, topic: int) -> Floats:
    """Weights that approximate a score by a weighted sum of gains with the same variance, shape (u,)."""
    model, n_unjudged = distribution.model, int(distribution.n_unjudged[topic])
    n_draws = max(_LEAST_DRAWS, _DRAWS_EACH * n_unjudged)
    uniforms = stream(distribution.process.seed, distribution.topics[topic], "judge next").random((n_draws, n_unjudged))
    weights = linear_weights(model, topic, uniforms)
    prob = np.broadcast_to(model.attainable_prob[topic], (n_unjudged, len(model.gain)))
    covariance = gain_covariance(prob, model.gain, float(1 / (distribution.strength[topic] + 1)))
    variance = float(weights @ covariance @ weights)
    return weights * float(distribution.std[topic]) / np.sqrt(variance) if variance > 0 else weights


@with_usual_errors
def write_judging(plan: Any, path: str | os.PathLike[str]) -> None:
    r"""Write a plan as tab-separated text with a header line: qid, docno, reason, in the order of judging.

    Parameters
    ----------
    plan, path
        A :class:`JudgingPlan`, or a frame with these columns, and the file, compressed if its name ends in ``.gz``. An
        existing file is replaced once the new one is complete.

    Raises
    ------
    InputError, FileError
        A tab or a line break in an id or a reason; the file cannot be written.

    Notes
    -----
    Values are not quoted: ``pandas.read_csv(path, sep="\t", dtype=str, quoting=3, na_filter=False)`` reads the file.
    Ids that a spreadsheet would run as a formula begin with an apostrophe, which readers of this package remove.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "plan.tsv")
    >>> write_judging(pd.DataFrame({"qid": ["q1"], "docno": ["d7"], "reason": ["rank 1 of mine"]}), path)
    >>> path.read_text().splitlines()
    ['qid\tdocno\treason', 'q1\td7\trank 1 of mine']
    """
    frame = pandas_frame(plan.documents if isinstance(plan, JudgingPlan) else plan, "plan")
    # People open plans in spreadsheets.
    ids = [name for name in ("qid", "docno") if name in frame.columns]
    frame = frame.assign(**{name: guarded_texts(frame[name]).where(frame[name].notna(), frame[name]) for name in ids})
    write_table(frame, path, "plan", ("qid", "docno", "reason"), ())
