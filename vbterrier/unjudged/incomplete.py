"""Simulation of incomplete judgments, to compare estimates from them with complete judgments."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, agreeing, examples, excerpt, nearest, warn, whole
from vbterrier.frames.columns import QRELS
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.files.reading import evaluated_qrels
from vbterrier.frames.ids import Ids, Lookup, column_ids, column_integers, require_same_kind
from vbterrier.frames.ranking import run_places, runs_by_name
from vbterrier.kernels import fingerprints
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.ranking import Run


# The owner of a row that several groups retrieved, and of a row that no group retrieved.
_SEVERAL, _NO_OWNER = -2, -1
# The constant of reciprocal rank fusion, of Cormack, Clarke and Buettcher, SIGIR 2009.
_FUSION = 60
# The mantissa of a float64 has 53 of 64 bits.
_MANTISSA_SHIFT, _MANTISSA_UNIT = np.uint64(11), 2.0**-53


class ReducedQrels(NamedTuple):
    """Incomplete judgments: a name, the remaining judgments, and the names of runs, ``None`` for all.

    ``runs`` lose judgments; the documents of ``evidence`` are evidence about unjudged documents.
    """

    name: str
    qrels: Any
    runs: tuple[str, ...] | None = None
    evidence: tuple[str, ...] | None = None


class _Pool:
    """The rows of qrels, with a lookup of retrieved documents."""

    def __init__(self, qrels: Any) -> None:
        self.frame = (
            evaluated_qrels(qrels) if isinstance(qrels, (str, os.PathLike)) else pandas_frame(qrels, "qrels", QRELS)
        )
        require(self.frame, ("qid", "docno", "label"), "qrels")
        self.qid, self.docno = (column_ids(self.frame[name], f"qrels column {name!r}") for name in ("qid", "docno"))
        self.relevant = column_integers(self.frame["label"], "qrels column 'label'") > 0
        self.topics, self.topic = self.qid.codes()
        self._lookup = Lookup(self.topic, self.docno)

    def ranks(self, run: Run, cutoff: int | None) -> Ints:
        """The rank that a run gives to the document of each row, 0 if it is not up to the cutoff, shape (n_rows,)."""
        place = run_places(run, self.topics, self.qid, "qrels")
        require_same_kind(self.docno, run.docno, "qrels column 'docno'", f"{run.name} column 'docno'")
        top = run.top(cutoff).rows
        owner, rank = np.nonzero((top >= 0) & (place[:, None] >= 0))
        pairs, rows = self._lookup.find(place[owner], run.docno.take(top[owner, rank]))
        ranks = np.zeros(len(self.frame), dtype=np.int64)
        ranks[rows] = rank[pairs] + 1
        return ranks

    def retrieved_mask(self, run: Run, cutoff: int) -> Bools:
        """Rows whose document a run retrieves at or above a rank cutoff, shape (n_rows,)."""
        return self.ranks(run, cutoff) > 0

    def keep(self, kept: Bools, what: str) -> pd.DataFrame:
        """Return the kept rows in their order, with a warning about topics that can no longer be evaluated."""
        n = len(self.topics)
        judged = np.bincount(self.topic[kept], minlength=n) > 0
        could, can = (np.bincount(self.topic[self.relevant & rows], minlength=n) > 0 for rows in (True, kept))
        lost = [(~judged, "judgments"), (judged & could & ~can, "relevant documents")]
        notes = [
            f"{agreeing(len(places), 'topics lose all')} {things} ({examples(map(self.topics.__getitem__, places))})"
            for mask, things in lost
            if len(places := np.flatnonzero(mask))
        ]
        if notes:
            warn(f"{what}: {', '.join(notes)}")
        return self.frame[kept].reset_index(drop=True)


@with_usual_errors
def leave_group_out(
    runs: Any, qrels: Any, *, groups: Mapping[str, str] | None = None, cutoff: int = 10
) -> Iterator[ReducedQrels]:
    """Remove the judgments that only one group of runs contributed, for each group in turn.

    These are the judgments of documents that only runs of this group retrieve up to rank ``cutoff``; documents that no
    run retrieves there are kept. Source: Fröbe et al., ECIR 2023, section 4.1, after Sakai, IR 2008 ("leave one group
    out").

    Parameters
    ----------
    runs, qrels
        A mapping of name to run, a frame (qid, docno, score) or the path of a TREC run; a frame (qid, docno, label) or
        the path of TREC qrels. With an iteration, all rows of a document go together.
    groups, cutoff
        The group of each run, by name (by default each run is a separate group), and the pool depth: the rank up to
        which runs were judged.

    Yields
    ------
    ReducedQrels
        ``(group, qrels, names of its runs)``, groups in order of appearance, rows in the order of the qrels. A topic
        that loses all judgments or all relevant documents is kept as it is, with a warning.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c"], "label": 1})
    >>> runs = {name: qrels[["qid", "docno"]].iloc[rows].assign(score=1.0)
    ...         for name, rows in {"one": [0, 1], "two": [1, 2]}.items()}
    >>> [(part.name, part.qrels["docno"].tolist(), part.runs) for part in leave_group_out(runs, qrels)]
    [('one', ['b', 'c'], ('one',)), ('two', ['a', 'b'], ('two',))]
    """
    whole("cutoff", cutoff)
    pool, loaded = _Pool(qrels), runs_by_name(runs)
    members = _members(list(loaded), groups)
    owner = np.full(len(pool.frame), _NO_OWNER, dtype=np.int64)
    for place, names in enumerate(members.values()):
        met = np.logical_or.reduce([pool.retrieved_mask(loaded[name], cutoff) for name in names])
        owner[met] = np.where(owner[met] == _NO_OWNER, place, _SEVERAL)
    return (
        ReducedQrels(group, pool.keep(owner != place, f"without {group!r}"), tuple(names))
        for place, (group, names) in enumerate(members.items())
    )


@with_usual_errors
def subsample_qrels(qrels: Any, share: float, seed: int = 0) -> pd.DataFrame:
    """Remove a random share of the judgments.

    Each document of a topic is removed independently with probability ``share``. The choice depends only on (seed, qid,
    docno), and documents that are removed at one share are removed at every larger share of the same seed.

    Parameters
    ----------
    qrels, share, seed
        As for :func:`leave_group_out`, the probability that a judgment is removed, 0 to 1, and the random seed.

    Returns
    -------
    pandas.DataFrame
        The remaining rows in their order, with all columns. A topic that loses all judgments or all relevant documents
        is kept as it is, with a warning; retaining one document would make judgments depend on each other.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": [f"d{i}" for i in range(1000)], "label": 1})
    >>> [len(subsample_qrels(qrels, share, seed=1)) for share in (0.3, 0.7)]
    [682, 276]
    """
    _require_shares(share=share)
    whole("seed", seed, low=0)
    pool = _Pool(qrels)
    return pool.keep(_uniforms(pool.qid, pool.docno, int(seed)) >= share, f"subsampled by {share:g}")


@with_usual_errors
def subsample_topics(qrels: Any, of_topics: float = 0.3, share: float = 0.8, seed: int = 0) -> pd.DataFrame:
    """Remove a random share of the judgments of some topics: judgments that were made topic by topic.

    A random share ``of_topics`` of the topics, rounded to a whole number, loses judgments as by
    :func:`subsample_qrels`; other topics keep all. The order in which topics are chosen depends only on (seed, qid), so
    topics that are chosen at one share are chosen at every larger share of the same seed.

    Parameters
    ----------
    qrels, of_topics, share, seed
        As for :func:`subsample_qrels`, with the share of topics that lose judgments, 0 to 1.

    Returns
    -------
    pandas.DataFrame
        As :func:`subsample_qrels`.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": [f"q{i // 100}" for i in range(400)], "docno": range(400), "label": 1})
    >>> subsample_topics(qrels, of_topics=0.5, share=0.9).value_counts("qid", sort=False).to_dict()
    {'q0': 100, 'q1': 100, 'q2': 15, 'q3': 13}
    """
    _require_shares(of_topics=of_topics, share=share)
    whole("seed", seed, low=0)
    pool = _Pool(qrels)
    _, firsts = np.unique(pool.topic, return_index=True)
    words = fingerprints.mix(pool.qid.take(firsts).fingerprints + _salt(int(seed), "subsample topics"))
    chosen = np.zeros(len(firsts), dtype=bool)
    chosen[np.argsort(words, kind="stable")[: round(of_topics * len(firsts))]] = True
    kept = ~chosen[pool.topic] | (_uniforms(pool.qid, pool.docno, int(seed)) >= share)
    return pool.keep(kept, f"{of_topics:.0%} of the topics subsampled by {share:g}")


@with_usual_errors
def shallow_pool(runs: Any, qrels: Any, *, cutoff: int) -> pd.DataFrame:
    """Keep only the judgments of documents that some run retrieves up to rank ``cutoff``.

    Parameters
    ----------
    runs, qrels, cutoff
        As for :func:`leave_group_out`; the depth of the pool, at least 1.

    Returns
    -------
    pandas.DataFrame
        The remaining rows, as :func:`subsample_qrels` returns them.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c"], "label": [0, 1, 2]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["c", "b"], "score": [2.0, 1.0]})
    >>> shallow_pool({"mine": run}, qrels, cutoff=1)["docno"].tolist()
    ['c']
    """
    whole("cutoff", cutoff)
    pool, loaded = _Pool(qrels), runs_by_name(runs)
    met = np.logical_or.reduce([pool.retrieved_mask(run, cutoff) for run in loaded.values()])
    return pool.keep(met, f"pool of depth {cutoff}")


@with_usual_errors
def budget_pool(runs: Any, qrels: Any, *, budget: int = 20) -> pd.DataFrame:
    """Keep only the judgments of the first ``budget`` judged documents of each topic by rank fusion of all runs.

    Documents are in the order of their sum over runs of 1/(60 + rank), equal ones by descending docno as in trec_eval;
    those that no run retrieves are removed. Source of the fusion: Cormack, Clarke, Buettcher: Reciprocal Rank Fusion.
    SIGIR 2009.

    Parameters
    ----------
    runs, qrels, budget
        As for :func:`leave_group_out`, with the number of documents that are judged per topic, at least 1.

    Returns
    -------
    pandas.DataFrame
        As :func:`subsample_qrels`. With an iteration, all rows of a document go together.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c"], "label": [0, 1, 2]})
    >>> runs = {"one": qrels[["qid", "docno"]].iloc[:2].assign(score=[2.0, 1.0]),
    ...         "two": qrels[["qid", "docno"]].iloc[1:].assign(score=[1.0, 2.0])}
    >>> [budget_pool(runs, qrels, budget=budget)["docno"].tolist() for budget in (1, 2)]
    [['b'], ['b', 'c']]
    """
    whole("budget", budget)
    pool, loaded = _Pool(qrels), runs_by_name(runs)
    fused = np.zeros(len(pool.frame))
    for run in loaded.values():
        ranks = pool.ranks(run, None)
        fused += np.where(ranks > 0, 1 / (_FUSION + ranks), 0.0)
    # The order of the runs changes the last digits of the sums.
    order = np.lexsort((-pool.docno.ranks(), -fused.round(12), pool.topic))
    # Rows of one document are neighbours; the place of a document is the number of documents of its topic up to it.
    topic, docno = pool.topic[order], pool.docno.codes()[1][order]
    changes = np.diff(topic, prepend=-1) != 0
    n_before = np.cumsum(changes | (np.diff(docno, prepend=-1) != 0))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = n_before - n_before[changes][topic]
    return pool.keep((fused > 0) & (place < budget), f"a budget of {budget} documents")


@with_usual_errors
def one_kind_pools(runs: Any, qrels: Any, *, kinds: Mapping[str, str], cutoff: int = 10) -> Iterator[ReducedQrels]:
    """Pool the runs of one kind of system, and evaluate the runs of other kinds, for each kind in turn.

    Only the judgments of documents that a run of the kind retrieves up to rank ``cutoff`` are kept, as if neural
    systems were evaluated with judgments of lexical ones. The evaluated runs are the evidence, since the pooled runs
    are usually unknown.

    Parameters
    ----------
    runs, qrels, kinds, cutoff
        As for :func:`leave_group_out`, with the kind of each run, by name, of at least two kinds.

    Yields
    ------
    ReducedQrels
        ``("pool of KIND", qrels, names of the other runs)``, kinds in order of appearance.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c"], "label": 1})
    >>> runs = {"bm25": qrels[:2].assign(score=1.0), "dense": qrels[1:].assign(score=1.0)}
    >>> parts = one_kind_pools(runs, qrels, kinds={"bm25": "lexical", "dense": "neural"})
    >>> [(part.name, part.qrels["docno"].tolist(), part.runs) for part in parts]
    [('pool of lexical', ['a', 'b'], ('dense',)), ('pool of neural', ['b', 'c'], ('bm25',))]
    """
    whole("cutoff", cutoff)
    pool, loaded = _Pool(qrels), runs_by_name(runs)
    members = _members(list(loaded), kinds, "kinds")
    if len(members) < 2:  # noqa: PLR2004 - a pooled and an evaluated kind
        raise ParameterError("kinds: found one; a pool of one kind needs runs of at least two kinds")

    def pool_of_kind(kind: str) -> ReducedQrels:
        kept = np.logical_or.reduce([pool.retrieved_mask(loaded[name], cutoff) for name in members[kind]])
        others = tuple(name for name in loaded if name not in members[kind])
        return ReducedQrels(f"pool of {kind}", pool.keep(kept, f"pool of {kind}"), others, others)

    return map(pool_of_kind, members)


@with_usual_errors
def hidden_runs(
    runs: Any,
    qrels: Any,
    *,
    groups: Mapping[str, str] | None = None,
    cutoff: int = 5,
    n_replicas: int = 1,
    seed: int = 0,
) -> Iterator[ReducedQrels]:
    """Pool a random half of the groups, and evaluate the other runs: new systems on an old collection.

    Only the judgments of documents that a pooled run retrieves up to rank ``cutoff`` are kept. The evaluated runs are
    the evidence, since the pooled runs are usually unknown.

    Parameters
    ----------
    runs, qrels, groups, cutoff, n_replicas, seed
        As for :func:`leave_group_out`, with at least two groups; the number of random halves, and the random seed; a
        half depends on it and on the names of the groups.

    Yields
    ------
    ReducedQrels
        ``("hidden 1", ...)``, ``("hidden 2", ...)``, ...

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c"], "label": 1})
    >>> runs = {"one": qrels[:2].assign(score=1.0), "two": qrels[1:].assign(score=1.0)}
    >>> [(part.qrels["docno"].tolist(), part.runs) for part in hidden_runs(runs, qrels)]
    [(['b', 'c'], ('one',))]
    """
    for name, number, low in (("cutoff", cutoff, 1), ("n_replicas", n_replicas, 1), ("seed", seed, 0)):
        whole(name, number, low=low)
    pool, loaded = _Pool(qrels), runs_by_name(runs)
    members = _members(list(loaded), groups)
    if len(members) < 2:  # noqa: PLR2004 - a pooled and an evaluated group
        raise ParameterError("groups: found one; a hidden half needs at least two groups of runs")
    met = {name: pool.retrieved_mask(run, cutoff) for name, run in loaded.items()}

    def hidden_half(replica: int) -> ReducedQrels:
        order = stream(seed, "hidden runs", str(replica)).permutation(sorted(members))
        pooled = [name for group in order[: len(order) // 2].tolist() for name in members[group]]
        others = tuple(name for name in met if name not in set(pooled))
        kept = np.logical_or.reduce([met[name] for name in pooled])
        return ReducedQrels(f"hidden {replica}", pool.keep(kept, f"hidden {replica}"), others, others)

    return map(hidden_half, range(1, n_replicas + 1))


@with_usual_errors
def sparse_qrels(qrels: Any, seed: int = 0) -> pd.DataFrame:
    """Keep one relevant document per topic, of its highest grade, as in MS MARCO, in the order of the qrels.

    Of several documents with the highest grade, the choice depends on (seed, qid, docno) alone. All other judgments are
    removed, also those of non-relevant documents.

    Parameters
    ----------
    qrels, seed
        As for :func:`subsample_qrels`.

    Returns
    -------
    pandas.DataFrame
        One row of ``qrels`` per topic with a relevant document.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c"], "label": [0, 2, 1]})
    >>> sparse_qrels(qrels)["docno"].tolist()
    ['b']
    """
    whole("seed", seed, low=0)
    pool = _Pool(qrels)
    label = column_integers(pool.frame["label"], "qrels column 'label'")
    order = np.lexsort((_uniforms(pool.qid, pool.docno, int(seed)), -label, pool.topic))
    firsts = order[np.flatnonzero(np.diff(pool.topic[order], prepend=-1))]
    kept = np.zeros(len(label), dtype=bool)
    kept[firsts] = label[firsts] > 0
    return pool.keep(kept, "one relevant document per topic")


@with_usual_errors
def grade_prevalence(runs: Any, qrels: Any, *, complete: Any, cutoff: int = 10) -> pd.DataFrame:
    """Compare the grades of the pool with those that the unjudged documents of runs have in complete judgments.

    Source: Fröbe et al., ECIR 2023, Table 3.

    Parameters
    ----------
    runs, qrels, complete, cutoff
        As for :func:`leave_group_out`, with the incomplete and the complete judgments. Unjudged documents that are not
        in the complete judgments are left out.

    Returns
    -------
    pandas.DataFrame
        A row per run and grade, then ``"all"`` with each document once: name, grade, n_pool, share_pool, n_unjudged,
        share_unjudged, p_value (of a chi-squared test that both have the same shares; NaN without unjudged documents).
        Documents count as independent; those of a topic are not, so that p-values are too small.

    Examples
    --------
    >>> complete = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c"], "label": [1, 0, 1]})
    >>> result = grade_prevalence({"mine": complete[::2].assign(score=1.0)}, complete[:2], complete=complete)
    >>> result.loc[result["name"] == "mine", ["grade", "share_pool", "share_unjudged"]].values.tolist()
    [[0.0, 0.5, 0.0], [1.0, 0.5, 1.0]]
    """
    from scipy import stats

    whole("cutoff", cutoff)
    pool, whole_pool = _Pool(qrels), _Pool(complete)
    labels = [
        np.maximum(column_integers(each.frame["label"], "qrels column 'label'"), 0) for each in (pool, whole_pool)
    ]
    grades = np.union1d(*labels)
    ids = ((part.qid.text.to_pylist(), part.docno.text.to_pylist()) for part in (pool, whole_pool))
    judged_pairs, every = (pd.MultiIndex.from_arrays(columns) for columns in ids)
    is_new = ~every.isin(judged_pairs)
    retrieved = {name: whole_pool.retrieved_mask(run, cutoff) & is_new for name, run in runs_by_name(runs).items()}
    retrieved["all"] = np.logical_or.reduce(list(retrieved.values()))
    in_pool = np.array([(labels[0] == grade).sum() for grade in grades])
    rows = []
    for name, mask in retrieved.items():
        counts = np.array([(labels[1][mask] == grade).sum() for grade in grades])
        table = np.array([in_pool, counts])[:, in_pool + counts > 0]
        p_value = stats.chi2_contingency(table).pvalue if counts.sum() and table.shape[1] > 1 else float("nan")
        shares = (each / max(each.sum(), 1) for each in (in_pool, counts))
        columns = zip(grades.tolist(), in_pool.tolist(), next(shares), counts.tolist(), next(shares), strict=True)
        rows += [(name, *row, p_value) for row in columns]
    names = ["name", "grade", "n_pool", "share_pool", "n_unjudged", "share_unjudged", "p_value"]
    return pd.DataFrame(rows, columns=names)


@with_usual_errors
def merge_duplicates(frame: pd.DataFrame, duplicates: Mapping[str, str]) -> pd.DataFrame:
    """Replace near-duplicate documents of a run or of qrels by one document each.

    Source: Fröbe et al., ECIR 2023, section 4.1, which removes near-duplicates from runs and judgments.

    Parameters
    ----------
    frame, duplicates
        A run (qid, docno, score) or qrels (qid, docno, label), and a mapping of document to the document that stands
        for it; use the same for runs and qrels.

    Returns
    -------
    pandas.DataFrame
        The frame with the documents replaced; of several rows of one document of a topic, the one with the highest
        score or label, in the order of the frame.

    Examples
    --------
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "copy", "b"], "score": [3.0, 2.0, 1.0]})
    >>> merge_duplicates(run, {"copy": "a"})["docno"].tolist()
    ['a', 'b']
    """
    value = "score" if "score" in frame.columns else "label"
    require(frame, ("qid", "docno", value), "frame")
    merged = frame.assign(docno=frame["docno"].map(lambda docno: duplicates.get(docno, docno)))
    best = merged.sort_values(value, ascending=False, kind="stable").drop_duplicates(["qid", "docno"])
    return best.sort_index().reset_index(drop=True)


def _require_shares(**shares: float) -> None:
    for name, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise ParameterError(f"{name}={excerpt(share)}: wanted a number from 0 to 1, as 0.3")


def _salt(seed: int, purpose: str) -> np.uint64:
    return stream(seed, purpose).integers(2**64, dtype=np.uint64)


def _uniforms(qid: Ids, docno: Ids, seed: int) -> Floats:
    """Uniform numbers in [0, 1) that depend only on the seed and the pair of ids."""
    words = fingerprints.mix(docno.fingerprints + fingerprints.mix(qid.fingerprints + _salt(seed, "thin pool")))
    return (words >> _MANTISSA_SHIFT).astype(np.float64) * _MANTISSA_UNIT


def _members(names: list[str], groups: Mapping[str, str] | None, what: str = "groups") -> dict[str, list[str]]:
    """The runs of each group, groups in order of appearance; ``what`` names the argument in errors."""
    if groups is None:
        return {name: [name] for name in names}
    unknown = [name for name in groups if name not in names]
    if unknown:
        raise ParameterError(
            f"{what}: no run is called {unknown[0]!r}; found {examples(names)}.{nearest(str(unknown[0]), names)}"
        )
    without = [name for name in names if name not in groups]
    if without:
        kind = what.removesuffix("s")
        raise ParameterError(
            f"{what}: {agreeing(len(without), f'runs have no {kind}')} ({examples(without)}); give each run a {kind}"
        )
    members: dict[str, list[str]] = {}
    for name in names:
        members.setdefault(groups[name], []).append(name)
    return members
