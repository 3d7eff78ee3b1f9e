"""What stands beside a score over intents: which intents are covered, and what the tags leave to the systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vbterrier.intents.coverage import Intents, Tags, cover
from vbterrier.intents.oracle import oracle_success

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vbterrier.frames.ranked import Run


def covered(runs: Mapping[str, Run], intents: pd.DataFrame, tags: pd.DataFrame, depth: int | None) -> pd.DataFrame:
    """Every intent of every query by system: its probability, its place by it, and the rank that covers it first.

    Returns
    -------
    pandas.DataFrame
        name, qid, entity_id, prob, place (from 1, equal ones share the best), first_rank (from 1; missing where none of
        the first ``depth`` documents is about it).
    """
    candidates, known = Intents(intents), Tags(tags)
    of_intents = pd.DataFrame(
        {"qid": intents["qid"].to_numpy(), "entity_id": intents["entity_id"].to_numpy(), "prob": candidates.prob}
    )
    by_topic = of_intents.groupby(candidates.topic)["prob"]
    of_intents["place"] = by_topic.rank(ascending=False, method="min").astype("int64")
    tables = []
    for name, run in runs.items():
        found = cover(run, candidates, known, depth)
        first = np.full(len(of_intents), np.inf)
        np.minimum.at(first, found.intent, found.rank + 1.0)
        ranks = pd.array(np.where(np.isfinite(first), first, 0).astype("int64"), dtype="Int64")
        ranks[~np.isfinite(first)] = pd.NA
        tables.append(of_intents.assign(name=name, first_rank=ranks))
    return pd.concat(tables, ignore_index=True)[["name", "qid", "entity_id", "prob", "place", "first_rank"]]


def tagging(
    runs: Mapping[str, Run], intents: pd.DataFrame, tags: pd.DataFrame, cutoffs: Sequence[int], nil: str
) -> pd.DataFrame:
    """How much of a score the tags leave to each system.

    Returns
    -------
    pandas.DataFrame
        name, k, tagged (mean share of the first k documents with any tag), ES, oracle_ES (mean over queries of the best
        ranking of k documents under the same tags: no system scores more).
    """
    candidates, known = Intents(intents), Tags(tags)
    rows = []
    for k in cutoffs:
        oracle = float(oracle_success(intents, tags, k, nil=nil)["success"].mean())
        for name, run in runs.items():
            found = cover(run, candidates, known, k, nil=nil)
            success = found.success(found.gain(k, "binary"))
            rows.append((name, k, float(found.tagged.mean()), float(success.mean()), oracle))
    return pd.DataFrame(rows, columns=["name", "k", "tagged", "ES", "oracle_ES"])
