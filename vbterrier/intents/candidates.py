"""Candidate intents of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.errors import InputError, ParameterError, choice, excerpt, number, whole
from vbterrier.frames.contracts import require
from vbterrier.frames.id_spaces import NIL
from vbterrier.frames.ids import column_ids, repeated_pairs, require_same_kind
from vbterrier.frames.ranking import places
from vbterrier.intents.joins import IntentOperators
from vbterrier.intents.stage import WITHOUT_CANDIDATES, Candidates, IntentStage, warn_of_queries
from vbterrier.intents.taggers import source_name
from vbterrier.kernels.candidates import peaks, proportional, ranks, softmax

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints


PROBS = ("auto", "prior", "softmax", "uniform")
MENTIONS = ("all", "longest")
_CONTEXT = "context"
# Kind of match of a linker of queries: name, part, similar, acronym.
_MATCH = "match"
_ADDED_COLUMNS = ("entity_id", "prob", "score", "name", "mention", "source")


class CandidateIntents(IntentOperators, IntentStage):
    """Generate the candidate intents of queries with probabilities: Q -> I (Ding 2025, section 3.2).

    Parameters
    ----------
    source
        A linker (:mod:`vbterrier.linking`), such as a knowledge base, or a PyTerrier retriever over a collection of
        entities, with docno as the entity and the whole query as the mention.
    prob
        ``"softmax"`` of the scores (the label-free choice of the paper with T = 1; for other T use ``>> Calibrate()``),
        ``"prior"``, proportional to the scores, ``"uniform"``, or ``"auto"``: prior if the source declares its scores
        to be probabilities, otherwise softmax.
    cutoff
        The number of candidates of each query to keep, by score and then by id; ``None`` for all.
    mentions
        ``"all"`` mentions of a query contribute candidates, or only the first ``"longest"`` mention.
    nil
        Probability that no candidate is meant, in [0, 1), assigned to the entity ``"NIL"`` of every query and kept by
        the other stages. 0 adds it to queries without candidates alone. ``"context"`` for that of the query's own
        words, the mean over its mentions, from a :class:`vbterrier.linking.ContextLinker`.

    Raises
    ------
    ParameterError, InputError
        A source that is neither a linker nor a retriever, or an illegal value; a query without text or duplicated; a
        column of the topics with the name of an output column; scores that are not finite, or negative for a prior.

    Notes
    -----
    The score of a candidate of several mentions is the mean over all mentions of the query if scores are probabilities,
    otherwise the maximum. Queries without candidates have the entity ``"NIL"`` with probability 1, with one warning.
    If all priors of a query are 0, its candidates are uniform, with a warning. The column ``source`` states where the
    probabilities of a query come from: the linker; with :class:`vbterrier.linking.QueryLinker` the kinds of match of
    its names (``name``, ``part``, ``similar``, ``acronym``); for two candidates and more ``prior``, ``softmax`` or
    ``uniform``, or ``equal scores`` if the source does not tell them apart.

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
        nil: float | str = 0.0,
    ) -> None:
        super().__init__()
        if not (callable(getattr(source, "link", None)) or isinstance(source, pt.Transformer)):
            raise ParameterError(
                f"source={excerpt(source)}: wanted a linker (with .link) or a PyTerrier retriever over entities"
            )
        self.source = source
        self.prob = choice("prob", prob, PROBS)
        self.cutoff = None if cutoff is None else whole("cutoff", cutoff, low=1)
        self.mentions = choice("mentions", mentions, MENTIONS)
        self.nil = nil if nil == _CONTEXT else number("nil", nil, low=0, high=1)
        if self.nil == 1:
            raise ParameterError("nil=1: wanted less than 1, because candidates would have probability 0")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Return the candidates of each query by descending score, NIL last, with the other columns of the topics."""
        self.require_columns(inp, "qid", "query", topics=True)
        if taken := [name for name in _ADDED_COLUMNS if name in inp.columns]:
            raise InputError(f"topics: column {taken[0]!r} is an output column; rename or drop it")
        _require_topics(inp)
        nil: Any = self.nil
        links, scale = _no_links(), "score"
        if len(inp) and not callable(getattr(self.source, "link", None)):
            links = _retriever_links(self.source(inp), inp)
        elif len(inp):
            # Equal texts are linked once.
            text, distinct = pd.factorize(inp["query"])
            found_links = self.source.link(list(distinct))
            topics = pd.DataFrame({"text": text, "topic": np.arange(len(inp))})
            links, scale = topics.merge(found_links.frame, on="text"), found_links.scale
            if self.nil == _CONTEXT:
                nil = self._nil_of_contexts(links, len(inp))
            links = links[[*_LINKS, *links.columns.intersection([_MATCH])]]
        table = self._rank_candidates(links, scale)
        without = np.setdiff1d(np.arange(len(inp)), table["topic"].to_numpy())
        warn_of_queries(inp["qid"].iloc[without].tolist(), WITHOUT_CANDIDATES)
        table["prob"] = self._probabilities(table, scale, inp["qid"].tolist())
        table = self._with_nil(table, np.full(len(inp), 0.0 if isinstance(nil, str) else nil))
        frame = inp.iloc[table["topic"].to_numpy()].reset_index(drop=True)
        sources = self._sources(table, links, scale, len(inp))[table["topic"].to_numpy()]
        added = table[["entity_id", "prob", "score", "name", "mention"]].assign(source=pd.array(sources, dtype="str"))
        other = [name for name in inp.columns if name not in {"qid", "query"}]
        return pd.concat([frame[["qid", "query"]], added, frame[other]], axis=1)

    def _rank_candidates(self, links: pd.DataFrame, scale: str) -> pd.DataFrame:
        """Return one row per candidate by topic, descending score and id, at most ``cutoff`` per topic."""
        if self.mentions == "longest":
            # The first longest mention of each topic.
            at = ["topic", "start", "end", "mention"]
            ordered = links[at].assign(shortness=-links["mention"].str.len()).sort_values([at[0], "shortness", *at[1:]])
            links = links.merge(ordered.drop_duplicates("topic")[at], on=at)
        table = _by_candidate(links, mean=scale == "probability")
        topic, tie = (
            table["topic"].to_numpy(),
            column_ids(table["entity_id"], f"{source_name(self.source)} ids").ranks(),
        )
        place = ranks(table["score"].to_numpy(dtype=np.float64), topic, tie)
        if self.cutoff is not None:
            table, place = table[place < self.cutoff], place[place < self.cutoff]
        return table.iloc[np.lexsort([place, table["topic"].to_numpy()])].reset_index(drop=True)

    def _sources(self, table: pd.DataFrame, links: pd.DataFrame, scale: str, n_topics: int) -> NDArray[np.object_]:
        """Return the source of the probabilities of each topic: the linker, the kind of match, and what they follow."""
        score = table["score"].groupby(table["topic"])
        is_equal = score.max().eq(score.min())[score.count() > 1]
        how = is_equal.map({True: "equal scores", False: self._method(scale)})
        sources = pd.Series(source_name(self.source), index=np.arange(n_topics), dtype=object)
        if _MATCH in links.columns:
            kinds = links.drop_duplicates(["topic", _MATCH]).sort_values(["topic", _MATCH]).groupby("topic")[_MATCH]
            sources += ("; " + kinds.agg("+".join)).reindex(sources.index, fill_value="")
        return (sources + ("; " + how).reindex(sources.index, fill_value="")).to_numpy(dtype=object)

    def _method(self, scale: str) -> str:
        return ("prior" if scale == "probability" else "softmax") if self.prob == "auto" else self.prob

    def _probabilities(self, table: pd.DataFrame, scale: str, qids: Sequence[str]) -> Floats:
        topic, score = table["topic"].to_numpy(), table["score"].to_numpy(dtype=np.float64)
        how = self._method(scale)
        if how == "softmax":
            return softmax(score, topic, len(qids))
        if how == "uniform":
            return proportional(np.ones(len(score)), topic, len(qids))
        if (score < 0).any():
            row = table[score < 0].iloc[0]
            raise InputError(
                f"candidate {row['entity_id']!r} of query {qids[row['topic']]!r} has score {row['score']:g}, wanted at "
                "least 0 for a prior; use prob='softmax'"
            )
        warn_of_no_weight(score, topic, qids)
        return proportional(score, topic, len(qids))

    def _nil_of_contexts(self, links: pd.DataFrame, n_topics: int) -> Floats:
        """Return the probability that no candidate is meant, the mean over the mentions of each topic."""
        if "nil" not in links.columns:
            raise ParameterError(
                f"nil='context': {source_name(self.source)} gives none; use a ContextLinker, or a number"
            )
        mentions = links.drop_duplicates(["topic", "start", "end", "mention"])
        mean: Floats = mentions.groupby("topic")["nil"].mean().reindex(np.arange(n_topics), fill_value=0.0).to_numpy()
        return mean

    def _with_nil(self, table: pd.DataFrame, nil_prob: Floats) -> pd.DataFrame:
        """Append the NIL of each topic to its candidates, which share the remaining mass."""
        topics = np.arange(len(nil_prob))
        empty = ~np.isin(topics, table["topic"])
        if not self.nil and not empty.any():
            return table
        if self.nil and table["entity_id"].eq(NIL).any():
            raise InputError(f"{source_name(self.source)} returns {NIL!r} as a candidate; use nil=0")
        nil = pd.DataFrame({"topic": topics, "prob": np.where(empty, 1.0, nil_prob)})
        nil = nil[nil["prob"] > 0].assign(entity_id=NIL, score=np.nan, name="", mention="")
        table = table.assign(prob=table["prob"] * (1 - nil_prob[table["topic"].to_numpy()]))
        both = pd.concat([table, nil[table.columns].astype(table.dtypes.to_dict())])
        return both.sort_values("topic", kind="stable", ignore_index=True)


def warn_of_no_weight(weight: Floats, topic: Ints, topics: Sequence[str]) -> None:
    """Warn of queries whose candidates all have weight 0 and become uniform."""
    best = peaks(weight, topic, len(topics))
    none = [topics[place] for place in np.flatnonzero(best == 0).tolist()]
    warn_of_queries(none, "with candidates of weight 0 only, which get equal probabilities")


_LINKS = {"topic": "int64", "start": "int64", "end": "int64", "mention": "str", "entity_id": "str"}
_LINKS |= {"score": "float64", "name": "str"}


def _no_links() -> pd.DataFrame:
    return pd.DataFrame(columns=list(_LINKS)).astype(_LINKS)


def _require_topics(inp: pd.DataFrame) -> None:
    """Refuse queries that are duplicated or have no text."""
    qid = column_ids(inp["qid"], "topics column 'qid'")
    repeated = repeated_pairs(np.zeros(len(inp), dtype=np.int64), qid)
    if len(repeated):
        raise InputError(
            f"topics: query {qid.text[int(repeated[0])].as_py()!r} is in rows {repeated[0]} and {repeated[1]}; keep one"
        )
    is_text = inp["query"].map(lambda text: isinstance(text, str)).to_numpy(dtype=bool)
    if not is_text.all():
        row = int(np.argmin(is_text))
        raise InputError(
            f"topics: row {row} (query {qid.text[row].as_py()!r}) has {inp['query'].iloc[row]!r} as its text, wanted "
            "text; pass '' for none"
        )


def _retriever_links(results: pd.DataFrame, inp: pd.DataFrame) -> pd.DataFrame:
    """Return the results of a retriever over entities as links, with the whole query as the mention."""
    if not len(results):
        return _no_links()
    require(results, ("qid", "docno", "score"), "retrieved entities")
    candidates = Candidates(results, entity="docno", name="retrieved entities")
    qid = column_ids(inp["qid"], "topics column 'qid'")
    require_same_kind(candidates.qid, qid, "retrieved entities column 'qid'", "topics column 'qid'")
    topics = places(candidates.topics, qid.text.to_pylist())
    if (topics < 0).any():
        unknown = candidates.topics[int(np.argmin(topics))]
        raise InputError(f"retrieved entities: query {unknown!r} is not among the topics")
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


def _by_candidate(links: pd.DataFrame, *, mean: bool) -> pd.DataFrame:
    """Return each candidate of a topic with its mean score over all mentions or its maximum, and its best link."""
    key, at = ["topic", "entity_id"], ["topic", "start", "end", "mention"]
    # Sorted, so that the order of the links has no effect.
    ascending = {"topic": True, "score": False, "start": True, "mention": True, "name": True}
    links = links.sort_values(list(ascending), ascending=list(ascending.values()), kind="stable")
    links = links.assign(name=links["name"].mask(links["name"].eq("")))
    grouped = links.groupby(key, sort=False)
    table = grouped[["score", "mention", "name"]].first().reset_index()
    if mean:
        n_mentions = links.drop_duplicates(at).groupby("topic").size()
        total = links.drop_duplicates([*at, "entity_id"]).groupby(key, sort=False)["score"].sum()
        table["score"] = total.to_numpy() / n_mentions.loc[table["topic"]].to_numpy()
    return table.assign(name=table["name"].fillna("").astype("str"))[["topic", "entity_id", "score", "name", "mention"]]
