"""What the best ranking under the same tags would score: how much of a score the tagger leaves to the system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.contracts import frame_of, is_frame, require
from vbterrier.frames.ids import Lookup, ids_of, require_same_kind
from vbterrier.frames.named import named
from vbterrier.frames.topics import places
from vbterrier.intents.tables import Intents, Tags, called
from vbterrier.kernels.oracle import best_success
from vbterrier.kernels.vb import per_topic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.frames.ids import Ids

    Ints = NDArray[np.int64]


def oracle_success(
    intents: Any, tags: Any, k: int | None, *, documents: Any = None, normalise: bool = False, nil: str = ""
) -> pd.DataFrame:
    """Expected success of an ideal ranking of k documents under the same tags, of each query.

    ``ES* = max_{|S| = k} Σ_i π_i max_{d in S} w_id``, the binary gain of :data:`vbterrier.ES`: no system scores more
    with these tags, whatever it retrieves. What is missing to 1 is the tagger's and the collection's, what is missing
    to ``ES*`` the system's.

    Parameters
    ----------
    intents
        Columns qid, entity_id, prob; or a registered name, or a path.
    tags
        Columns docno, entity_id, and optionally weight and qid; or a registered name, or a path. All their documents
        may be shown.
    k
        How many documents are shown, at least 1; ``None`` for all.
    documents
        Show these documents only: ids, or a frame with docno, and with qid where they differ by query: the oracle of a
        run then is its best re-ranking.
    normalise
        Divide the probabilities of each query by their sum.
    nil
        Entity of the NIL intent, served by showing no entity (see :data:`vbterrier.ES`): the better of the best ranking
        and none.

    Returns
    -------
    pandas.DataFrame
        Columns qid, ``success`` in [0, 1], ``method``: ``"exact"``, or ``"greedy"`` where a search for the best
        documents would hold too much, with at least ``1 - 1/e`` of it. Exact wherever a document is about one of a
        query's intents, or k documents are enough for all of them, and in most other cases.

    Raises
    ------
    ParameterError
        A cutoff below 1.
    InputError
        Intents or tags that are none, ids that can never meet.

    Notes
    -----
    Cost and memory are linear in the tags and intents that meet. The search for the best documents, where one is
    needed, takes a tenth of a second a topic at most and gives up where many documents of many weights share intents.

    Examples
    --------
    >>> import pandas as pd
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B", "C"], "prob": [0.5, 0.25, 0.25]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["A", "B"]})
    >>> [oracle_success(intents, tags, k)["success"].tolist() for k in (1, 10)]
    [[0.5], [0.75]]
    """
    if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1):
        raise ParameterError(f"k={k!r}: wanted a whole number of at least 1, or None for all documents")
    asked, known = Intents(named("intents", intents), normalise=normalise), Tags(named("tags", tags))
    require_same_kind(asked.entity, known.entity, "intents column 'entity_id'", "tags column 'entity_id'")
    if known.topics is not None:
        require_same_kind(asked.qid, known.qid, "intents column 'qid'", "tags column 'qid'")
    rows, intent = known.of_intents(asked)
    if documents is not None:
        shown = _shown(documents, asked, asked.topic[intent], known.docno.take(rows))
        rows, intent = rows[shown], intent[shown]
    prob = asked.prob.copy()
    absent = called(asked.entity, nil) if nil else np.empty(0, dtype=np.int64)
    prob[absent] = 0.0
    _, document = known.docno.take(rows).codes()
    success, exact = best_success(
        prob, asked.topic, len(asked.topics), intent=intent, document=document, weight=known.weight[rows], k=k
    )
    nothing = per_topic(asked.prob[absent], asked.topic[absent], len(asked.topics))
    return pd.DataFrame(
        {
            "qid": asked.topics,
            # Sums of probabilities may be off by rounding.
            "success": np.minimum(np.maximum(success, nothing), 1.0),
            "method": np.where(exact, "exact", "greedy").astype(object),
        }
    )


def _shown(documents: Any, intents: Intents, topic: Ints, docno: Ids) -> Ints:
    """The places of pairs (topic, document) that may be shown."""
    if isinstance(documents, str):
        raise InputError(f"documents={documents!r}: wanted several ids or a frame; put a single id in a list")
    if is_frame(documents):
        frame = frame_of(documents, "documents")
    else:
        frame = pd.DataFrame({"docno": pd.Series(list(documents), dtype=object)})
    require(frame, ("docno",), "documents")
    allowed = ids_of(frame["docno"], "documents column 'docno'")
    require_same_kind(docno, allowed, "tags column 'docno'", "documents column 'docno'")
    if "qid" not in frame.columns:
        pairs, _ = Lookup(None, allowed).find(None, docno)
        return np.unique(pairs)
    qid = ids_of(frame["qid"], "documents column 'qid'")
    require_same_kind(intents.qid, qid, "intents column 'qid'", "documents column 'qid'")
    topics, code = qid.codes()
    here = places(topics, intents.topics)[code]
    known = np.flatnonzero(here >= 0)
    pairs, _ = Lookup(here[known], allowed.take(known)).find(topic, docno)
    return np.unique(pairs)
