"""Results of simulations of reduced judgments."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, nearest
from vbterrier.frames.notebook import Panel, Shown, counted
from vbterrier.frames.parameters import choice
from vbterrier.stats.agreement import (
    EQUAL,
    Correlations,
    Errors,
    Preferences,
    bonferroni,
    error_statistics,
    paired_t,
    preferences,
    rank_correlations,
    share_interval,
)
from vbterrier.stats.comparisons import pairs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from vbterrier.annotations import Floats
    from vbterrier.frames.notebook import Figures


# The level of the range that is an estimate alone.
POINT = 0.0
LOSSES: dict[str, Callable[[Any], Any]] = {"squared": np.square, "absolute": np.abs}
_LABELLED = ("estimates", "intervals", "topics")
_ERRORS, _CORRELATIONS, _COUNTS = (
    tuple(field.name for field in fields(kind)) for kind in (Errors, Correlations, Preferences)
)
_COVERAGE = ("topics", "n", "covered", "covered_low", "covered_high", "width")
_PREFERENCES = (*_COUNTS, "precision", "recall", "f1")
_TESTS = ("estimator_a", "estimator_b", "loss", "diff", "t", "p_value", "p_adjusted", "n_units")


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Shown):
    """What :func:`simulate` found: estimates beside the truth. Methods sum them up, a row for each group and estimator.

    Groups are given by names of columns of ``estimates``: ``simulation``, ``name`` (the run), ``qid``, ``n_unjudged``,
    ``n_unknown``, and those that :meth:`labelled` added; ``()`` takes everything together.

    Parameters
    ----------
    estimates
        simulation, name, qid, n_unjudged, n_unknown, truth, estimator, estimate.
    intervals
        simulation, name, qid, n_unjudged, n_unknown, truth, estimator, level, low, high.
    truth
        name, qid, n_unknown, truth: of all runs and topics.
    topics
        simulation, name, n_qids (with a truth), n_evaluated (with a relevant document left).

    Examples
    --------
    >>> import pandas as pd
    >>> from vbterrier.evaluate.simulation import simulate
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [1, 1, 0, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "score": [1.0, 2.0]})
    >>> found = simulate({"mine": run}, qrels, [("no b", qrels.drop(index=1))], estimators={"mean": "BNDCG@10"})
    >>> found.errors()[["estimator", "n", "bias"]].round(3).values.tolist()
    [['mean', 1, -0.369]]
    >>> found.coverage()[["level", "topics", "covered"]].values.tolist()[:2]
    [[0.5, 'unjudged', 0.0], [0.5, 'all', 0.0]]
    """

    estimates: pd.DataFrame
    intervals: pd.DataFrame
    truth: pd.DataFrame
    topics: pd.DataFrame

    def _line(self) -> str:
        counts = ", ".join(
            counted(self.estimates[column].nunique(), what)
            for column, what in (("simulation", "simulation"), ("name", "run"), ("qid", "topic"))
        )
        return f"{counts}: {', '.join(map(str, self.estimates['estimator'].unique()))}"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Errors", self.errors())
        covered = self.coverage()
        frame = covered.rename(columns={"level": "nominal", "covered_low": "low", "covered_high": "high"})
        yield Panel("Coverage of intervals", frame, value="covered")

    def _figures(self) -> Figures:
        return {
            "interval_coverage": lambda: {"coverage": self.coverage()},
            "estimate_against_truth": lambda: {"estimates": self.estimates, "intervals": self.intervals},
        }

    def labelled(self, **labels: Callable[[str], Any]) -> Simulation:
        """The same with further columns made from the names of simulations, to group by.

        As ``labelled(share=lambda name: name.split(" #")[0]).errors(by=["share"])`` where one is called ``"30 % #7"``.
        """
        frames = {name: getattr(self, name) for name in _LABELLED}
        taken = {*_ERRORS, *_CORRELATIONS, *_COVERAGE, *_PREFERENCES, *_TESTS}.union(*frames.values())
        for new in taken.intersection(labels):
            raise ParameterError(f"{new!r} is a column already; choose another name for the label")
        return replace(
            self,
            **{
                name: frame.assign(**{new: frame["simulation"].map(label) for new, label in labels.items()})
                for name, frame in frames.items()
            },
        )

    def unjudged(self) -> Simulation:
        """The same without the topics of which a run has nothing unjudged: all estimators are right there."""
        return self._where(lambda frame: frame["n_unjudged"] > 0)

    def known(self) -> Simulation:
        """The same without the topics of which the truth itself lacks a document."""
        return self._where(lambda frame: frame["n_unknown"] == 0)

    def _where(self, kept: Callable[[pd.DataFrame], Any]) -> Simulation:
        frames = (frame[kept(frame)].reset_index(drop=True) for frame in (self.estimates, self.intervals))
        return replace(self, **dict(zip(("estimates", "intervals"), frames, strict=True)))

    def errors(self, by: str | Sequence[str] = ()) -> pd.DataFrame:
        """Errors of each estimator over run-topics: n, bias, mae, rmse, rmse_over, rmse_under.

        See :func:`vbterrier.stats.agreement.error_statistics`. Run-topics with nothing unjudged are among them.
        """
        columns = [*_listed(by), "estimator"]
        rows = [
            {**key, **asdict(error_statistics(_floats(group, "truth"), _floats(group, "estimate")))}
            for key, group in _groups(self.estimates, columns)
        ]
        return pd.DataFrame(rows, columns=[*columns, *_ERRORS])

    def coverage(self, by: str | Sequence[str] = ()) -> pd.DataFrame:
        """How often intervals hold the truth, for each estimator and nominal level.

        Returns
        -------
        pandas.DataFrame
            Groups, estimator, level, topics (``"unjudged"``: run-topics with something unjudged; ``"all"``), n, covered
            (the share), covered_low and covered_high (the exact 95 % interval of the share, as if run-topics were
            independent), width (the mean of the intervals'). The truth is held within 1e-9.
        """
        rows, columns = [], [*_listed(by), "estimator", "level"]
        for key, group in _groups(self.intervals, columns):
            parts = {"unjudged": group[group["n_unjudged"] > 0], "all": group}
            rows += [{**key, "topics": topics, **_coverage(part)} for topics, part in parts.items()]
        return pd.DataFrame(rows, columns=[*columns, *_COVERAGE])

    def correlations(self, by: str | Sequence[str] = ("simulation",)) -> pd.DataFrame:
        """Agreement of the order of systems by estimates with the true one.

        A system's score is the mean of its estimates in the group, over the topics that all systems of the group have.
        Where each simulation evaluates other runs, as leaving a group out does, ``by=()`` brings them together.

        Returns
        -------
        pandas.DataFrame
            Groups, estimator, n_systems, n_qids, tau (Kendall's τ_b), rho (Spearman's ρ), tau_ap (see
            :func:`vbterrier.stats.agreement.tau_ap`); NaN where there is no order.

        Raises
        ------
        InputError
            Systems of a group without a common topic.
        """
        rows, columns = [], [*_listed(by), "estimator"]
        for key, group in _groups(self.estimates, columns):
            truth, estimate = (_common(group, column) for column in ("truth", "estimate"))
            found = rank_correlations(truth.mean(axis=1).to_numpy(), estimate.mean(axis=1).to_numpy())
            rows.append({**key, "n_systems": truth.shape[0], "n_qids": truth.shape[1], **asdict(found)})
        return pd.DataFrame(rows, columns=[*columns, "n_systems", "n_qids", *_CORRELATIONS])

    def preferences(self, by: str | Sequence[str] = ()) -> pd.DataFrame:
        """Preferences between systems on single topics, as far as estimates and intervals state them (Table 6).

        A range strictly above another states a preference. In each simulation the evaluated runs have their range, the
        level 0 being the estimate alone; other runs have their true score, as if fully judged.

        Returns
        -------
        pandas.DataFrame
            Groups (each of whole simulations), estimator, level, n_true, n_stated, n_right, precision, recall, f1.
        """
        truth = self.truth.pivot(index="name", columns="qid", values="truth")
        points = self.estimates.assign(level=POINT, low=self.estimates["estimate"], high=self.estimates["estimate"])
        totals: dict[tuple[Any, ...], Preferences] = {}
        columns = [*_listed(by), "estimator", "level"]
        # Without intervals there is a frame without rows, whose types would spoil those of the others.
        ranges = pd.concat([points, self.intervals]) if len(self.intervals) else points
        for key, group in _groups(ranges, [*columns, "simulation"]):
            place = tuple(key[column] for column in columns)
            totals[place] = totals.get(place, Preferences(0, 0, 0)) + _preferences(truth, group)
        rows = [(*place, *(getattr(total, name) for name in _PREFERENCES)) for place, total in totals.items()]
        return pd.DataFrame(rows, columns=[*columns, *_PREFERENCES])

    def tests(
        self,
        by: str | Sequence[str] = (),
        *,
        loss: str = "squared",
        baseline: str | None = None,
        unit: str | Sequence[str] = ("qid",),
    ) -> pd.DataFrame:
        """Student's paired t-tests of the losses of every two estimators, or all with a baseline.

        Parameters
        ----------
        by
            Columns of groups; the tests of a group are a family for Bonferroni's correction.
        loss
            ``"squared"`` or ``"absolute"`` error.
        baseline
            The estimator that all others are compared with; ``None`` for all pairs.
        unit
            Columns that name what is independent of each other. Losses of a unit are averaged first: topics by default,
            as several runs or simulations of one topic say the same thing again; ``("name", "qid")`` for run-topics,
            which the paper tests.

        Returns
        -------
        pandas.DataFrame
            Groups, estimator_a, estimator_b, loss, diff (mean loss of a less that of b: below 0 where a is better), t,
            p_value (two-sided), p_adjusted, n_units.
        """
        choice("loss", loss, LOSSES)
        frame = self.estimates.assign(loss=LOSSES[loss](self.estimates["estimate"] - self.estimates["truth"]))
        by, unit = _listed(by), _listed(unit)
        _require_columns(frame, unit)
        rows: list[dict[str, Any]] = []
        for key, group in _groups(frame, by):
            losses = group.groupby([*unit, "estimator"], sort=False)["loss"].mean().unstack("estimator")
            pairs = pairs_of(list(group["estimator"].unique()), baseline)
            differences = [(losses[a] - losses[b]).to_numpy() for a, b in pairs]
            found = [paired_t(difference) for difference in differences]
            adjusted = bonferroni(np.array([p for _, p in found]))
            rows += [
                {**key, "estimator_a": a, "estimator_b": b, "loss": loss, "diff": float(difference.mean()), "t": t}
                | {"p_value": p, "p_adjusted": float(p_adjusted), "n_units": len(difference)}
                for (a, b), difference, (t, p), p_adjusted in zip(pairs, differences, found, adjusted, strict=True)
            ]
        return pd.DataFrame(rows, columns=[*by, *_TESTS])


def _floats(frame: pd.DataFrame, column: str) -> Floats:
    return frame[column].to_numpy(dtype=np.float64)


def _listed(columns: str | Sequence[str]) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns)


def _require_columns(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    unknown = [name for name in columns if name not in frame.columns]
    if unknown:
        raise ParameterError(
            f"no column {unknown[0]!r} to group by; there are {', '.join(frame.columns)}."
            f"{nearest(str(unknown[0]), frame.columns)}"
        )


def _groups(frame: pd.DataFrame, by: list[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """The groups in order of appearance, each with its key."""
    _require_columns(frame, by)
    if not by:
        yield {}, frame
        return
    for key, group in frame.groupby(by, sort=False):
        yield dict(zip(by, key, strict=True)), group


def _coverage(group: pd.DataFrame) -> Mapping[str, Any]:
    truth, low, high = (_floats(group, column) for column in ("truth", "low", "high"))
    held = (low - EQUAL <= truth) & (truth <= high + EQUAL)
    n, n_held = len(held), int(np.count_nonzero(held))
    share, width = (n_held / n, float((high - low).mean())) if n else (float("nan"),) * 2
    ends = dict(zip(("covered_low", "covered_high"), share_interval(n_held, n), strict=True))
    return {"n": n, "covered": share, **ends, "width": width}


def _common(group: pd.DataFrame, column: str) -> pd.DataFrame:
    """A row a system, a column a topic that all systems of the group have."""
    table = group.groupby(["name", "qid"], sort=False)[column].mean().unstack("qid").dropna(axis=1)
    if not table.shape[1]:
        raise InputError(
            f"the systems {examples(table.index)} have no topic in common: their means cannot be ordered; group by less"
        )
    return table


def _preferences(truth: pd.DataFrame, group: pd.DataFrame) -> Preferences:
    """The preferences of one simulation by one kind of range."""
    topics = group["qid"].unique()
    known = truth[topics].to_numpy()
    low, high = known.copy(), known.copy()
    rows, columns = (
        truth.index.get_indexer(pd.Index(group["name"])),
        pd.Index(topics).get_indexer(pd.Index(group["qid"])),
    )
    low[rows, columns], high[rows, columns] = _floats(group, "low"), _floats(group, "high")
    estimated = np.zeros(known.shape, dtype=bool)
    estimated[rows, columns] = True
    return preferences(known, low, high, estimated)
