"""Entity runs on one linked pool, measured with all that entity measures say."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vbterrier.entities.measured import LEAST_CORRELATED, mean_overlap
from vbterrier.errors import DegenerateWarning, examples
from vbterrier.measures.base import deepest
from vbterrier.measures.entity import OER, BaitRate, NonRelCov, ObsCov, OERCorr, OracleCov, RelCov, SignalRate, TopBait
from vbterrier.measures.scoring import Scoring, Slot
from vbterrier.uncertainty.intervals import RESAMPLED, Interval, topics_interval
from vbterrier.uncertainty.ratios import Ratio, disc_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.entities.pool import LinkedPool
    from vbterrier.frames.ranked import Run
    from vbterrier.measures.base import Measure

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

INTERVALS = ("name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed")
RATIO = "topics (percentile), ratio of means"
# What resamples topics, by the name of the method.
_RESAMPLED = (*(f"topics ({method})" for method in RESAMPLED), RATIO)
# Topics are the units of all intervals, and one topic says nothing of others.
_TWO = 2


class EntityLevel:
    """A linked pool, and the measures of entity runs on it.

    Parameters
    ----------
    pool
        The pool.
    k
        How many entities of each topic count.
    rel
        The lowest relevant label.
    alpha, tau
        Of OER.
    """

    def __init__(self, pool: LinkedPool, k: int, rel: int, alpha: float, tau: float) -> None:
        self.pool, self.k, self.rel = pool, k, rel
        self.slot = Slot.of_links(pool)
        self.relevant = pool.relevant(rel)
        evidence = {"alpha": alpha, "tau": tau, "rel": rel}
        self.rel_cov: Measure = RelCov(rel=rel) @ k
        self.nonrel_cov: Measure = NonRelCov(rel=rel) @ k
        correlated = (OERCorr,) if k >= LEAST_CORRELATED else ()
        per_rank = [measure(**evidence) @ k for measure in (OER, SignalRate, BaitRate, *correlated)]
        self.measures: list[Measure] = [self.rel_cov, self.nonrel_cov, *per_rank, TopBait(**evidence)]
        # What the pool offers, whatever a run selects of it.
        self.offers: list[Measure] = [ObsCov(**evidence), OracleCov(rel=rel) @ k]

    @property
    def names(self) -> list[str]:
        """What is said of each run: its measures, and the mean overlap with the relevant documents that it reaches."""
        return [*map(str, self.measures), f"Overlap@{self.k}"]

    def values(self, name: str, run: Run) -> pd.DataFrame:
        """The V frame of a run, without what is undefined."""
        scoring = Scoring(self.slot, run, deepest(self.measures))
        overlap = mean_overlap(scoring.selection(), self.relevant, self.k)
        found = np.stack([*(measure.values(scoring) for measure in self.measures), overlap])
        measure, topic = np.nonzero(~np.isnan(found))
        names = np.array(self.names, dtype=object)
        qids = np.array(self.pool.topics, dtype=object)
        rows = {"name": name, "qid": qids[topic], "measure": names[measure], "value": found[measure, topic]}
        return pd.DataFrame(rows)

    def topics(self, run: Run) -> pd.DataFrame:
        """A row a topic: its documents, and what the pool offers; the run does not matter."""
        scoring = Scoring(self.slot, run, self.k)
        counts = {
            "n_documents": self._count(np.ones(len(self.pool), dtype=bool)),
            "n_relevant": self._count(self.relevant),
            "n_unjudged": self._count(self.pool.label < 0),
            "n_without_entities": self._count(np.diff(self.pool.starts) == 0),
        }
        offers = {str(measure): measure.values(scoring) for measure in self.offers}
        return pd.DataFrame({"qid": self.pool.topics, **counts, **offers})

    def _count(self, chosen: Bools) -> NDArray[np.int64]:
        return np.bincount(self.pool.topic[chosen], minlength=len(self.pool.topics))

    def sizes(self, topics: pd.DataFrame) -> pd.DataFrame:
        """What the pool is, in one row."""
        n = topics[["n_documents", "n_relevant", "n_unjudged", "n_without_entities"]].sum()
        every = max(int(n["n_documents"]), 1)
        row: dict[str, float] = {
            "n_qids": len(topics),
            **{str(name): int(count) for name, count in n.items()},
            "share_unjudged": n["n_unjudged"] / every,
            "share_without_entities": n["n_without_entities"] / every,
            "n_without_relevant": int((topics["n_relevant"] == 0).sum()),
            "n_without_other": int((topics["n_relevant"] == topics["n_documents"]).sum()),
            "n_entities": len(self.pool.entities),
            "n_links": len(self.pool.entity),
            **{str(measure): topics[str(measure)].mean() for measure in self.offers},
        }
        return pd.DataFrame([row])

    def intervals(
        self, values: pd.DataFrame, names: list[str], *, interval: str, level: float, n_resamples: int, seed: int
    ) -> pd.DataFrame:
        """The C frame of runs, the ratio of mean RelCov to mean NonRelCov among the measures."""
        rows = []
        for name in names:
            wide = values[values["name"] == name].pivot(index="qid", columns="measure", values="value")
            for measure in self.names:
                known = wide[measure].dropna() if measure in wide else pd.Series(dtype=float)
                ends = interval_of(known, interval, level, n_resamples, seed)
                mean = float(known.mean()) if len(known) else float("nan")
                rows.append((name, measure, mean, ends.low, ends.high, ends.method, len(known)))
                if measure == str(self.nonrel_cov):
                    ratio = self._ratio(wide, level, n_resamples, seed)
                    label = measure.replace("NonRelCov", "DiscRatio")
                    rows.append((name, label, ratio.value, ratio.low, ratio.high, RATIO, ratio.n_qids))
        found = pd.DataFrame(rows, columns=["name", "measure", "value", "low", "high", "method", "n_qids"])
        # Topics of which nothing is reached have no overlap, as RelCov says.
        said = found["measure"] != self.names[-1]
        few = found.loc[said & (found["n_qids"] < _TWO), "measure"].unique()
        if len(few):
            message = f"{examples(few)}: fewer than two topics have a value, so there is no interval"
            warnings.warn(message, DegenerateWarning, stacklevel=3)
        resamples = np.where(found["method"].isin(_RESAMPLED), n_resamples, 0)
        return found.assign(level=level, n_resamples=resamples, seed=seed)[list(INTERVALS)]

    def _ratio(self, wide: pd.DataFrame, level: float, n_resamples: int, seed: int) -> Ratio:
        columns = [str(self.rel_cov), str(self.nonrel_cov)]
        both = wide.reindex(columns=columns).dropna()
        if not len(both):
            return Ratio(np.nan, np.nan, np.nan, 0)
        found = disc_ratio(*(both[name] for name in columns), level=level, n_resamples=n_resamples, seed=seed)
        return found if len(both) >= _TWO else Ratio(found.value, np.nan, np.nan, len(both))


def interval_of(values: pd.Series[float], interval: str, level: float, n_resamples: int, seed: int) -> Interval:
    """The interval of a mean over topics, which are the index, NaN for fewer than two."""
    if len(values) < _TWO:
        return Interval(float("nan"), float("nan"), f"topics ({interval})")
    qids = list(values.index)
    return topics_interval(
        np.asarray(values, dtype=np.float64),
        level=level,
        method=interval,
        n_resamples=n_resamples,
        seed=seed,
        qids=qids,
    )
