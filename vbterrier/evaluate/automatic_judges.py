"""Correlations of the leaderboards of automatic judges with that of the judgments."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, agreeing, examples, warn
from vbterrier.evaluate.collection_scores import Collection, drawn_scores, evaluated_collection, unjudged_shares
from vbterrier.evaluate.inputs import evaluation_target, input_table, require_scale, require_spelling, warn_if_uneven
from vbterrier.evaluate.ranking import equal_tails
from vbterrier.frames.contracts import is_frame, pandas_frame
from vbterrier.frames.files.reading import read_qrels
from vbterrier.kernels.resample import BLOCK_CELLS
from vbterrier.stats.agreement import rank_biased_overlap, tau_ap, tau_b
from vbterrier.unjudged.joint import ScoresOnTopics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.annotations import Floats

STATISTICS = ("tau", "tau_ap", "rbo")
# The smallest value of each statistic.
MIN_STATISTICS = (-1.0, -1.0, 0.0)
_COLUMNS = ("judge", "statistic", "uncertainty", "value", "low", "high", "level", "n_systems", "n_qids")


def judge_correlations(
    collections: list[Collection],
    measure: Any,
    automatic: Mapping[str, Any],
    names: list[str],
    on_topics: str,
    *,
    scale: tuple[int, int] | None,
    n_draws: int,
    level: float,
    seed: int,
) -> pd.DataFrame:
    """Correlations of the leaderboard of each automatic judge with that of the judgments."""
    rows: list[tuple[Any, ...]] = []
    for judge, judge_labels in automatic.items():
        fixed, labelled, compared = (
            _leaderboard_scores(judge, judge_labels, names, collections[0].members),
            [],
            collections,
        )
        if fixed is None:
            labelled = [_labelled_scores(judge, each, judge_labels, measure, on_topics, scale) for each in collections]
            compared = [_on_topics(*pair) for pair in zip(collections, labelled, strict=True)]
        sizes = [len(each.topics) for each in compared]
        for source in ("topics", "both") if min(sizes) > 1 else ("unjudged",):
            means, draws = drawn_scores(compared, names, source, n_draws, seed)
            if fixed is None:
                other, drawn = drawn_scores(labelled, names, source, n_draws, seed, judge)
            else:
                other, drawn = fixed, np.broadcast_to(fixed[:, None], draws.shape)
            values = _correlations(means, other)
            # The pairs of systems of so many draws are held at once.
            step = max(1, BLOCK_CELLS // len(names) ** 2)
            blocks = [slice(at, at + step) for at in range(0, draws.shape[1], step)]
            correlations = np.concatenate([_correlations(draws[:, block].T, drawn[:, block].T) for block in blocks])
            # Resamples of a sample have lower correlations than samples: their mean becomes the value.
            low, high = equal_tails(correlations.T, level) - correlations.mean(axis=0) + values
            limits = np.maximum(low, MIN_STATISTICS), np.minimum(high, 1.0)
            for statistic, *ends in zip(STATISTICS, values, *limits, strict=True):
                rows.append((judge, statistic, source, *ends, level, len(names), sum(sizes)))
    return pd.DataFrame(rows, columns=list(_COLUMNS)).assign(n_draws=n_draws, seed=seed)


def _on_topics(each: Collection, labelled: Collection) -> Collection:
    """The scores on a collection, of the topics that an automatic judge labelled."""
    places = [each.topics.index(topic) for topic in labelled.topics]

    def scores(topic: int, n_draws: int, seed: int) -> Floats:
        return each.scores.scores(places[topic], n_draws, seed)

    part = ScoresOnTopics(each.scores.names, labelled.topics, each.scores.means[:, places], scores)
    return replace(each, scores=part)


def _correlations(truth: Floats, estimate: Floats) -> Floats:
    """The statistics of scorings, shape (..., n) to shape (..., 3); ties are those of ``rank_correlations``."""
    rounded = np.round(truth, 9), np.round(estimate, 9)
    tau = tau_b(*rounded)
    by_rank = np.where(np.isnan(tau), np.nan, tau_ap(*rounded)) if truth.shape[-1] > 1 else np.full_like(tau, np.nan)
    return np.stack([tau, by_rank, rank_biased_overlap(truth, estimate)], axis=-1)


def _leaderboard_scores(judge: str, source: Any, systems: list[str], members: Mapping[str, list[str]]) -> Floats | None:
    """The leaderboard of an automatic judge, if it is given as scores of systems, or of the runs of each."""
    if is_frame(source) and {"name", "value"} <= set(pandas_frame(source, judge).columns):
        frame = pandas_frame(source, judge)
        source = dict(zip(frame["name"], frame["value"], strict=True))
    if is_frame(source) or not hasattr(source, "items"):
        return None
    runs = {name: [name] if name in source else members.get(name, [name]) for name in systems}
    names = [*chain.from_iterable(runs.values())]
    if not set(names).intersection(source):
        return None
    without = [name for name in names if name not in source]
    if without:
        raise InputError(
            f"automatic judge {judge!r}: {len(without)} of {len(names)} systems have no score ({examples(without)}); "
            "add them, or leave those runs out"
        )
    scores = np.array([float(source[name]) for name in names])
    if not np.isfinite(scores).all():
        name = names[int(np.argmin(np.isfinite(scores)))]
        raise InputError(f"automatic judge {judge!r}: the score of {name!r} is {source[name]}, wanted a finite number")
    return np.array([np.mean([float(source[run]) for run in same]) for same in runs.values()])


def _labelled_scores(
    judge: str, each: Collection, source: Any, measure: Any, on_topics: str, scale: tuple[int, int] | None
) -> Collection:
    """The scores of all systems by the labels of an automatic judge, on the topics that it labelled."""
    if each.target is None:
        raise ParameterError(f"automatic judge {judge!r}: found values, which have no documents; give its leaderboard")
    if each.name:
        if not hasattr(source, "items") or each.name not in source:
            raise InputError(f"automatic judge {judge!r}: no labels for collection {each.name!r}; give some for each")
        source = source[each.name]
    frame = input_table(source, f"judge {judge!r}", read_qrels, ("qid", "docno", "label"))
    require_scale(frame, scale, f"automatic judge {judge!r}")
    qids = frame["qid"].astype(str)
    require_spelling(f"automatic judge {judge!r}", qids.unique(), each.topics)
    labelled_topics, where = set(qids.unique()), f" of {each.name!r}" if each.name else ""
    missing = [topic for topic in each.topics if topic not in labelled_topics]
    n_topics = f"{len(missing)} of {len(each.topics)} topics{where} ({examples(missing)})"
    if len(missing) == len(each.topics):
        raise InputError(f"automatic judge {judge!r}: no label for {n_topics}; use the same ids of topics")
    if missing:
        warn(f"judge {judge!r}: no label for {n_topics}: its leaderboard is compared on the others alone")
    kept = qids.isin(each.topics)
    if not kept.all():
        warn(f"judge {judge!r}: {agreeing(qids[~kept].nunique(), 'topics are not in the qrels and are left out')}")
    target = evaluation_target(frame[kept].reset_index(drop=True), None, None)
    runs = {name: run.only(target.topics) for name, run in each.runs.items()}
    shares = unjudged_shares(target, runs, measure)
    nothing = [name for name, share in shares.items() if share == 1]
    if nothing:
        raise InputError(
            f"automatic judge {judge!r}: labelled no document of {len(nothing)} of {len(shares)} systems "
            f"({examples(nothing)}) up to the cutoff; label them, or leave these runs out"
        )
    warn_if_uneven(f"automatic judge {judge!r}", {name: 1 - share for name, share in shares.items()}, "its leaderboard")
    return evaluated_collection(each.name, runs, target, measure, on_topics)
