"""Aliases from frames and knowledge bases, and their candidate entities."""

import pickle
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest

from vbterrier.errors import InputError, ParameterError
from vbterrier.linking.aliases import AliasFrame, Vocabulary, check_aliases
from vbterrier.linking.dictionary import DictionaryLinker, FuzzyLinker
from vbterrier.linking.wrappers import RetrieverLinker

ROWS = pd.DataFrame(
    {
        "alias": ["Jordan", "Jordan", "His Airness", "007"],
        "entity_id": ["Q41421", "Q810", "Q41421", "007"],
        "score": [0.25, 0.75, 1.0, 0.5],
        "name": ["Michael Jordan", "Jordan", None, "NA"],
    }
)


class Base:
    """An object with only the interface of a knowledge base."""

    id_space, has_priors = "people", True

    def alias_table(self):
        return ROWS[["alias", "entity_id", "score"]]

    def names(self, ids):
        return [f"name of {entity}" for entity in ids]


def test_a_frame_speaks_like_a_knowledge_base():
    source = check_aliases(ROWS, "people")
    assert (source.id_space, source.has_priors) == ("people", True)
    assert source.names(["Q810", "Q41421", "007", "Q0"]) == ["Jordan", "Michael Jordan", "NA", ""]
    assert source.alias_table().values.tolist() == ROWS[["alias", "entity_id", "score"]].assign(w=1.0).values.tolist()
    weighted = ROWS.assign(weight=[3, 3, 1.5, 7]).iloc[[2, 0, 3, 1]]
    assert check_aliases(weighted, "people").alias_table()["weight"].tolist() == [1.5, 3.0, 7.0, 3.0]
    assert not check_aliases(ROWS.drop(columns="score"), "people").has_priors


def test_a_knowledge_base_stays_what_it_is():
    base = Base()
    assert check_aliases(base, None) is check_aliases(base, "people") is base
    with pytest.raises(ParameterError, match="id_space='wikidata': the knowledge base has 'people'; leave it out"):
        check_aliases(base, "wikidata")
    vocabulary = Vocabulary.of(base)
    assert vocabulary.ids.to_pylist() == ["007", "Q41421", "Q810"]
    assert vocabulary.labels.to_pylist() == ["name of 007", "name of Q41421", "name of Q810"]


@pytest.mark.parametrize(("made", "id_space"), [(DictionaryLinker, None), (FuzzyLinker, "people")])
def test_objects_without_aliases_are_refused_by_their_kind(made, id_space):
    retriever = pt.Transformer.from_df(pd.DataFrame({"qid": ["1"], "docno": ["Q1"], "score": [1.0]}))
    linker = RetrieverLinker(retriever, id_space="wikidata")
    expected = r"wanted a knowledge base or a frame \(alias, entity_id\), found "
    for path in ("congress.kb", Path("congress.kb")):
        with pytest.raises(
            ParameterError, match=f"congress.kb'.*{expected}a path: open it with KnowledgeBase\\(path\\)"
        ):
            made(path, id_space=id_space)
    with pytest.raises(ParameterError, match=f"{expected}a transformer: use RetrieverLinker"):
        made(retriever, id_space=id_space)
    with pytest.raises(ParameterError, match=f"{expected}a linker, which can be used as it is"):
        made(linker, id_space=id_space)
    with pytest.raises(InputError, match="aliases: wanted a data frame, found list"):
        made([("a", "b")], id_space=id_space)


def test_frames_of_aliases_are_equal_by_what_they_hold():
    frame = ROWS.copy()
    source = AliasFrame(frame, "people")
    frame.loc[0, "alias"] = "changed later"
    same = AliasFrame(ROWS.astype({"alias": "category", "entity_id": object}), "people")
    assert source == same == pickle.loads(pickle.dumps(source))
    assert hash(source) == hash(same)
    assert source != AliasFrame(ROWS, "others")
    assert source != AliasFrame(ROWS.assign(score=0.5), "people")
    assert source != AliasFrame(ROWS.assign(weight=2), "people")
    assert source != AliasFrame(ROWS.assign(name=""), "people")
    assert source != AliasFrame(ROWS.drop(columns="score"), "people")
    assert source != "4 aliases of 'people'" == repr(source)


@pytest.mark.parametrize("column", ["count", "clicks"])
def test_counts_are_priors_with_one_added(column):
    frame = pd.DataFrame({"alias": ["Bond", "Bond", "Ed"], "entity_id": ["a", "b", "b"], column: [30, 0, 0]})
    aliases = AliasFrame(frame, "people")
    assert aliases.has_priors
    assert aliases.alias_table()["score"].tolist() == pytest.approx([31 / 32, 1 / 32, 1])
    with pytest.raises(InputError, match=f"row 1 has {column} -1, wanted a finite number of at least 0"):
        AliasFrame(frame.assign(**{column: [1, -1, 0]}), "people")
    with pytest.raises(InputError, match=f"columns score and {column}: keep one source"):
        AliasFrame(frame.assign(score=1.0), "people")
