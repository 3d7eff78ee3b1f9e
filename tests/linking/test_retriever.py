"""Retrievers over entities as linkers."""

import pickle

import pandas as pd
import pyterrier as pt
import pytest

from vbterrier import InputError, ParameterError
from vbterrier.linking.links import COLUMNS, Linker, links_frame
from vbterrier.linking.wrappers import RetrieverLinker


class Fixed(pt.Transformer):
    """A retriever with fixed results, which records its queries."""

    def __init__(self, *rows, columns=("qid", "docno", "score")):
        self.frame, self.asked = pd.DataFrame(rows, columns=list(columns)), []

    def transform(self, inp):
        self.asked.append(inp.copy())
        return self.frame[self.frame["qid"].astype(str).isin(inp["qid"])]


def linker(*rows, columns=("qid", "docno", "score"), **options):
    return RetrieverLinker(Fixed(*rows, columns=columns), id_space="k", **options)


def test_results_become_links_of_their_text():
    results = [("2", "Q2", 1.0), ("0", "Q1", 0.5), ("0", "Q0", 3.5), ("2", "Q3", -2.0)]
    links = linker(*results).link(["jordan", "", "emerson, poet"])
    assert isinstance(linker(), Linker)
    assert (links.id_space, links.scale) == ("k", "score")
    assert tuple(links.frame.columns) == COLUMNS
    assert links.frame.values.tolist() == [
        [0, -1, -1, "jordan", "Q0", 3.5, ""],
        [0, -1, -1, "jordan", "Q1", 0.5, ""],
        [2, -1, -1, "emerson, poet", "Q2", 1.0, ""],
        [2, -1, -1, "emerson, poet", "Q3", -2.0, ""],
    ]


def test_texts_are_sent_as_they_are_and_blank_ones_not_at_all():
    linked = linker()
    linked.link(["Who's (X)? +y", " \t", "b"])
    (asked,) = linked.retriever.asked
    assert asked.values.tolist() == [["0", "Who's (X)? +y"], ["2", "b"]]
    linked.link(["", " "])
    linked.link([])
    assert len(linked.retriever.asked) == 1


def test_no_more_than_the_depth_is_kept_ties_as_trec_eval_does():
    rows = [("0", "a", 1.0), ("0", "c", 1.0), ("0", "b", 2.0), ("0", "d", 1.0)]
    assert linker(*rows, cutoff=3).link(["x"]).frame["entity_id"].tolist() == ["b", "d", "c"]
    assert linker(*rows).link(["x"]).frame["entity_id"].tolist() == ["b", "d", "c", "a"]


def test_names_come_from_the_column_that_holds_them():
    rows = [("0", "Q1", 2.0, "Jordan"), ("0", "Q2", 1.0, None)]
    named = linker(*rows, columns=("qid", "docno", "score", "title"), name_column="title")
    assert named.link(["x"]).frame["name"].tolist() == ["Jordan", ""]
    with pytest.raises(InputError, match="wanted columns qid, docno, score, label; missing label"):
        linker(*rows, columns=("qid", "docno", "score", "title"), name_column="label").link(["x"])


def test_nothing_found_is_an_empty_frame_whatever_its_columns():
    for result in (pd.DataFrame(), pd.DataFrame(columns=["qid", "docno", "score"])):
        links = RetrieverLinker(pt.apply.generic(lambda _, result=result: result), id_space="k").link(["x", ""])
        pd.testing.assert_frame_equal(links.frame, links_frame([]))


def test_frames_have_the_types_of_all_links():
    found = linker(("0", "Q1", 1)).link(["x"]).frame
    assert found.dtypes.tolist() == links_frame([]).dtypes.tolist()


def test_ids_are_text():
    assert linker(("0", "007", 1.0)).link(["x"]).frame["entity_id"].tolist() == ["007"]
    assert linker((0, 7, 1.0)).link(["x"]).frame["entity_id"].tolist() == ["7"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("0", "a", float("nan"))], "results of the retriever column 'score': row 0 holds nan"),
        ([("0", None, 1.0)], "results of the retriever column 'docno': row 0 has no id"),
        ([("0", "a", 1.0), ("0", "a", 2.0)], "document 'a' is duplicated for query '0'"),
    ],
)
def test_results_that_are_none_are_refused(rows, message):
    with pytest.raises(InputError, match=message):
        linker(*rows).link(["x"])


def test_results_of_other_queries_and_shapes_are_refused():
    stranger = pd.DataFrame({"qid": ["7"], "docno": ["a"], "score": [1.0]})
    with pytest.raises(InputError, match="query '7' was not asked"):
        RetrieverLinker(pt.apply.generic(lambda _: stranger), id_space="k").link(["x"])
    with pytest.raises(InputError, match="wanted columns qid, docno, score; missing score"):
        linker(("0", "a"), columns=("qid", "docno")).link(["x"])


def test_parameters_are_checked():
    with pytest.raises(ParameterError, match="retriever: wanted a PyTerrier transformer, found function"):
        RetrieverLinker(lambda frame: frame, id_space="k")
    with pytest.raises(ParameterError, match="cutoff=0: wanted a whole number, 1 or more"):
        linker(cutoff=0)
    with pytest.raises(InputError, match="found one text"):
        linker().link("x")


def test_linkers_are_what_their_parameters_are():
    retriever = Fixed()
    first = RetrieverLinker(retriever, id_space="k")
    assert first == RetrieverLinker(retriever, id_space="k")
    others = [RetrieverLinker(retriever, id_space="l"), RetrieverLinker(retriever, id_space="k", cutoff=5), linker()]
    assert len({first, *others}) == 4
    shown = repr(RetrieverLinker(retriever, id_space="k", cutoff=5))
    assert shown.startswith("RetrieverLinker(")
    assert shown.endswith("id_space='k', cutoff=5)")
    assert " at 0x" not in shown
    assert pickle.loads(pickle.dumps(first)).cutoff == 10


def test_a_lexical_index_of_entities_links_sentences(shared_data, tmp_path):
    pisa = pytest.importorskip("pyterrier_pisa")
    entities = pd.read_csv(shared_data / "kb_emerson" / "entities.csv", names=["docno", "name", "text"], dtype=str)
    index = pisa.PisaIndex(str(tmp_path / "entities"), text_field="text", stemmer="none")
    index.index(entities.assign(text=entities["name"] + " " + entities["text"]).to_dict("records"))
    names = pt.apply.name(lambda row: entities.set_index("docno")["name"][row["docno"]])
    linked = RetrieverLinker(index.bm25() >> names, id_space="wikidata", name_column="name", cutoff=2)
    links = linked.link(["emerson the tennis player", "", "nothing known", "ralph waldo"]).frame
    best = links.drop_duplicates("text")
    assert best[["text", "entity_id", "name"]].values.tolist() == [
        [0, "Q312545", "Roy Stanley Emerson"],
        [3, "Q48226", "Ralph Waldo Emerson"],
    ]
    assert (links["score"] > 0).all()
