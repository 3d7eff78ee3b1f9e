"""What tests of the stages share: a small knowledge base that needs no file, and frames in another order."""

import pandas as pd
import pytest

from vbterrier.linking.links import Links, links_frame
from vbterrier.linking.normal import normal_form


class SmallKB:
    """Entities with a name, attributes, redirects and aliases, in dictionaries."""

    id_space = "small"
    has_priors = True

    def __init__(self, names, attributes=None, redirects=None, aliases=None):
        self.given = names, attributes or {}, redirects or {}, aliases or {}

    def names(self, ids):
        return [self.given[0].get(one, "") for one in ids]

    def attributes(self, ids):
        known = self.given[1]
        rows = [
            (one, name, value)
            for one in ids
            for name, values in known.get(one, {}).items()
            for value in (values if isinstance(values, list) else [values])
        ]
        return pd.DataFrame(rows, columns=["entity_id", "attribute", "value"])

    def attribute_names(self):
        return sorted({name for values in self.given[1].values() for name in values})

    def resolve(self, ids):
        return [self.given[2].get(one, one) for one in ids]

    def lookup(self, mentions, *, how="normalised", limit=None):
        assert how == "normalised"
        aliases = {normal_form(alias): found for alias, found in self.given[3].items()}
        rows = [
            (text, mention, mention, entity, prior, "")
            for text, mention in enumerate(mentions)
            for entity, prior in aliases.get(normal_form(mention), {}).items()
        ]
        return pd.DataFrame(rows, columns=["text", "mention", "alias", "entity_id", "score", "name"])

    def link(self, texts):
        found = self.lookup(texts)
        rows = [
            (text, 0, len(mention), mention, entity, score, self.given[0].get(entity, ""))
            for text, mention, entity, score in found[["text", "mention", "entity_id", "score"]].itertuples(index=False)
        ]
        return Links(links_frame(rows), self.id_space, "probability")

    def __repr__(self):
        return "SmallKB()"


@pytest.fixture(scope="session")
def small_kb():
    return SmallKB


@pytest.fixture(scope="session")
def people():
    """Three men of one name, as a directory of senators might have them."""
    return SmallKB(
        names={"A": "John Smith (Ohio)", "B": "John Smith (Washington)", "C": "John Smith (historian)"},
        attributes={
            "A": {"state": "OH", "chamber": ["sen", "rep"], "born": "1735"},
            "B": {"state": "Washington, D.C.", "chamber": "sen", "born": "1850-03-01"},
            "C": {"state": "PA"},
        },
        redirects={"A-old": "A"},
        aliases={"John Smith": {"A": 0.5, "B": 0.3, "C": 0.2}, "Smith of Ohio": {"A": 1.0}},
    )


@pytest.fixture(scope="session")
def probs():
    """Probabilities by query and entity, rounded, so that frames in any order compare."""

    def by_pair(frame):
        return {
            (qid, entity): round(prob, 9)
            for qid, entity, prob in zip(frame["qid"], frame["entity_id"], frame["prob"], strict=True)
        }

    return by_pair
