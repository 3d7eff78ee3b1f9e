"""A linked collection whose entities speak for relevance exactly as much as they were told to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, nearest
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["KINDS", "Kind", "Planted", "planted_collection"]

# How far the first stage's scores of relevant documents lie above those of others, in standard deviations.
_LIFT = 0.8


@dataclass(frozen=True)
class Kind:
    """Entities of one kind in a topic.

    Parameters
    ----------
    short
        What their ids begin with.
    n
        How many there are.
    log_odds
        The least and the greatest log odds ratio of being mentioned by relevant and by other documents; those of the
        entities lie at equal steps between.
    share
        The share of other documents that mention each, above 0 and below 1.
    everywhere
        Whether all topics have the same entities.
    """

    short: str
    n: int
    log_odds: tuple[float, float]
    share: float
    everywhere: bool = False


# By the signal class that the planted odds make most likely.
KINDS = {
    "core": Kind("core", 3, (2.2, 3.2), 0.02),
    "conditional": Kind("conditional", 3, (0.4, 1.2), 0.12),
    "generic bait": Kind("bait", 4, (-0.2, 0.0), 0.45, everywhere=True),
    "anti-signal": Kind("anti", 3, (-2.4, -1.2), 0.15),
    "sparse": Kind("rare", 40, (0.0, 0.0), 0.004),
}


@dataclass(frozen=True, eq=False)
class Planted:
    """What :func:`planted_collection` makes.

    Parameters
    ----------
    topics
        Q: qid, query.
    pool
        R: the first stage's ranking of each topic's documents; qid, docno, score, rank.
    qrels
        L: qid, docno, label; every document is judged, 1 or 0.
    mentions
        T: docno, entity_id; what documents mention.
    tags
        T: what the linker finds of ``mentions``.
    entities
        What was planted: qid, entity_id, kind, log_odds, p_relevant, p_other (the probability that a relevant, or
        another, document mentions the entity).
    runs
        E, by name: entities of each topic by their planted log odds (``"odds"``); by the size of these, as if it were
        known what belongs to the topic, and not whether it speaks for relevance or against it (``"topical"``); by how
        many documents of the pool are to mention them (``"frequency"``); in no order (``"chance"``).
    """

    topics: pd.DataFrame
    pool: pd.DataFrame
    qrels: pd.DataFrame
    mentions: pd.DataFrame
    tags: pd.DataFrame
    entities: pd.DataFrame
    runs: dict[str, pd.DataFrame]

    def __repr__(self) -> str:
        return (
            f"Planted({len(self.topics)} topics, {len(self.pool)} documents, {len(self.tags)} of {len(self.mentions)} "
            "mentions linked)"
        )


def planted_collection(
    *,
    n_topics: int = 50,
    n_documents: int = 200,
    n_relevant: int = 40,
    n_entities: Mapping[str, int] | None = None,
    log_odds: Mapping[str, tuple[float, float]] | None = None,
    shares: Mapping[str, float] | None = None,
    linker_recall: float = 1.0,
    seed: int = 0,
) -> Planted:
    """Draw a collection in which it is known how much each entity says of relevance, and what the linker misses.

    A document mentions an entity with ``p_other`` if it is not relevant, else with p_relevant, ``logit p_relevant =
    logit p_other + log_odds``; whatever else it mentions. OER estimates the log odds.

    Parameters
    ----------
    n_topics, n_documents, n_relevant
        Topics; documents of each topic's pool, which are its own; how many of these are relevant.
    n_entities, log_odds, shares
        By kind, what differs from :data:`KINDS`: how many entities each topic has; the least and the greatest log odds;
        ``p_other``. The kinds are ``"core"``, ``"conditional"``, ``"generic bait"`` (the same entities in all topics),
        ``"anti-signal"`` and ``"sparse"``, after the signal class that they are most likely of.
    linker_recall
        The share of mentions that the linker finds, 0 to 1. Whether it finds one depends on the seed, the document and
        the entity alone: whatever it finds it finds at any higher recall, too.
    seed
        Decides everything drawn. A topic is the same however many there are.

    Returns
    -------
    Planted

    Raises
    ------
    ParameterError
        An unknown kind; a number outside its range.

    Notes
    -----
    Nothing else is like a real collection: mentions are independent, every document is judged, the linker finds nothing
    that is not there. What fails here fails for a reason that is known.

    Examples
    --------
    >>> made = planted_collection(n_topics=2, n_documents=50, n_relevant=10, linker_recall=0.5)
    >>> len(made.pool), len(made.topics), sorted(made.runs)
    (100, 2, ['chance', 'frequency', 'odds', 'topical'])
    >>> made.entities.groupby("kind", sort=False).size().to_dict()
    {'core': 6, 'conditional': 6, 'generic bait': 8, 'anti-signal': 6, 'sparse': 80}
    """
    _require(n_topics, n_documents, n_relevant, linker_recall, seed)
    kinds = _kinds(n_entities or {}, log_odds or {}, shares or {})
    qids = [f"q{place:03d}" for place in range(1, n_topics + 1)]
    entities = _entities(qids, kinds)
    # An array for each topic; a row a document, a column an entity.
    shape = (n_documents, len(entities) // n_topics)
    p = entities[["p_relevant", "p_other"]].to_numpy()[: shape[1]].T
    p = p.repeat([n_relevant, n_documents - n_relevant], axis=0)
    docnos, scores, mentioned, chances = [], [], [], []
    for qid in qids:
        draw = stream(seed, "planted", qid)
        docnos += [f"{qid}-d{place:04d}" for place in draw.permutation(n_documents).tolist()]
        scores.append(draw.normal(size=n_documents))
        mentioned.append(draw.random(shape) < p)
        chances.append(draw.random(shape[1]))
    relevant = np.tile(np.arange(n_documents) < n_relevant, n_topics)
    pool = pd.DataFrame({"qid": np.repeat(qids, n_documents), "docno": docnos, "label": relevant.astype(np.int64)})
    pool["score"] = np.concatenate(scores) + _LIFT * relevant
    topic, document, entity = np.nonzero(mentioned)
    named = pool["docno"].iloc[topic * n_documents + document], entities["entity_id"].iloc[topic * shape[1] + entity]
    mentions = pd.concat([ids.reset_index(drop=True) for ids in named], axis=1)
    found = _uniform(mentions, seed) < linker_recall
    return Planted(
        topics=pd.DataFrame({"qid": qids, "query": [f"what topic {qid} asks" for qid in qids]}),
        pool=_ranked(pool[["qid", "docno", "score"]]),
        qrels=pool[["qid", "docno", "label"]],
        mentions=mentions,
        tags=mentions[found].reset_index(drop=True),
        entities=entities,
        runs=_runs(entities.assign(chance=np.concatenate(chances)), n_relevant / n_documents),
    )


def _entities(qids: list[str], kinds: Mapping[str, Kind]) -> pd.DataFrame:
    """The entities of all topics, which differ in their ids alone."""
    n = [kind.n for kind in kinds.values()]
    share = np.repeat([kind.share for kind in kinds.values()], n)
    odds = np.concatenate([np.linspace(*kind.log_odds, kind.n) for kind in kinds.values()])
    ids = [
        f"{kind.short}-{place}" if kind.everywhere else f"{kind.short}-{qid}-{place}"
        for qid in qids
        for kind in kinds.values()
        for place in range(1, kind.n + 1)
    ]
    columns = {
        "kind": np.repeat(list(kinds), n),
        "log_odds": odds,
        "p_relevant": 1 / (1 + (1 - share) / share * np.exp(-odds)),
        "p_other": share,
    }
    same = {name: np.tile(values, len(qids)) for name, values in columns.items()}
    return pd.DataFrame({"qid": np.repeat(qids, sum(n)), "entity_id": pd.Series(ids, dtype="str"), **same})


def _uniform(mentions: pd.DataFrame, seed: int) -> Floats:
    """A number in [0, 1) for each mention that depends on the seed, the document and the entity alone."""
    # Ids made here hold no space.
    text = (mentions["docno"] + " " + mentions["entity_id"]).to_numpy(dtype=object)
    bits = pd.util.hash_array(text, hash_key=f"{seed:016d}", categorize=False)
    numbers: Floats = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers


def _runs(entities: pd.DataFrame, prevalence: float) -> dict[str, pd.DataFrame]:
    scores = {
        "odds": entities["log_odds"],
        "topical": entities["log_odds"].abs(),
        "frequency": prevalence * entities["p_relevant"] + (1 - prevalence) * entities["p_other"],
        "chance": entities["chance"],
    }
    ids = pd.DataFrame({"qid": entities["qid"], "docno": entities["entity_id"]})
    return {name: _ranked(ids.assign(score=score)) for name, score in scores.items()}


def _ranked(run: pd.DataFrame) -> pd.DataFrame:
    """Best first, ties as trec_eval has them: by falling docno."""
    keyed = run.assign(single=run["score"].astype(np.float32))
    ordered = keyed.sort_values(["qid", "single", "docno"], ascending=[True, False, False], ignore_index=True)
    return ordered.drop(columns="single").assign(rank=ordered.groupby("qid").cumcount())


def _kinds(
    n: Mapping[str, int], log_odds: Mapping[str, tuple[float, float]], shares: Mapping[str, float]
) -> dict[str, Kind]:
    """The kinds with what is asked to differ."""
    for option, given in (("n_entities", n), ("log_odds", log_odds), ("shares", shares)):
        for name in given:
            if name not in KINDS:
                wanted = ", ".join(map(repr, KINDS))
                raise ParameterError(f"{option}: no kind {name!r}; wanted {wanted}.{nearest(name, list(KINDS))}")
    kinds = {
        name: Kind(
            kind.short,
            n.get(name, kind.n),
            log_odds.get(name, kind.log_odds),
            shares.get(name, kind.share),
            everywhere=kind.everywhere,
        )
        for name, kind in KINDS.items()
    }
    for name, kind in kinds.items():
        _require_whole(f"n_entities[{name!r}]", kind.n, 0)
        low, high = kind.log_odds
        if not (np.isfinite([low, high]).all() and low <= high):
            raise ParameterError(f"log_odds[{name!r}]={kind.log_odds!r}: wanted two finite numbers in order")
        if not 0 < kind.share < 1:
            raise ParameterError(f"shares[{name!r}]={kind.share!r}: wanted a number above 0 and below 1")
    return kinds


def _require(n_topics: int, n_documents: int, n_relevant: int, linker_recall: float, seed: int) -> None:
    for name, value, least in (
        ("n_topics", n_topics, 1),
        ("n_documents", n_documents, 1),
        ("n_relevant", n_relevant, 0),
        ("seed", seed, 0),
    ):
        _require_whole(name, value, least)
    if n_relevant > n_documents:
        raise ParameterError(f"n_relevant={n_relevant}: wanted at most n_documents={n_documents}")
    if not 0 <= linker_recall <= 1:
        raise ParameterError(f"linker_recall={linker_recall!r}: wanted a share from 0 to 1")


def _require_whole(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ParameterError(f"{name}={value!r}: wanted a whole number of at least {least}")
