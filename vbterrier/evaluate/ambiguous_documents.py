"""The first documents of systems for ambiguous queries as arrays: candidates, samples to annotate, and estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, warn
from vbterrier.evaluate.inputs import (
    document_tags,
    input_table,
    intents_and_queries,
    intents_and_tags,
    named_runs,
    run_of_system,
)
from vbterrier.frames.files.reading import read_documents
from vbterrier.frames.id_spaces import NIL
from vbterrier.frames.pipelines import topics_frame
from vbterrier.frames.ranking import run_places
from vbterrier.intents.coverage import Intents, Tags
from vbterrier.kernels.annotated_coverage import (
    BITS,
    Rankings,
    agreement_shifts,
    annotation_residuals,
    candidate_bits,
    drawn_candidates,
    spread_estimates,
    whole_topic_estimates,
)
from vbterrier.kernels.annotation_model import CandidateTable, CoefficientPriors
from vbterrier.kernels.resample import stream
from vbterrier.kernels.sampling import inclusion_probabilities

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.ids import Ids
    from vbterrier.frames.ranking import Run
    from vbterrier.kernels.annotated_coverage import Estimates, Words

DESIGNS = ("topics", "documents")
#: Topics are drawn whole if they have at most this many documents on average, and if this many are drawn.
MOST_OF_TOPIC, FEWEST_TOPICS = 15.0, 8
#: Annotated documents below which estimates have no interval.
FEWEST_DOCUMENTS = 60
N_DRAWS = 100
_WORD = r"(?u)\b\w+\b"


class AnnotationConstants(NamedTuple):
    """AnnotationConstants of the estimates, fitted by ``python tests/bench/labels.py --constants``.

    - ``priors``: of the coefficients of candidates
    - ``scale``: size of second-order corrections of ES at cutoff 2, which grows with ``sqrt(k (k - 1) / 2)``; of VB,
      relative to that of ES
    - ``widen``: factors of standard errors by design
    """

    priors: CoefficientPriors
    scale: tuple[float, float]
    widen: dict[str, float]


CONSTANTS = AnnotationConstants(
    CoefficientPriors(
        np.array([1.1, 0.6, 8.5, 4.2, 0.3, -1.0, 0.2, 1.3, -0.5, 0.1]),
        np.array([0.4, 0.3, 7.3, 2.8, 0.5, 1.2, 2.2, 1.8, 0.3, 0.3]),
    ),
    (0.05, 1.7),
    {"topics": 1.2, "documents": 1.0},
)


class AnnotationSample(NamedTuple):
    """Documents to annotate: a mask, and the probability of each document to be drawn, each of shape (D,)."""

    drawn: Bools
    inclusion: Floats


@dataclass(frozen=True, eq=False)
class AmbiguousDocuments:
    """The documents in the first ranks of some system, in order of topic and docno.

    ``qids``: queries with such documents. ``n_queries``: all queries, of which the others score 0. ``docno, text``: of
    each document. ``entities``: candidates of each query. ``shown``: share of systems that show the document, shape
    (D,).
    """

    qids: list[str]
    queries: list[str]
    n_queries: int
    systems: list[str]
    cutoffs: tuple[int, ...]
    docno: list[str]
    text: list[str]
    entities: list[list[str]]
    names: list[list[str]]
    table: CandidateTable
    rankings: Rankings
    shown: Floats

    @property
    def n_documents(self) -> int:
        """Number of documents D."""
        return len(self.docno)

    @property
    def n_words(self) -> int:
        """Words of bits of the entities of a document."""
        return int(-(-self.rankings.prob.shape[1] // BITS))

    @property
    def constants(self) -> AnnotationConstants:
        """AnnotationConstants of the estimates."""
        return CONSTANTS

    @cached_property
    def candidates(self) -> list[str]:
        """The candidates of each query as annotators see them: number, name, and the id if it differs."""
        shown = []
        for entities, names in zip(self.entities, self.names, strict=True):
            pairs = zip(entities, names, strict=True)
            texts = [name if name == entity else f"{name} ({entity})" for entity, name in pairs]
            shown.append("; ".join(f"{number} = {text}" for number, text in enumerate(texts, 1)))
        return shown

    def places(self, topic: int, annotation: str, where: str) -> list[int]:
        """The places of the candidates of an annotation: numbers, ids or names, separated by ";"; the last is NIL."""
        entities, names = self.entities[topic], self.names[topic]
        whole = [annotation] if annotation in (*entities, *names) else annotation.split(";")
        places = []
        for token in filter(None, (text.strip() for text in whole)):
            if token.upper() == NIL and NIL not in entities:
                places.append(len(entities))
                continue
            by_id = [place for place, entity in enumerate(entities) if entity == token]
            by_name = [place for place, name in enumerate(names) if name.casefold() == token.casefold()]
            by_number = [int(token) - 1] if token.isdecimal() and 1 <= int(token) <= len(entities) else []
            meant = sorted({*by_id, *by_name, *by_number})
            if len(meant) != 1:
                problem = "names several candidates" if meant else "names no candidate"
                raise InputError(
                    f"{where}: annotation {token!r} {problem} of the query; wanted the number, id or name of one of "
                    f"{self.candidates[topic]}, or NIL"
                )
            places += meant
        if not places or (len(entities) in places and len(set(places)) > 1):
            raise InputError(f"{where}: annotation {annotation!r}; wanted candidates, or NIL alone")
        return sorted(set(places))

    def tagged_by(self, machine: tuple[Bools, Bools] | None) -> AmbiguousDocuments:
        """The same documents with other tags of some: a mask of candidates, and one of these documents."""
        if machine is None:
            return self
        tagged, is_tagged = machine
        mixed = np.where(is_tagged[self.table.document], tagged, self.table.tagged)
        return replace(self, table=replace(self.table, tagged=mixed))

    @cached_property
    def sizes(self) -> Ints:
        """Number of documents of each query, shape (Q,)."""
        return np.bincount(self.table.topic, minlength=len(self.qids))

    def design(self, n: int) -> str:
        """The design for about n documents: whole topics unless topics are large or too few are drawn."""
        mean = self.n_documents / len(self.qids)
        return "topics" if mean <= MOST_OF_TOPIC and n / mean >= FEWEST_TOPICS else "documents"

    def sample(self, design: str, n: int, seed: int, *, units: bool = False) -> AnnotationSample:
        """The first n documents, or the topics with n documents on average, in an order that depends on the seed.

        With ``units``, n is the number of topics if these are drawn. Larger samples contain the smaller ones. Documents
        are drawn in proportion to the square root of the share of systems that show them, by the order of u/size
        (sequential Poisson sampling, Ohlsson 1998).
        """
        if design == "topics":
            n_topics = min(n if units else int(n * len(self.qids) / self.n_documents), len(self.qids))
            order = np.argsort(stream(seed, "annotated topics").random(len(self.qids)), kind="stable")
            is_drawn = np.zeros(len(self.qids), dtype=bool)
            is_drawn[order[:n_topics]] = True
            return AnnotationSample(is_drawn[self.table.topic], np.full(self.n_documents, n_topics / len(self.qids)))
        n = min(n, self.n_documents)
        size = np.sqrt(self.shown)
        inclusion = inclusion_probabilities(size, n)
        uniform = stream(seed, "annotated documents").random(self.n_documents)
        drawn = np.zeros(self.n_documents, dtype=bool)
        drawn[np.lexsort((uniform / size, inclusion < 1))[:n]] = True
        return AnnotationSample(drawn, inclusion)

    def words(self, share: Floats) -> Words:
        """The entities of documents as bits, with a last document that has none, shape (D + 1, n_words)."""
        words = np.zeros((self.n_documents + 1, self.n_words), dtype=np.int64)
        rows = np.flatnonzero((share > 0) & ~self.table.is_nil)
        place = self.table.place[rows]
        np.bitwise_or.at(words, (self.table.document[rows], place // BITS), np.int64(1) << (place % BITS))
        return words

    def drawn_words(self, prob: Floats, n_draws: int, seed: int) -> Words:
        """Draws of the entities of documents, shape (n_draws, D + 1, n_words)."""
        uniform = stream(seed, "tags of annotated documents").random((n_draws, self.n_documents))
        place = drawn_candidates(prob, self.table.document, self.n_documents, uniform)
        place = np.where(place < self.table.n_candidates[self.table.topic], place, -1)
        return np.concatenate(
            [candidate_bits(place, self.n_words), np.zeros((n_draws, 1, self.n_words), np.int64)], axis=1
        )

    def mean_expected_scores(self, prob: Floats, n_draws: int = N_DRAWS, seed: int = 0) -> Floats:
        """Mean scores if documents are about each candidate with these probabilities, shape (2, n_cutoffs, S)."""
        return np.asarray(self.rankings.expected_scores(self.drawn_words(prob, n_draws, seed)).mean(axis=2))

    def estimates(
        self,
        design: str,
        share: Floats,
        is_annotated: Bools,
        inclusion: Floats,
        *,
        constants: AnnotationConstants = CONSTANTS,
        n_draws: int = N_DRAWS,
        seed: int = 0,
    ) -> tuple[Estimates, Floats]:
        """Scores under gold tags, and the probability of each candidate of each document by the model.

        ``share``: of each candidate in the annotation of its document, 0 for others, shape (n,).
        """
        whole = design == "topics"
        prob = self.table.probabilities(share, is_annotated, constants.priors, by_topic=whole)
        drawn, gold = self.drawn_words(prob, n_draws, seed), self.words(share)
        if whole:
            has_annotation = np.bincount(self.table.topic, is_annotated, len(self.qids)) > 0
            model = self.rankings.expected_scores(drawn)
            gold_scores = self.rankings.topic_scores(gold)
            return whole_topic_estimates(gold_scores, model, has_annotation, constants.widen[design]), prob
        shift = self._shifts(share, is_annotated, prob)
        residuals = annotation_residuals(
            self.rankings, gold, drawn, np.append(is_annotated, False), np.append(inclusion, 1.0), shift
        )
        pairs = np.array([np.sqrt(k * (k - 1) / 2) for k in self.cutoffs])
        scale = constants.scale[0] * np.stack([pairs, pairs * constants.scale[1]])
        return spread_estimates(residuals, scale, constants.widen[design]), prob

    def _shifts(self, share: Floats, is_annotated: Bools, prob: Floats) -> Floats:
        """The shift of the agreement of documents of each row of the rankings, shape (n_rows,)."""
        rows, n_systems = self.rankings.documents, len(self.systems)
        width = int(self.table.n_candidates.max()) + 1
        both = np.zeros((2, self.n_documents, width))
        for at, values in enumerate((prob, share)):
            kept = ~self.table.is_nil
            both[at, self.table.document[kept], self.table.place[kept]] = values[kept]
        row, rank = np.nonzero(np.append(is_annotated, False)[rows])
        n_later = np.searchsorted(row, row, side="right") - 1 - np.arange(len(row))
        one = np.repeat(np.arange(len(row)), n_later)
        other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(n_later) - n_later, n_later)
        left, right = (rows[row[at], rank[at]] for at in (one, other))
        agreement = (both[0, left] * both[0, right]).sum(axis=1)
        agrees = ((both[1, left] > 0) & (both[1, right] > 0)).any(axis=1)
        candidate_prob = self.rankings.prob
        entropy = -(candidate_prob * np.log(np.maximum(candidate_prob, 1e-12))).sum(axis=1)
        about = np.stack([np.log(np.maximum(self.sizes, 1)), entropy], axis=1)
        about = (about - about.mean(axis=0)) / (about.std(axis=0) + 1e-9)
        shifts = agreement_shifts(agreement, agrees, row[one] % n_systems, row[one] // n_systems, about, n_systems)
        return np.asarray(shifts.ravel())


def ambiguous_documents(
    runs: Any, topics: Any, *, intents: Any, documents: Any = None, tags: Any = None, cutoffs: Sequence[int]
) -> AmbiguousDocuments:
    """Read the first documents of systems, their texts, tags and candidates."""
    queries = topics_frame(topics)
    intents, tags = intents_and_tags(intents, tags)
    frame, queries = intents_and_queries(intents, queries, "raise")
    candidates = Intents(frame)
    cutoffs = tuple(sorted(set(cutoffs)))
    systems = {
        name: run_of_system(name, system, queries, queries) for name, system in named_runs(runs, queries).items()
    }
    if not systems:
        raise InputError("no systems; name at least one")
    tops = _first_documents(systems, candidates, cutoffs[-1])
    top = pd.concat([part.assign(system=number) for number, (part, _) in enumerate(tops)], ignore_index=True)
    if not len(top):
        raise InputError("runs: no system retrieves a document for any of the queries with candidates")
    pairs = top[["topic", "docno"]].drop_duplicates().sort_values(["topic", "docno"], ignore_index=True)
    shown, pairs["place"] = np.unique(pairs["topic"], return_inverse=True)
    pairs["document"] = np.arange(len(pairs))
    top = top.merge(pairs, on=["topic", "docno"])
    n_documents, n_systems = len(pairs), len(systems)
    documents_of_rows = np.full((len(shown) * n_systems, cutoffs[-1]), n_documents, dtype=np.int64)
    documents_of_rows[top["place"] * n_systems + top["system"], top["rank"]] = top["document"]
    # NIL is no candidate: a document may be about none, and its probability is never covered.
    order = np.argsort(candidates.topic, kind="stable")
    order = order[(frame["entity_id"].astype(str) != NIL).to_numpy()[order]]
    starts = np.searchsorted(candidates.topic[order], np.arange(len(candidates.topics) + 1))
    n_candidates = np.diff(starts)[shown]
    intent_places = np.full(len(frame), -1, dtype=np.int64)
    intent_places[order] = np.arange(len(order)) - starts[candidates.topic[order]]
    topic_rows = [order[starts[one] : starts[one + 1]] for one in shown]
    prob = np.zeros((len(shown), max(int(n_candidates.max()), 1)))
    for place, rows in enumerate(topic_rows):
        prob[place, : len(rows)] = candidates.prob[rows]
    ids, names = candidates.entity.text.to_pylist(), _names(frame)
    candidate_names = [[names[row] for row in rows] for rows in topic_rows]
    topic = pairs["place"].to_numpy()
    first = np.concatenate([[0], np.cumsum(n_candidates[topic] + 1)])
    tagged = np.zeros(first[-1], dtype=bool)
    if tags is not None:
        tag_frame = Tags(document_tags(tags, systems, cutoffs[-1]), pooled=False)
        number = pairs.set_index(["topic", "docno"])["document"]
        for name, (part, docno) in zip(systems, tops, strict=True):
            row_topics = part["topic"].to_numpy()
            document, tag = tag_frame.find(candidates, row_topics, docno, f"run {name!r}")
            intent = candidates.lookup.find_one(row_topics[document], tag_frame.entity.take(tag))
            kept = (intent >= 0) & (tag_frame.weight[tag] > 0) & (intent_places[intent] >= 0)
            keys = row_topics[document[kept]], part["docno"].to_numpy()[document[kept]]
            places = number.reindex(pd.MultiIndex.from_arrays(keys)).to_numpy(np.int64)
            tagged[first[places] + intent_places[intent[kept]]] = True
    texts = _texts(documents, pairs["docno"])
    of_name, similarities = _similarities(texts, candidate_names, topic, n_candidates, first)
    reciprocal = np.bincount(top["document"], 1 / (top["rank"] + 1), n_documents) / n_systems
    query_by_qid = dict(zip(queries["qid"].astype(str), queries["query"].astype(str), strict=True))
    return AmbiguousDocuments(
        qids=[candidates.topics[one] for one in shown],
        queries=[query_by_qid[candidates.topics[one]] for one in shown],
        n_queries=len(candidates.topics),
        systems=list(systems),
        cutoffs=cutoffs,
        docno=pairs["docno"].tolist(),
        text=texts,
        entities=[[ids[row] for row in rows] for rows in topic_rows],
        names=candidate_names,
        table=CandidateTable(topic, prob, n_candidates, tagged, of_name, similarities, reciprocal),
        rankings=Rankings(documents_of_rows, prob, cutoffs),
        shown=np.bincount(top["document"], minlength=n_documents) / n_systems,
    )


def _first_documents(systems: Mapping[str, Run], candidates: Intents, cutoff: int) -> list[tuple[pd.DataFrame, Ids]]:
    """Topic, rank and docno of the first documents of each system, and their ids."""
    tables = []
    for run in systems.values():
        place = run_places(run, candidates.topics, candidates.qid, candidates.name)
        _, topic, rank, docno = run.top(cutoff).of_topics(place, len(candidates.topics))
        tables.append((pd.DataFrame({"topic": topic, "rank": rank, "docno": docno.text.to_pylist()}), docno))
    return tables


def _names(frame: pd.DataFrame) -> list[str]:
    """Name and description of each candidate; its id if it has none."""
    texts = frame.reindex(columns=["name", "description"]).astype(object)
    texts = texts.where(texts.notna(), "")
    joined = [", ".join(filter(None, map(str, row))) for row in texts.itertuples(index=False, name=None)]
    return [text or entity for text, entity in zip(joined, frame["entity_id"].astype(str), strict=True)]


def _texts(documents: Any, docno: pd.Series[Any]) -> list[str]:
    """The text of each document; empty without documents."""
    if documents is None:
        return [""] * len(docno)
    frame = input_table(documents, "documents", read_documents, ("docno", "text"))
    frame = frame.assign(docno=frame["docno"].astype(str)).drop_duplicates("docno")
    texts = docno.map(frame.set_index("docno")["text"])
    missing = texts.isna()
    if missing.all():
        raise InputError(
            f"documents: none of the {docno.nunique()} documents of the systems ({examples(docno)}) is among "
            f"{examples(frame['docno'])}; check the ids"
        )
    if missing.any():
        warn(
            f"documents: {docno[missing].nunique()} of {docno.nunique()} documents of the systems have no text "
            f"({examples(docno[missing])})"
        )
    return [str(text) for text in texts.fillna("")]


def _similarities(
    texts: list[str], names: list[list[str]], topic: Ints, n_candidates: Ints, starts: Ints
) -> tuple[Floats, list[Floats]]:
    """Cosines of TF-IDF vectors: of documents with the names of their candidates, and with those of their topic."""
    of_name = np.zeros(starts[-1])
    first = np.searchsorted(topic, np.arange(len(names) + 1))
    if not any(texts):
        return of_name, [np.zeros((n, n)) for n in np.diff(first)]
    from sklearn.feature_extraction.text import TfidfVectorizer

    weigh = TfidfVectorizer(token_pattern=_WORD, strip_accents="unicode", sublinear_tf=True)
    distinct = list(dict.fromkeys(texts))
    try:
        weigh.fit([*distinct, *(name for several in names for name in several)])
    except ValueError:
        # Texts without any word.
        return of_name, [np.zeros((n, n)) for n in np.diff(first)]
    of_texts, similarities = weigh.transform(texts), []
    for place, several in enumerate(names):
        here = slice(first[place], first[place + 1])
        mine = of_texts[here]
        similarities.append(np.asarray((mine @ mine.T).todense()))
        n = int(n_candidates[place]) + 1
        block = of_name[starts[here.start] : starts[here.stop]].reshape(-1, n)
        block[:, :-1] = np.asarray((mine @ weigh.transform(several).T).todense())
    return of_name, similarities


def valid_cutoffs(cutoff: Any) -> tuple[int, ...]:
    """Check the cutoffs of a call."""
    values = [cutoff] if isinstance(cutoff, (int, np.integer)) else list(cutoff)
    if not values or any(isinstance(one, bool) or not isinstance(one, (int, np.integer)) or one < 1 for one in values):
        raise ParameterError(f"cutoff={cutoff!r}: wanted whole numbers of at least 1, as [3, 5]")
    return tuple(sorted({int(one) for one in values}))
