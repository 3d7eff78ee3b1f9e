"""Which candidate intents the first documents of runs cover, at which ranks, and what their tags leave to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.intents.oracle import oracle_success
from vbterrier.intents.sources import from_diversity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.intents.coverage import Coverage
    from vbterrier.measures.scoring import Scoring
    from vbterrier.report.page.inputs import Inputs


@dataclass(frozen=True, eq=False)
class Covered:
    """The intents of all topics, and where one run covers them.

    Parameters
    ----------
    intents
        qid, entity_id, prob; the same for all runs of a page.
    ranks
        The ranks, from 1, of the documents about each intent, a row of ``intents`` each.
    tagged
        Mean share of the first documents that carry a tag.
    oracle
        Mean expected success of the best ranking under the same tags; NaN where the tags are not all known.
    """

    intents: pd.DataFrame
    ranks: list[list[int]]
    tagged: float
    oracle: float


def covered_of(measure: Any, scorings: Mapping[str, Scoring], depth: int, given: Inputs) -> dict[str, Covered]:
    """The intents that a measure sees, in its own place and order."""
    found = {name: measure.coverage(scoring) for name, scoring in scorings.items()}
    first: Coverage = next(iter(found.values()))
    frame = pd.DataFrame(
        {
            "qid": [first.intents.topics[place] for place in first.intents.topic],
            "entity_id": first.intents.entity.text.to_pylist(),
            "prob": first.intents.prob,
        }
    )
    oracle = _oracle(frame, given, depth)
    return {
        name: Covered(frame, _ranks(coverage, depth), float(coverage.tagged.mean()), oracle)
        for name, coverage in found.items()
    }


def _ranks(coverage: Coverage, depth: int) -> list[list[int]]:
    """Rising ranks of each intent."""
    seen = coverage.rank < depth
    order = np.lexsort((coverage.rank[seen], coverage.intent[seen]))
    counts = np.bincount(coverage.intent[seen], minlength=len(coverage.intents.prob))
    ranks = 1 + coverage.rank[seen][order]
    return [part.tolist() for part in np.split(ranks, np.cumsum(counts)[:-1])]


def _oracle(intents: pd.DataFrame, given: Inputs, depth: int) -> float:
    tags = given.tags
    if tags is None and given.intents is None and given.is_diversity:
        _, tags = from_diversity(given.qrels)
        tags = tags[tags["qid"].astype(str).isin(intents["qid"])]
    if tags is None:
        return float("nan")
    return float(oracle_success(intents, tags, depth)["success"].mean())
