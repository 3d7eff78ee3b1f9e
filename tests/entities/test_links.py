"""K frames of other tools: missing values are not invented, and ranks start at 0."""

import pandas as pd
import pytest

from vbterrier.entities.pool import LinkedPool
from vbterrier.errors import InputError

LINKS = pd.DataFrame(
    {
        "qid": "q1",
        "docno": ["a", "b", "c"],
        "entity_id": ["E", "E", None],
        "label": [1, 0, -1],
        "rank": [0, 1, 2],
        "weight": [0.5, 1.0, 0.0],
    }
)


def test_a_link_without_a_confidence_is_refused():
    """As 0 it would support nothing, and nobody would know."""
    with pytest.raises(InputError, match=r"links: row 1 has no weight, wanted 0 to 1; .*1 for all"):
        LinkedPool.from_frame(LINKS.assign(weight=[0.5, None, 0.0]))


def test_a_document_without_entities_needs_no_confidence():
    pool = LinkedPool.from_frame(LINKS.assign(weight=[0.5, 1.0, None]))
    assert pool.frame()["weight"].tolist() == [0.5, 1.0, 0.0]


def test_ranks_below_the_first_are_refused():
    """Ranks discount what documents support; before the first there is none."""
    with pytest.raises(InputError, match=r"links: row 0 has rank -1, wanted at least 0, the first rank"):
        LinkedPool.from_frame(LINKS.assign(rank=LINKS["rank"] - 1))
