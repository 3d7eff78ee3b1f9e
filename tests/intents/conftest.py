"""Fixtures of the stages: a small knowledge base, and frames compared in any order."""

import pytest

from vbterrier.linking.kb.files import build_kb

JOHN_SMITHS = [
    {
        "id": "A",
        "label": "John Smith (Ohio)",
        "aliases": [["John Smith", 0.5], "Smith of Ohio"],
        "attributes": {"state": "OH", "chamber": ["sen", "rep"], "born": 1735, "current": False},
        "redirects": ["A-old"],
    },
    {
        "id": "B",
        "label": "John Smith (Washington)",
        "aliases": [["John Smith", 0.3]],
        "attributes": {"state": "Washington, D.C.", "chamber": "sen", "born": "1850-03-01"},
    },
    {"id": "C", "label": "John Smith (historian)", "aliases": [["John Smith", 0.2]], "attributes": {"state": "PA"}},
    {"id": "M1", "label": "Mercury", "aliases": [["Mercury", 0.6]], "attributes": {"kind": "planet"}},
    {"id": "M2", "label": "Mercury", "aliases": [["Mercury", 0.4]], "attributes": {"kind": "god"}},
]


@pytest.fixture(scope="session")
def people(tmp_path_factory):
    """Three men of one name, as a directory of senators might have them, and two entities called alike."""
    with build_kb(tmp_path_factory.mktemp("kb") / "people.kb", JOHN_SMITHS, id_space="people") as kb:
        yield kb


@pytest.fixture(scope="session")
def probs():
    """Probabilities by query and entity, rounded, so that frames in any order compare."""

    def by_pair(frame):
        rows = zip(frame["qid"], frame["entity_id"], frame["prob"], strict=True)
        return {(qid, entity): round(prob, 9) for qid, entity, prob in rows}

    return by_pair
