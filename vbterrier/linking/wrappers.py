"""Linkers that wrap retrievers and spaCy pipelines."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import InputError, ParameterError, agreeing, choice, warn
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.id_spaces import NIL
from vbterrier.frames.ids import column_ids
from vbterrier.frames.ranking import ranked
from vbterrier.linking.links import Identified, Links, links_frame, positive
from vbterrier.linking.words import check_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = tuple[int, int, int, str, str, float, str]


_RESULTS = "results of the retriever"


class RetrieverLinker(Identified):
    """Link whole texts to the entities that a retriever finds for them.

    Scores are those of the retriever, not probabilities; ``Calibrate`` converts them. Blank texts are not sent. Linkers
    are equal if their retriever and parameters are.

    Parameters
    ----------
    retriever
        A PyTerrier transformer from qid, query to qid, docno, score, whose documents are entities: ``docno`` is the
        entity's id. It receives the unchanged texts; because Terrier's query language interprets punctuation, put
        ``pt.rewrite.tokenise()`` before a Terrier retriever.
    id_space
        The id space of ``docno``.
    name_column
        The column of the results with the entity's name; ``None`` if there is none.
    cutoff
        The maximum number of candidates of a text; ties are broken as in trec_eval.

    Raises
    ------
    ParameterError
        Not a transformer, or a cutoff below 1.

    Examples
    --------
    >>> import pandas as pd, pyterrier as pt
    >>> result = pd.DataFrame({"qid": ["0", "0"], "docno": ["Q41421", "Q810"], "score": [7.0, 9.0]})
    >>> linker = RetrieverLinker(pt.Transformer.from_df(result), id_space="wikidata", cutoff=5)
    >>> linker.link(["jordan"]).frame[["text", "start", "mention", "entity_id", "score"]].values.tolist()
    [[0, -1, 'jordan', 'Q810', 9.0], [0, -1, 'jordan', 'Q41421', 7.0]]
    """

    def __init__(self, retriever: Any, *, id_space: str, name_column: str | None = None, cutoff: int = 10) -> None:
        if not callable(getattr(retriever, "transform", None)):
            raise ParameterError(
                f"retriever: wanted a PyTerrier transformer, found {type(retriever).__name__}; "
                "pt.apply.generic converts a function"
            )
        self.retriever, self.id_space, self.name_column = retriever, id_space, name_column
        self.cutoff = positive("cutoff", cutoff)

    def link(self, texts: Sequence[str]) -> Links:
        """Retrieve the entities of each text, the best first; scale ``"score"``, offsets unknown (-1).

        Raises
        ------
        InputError
            Results with a missing column, an invalid id or score, a duplicated entity, or an unknown query.
        """
        texts = check_texts(texts)
        queries = [place for place, text in enumerate(texts) if text.strip()]
        topics = pd.DataFrame(
            {"qid": list(map(str, queries)), "query": [texts[place] for place in queries]}, dtype="str"
        )
        results = pandas_frame(self.retriever.transform(topics), _RESULTS) if queries else topics
        if not len(results):
            # Some retrievers return no columns if they find nothing.
            return Links(links_frame([]), self.id_space)
        named = () if self.name_column is None else (self.name_column,)
        require(results, ("qid", "docno", "score", *named), _RESULTS)
        top = ranked(results, self.cutoff, name=_RESULTS)
        distinct, code = column_ids(top["qid"], f"{_RESULTS} column 'qid'").codes()
        by_number = {str(place): place for place in queries}
        unknown = [name for name in distinct if name not in by_number]
        if unknown:
            raise InputError(f"{_RESULTS}: query {unknown[0]!r} was not asked; a retriever must return the qid it gets")
        places = [by_number[distinct[topic]] for topic in code.tolist()]
        entity = column_ids(top["docno"], f"{_RESULTS} column 'docno'").text.to_pylist()
        names = top[self.name_column].fillna("").astype(str) if self.name_column is not None else [""] * len(top)
        columns = zip(places, entity, top["score"].tolist(), names, strict=True)
        rows = [(place, -1, -1, texts[place], one, score, name) for place, one, score, name in columns]
        return Links(links_frame(sorted(rows, key=itemgetter(0))), self.id_space)


class SpacyLinker(Identified):
    """Link the entities that a spaCy pipeline recognises with its EntityLinker, its EntityRuler, or both.

    The id of an entity is its ``kb_id_`` (EntityLinker), or else its ``ent_id_`` (``id`` of an EntityRuler's pattern).
    Mentions that the EntityLinker answers with "NIL", and mentions without an id, give no links; ``frame.attrs`` of the
    links counts them as ``n_nil`` and ``n_without_id``. Linkers are equal if their pipeline and parameters are.

    Parameters
    ----------
    nlp
        A pipeline. ``nlp.select_pipes`` disables components that linking does not need.
    id_space
        The id space of the pipeline.
    candidates
        ``"priors"`` for all candidates of a linked mention in the knowledge base of the EntityLinker, with their prior
        probabilities, or one entity of probability 1 if there are none. ``"best"`` for the choice of the pipeline, with
        probability 1, in which spaCy breaks ties with Python's ``random``, which must be seeded.
    batch_size
        Number of texts that ``nlp.pipe`` processes at a time.

    Raises
    ------
    ParameterError
        Not a pipeline, or an invalid parameter.

    Examples
    --------
    >>> import spacy
    >>> nlp = spacy.blank("en")
    >>> nlp.add_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": "Jordan", "id": "Q810"}])
    >>> linker = SpacyLinker(nlp, id_space="wikidata")
    >>> linker.link(["The river Jordan"]).frame[["start", "end", "mention", "entity_id"]].values.tolist()
    [[10, 16, 'Jordan', 'Q810']]
    """

    def __init__(self, nlp: Any, *, id_space: str, candidates: str = "priors", batch_size: int = 256) -> None:
        if not (hasattr(nlp, "pipe") and hasattr(nlp, "pipeline")):
            raise ParameterError(f"nlp: wanted a spaCy pipeline, found {type(nlp).__name__}; load one with spacy.load")
        self.nlp, self.id_space = nlp, id_space
        self.candidates = choice("candidates", candidates, ("priors", "best"))
        self.batch_size = positive("batch_size", batch_size)

    def link(self, texts: Sequence[str]) -> Links:
        """Link the mentions in each text from left to right, with the most probable candidate first.

        Raises
        ------
        InputError
            A text longer than ``nlp.max_length``.
        """
        texts = check_texts(texts)
        for place, text in enumerate(texts):
            if len(text) > self.nlp.max_length:
                raise InputError(
                    f"texts: {len(text)} characters in place {place}, and the limit of the pipeline is "
                    f"{self.nlp.max_length}; cut the text, or raise nlp.max_length"
                )
        pipes = [pipe for _, pipe in self.nlp.pipeline] if self.candidates == "priors" else []
        sources = [pipe for pipe in pipes if hasattr(pipe, "kb") and hasattr(pipe, "get_candidates")]
        rows: list[Row] = []
        n_nil = n_without_id = 0
        for place, doc in enumerate(self.nlp.pipe(texts, batch_size=self.batch_size)):
            for mention in doc.ents:
                entity = mention.kb_id_ or mention.ent_id_
                n_nil += entity == NIL
                n_without_id += not entity
                if entity and entity != NIL:
                    rows.extend(_rows(place, mention, entity, sources))
        if n_without_id and not rows and not n_nil:
            warn(
                f"spaCy: {agreeing(n_without_id, 'mentions')}, none with an id; add an "
                "EntityLinker, or patterns with 'id'"
            )
        frame = links_frame(rows)
        frame.attrs.update(n_nil=n_nil, n_without_id=n_without_id)
        return Links(frame, self.id_space, "probability")

    def _subject(self) -> str:
        return f"{self.nlp.lang}: {', '.join(self.nlp.pipe_names)}"


def _rows(place: int, mention: Any, entity: str, sources: list[Any]) -> list[Row]:
    # get_candidates of the component may be defined by the user.
    candidates = {c.entity_: float(c.prior_prob) for pipe in sources for c in pipe.get_candidates(pipe.kb, mention)}
    return [
        (place, mention.start_char, mention.end_char, mention.text, candidate, prior, "")
        for candidate, prior in sorted((candidates or {entity: 1.0}).items(), key=lambda pair: (-pair[1], pair[0]))
    ]
