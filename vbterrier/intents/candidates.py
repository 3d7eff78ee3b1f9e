"""Candidate intents of queries, and truncation of candidate lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.errors import InputError, ParameterError, choice, number, whole
from vbterrier.frames.contracts import require
from vbterrier.frames.ids import ids_of, repeated_pairs, require_same_kind
from vbterrier.frames.ranking import places
from vbterrier.intents.stage import NIL, Candidates, IntentStage, label_of, warn_of
from vbterrier.kernels import candidates as kernels
from vbterrier.kernels import candidates as probability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Floats, Ints


PROBS = ("auto", "prior", "softmax", "uniform")
MENTIONS = ("all", "longest")
_OURS = ("entity_id", "prob", "score", "name", "mention", "source")


class CandidateIntents(IntentStage):
    """The entities that each query may mean, with probabilities: Q -> I (Ding 2025, section 3.2).

    Parameters
    ----------
    source
        A linker (:mod:`vbterrier.linking`; a knowledge base is one), or a PyTerrier retriever over a collection of
        entities, whose docno is then the entity and the whole query the mention.
    prob
        ``"softmax"`` of the scores (the paper's label-free choice at T = 1; for another T ``>> Calibrate()``),
        ``"prior"``, proportional to them, ``"uniform"``, or ``"auto"``: prior where the source says that its scores are
        probabilities, else softmax.
    cutoff
        How many candidates of a query to keep, by score; among equals the smallest id. All by default.
    mentions
        ``"all"`` mentions of a query speak for its candidates; or the ``"longest"`` alone, the first of equally long
        ones.
    nil
        Probability that no candidate is meant, in [0, 1): the entity ``"NIL"`` of every query. The other stages
        leave it as it is. 0 for no such intent.

    Raises
    ------
    ParameterError
        A source that can do neither, an illegal value.
    InputError
        A query without text or standing twice; a column of the topics that ours would replace; scores that are not
        finite, or negative where they should be probabilities.

    Notes
    -----
    A candidate of several mentions scores the mean over all mentions of the query where scores are probabilities (any
    mention may be the one that counts), else the largest. Queries without candidates are absent from the result, with
    one warning; with ``nil`` their NIL has all the mass. Where all priors of a query are 0, its candidates are alike,
    with a warning.

    Examples
    --------
    >>> import pandas as pd, pyterrier as pt
    >>> entities = pt.Transformer.from_df(pd.DataFrame(
    ...     {"qid": "q1", "docno": ["Q41421", "Q810"], "score": [1.0, 0.0], "rank": [0, 1]}))
    >>> topics = pd.DataFrame({"qid": ["q1"], "query": ["jordan"]})
    >>> CandidateIntents(entities)(topics)[["qid", "entity_id", "prob"]].round(3).values.tolist()
    [['q1', 'Q41421', 0.731], ['q1', 'Q810', 0.269]]
    """

    def __init__(
        self,
        source: Any,
        *,
        prob: str = "auto",
        cutoff: int | None = None,
        mentions: str = "all",
        nil: float = 0.0,
    ) -> None:
        super().__init__()
        if not (callable(getattr(source, "link", None)) or isinstance(source, pt.Transformer)):
            raise ParameterError(
                f"source={source!r}: wanted a linker (with .link) or a PyTerrier retriever over entities"
            )
        self.source = source
        self.prob = choice("prob", prob, PROBS)
        self.cutoff = None if cutoff is None else whole("cutoff", cutoff, low=1)
        self.mentions = choice("mentions", mentions, MENTIONS)
        self.nil = number("nil", nil, low=0, high=1)
        if self.nil == 1:
            raise ParameterError("nil=1: wanted less than 1: no candidate would have a chance")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The candidates of each query, by falling score, NIL last; the other columns of the topics stay."""
        pt.validate.query_frame(inp, extra_columns=["query"])
        taken = [name for name in _OURS if name in inp.columns]
        if taken:
            raise InputError(f"topics: column {taken[0]!r} is one of the result; rename or drop it")
        _require_topics(inp)
        links, scale = self._links(inp) if len(inp) else (_NO_LINKS, "score")
        found = self._scored(links, scale)
        without = np.setdiff1d(np.arange(len(inp)), found["topic"].to_numpy())
        tail = f"{NIL} has all of their mass" if self.nil else "they are left out"
        warn_of(inp["qid"].iloc[without].tolist(), f"without candidates: {tail}")
        found["prob"] = self._probabilities(found, scale, inp["qid"].tolist())
        return self._labelled(self._with_nil(found, len(inp)), inp)

    def _links(self, inp: pd.DataFrame) -> tuple[pd.DataFrame, str]:
        """Every link of every topic (columns of ``_NO_LINKS``), and the scale of the scores."""
        if not callable(getattr(self.source, "link", None)):
            return _retrieved(self.source(inp), inp), "score"
        # Equal texts are linked once.
        text, distinct = pd.factorize(inp["query"])
        links = self.source.link(list(distinct))
        topics = pd.DataFrame({"text": text, "topic": np.arange(len(inp))})
        return topics.merge(links.frame, on="text")[list(_NO_LINKS.columns)], links.scale

    def _scored(self, links: pd.DataFrame, scale: str) -> pd.DataFrame:
        """One row a candidate, by topic, falling score and id, no more than ``cutoff`` a topic."""
        if self.mentions == "longest":
            links = _longest(links)
        found = _by_candidate(links, mean=scale == "probability")
        topic, tie = found["topic"].to_numpy(), ids_of(found["entity_id"], f"{label_of(self.source)} ids").ranks()
        place = kernels.ranks(found["score"].to_numpy(dtype=np.float64), topic, tie)
        if self.cutoff is not None:
            found, place = found[place < self.cutoff], place[place < self.cutoff]
        return found.iloc[np.lexsort([place, found["topic"].to_numpy()])].reset_index(drop=True)

    def _probabilities(self, found: pd.DataFrame, scale: str, qids: Sequence[str]) -> Floats:
        topic, score = found["topic"].to_numpy(), found["score"].to_numpy(dtype=np.float64)
        how = ("prior" if scale == "probability" else "softmax") if self.prob == "auto" else self.prob
        if how == "softmax":
            return probability.softmax(score, topic, len(qids))
        if how == "uniform":
            return kernels.proportional(np.ones(len(score)), topic, len(qids))
        if (score < 0).any():
            row = found[score < 0].iloc[0]
            raise InputError(
                f"candidate {row['entity_id']!r} of query {qids[row['topic']]!r} has score {row['score']:g}: no prior; "
                "use prob='softmax'"
            )
        warn_of_no_weight(score, topic, qids)
        return kernels.proportional(score, topic, len(qids))

    def _with_nil(self, found: pd.DataFrame, n_topics: int) -> pd.DataFrame:
        """The NIL of each topic behind its candidates, which share what it leaves."""
        if not self.nil:
            return found
        if found["entity_id"].eq(NIL).any():
            raise InputError(f"{label_of(self.source)} names {NIL!r} as a candidate itself; leave nil=0")
        empty = ~np.isin(np.arange(n_topics), found["topic"])
        nil = pd.DataFrame(
            {
                "topic": np.arange(n_topics),
                "entity_id": NIL,
                "score": np.nan,
                "name": "",
                "mention": "",
                "prob": np.where(empty, 1.0, self.nil),
            }
        )
        found = found.assign(prob=found["prob"] * (1 - self.nil))
        both = pd.concat([found, nil[found.columns].astype(found.dtypes.to_dict())])
        return both.sort_values("topic", kind="stable", ignore_index=True)

    def _labelled(self, found: pd.DataFrame, inp: pd.DataFrame) -> pd.DataFrame:
        """Our columns beside those of the topics."""
        frame = inp.iloc[found["topic"].to_numpy()].reset_index(drop=True)
        ours = found[["entity_id", "prob", "score", "name", "mention"]].assign(source=label_of(self.source))
        others = [name for name in inp.columns if name not in {"qid", "query"}]
        return pd.concat([frame[["qid", "query"]], ours, frame[others]], axis=1)


def warn_of_no_weight(weight: Floats, topic: Ints, topics: Sequence[str]) -> None:
    """Say which queries have candidates without any weight, which then are alike."""
    best = probability.peaks(weight, topic, len(topics))
    none = [topics[place] for place in np.flatnonzero(best == 0).tolist()]
    warn_of(none, "whose candidates all weigh 0: they are taken to be equally probable")


_NO_LINKS = pd.DataFrame(
    {
        "topic": pd.Series(dtype="int64"),
        "start": pd.Series(dtype="int64"),
        "end": pd.Series(dtype="int64"),
        "mention": pd.Series(dtype="str"),
        "entity_id": pd.Series(dtype="str"),
        "score": pd.Series(dtype="float64"),
        "name": pd.Series(dtype="str"),
    }
)


def _require_topics(inp: pd.DataFrame) -> None:
    """Refuse queries that stand twice or have no text."""
    qid = ids_of(inp["qid"], "topics column 'qid'")
    twice = repeated_pairs(np.zeros(len(inp), dtype=np.int64), qid)
    if len(twice):
        raise InputError(
            f"topics: query {qid.text[int(twice[0])].as_py()!r} stands in rows {twice[0]} and {twice[1]}; keep one"
        )
    is_text = inp["query"].map(lambda text: isinstance(text, str)).to_numpy(dtype=bool)
    if not is_text.all():
        row = int(np.argmin(is_text))
        raise InputError(
            f"topics: row {row} (query {qid.text[row].as_py()!r}) has {inp['query'].iloc[row]!r} for its text, wanted "
            "text; pass '' for none"
        )


def _retrieved(results: pd.DataFrame, inp: pd.DataFrame) -> pd.DataFrame:
    """The results of a retriever over entities as links: the whole query is the mention."""
    if not len(results):
        return _NO_LINKS
    require(results, ("qid", "docno", "score"), "retrieved entities")
    candidates = Candidates(results, entity="docno", name="retrieved entities")
    qid = ids_of(inp["qid"], "topics column 'qid'")
    require_same_kind(candidates.qid, qid, "retrieved entities column 'qid'", "topics column 'qid'")
    topics = places(candidates.topics, qid.text.to_pylist())
    if (topics < 0).any():
        stranger = candidates.topics[int(np.argmin(topics))]
        raise InputError(f"retrieved entities: query {stranger!r} is not among the topics")
    topic = topics[candidates.topic]
    query = inp["query"].iloc[topic]
    return pd.DataFrame(
        {
            "topic": topic,
            "start": 0,
            "end": query.str.len().to_numpy(),
            "mention": query.to_numpy(),
            "entity_id": candidates.entity.text.to_pylist(),
            "score": candidates.scores(),
            "name": results["name"].to_numpy() if "name" in results.columns else "",
        }
    )


def _longest(links: pd.DataFrame) -> pd.DataFrame:
    """The links of the longest mention of each topic, the first of equally long ones."""
    at = ["topic", "start", "end", "mention"]
    length = links["mention"].str.len()
    chosen = (
        links[at]
        .assign(length=length)
        .sort_values(["topic", "length", *at[1:]], ascending=[True, False, True, True, True])
        .drop_duplicates("topic")[at]
    )
    return links.merge(chosen, on=at)


def _by_candidate(links: pd.DataFrame, *, mean: bool) -> pd.DataFrame:
    """One row for each candidate of a topic, with the name and mention of its best link.

    The score is the mean over all mentions of the topic, or the largest.
    """
    key, at = ["topic", "entity_id"], ["topic", "start", "end", "mention"]
    # The order of the links must decide nothing.
    rising = {"topic": True, "score": False, "start": True, "mention": True, "name": True}
    links = links.sort_values(list(rising), ascending=list(rising.values()), kind="stable")
    links = links.assign(name=links["name"].mask(links["name"].eq("")))
    grouped = links.groupby(key, sort=False)
    found = grouped[["score", "mention", "name"]].first().reset_index()
    if mean:
        n_mentions = links.drop_duplicates(at).groupby("topic").size()
        total = links.drop_duplicates([*at, "entity_id"]).groupby(key, sort=False)["score"].sum()
        found["score"] = total.to_numpy() / n_mentions.loc[found["topic"]].to_numpy()
    return found.assign(name=found["name"].fillna("").astype("str"))[["topic", *_CANDIDATE]]


_CANDIDATE = ("entity_id", "score", "name", "mention")


class Truncate(IntentStage):
    """Keep the most probable candidates of each query and divide by what is left: I -> I (Ding 2025, section 3.2).

    Parameters
    ----------
    threshold
        Keep candidates with ``π >= τ`` (the paper: 0.05), in [0, 1].
    cutoff
        Keep the K most probable (the paper: 3 or 5).
    mass
        Keep the smallest number of most probable candidates with ``Σ π >= ρ`` (the paper: 0.95), in (0, 1].

    Raises
    ------
    ParameterError
        None of the three, or an illegal value.
    InputError
        Probabilities that do not sum to 1, an entity that stands twice.

    Notes
    -----
    Each rule keeps a prefix of the candidates in the order of their probability; among equals (to 1e-12) the smallest
    id is first. Of several rules, each of the probabilities as they come, the shortest prefix counts, so their order
    does not matter. The most probable candidate always stays. The NIL intent stays with its mass: the rules are for the
    probabilities given that it is not meant. Duplicates are better merged before, see :class:`Dedup`.

    Examples
    --------
    >>> import pandas as pd
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B", "C"], "prob": [0.6, 0.36, 0.04]})
    >>> Truncate(threshold=0.05)(intents).round(3).values.tolist()
    [['q1', 'A', 0.625], ['q1', 'B', 0.375]]
    """

    def __init__(self, *, threshold: float | None = None, cutoff: int | None = None, mass: float | None = None) -> None:
        super().__init__()
        if threshold is None and cutoff is None and mass is None:
            raise ParameterError("Truncate(): wanted threshold=, cutoff= or mass=")
        self.threshold = None if threshold is None else number("threshold", threshold, low=0, high=1)
        self.cutoff = None if cutoff is None else whole("cutoff", cutoff, low=1)
        self.mass = None if mass is None else number("mass", mass, low=0, high=1, open_low=True)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Keep candidates, rows in the order they stand."""
        pt.validate.columns(inp, includes=["qid", "entity_id", "prob"])
        candidates = Candidates(inp)
        rows, prob = candidates.entities, candidates.among_entities
        topic = candidates.topic[rows]
        stay = kernels.kept(
            prob, topic, candidates.tie[rows], threshold=self.threshold or 0.0, top=self.cutoff, mass=self.mass
        )
        all_prob = candidates.beside_nil(kernels.proportional(np.where(stay, prob, 0.0), topic, candidates.n))
        all_stay = candidates.nil.copy()
        all_stay[rows] = stay
        return candidates.with_prob(all_prob)[all_stay].reset_index(drop=True)
