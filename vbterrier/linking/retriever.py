"""Any retriever over a collection of entities as a linker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import ids_of
from vbterrier.frames.ranked import ranked
from vbterrier.linking.identity import Identified, positive
from vbterrier.linking.links import Links, links_frame
from vbterrier.linking.words import texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

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
