"""What several runs retrieved, side by side, and what that says of a document's relevance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from vbterrier.errors import InputError
from vbterrier.frames.ids import Ids, Lookup
from vbterrier.kernels import order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from vbterrier.frames.ranked import Run
    from vbterrier.judgments.pool import Judgments

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# Judged documents tell of their ranking in full to this rank, and are told of as much as this many by all rankings.
FULLY = 10
WORTH = 2.0


@dataclass(frozen=True, eq=False)
class Retrieved:
    """The first documents of several runs: an entry for each run, topic and rank, all arrays of shape (m,).

    Their order is that of the names of the runs, of the topics as text, and of ranks: the order of the given frames has
    no part in it, so that not even rounding depends on it.

    Parameters
    ----------
    runs
        The runs, by name.
    topics
        The judged topics, as text sorted.
    counts
        Judged documents of each of them and grade, shape (n, L).
    run
        Which run.
    row
        The row of its frame.
    topic
        The topic's place among ``topics``.
    rank
        From 1.
    level
        The place of its grade among the judgments' grades, below 0 unjudged.
    docno
        The document.
    """

    runs: Mapping[str, Run]
    topics: list[str]
    counts: Ints
    run: Ints
    row: Ints
    topic: Ints
    rank: Ints
    level: Ints
    docno: Ids

    def rows_of(self, name: str) -> tuple[NDArray[np.bool_], Ints]:
        """Which entries are those of a run, and their rows in its frame."""
        own = self.run == list(self.runs).index(name)
        return own, self.row[own]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of some things that may be relevant: entries, or documents.

    Parameters
    ----------
    features
        Numbers that rise with relevance, shape (m, p).
    topic, level
        As of :class:`Retrieved`, shape (m,).
    thing
        Which of the m each entry is, shape (n_entries,).
    """

    features: Floats
    topic: Ints
    level: Ints
    thing: Ints


def retrieved(runs: Mapping[str, Run], judgments: Judgments, depth: int) -> Retrieved:
    """The first ``depth`` documents of each judged topic of some runs."""
    runs = {name: runs[name] for name in sorted(runs, key=str)}
    turn = np.array(sorted(range(len(judgments.topics)), key=judgments.topics.__getitem__), dtype=np.int64)
    parts: list[tuple[Ints, ...]] = []
    docnos: list[Ids] = []
    for number, run in enumerate(runs.values()):
        top = judgments.judge(run, depth)
        rows, levels = top.rows[turn], top.levels[turn]
        topic, rank = np.nonzero(rows >= 0)
        row = rows[topic, rank]
        parts.append((np.full(len(row), number), row, topic, rank + 1, levels[topic, rank]))
        docnos.append(run.docno.take(row))
    columns = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    owner, row, topic, rank, level = columns
    docno = Ids(pa.concat_arrays([ids.text for ids in docnos]))
    topics = [judgments.topics[place] for place in turn]
    return Retrieved(runs, topics, judgments.counts[turn], owner, row, topic, rank, level, docno)


def by_rank(entries: Retrieved) -> Evidence:
    """Entries with ``-log2(1 + rank)``."""
    return _entries(entries, -np.log2(1 + entries.rank))


def by_score(entries: Retrieved) -> Evidence:
    """Entries with their score, standardised over the entries of their run and topic; 0 where scores are all equal.

    Raises
    ------
    InputError
        An infinite score.
    """
    score = np.concatenate([run.score[entries.rows_of(name)[1]] for name, run in entries.runs.items()])
    if not np.isfinite(score).all():
        at = int(np.argmin(np.isfinite(score)))
        run = list(entries.runs.values())[entries.run[at]]
        raise InputError(
            f"{run.name} column 'score': row {entries.row[at]} (document {entries.docno.text[at].as_py()!r}) is "
            "infinite; by='score' wants finite scores: repair it, or use by='rank'"
        )
    # Entries of one run and topic stand together.
    group = np.cumsum(np.append(0, (np.diff(entries.run) != 0) | (np.diff(entries.topic) != 0)))[: len(score)]
    starts = np.flatnonzero(np.append(True, np.diff(group) > 0)[: len(score)])
    size = np.bincount(group)
    largest = np.maximum.reduceat(np.abs(score), starts) if len(score) else score
    # Divided first, so that squares of large scores stay finite.
    score = score / np.where(largest > 0, largest, 1.0)[group]
    score = score - (np.bincount(group, score) / size)[group]
    spread = np.sqrt(np.bincount(group, score**2) / size)
    return _entries(entries, score / np.where(spread > 0, spread, 1.0)[group])


def by_votes(entries: Retrieved) -> Evidence:
    """Documents with what all runs together say of them: the same in whatever run they stand.

    Mean of ``1/log2(1 + rank)`` over the runs (0 where a run lacks it), the share of runs that have it, and
    ``-log2(1 + best rank)``.
    """
    first = np.unique(order.keys(entries.topic, entries.docno.prints), return_index=True)[1]
    # Compares the ids of all entries with that of the document that they are taken for.
    thing = Lookup(entries.topic[first], entries.docno.take(first)).find_one(entries.topic, entries.docno)
    best = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(best, thing, entries.rank)
    n_runs = max(len(entries.runs), 1)
    discounted = np.bincount(thing, 1 / np.log2(1 + entries.rank), minlength=len(first)) / n_runs
    share = np.bincount(thing, minlength=len(first)) / n_runs
    features = np.column_stack([discounted, share, -np.log2(1 + best)])
    return Evidence(features, entries.topic[first], entries.level[first], thing)


def _entries(entries: Retrieved, feature: Floats) -> Evidence:
    return Evidence(feature[:, None], entries.topic, entries.level, np.arange(len(feature)))


def pool_of_others(counts: Ints, evidence: Evidence) -> Ints:
    """Judged documents of each grade in the topic of each thing, itself left out, shape (m, L)."""
    own = evidence.level[:, None] == np.arange(counts.shape[1])
    return np.asarray(counts[evidence.topic] - own)


def neighbours(entries: Retrieved, evidence: Evidence) -> Floats:
    """The logit of the share of relevant documents among the judged ones of the same ranking, shape (m,).

    The thing itself is left out; a judged document counts ``min(1, (10/rank)^2)``, and two more are as all rankings
    are. Of documents in several rankings, the mean.
    """
    from scipy.special import logit

    weight = np.where(entries.level >= 0, np.minimum(1.0, (FULLY / entries.rank) ** 2), 0.0)
    hit = np.where(entries.level > 0, weight, 0.0)
    overall = (hit.sum() + 0.5) / (weight.sum() + 1)
    ranking = entries.run * len(entries.topics) + entries.topic
    relevant, total = (np.bincount(ranking, part)[ranking] - part for part in (hit, weight))
    share = logit((np.maximum(relevant, 0) + WORTH * overall) / (np.maximum(total, 0) + WORTH))
    return np.asarray(np.bincount(evidence.thing, share) / np.bincount(evidence.thing))
