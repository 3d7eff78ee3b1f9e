"""Condensed lists: rankings without their unjudged documents."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, examples, warn
from vbterrier.frames.columns import QRELS
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.ids import require_same_kind
from vbterrier.frames.ranking import Run
from vbterrier.hosts.pyterrier import Stage
from vbterrier.unjudged.pool import Judgments


class Condense(Stage):
    """Remove unjudged documents from rankings (condensed lists, Sakai 2007).

    Use it in a pipeline before measures without a ``judged_only`` parameter. Topics without judgments are removed.

    Parameters
    ----------
    qrels
        Columns qid, docno, label.

    Notes
    -----
    Documents with labels below 0 are judged and kept, with gain 0, as in all measures of this package, those with
    ``judged_only=True`` included; ``read_qrels(path, negative="unjudged")`` drops such labels, as trec_eval's ``-J``
    does.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": ["q1"], "docno": ["a"], "label": [1]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["new", "a"], "score": [2.0, 1.0], "rank": [0, 1]})
    >>> Condense(qrels).transform(run).values.tolist()
    [['q1', 'a', 1.0, 0]]
    """

    def __init__(self, qrels: Any) -> None:
        super().__init__()
        self._judgments = Judgments(qrels)
        # A copy, so that later changes of the frame affect neither results nor equality.
        self.qrels = pandas_frame(qrels, "qrels", QRELS)[["qid", "docno", "label"]].copy()
        if not self._judgments.topics:
            raise InputError("qrels: no rows; condensing would drop every document")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Return the judged rows of a result frame in their relative order, ``rank`` from 0 without gaps."""
        self.require_columns(inp, "qid", "docno", "score")
        if not len(inp):
            return inp.assign(rank=pd.Series(dtype="int64"))
        run, judgments = Run(inp), self._judgments
        require_same_kind(judgments.qid, run.topic_ids, "qrels column 'qid'", "run column 'qid'")
        if set(run.topics).isdisjoint(judgments.topics):
            # A batch of pt.Experiment may contain only such topics.
            warn(f"run: none of its topics is judged ({examples(run.topics)}); the result is empty")
            return inp.iloc[:0].assign(rank=pd.Series(dtype="int64"))
        top = judgments.judge(run, None)
        kept = top.levels >= 0
        frame = run.frame.iloc[top.rows[kept]].reset_index(drop=True)
        frame["rank"] = (np.cumsum(kept, axis=1) - 1)[kept]
        return frame

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        qid, docno, label = (self.qrels[name].tolist() for name in ("qid", "docno", "label"))
        return tuple(zip(qid, docno, label, strict=True))

    @staticmethod
    def short(value: Any) -> str:
        """Return the number of judgments."""
        return f"{len(value)} judgments"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condense) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)
