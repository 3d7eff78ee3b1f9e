"""Linkers from retrievers and from spaCy pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, warn
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import ids_of
from vbterrier.frames.parameters import choice
from vbterrier.frames.ranking import ranked
from vbterrier.linking.links import Identified, Links, links_frame, positive
from vbterrier.linking.words import texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = tuple[int, int, int, str, str, float, str]


_WHAT = "results of the retriever"


class RetrieverLinker(Identified):
    """Link whole texts to the entities that a retriever finds for them.

    Parameters
    ----------
    retriever
        A PyTerrier transformer from qid, query to qid, docno, score, whose documents are entities: ``docno`` is the
        entity's id. It gets the texts as they are; Terrier's own query language takes punctuation for operators, so
        put ``pt.rewrite.tokenise()`` before such a retriever.
    id_space
        What ``docno`` counts in.
    name_column
        The column of the results that holds the entity's name; ``None`` where there is none.
    depth
        Most candidates of a text; equal scores in trec_eval's order.

    Raises
    ------
    ParameterError
        No transformer, or a depth below 1.

    Notes
    -----
    Scores are the retriever's own and no probabilities: ``Calibrate`` makes them some. Texts that are blank are not
    sent. Equal linkers have the same retriever and parameters.

    Examples
    --------
    >>> import pandas as pd, pyterrier as pt
    >>> found = pd.DataFrame({"qid": ["0", "0"], "docno": ["Q41421", "Q810"], "score": [7.0, 9.0]})
    >>> linker = RetrieverLinker(pt.Transformer.from_df(found), id_space="wikidata", depth=5)
    >>> linker.link(["jordan"]).frame[["text", "start", "mention", "entity_id", "score"]].values.tolist()
    [[0, -1, 'jordan', 'Q810', 9.0], [0, -1, 'jordan', 'Q41421', 7.0]]
    """

    _SUBJECT = "retriever"
    _DEFAULTS: ClassVar = {"id_space": None, "name_column": None, "depth": 10}

    def __init__(self, retriever: Any, *, id_space: str, name_column: str | None = None, depth: int = 10) -> None:
        if not callable(getattr(retriever, "transform", None)):
            raise ParameterError(
                f"retriever: wanted a PyTerrier transformer, found {type(retriever).__name__}; "
                "pt.apply.generic makes one of a function"
            )
        self.retriever, self.id_space, self.name_column = retriever, id_space, name_column
        self.depth = positive("depth", depth)

    def link(self, texts: Sequence[str]) -> Links:
        """The entities found for each text, the best first.

        Parameters
        ----------
        texts
            Any texts; each is one query.

        Returns
        -------
        Links
            Scale ``"score"``; places are unknown (-1).

        Raises
        ------
        InputError
            Results without a column, with an id or score that is none, an entity twice, or of a query never asked.
        """
        texts = texts_of(texts)
        asked = [place for place, text in enumerate(texts) if text.strip()]
        topics = pd.DataFrame({"qid": list(map(str, asked)), "query": [texts[place] for place in asked]}, dtype="str")
        found = frame_of(self.retriever.transform(topics), _WHAT) if asked else topics
        if not asked or not len(found):
            # Some retrievers forget their columns where they find nothing.
            return Links(links_frame([]), self.id_space)
        named = () if self.name_column is None else (self.name_column,)
        require(found, ("qid", "docno", "score", *named), _WHAT)
        top = ranked(found, self.depth, name=_WHAT)
        text = _places(top["qid"], asked)
        names = top[self.name_column].fillna("").astype(str) if self.name_column is not None else [""] * len(top)
        frame = pd.DataFrame(
            {
                "text": text,
                "start": -1,
                "end": -1,
                "mention": pd.Series(texts, dtype="str").array.take(text),
                "entity_id": pd.Series(ids_of(top["docno"], f"{_WHAT} column 'docno'").text.to_pylist(), dtype="str"),
                "score": top["score"].astype("float64"),
                "name": pd.Series(list(names), dtype="str"),
            }
        )
        return Links(frame.sort_values("text", kind="stable", ignore_index=True), self.id_space)


def _places(qid: pd.Series[Any], asked: list[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    known = {str(place): place for place in asked}
    distinct, code = ids_of(qid, f"{_WHAT} column 'qid'").codes()
    strangers = [name for name in distinct if name not in known]
    if strangers:
        raise InputError(f"{_WHAT}: query {strangers[0]!r} was not asked; a retriever gives qid as it got it")
    return np.array([known[name] for name in distinct], dtype=np.int64)[code]


NIL = "NIL"


class SpacyLinker(Identified):
    """Link what a spaCy pipeline recognises: by its EntityLinker, its EntityRuler, or both.

    The id of an entity is its ``kb_id_`` (EntityLinker), else its ``ent_id_`` (the ``id`` of an EntityRuler's pattern).

    Parameters
    ----------
    nlp
        A pipeline. Whatever else it does to texts costs its time: ``nlp.select_pipes`` leaves components out.
    id_space
        What its ids count in.
    candidates
        ``"priors"``: all candidates of a linked mention in the knowledge base of the EntityLinker, with their prior
        probabilities; one entity of probability 1 where there is no such knowledge base or it lacks the mention.
        ``"best"``: what the pipeline chose, with probability 1. spaCy's EntityLinker draws among equally good
        candidates by Python's ``random``: seed that for the same choice, or take priors, which do not depend on it.
    batch_size
        Texts that ``nlp.pipe`` takes at a time.

    Raises
    ------
    ParameterError
        No pipeline, or a parameter without a legal value.

    Notes
    -----
    Mentions that the EntityLinker answers with "NIL", and those without any id, give no links; ``frame.attrs`` of the
    links counts them as ``n_nil`` and ``n_without_id``. Equal linkers have the same pipeline and parameters.

    Examples
    --------
    >>> import spacy
    >>> nlp = spacy.blank("en")
    >>> nlp.add_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": "Jordan", "id": "Q810"}])
    >>> linker = SpacyLinker(nlp, id_space="wikidata")
    >>> linker.link(["The river Jordan"]).frame[["start", "end", "mention", "entity_id"]].values.tolist()
    [[10, 16, 'Jordan', 'Q810']]
    """

    _SUBJECT = "nlp"
    _DEFAULTS: ClassVar = {"id_space": None, "candidates": "priors", "batch_size": 256}

    def __init__(self, nlp: Any, *, id_space: str, candidates: str = "priors", batch_size: int = 256) -> None:
        if not (hasattr(nlp, "pipe") and hasattr(nlp, "pipeline")):
            raise ParameterError(f"nlp: wanted a spaCy pipeline, found {type(nlp).__name__}; spacy.load makes one")
        self.nlp, self.id_space = nlp, id_space
        self.candidates = choice("candidates", candidates, ("priors", "best"))
        self.batch_size = positive("batch_size", batch_size)

    def link(self, texts: Sequence[str]) -> Links:
        """The linked mentions of each text from left to right, the most probable candidate first.

        Parameters
        ----------
        texts
            Any texts. Places count code points of the text as given.

        Returns
        -------
        Links
            Scale ``"probability"``.

        Raises
        ------
        InputError
            A text longer than ``nlp.max_length``.
        """
        texts = texts_of(texts)
        self._require_short(texts)
        sources = self._sources()
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
            warn(f"spaCy: {n_without_id} mentions, none with an id; add an EntityLinker, or patterns with 'id'")
        frame = links_frame(rows)
        frame.attrs.update(n_nil=n_nil, n_without_id=n_without_id)
        return Links(frame, self.id_space, "probability")

    def _require_short(self, texts: list[str]) -> None:
        for place, text in enumerate(texts):
            if len(text) > self.nlp.max_length:
                raise InputError(
                    f"texts: {len(text)} characters in place {place}, and the pipeline takes {self.nlp.max_length}; "
                    "cut the text, or raise nlp.max_length"
                )

    def _sources(self) -> list[Any]:
        """The components that know candidates."""
        if self.candidates == "best":
            return []
        return [pipe for _, pipe in self.nlp.pipeline if hasattr(pipe, "kb") and hasattr(pipe, "get_candidates")]

    def _subject(self) -> str:
        return f"{self.nlp.lang}: {', '.join(self.nlp.pipe_names)}"


def _rows(place: int, mention: Any, entity: str, sources: list[Any]) -> list[Row]:
    # The component's own way of finding candidates, which may be the user's.
    found = {c.entity_: float(c.prior_prob) for pipe in sources for c in pipe.get_candidates(pipe.kb, mention)}
    return [
        (place, mention.start_char, mention.end_char, mention.text, candidate, prior, "")
        for candidate, prior in sorted((found or {entity: 1.0}).items(), key=lambda pair: (-pair[1], pair[0]))
    ]
