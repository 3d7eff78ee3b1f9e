"""Names of columns: the concepts of all frames and files, as hosts, collections and tools write them.

This is the only list of such names. Readers of text, JSON, Parquet and spreadsheets and the checks of frames use it,
so that a table is read alike from all containers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# The names of each concept, in lower case and without blanks and punctuation (``query-id``, ``Query ID``): those of
# PyTerrier, ir_measures and ir_datasets, TrecTools, ranx, BEIR and MTEB, MS MARCO, TREC RAG and UMBRELA, LARA,
# LLMJudge, Quepid, OpenSearch and Elasticsearch.
NAMES = {
    "qid": "qid queryid topicid questionid narrativeid",
    "docno": "docno docid documentid corpusid pid passageid productid",
    "label": "label relevance rel grade rating judgment judgement relevancescore relevancelabel annotation",
    "iteration": "iteration iter subtopic subtopicid",
    "score": "score similarity",
    "rank": "rank position docposition",
    "query": "query",
    "text": "text",
    "entity_id": "entityid",
    "weight": "weight traffic frequency count volume",
    "segment": "segment category group",
    "cluster": "cluster clusterid",
    "drawn": "drawn",
    "covariate": "covariate",
    "prob": "prob probabilities",
    "Q0": "q0",
}
_NAMES = {concept: frozenset(names.split()) for concept, names in NAMES.items()}
# A text can be the id of a query, and a document its id, if a table has no id.
_PAIR = {"qid": "querytext searchquery searchterm query topic question", "docno": "document doc"}
# Punctuation that differs between the names of one concept.
_PUNCTUATION = re.compile(r"[\s_\-\"'#]+")


@dataclass(frozen=True)
class ColumnNames:
    """The columns of a kind of frame or file, and the names under which they are known.

    - ``named``: columns that a frame must have
    - ``optional``: further columns that are known
    - ``last``: names that mean a column if it has no other name, in order of precedence
    - ``spelled``: further columns that are known by their own names alone, in any case and with any punctuation
    """

    named: tuple[str, ...]
    optional: tuple[str, ...] = ()
    last: Mapping[str, str] = field(default_factory=dict)
    spelled: tuple[str, ...] = ()

    def standard_names(self, columns: Sequence[str]) -> list[str]:
        """Return the names of columns with those of this package for the known ones.

        The column's own name precedes its other names, and these precede names that mean it if there is no other.
        Two columns that could both be meant get the same name, which callers refuse.

        >>> QRELS.standard_names(["query-id", "corpus-id", "score", "note"])
        ['qid', 'docno', 'label', 'note']
        >>> RUN.standard_names(["qid", "docid", "docno", "score", "query"])
        ['qid', 'docid', 'docno', 'score', 'query']
        >>> TAGS.standard_names(["DOCNO", "Entity", "Weight", "frequency"])
        ['docno', 'entity_id', 'weight', 'frequency']
        """
        names, words = list(columns), [simplified_name(name) for name in columns]
        free = set(range(len(names)))
        concepts = (*self.named, *self.optional, *self.spelled)
        for concept in concepts:
            if concept in names:
                free -= {place for place in free if names[place] == concept}
        for concept in (name for name in concepts if name not in columns):
            spellings = frozenset({simplified_name(concept)}) if concept in self.spelled else _NAMES[concept]
            places = [place for place in sorted(free) if words[place] in spellings]
            for last in self.last.get(concept, "").split():
                if not places and self._may_be(concept, last, columns, words):
                    places = [place for place in sorted(free) if words[place] == last]
            for place in places:
                names[place] = concept
            free -= set(places)
        return names

    def knows(self, columns: Sequence[str]) -> bool:
        """Return True if a table has all columns that it must have."""
        return set(self.named) <= set(self.standard_names(columns))

    def _may_be(self, concept: str, last: str, columns: Sequence[str], words: Sequence[str]) -> bool:
        """Return True if a name means a column: a score may be none, and texts of other names are asked for by them."""
        if last == "score":
            return _has_labels(columns, words)
        return concept != "text" or "docno" not in columns


def _has_labels(columns: Sequence[str], words: Sequence[str]) -> bool:
    """Return True if a score is a label: in the judgments of BEIR and of ranx, which have no ranks."""
    return ("corpusid" in words or "q_id" in columns) and not _NAMES["rank"].intersection(words)


def simplified_name(name: object) -> str:
    """Return the name of a column in lower case and without blanks and punctuation."""
    return _PUNCTUATION.sub("", str(name).casefold())


# Columns of tables of entities, and their other names in order of precedence.
COUNTS = ("count", "clicks", "views", "inlinks", "sitelinks")
_ENTITIES = {
    "id": "entityid entity wikidataid itemid identifier",
    "label": "name title entityname entitylabel preflabel preferredlabel fullname displayname",
    "alias": "mention surfaceform synonym",
    "aliases": "synonyms altlabel altlabels alternativenames alternatenames othernames alsoknownas mentions",
    "prior": "",
    "score": "",
    "redirect": "",
}
_ENTITY_COUNTS = "counts nclicks clickcount pageviews viewcount popularity frequency freq traffic visits hits links"
# Parts of names of columns that may be counts.
_LIKE_COUNTS = re.compile(r"click|view|count|popular|freq|visit|traffic|sitelink|inlink", re.IGNORECASE)


def entity_columns(columns: Sequence[str]) -> list[str]:
    """Return the names of the columns of a table of entities with those of this package for the known ones.

    >>> entity_columns(["entity_id", "Name", "popularity", "born"]), entity_columns(["id", "label", "name", "clicks"])
    (['id', 'label', 'count', 'born'], ['id', 'label', 'name', 'clicks'])
    """
    names, words = list(columns), [simplified_name(name) for name in columns]
    has_counts = not {*COUNTS}.isdisjoint(words)
    counts = dict.fromkeys(COUNTS, "") if has_counts else {"count": _ENTITY_COUNTS}
    for concept, others in (_ENTITIES | counts).items():
        if concept not in names:
            place = next((words.index(word) for word in (concept, *others.split()) if word in words), None)
            # A column that has a meaning keeps it.
            if place is not None and names[place] not in {*_ENTITIES, *COUNTS}:
                names[place] = concept
    return names


def like_counts(columns: Sequence[str]) -> list[str]:
    """Return the columns of a table of entities that may be counts under another name; none if it has counts."""
    counts = set(COUNTS) & set(columns)
    return [] if counts else [name for name in columns if _LIKE_COUNTS.search(name)]


RUN = ColumnNames(("qid", "docno", "score"), ("rank", "Q0"), _PAIR)
QRELS = ColumnNames(("qid", "docno", "label"), ("iteration", "Q0"), {**_PAIR, "label": "score"})
LABELS = ColumnNames(("qid", "docno", "label"), ("prob", "Q0"), {**_PAIR, "label": "score"})
INTENTS = ColumnNames(("qid", "entity_id"), ("prob",), {"entity_id": "entity"})
TAGS = ColumnNames(
    ("docno", "entity_id"), (), {"entity_id": "entity"}, ("weight", "qid", "tagger", "tied", "n_abstained")
)
QUERIES = ColumnNames(("qid",), ("weight", "cluster", "segment", "drawn", "covariate"), _PAIR)
TOPICS = ColumnNames(
    ("qid", "query"),
    (),
    {"qid": "id topic number num", "query": "querytext searchquery text title question topic narrative utterance"},
)
DOCUMENTS = ColumnNames(
    ("docno",),
    ("text",),
    {"docno": "id document doc", "text": "contents content body passage passagetext documenttext"},
)

# Names of ids, one of which is enough to recognise the header of a table.
ID_WORDS = frozenset().union(*(_NAMES[concept] for concept in ("qid", "docno", "entity_id")))
# A line of nothing but these words is a header, for any names of its columns.
_HEADINGS = """
    id number num query queries question topic doc document passage paragraph sentence page entity item need text
    texts content contents body title abstract description desc narrative keywords constraints answer answers wiki
    wikipedia url link name label alias mention kind type prob probability prior score weight rank source
"""
HEADINGS = ID_WORDS.union(_HEADINGS.split())
# Columns of queries that change means and tests of all queries.
SAMPLING = ("weight", "cluster", "drawn")
