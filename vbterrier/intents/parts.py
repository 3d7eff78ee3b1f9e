"""Intents that are several ids at once: covered by one document, or by several together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, choice, examples
from vbterrier.frames.columns import TAGS
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.entities import TagFrame, intent_probabilities, require_once
from vbterrier.frames.ids import column_ids

PARTS = "parts"
PART_GAINS = ("all", "part")
# The readings of intents with parts: of single documents, and of all documents up to a cutoff.
TOGETHER, SPLIT = "together", "split"
READINGS = (*PART_GAINS, TOGETHER, SPLIT)


def listed_parts(intents: Any) -> pd.DataFrame:
    """Return the distinct rows qid, entity_id and parts (tuples), and refuse lists that are none."""
    frame = pandas_frame(intents, "intents")
    require(frame, ("qid", "entity_id", PARTS), "intents")
    frame = frame[["qid", "entity_id", PARTS]].reset_index(drop=True)
    parts_of_rows = [[part.strip() for part in one.split("|")] if isinstance(one, str) else one for one in frame[PARTS]]
    lists = [tuple(one) if isinstance(one, (list, tuple, np.ndarray)) else () for one in parts_of_rows]
    for row, parts in enumerate(lists):
        if not parts or len(set(parts)) < len(parts) or not all(isinstance(part, str) and part for part in parts):
            raise InputError(
                f"intents: row {row} (query {frame['qid'][row]!r}, {frame['entity_id'][row]!r}) has the parts "
                f"{frame[PARTS][row]!r}; wanted a list of distinct ids"
            )
    frame[PARTS] = pd.Series(lists, index=frame.index, dtype=object)
    frame = frame.drop_duplicates(ignore_index=True)
    twice = frame.duplicated(["qid", "entity_id"])
    if twice.any():
        raise InputError(
            f"intents: {examples(frame['entity_id'][twice])} of query {frame['qid'][twice].iloc[0]!r} has two lists of "
            "parts; give each intent one"
        )
    return frame


def tags_of_parts(intents: Any, tags: Any, *, gain: str = "all") -> pd.DataFrame:
    """Return tags with intents that are several ids at once, such as an author, an abstract and a dataset.

    The weight of intent i in document d is ``min_j w_dj`` over the ids j of the intent (``gain="all"``: a document
    covers the intent if it is tagged with all of them), or ``mean_j w_dj`` (``"part"``).

    Parameters
    ----------
    intents, tags, gain
        Columns qid, entity_id (of the whole intent) and ``parts``: a list of distinct ids, or text with ``|`` between;
        columns docno, entity_id (of a part), and optionally weight in [0, 1] and qid; ``"all"`` or ``"part"``.

    Returns
    -------
    pandas.DataFrame
        Columns docno, entity_id (of the whole intent), weight above 0, and qid: the parts of an id may differ between
        queries. Different documents do not complete each other; see :func:`split_parts` for the other readings.

    Raises
    ------
    ParameterError, InputError
        Another gain; an intent without parts, with a part that is not text or occurs twice, or with two lists of parts.

    Examples
    --------
    >>> intents = pd.DataFrame({"qid": ["q1"], "entity_id": ["p1"], "prob": [1.0], "parts": [["Smith", "CPS"]]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d1", "d2"], "entity_id": ["Smith", "CPS", "CPS"]})
    >>> tags_of_parts(intents, tags, gain="part")[["docno", "weight"]].values.tolist()
    [['d1', 1.0], ['d2', 0.5]]
    """
    choice("gain", gain, PART_GAINS)
    frame = listed_parts(intents)
    tags = pandas_frame(tags, "tags", TAGS)
    table, docno = TagFrame(tags, name="tags"), tags["docno"].to_numpy()
    of_tags = pd.DataFrame({"docno": docno, "part": table.entity.text.to_pylist(), "weight": table.weight})
    of_parts = frame.assign(intent=np.arange(len(frame)), n_parts=frame[PARTS].str.len()).explode(PARTS)
    of_parts = of_parts.rename(columns={PARTS: "part"}).astype({"part": object})
    on = ["part"]
    if table.topics is not None:
        of_tags["qid"], on = np.array(table.topics, dtype=object)[table.topic], ["part", "qid"]
    of_tags = of_tags[of_tags["weight"] > 0].astype({"part": object})
    # A repeated tag of a document counts with its largest weight.
    best = of_tags.groupby([*on, "docno"], sort=False)["weight"].max().reset_index()
    matched = of_parts.astype({"qid": str}).merge(best, on=on)
    weights = matched.groupby(["intent", "docno"], sort=False).agg(
        n=("weight", "size"), least=("weight", "min"), sum=("weight", "sum"), n_parts=("n_parts", "first")
    )
    weights = weights.reset_index()
    share = weights["sum"] / weights["n_parts"]
    weight = (
        share.clip(upper=1.0) if gain == "part" else weights["least"].where(weights["n"] == weights["n_parts"], 0.0)
    )
    qid, entity = (frame[name].to_numpy()[weights["intent"]] for name in ("qid", "entity_id"))
    made = weights[["docno"]].assign(entity_id=entity, weight=weight.astype("float64"), qid=qid)
    return made[made["weight"] > 0].reset_index(drop=True)


def split_parts(intents: Any) -> pd.DataFrame:
    """Return intents of single ids, so that the parts of an intent count wherever they are found.

    An intent i with probability ``π_i`` and ``n_i`` parts becomes ``n_i`` intents of probability ``π_i / n_i``. A part
    of several intents of a query has the sum. Expected success up to rank k is then the probability of an intent times
    the mean coverage of its parts by the first k documents,

    ``ES@k = Σ_i π_i (1/n_i) Σ_j max_{r<=k} w_{r,ij}``,

    so that different documents add up, and every measure of intents is that of this frame: ``parts="split"`` of the
    measures and of :class:`vbterrier.evaluate.IntentOptions`. With ``parts="together"``, an intent is covered as far as
    its least covered part, ``ES@k = Σ_i π_i min_j max_{r<=k} w_{r,ij}``, which is never larger.

    Parameters
    ----------
    intents
        Columns qid, entity_id (of the whole intent), prob, and ``parts``: a list of distinct ids, or text with ``|``
        between.

    Returns
    -------
    pandas.DataFrame
        Columns qid, entity_id (of a part) and prob; probabilities of a query have the same sum as those of its intents.

    Raises
    ------
    InputError
        An intent without parts, with a part that is not text or occurs twice, or that occurs twice; a probability that
        is not a number of at least 0; probabilities of a query that are all 0.

    Examples
    --------
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["p1", "p2"], "prob": [0.6, 0.4]})
    >>> intents["parts"] = [["Smith", "CPS"], ["CPS"]]
    >>> split_parts(intents)[["entity_id", "prob"]].values.tolist()
    [['Smith', 0.3], ['CPS', 0.7]]
    """
    whole = pandas_frame(intents, "intents")
    require(whole, ("qid", "entity_id", "prob", PARTS), "intents")
    topics, topic = column_ids(whole["qid"], "intents column 'qid'").codes()
    entity = column_ids(whole["entity_id"], "intents column 'entity_id'")
    # Sums over parts would hide a repeated intent and a negative probability.
    require_once(topics, topic, entity, "intents")
    prob, _ = intent_probabilities(whole["prob"], topics, topic, entity, "intents", normalise=True)
    frame = listed_parts(whole)
    share = prob / frame[PARTS].str.len()
    of_parts = frame.assign(prob=share).explode(PARTS, ignore_index=True)
    of_parts = of_parts.drop(columns="entity_id").rename(columns={PARTS: "entity_id"})
    return of_parts.groupby(["qid", "entity_id"], sort=False, as_index=False)[["prob"]].sum()
