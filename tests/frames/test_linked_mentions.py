"""Files of linked mentions, made by hand: each layout gives the links that its tool means."""

import contextlib
import gzip
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from night import at_night

import vbterrier
from vbterrier.entities import link_pool
from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError, VBTerrierError
from vbterrier.frames import read_answers, read_entity_links, read_mentions
from vbterrier.frames.files.entity_links import converted_tags
from vbterrier.frames.id_spaces import space_and_id
from vbterrier.linking import linking_report
from vbterrier.settings import Data, Inference

TEXT = "Paris met Dupont in Bonn."
NIF_HEAD = """\
@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
@prefix itsrdf: <http://www.w3.org/2005/11/its/rdf#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<http://example.org/d1#char=0,25> a nif:Context , nif:RFC5147String ;
  nif:beginIndex "0"^^xsd:nonNegativeInteger ; nif:endIndex "25"^^xsd:nonNegativeInteger ;
  nif:isString \"""Paris met Dupont in Bonn.\"""@en .
"""


def phrase(start, end, *entities, more="", context="http://example.org/d1#char=0,25"):
    refs = "".join(f"  itsrdf:taIdentRef <{entity}> ;\n" for entity in entities)
    return (
        f"<http://example.org/d1#char={start},{end}> a nif:Phrase ;\n"
        f'  nif:anchorOf "{TEXT[start:end]}" ; nif:referenceContext <{context}> ;\n{refs}{more}'
        f'  nif:beginIndex "{start}"^^xsd:nonNegativeInteger ; nif:endIndex {end} .\n'
    )


PARIS, BONN = "http://dbpedia.org/resource/Paris", "http://dbpedia.org/resource/Bonn"
NIF = NIF_HEAD + phrase(0, 5, PARIS) + phrase(10, 16, "http://aksw.org/notInWiki/Dupont") + phrase(20, 24, BONN)
OFFSETS = {
    "neleval": f"d1\t0\t4\t{PARIS}\t1.0\tLOC\nd1\t10\t15\tNIL\nd1\t20\t23\t{BONN}\t0.5\tLOC\tother\t0.25\tLOC\n",
    "tac": f"me\tm1\tParis\td1:0-4\t{PARIS}\tGPE\tNAM\t1.0\nme\tm2\tDupont\td1:10-15\tNIL\tPER\tNAM\t1.0\n"
    f"me\tm3\tBonn\td1:20-23\t{BONN}\tGPE\tNAM\t0.5\n",
    "nif": NIF.replace("http://example.org/d1#", "d1#"),
    "rel": json.dumps(
        {"d1": [[0, 5, "Paris", PARIS, 0.9, 0.9, "LOC"], [10, 6, "Dupont", "NIL", 0.0, 0.9, "PER"]]}
        | {"d2": []}
        | {"d1 ": []}
    )
    + "\n"
    + json.dumps({"d1": [[20, 4, "Bonn", BONN, 0.8, 0.9, "LOC"]]}),
}
HIPE = """\
TOKEN\tNE-COARSE-LIT\tNE-COARSE-METO\tNEL-LIT\tNEL-METO\tMISC
# hipe2022:document_id = p1
# hipe2022:date = 1900-01-01
M\tB-pers\tO\tNIL\t_\tNoSpaceAfter
.\tI-pers\tO\tNIL\t_\t_
Dupont\tI-pers\tO\tNIL\t_\t_
in\tO\tO\t_\t_\tEndOfLine
Bonn\tB-loc\tO\tQ586|Q100\t_\t_

# hipe2022:document_id = p2
Bonn\tB-loc\tO\tQ586\t_\t_
"""
AIDA = """\
-DOCSTART- (1 NEWS)
Paris\tB\tParis\tParis\thttp://en.wikipedia.org/wiki/Paris\t22989\t/m/05qtj
met

M.\tB\tM. Dupont\t--NME--
Dupont\tI\tM. Dupont\t--NME--
-DOCSTART- (2 NEWS)
Cologne\tB\tCologne\tC%C3%B6ln\thttp://en.wikipedia.org/wiki/C%C3%B6ln\t6187\t/m/01v8c
"""
ELQ = [
    {"id": "q1", "text": "who governs ohio", "pred_triples": [["10902", 2, 3]], "scores": [-0.5]}
    | {"pred_tuples_string": [["Ohio", "ohio"]]},
    {"id": 2, "text": "x", "pred_triples": [], "pred_tuples_string": [], "scores": []},
]
BLINK = [
    {"id": 1, "context_left": "in", "mention": "Ohio", "context_right": "", "label_id": 10902},
    {"id": 2, "context_left": "in", "mention": "Xyz", "context_right": "", "label_id": -1, "label": "unknown"},
]


@pytest.fixture
def file(tmp_path):
    def write(content, name="links"):
        path = tmp_path / name
        lines = "".join(json.dumps(each) + "\n" for each in content) if isinstance(content, list) else content
        path.write_bytes(lines.encode())
        return path

    return write


def links(path, **options):
    return read_entity_links(path, **options)[["qid", "entity_id"]].to_numpy().tolist()


@pytest.mark.parametrize("layout", OFFSETS)
@pytest.mark.parametrize("pack", [False, True])
def test_layouts_with_offsets_give_the_same_mentions(file, layout, pack):
    path = file(OFFSETS[layout])
    if pack:
        path.write_bytes(gzip.compress(path.read_bytes()))
    result = read_entity_links(path).drop_duplicates("qid")
    assert result[["qid", "docno", "start", "end", "entity_id"]].to_numpy().tolist() == [
        ["d1:0-5", "d1", 0, 5, PARIS],
        ["d1:10-16", "d1", 10, 16, "NIL"],
        ["d1:20-24", "d1", 20, 24, BONN],
    ]
    if layout != "neleval":
        assert result["mention"].tolist() == ["Paris", "Dupont", "Bonn"]


@pytest.mark.parametrize("layout", OFFSETS)
@pytest.mark.parametrize("other", OFFSETS)
def test_link_compares_any_two_layouts(file, layout, other):
    answers, gold = file(OFFSETS[layout]), file(OFFSETS["tac"] if other == "neleval" else OFFSETS[other], "gold")
    report = linking_report({"mine": answers}, gold)
    assert report.figures().iloc[0].tolist() == [1.0] * 8
    assert report.counts["n_qids"].tolist() == [2, 1]


def test_values_of_links_are_right_for_a_wrong_link_a_missed_nil_and_a_missing_answer(file):
    gold = file(OFFSETS["tac"], "gold")
    mine = file(f"d1\t0\t4\t{BONN}\t0.2\tLOC\t{PARIS}\t0.7\tLOC\nd1\t10\t15\t{BONN}\n")
    with pytest.warns(DegenerateWarning, match="no query is answered with 'NIL'"):
        figures = linking_report({"mine": mine}, gold).figures().iloc[0]
    # Paris has the highest score; Dupont is linked although NIL is right; Bonn has no answer.
    assert figures["LinkP"] == 0.5
    assert figures["LinkR"] == 0.5
    assert figures["NilR"] == 0.0
    scored = vbterrier.score(
        {"mine": mine}, gold, ["LinkP", "LinkR"], data=Data(on_topics="all"), inference=Inference(n_resamples=2)
    )
    assert scored.means().iloc[0].tolist() == [0.5, 0.5]


def test_mentions_of_hipe_files_have_ranges_of_words(file):
    result = read_entity_links(file(HIPE))
    assert result[["qid", "start", "end", "mention", "entity_id"]].to_numpy().tolist() == [
        ["p1:w0-3", 0, 3, "M. Dupont", "NIL"],
        ["p1:w4-5", 4, 5, "Bonn", "Q586"],
        ["p1:w4-5", 4, 5, "Bonn", "Q100"],
        ["p2:w0-1", 0, 1, "Bonn", "Q586"],
    ]
    assert read_answers(file(HIPE))[["qid", "entity_id", "score"]].to_numpy().tolist() == [
        ["p1:w0-3", "NIL", 0.0],
        ["p1:w4-5", "Q586", 0.0],
        ["p1:w4-5", "Q100", -1.0],
        ["p2:w0-1", "Q586", 0.0],
    ]


def hipe_links(file, *words):
    path = file(HIPE + "".join(f"{word}\n" for word in words))
    return path, [
        row[1:] for row in read_entity_links(path)[["qid", "mention", "entity_id"]].iloc[4:].to_numpy().tolist()
    ]


def test_mentions_of_hipe_end_where_their_type_or_link_changes(file):
    with pytest.warns(DegenerateWarning, match="1 mention has words with different links; each is divided where"):
        path, result = hipe_links(file, "a\tI-loc\tO\tQ586\t_\t_", "b\tI-loc\tO\tQ1\t_\t_", "c\tI-org\tO\tQ1\t_\t_")
    assert result == [["b", "Q1"], ["c", "Q1"]]
    with pytest.warns(DegenerateWarning, match="different links"):
        assert read_entity_links(path)["mention"].tolist()[3] == "Bonn a"
    with pytest.warns(DegenerateWarning) as caught:
        tags = vbterrier.read_tags(path)
    assert [str(each.message).partition(": ")[2][:9] for each in caught] == ["1 mention", "1 mention"]
    assert tags[["entity_id", "start", "end"]].to_numpy().tolist() == [
        ["Q586", 4, 5],
        ["Q586", 0, 2],
        ["Q1", 2, 3],
        ["Q1", 3, 4],
    ]


def test_words_of_hipe_with_links_are_mentions_and_mentions_without_links_are_none(file):
    with pytest.warns(DegenerateWarning, match="2 mentions have no link and are left out; NIL is an entity that"):
        _, result = hipe_links(
            file,
            "a\tB-loc\tO\t_\t_\t_",
            "b\tI-loc\tO\t-\t_\t_",
            "c\tO\tO\tQ3\t_\t_",
            "d\tO\tO\tQ3\t_\t_",
            "e\tI-loc\tO\tQ3|Q4|Q3\t_\t_",
            "f\tB-loc\tO\t_\t_\t_",
        )
    assert result == [["c", "Q3"], ["d", "Q3"], ["e", "Q3"], ["e", "Q4"]]


def test_words_of_aida_and_its_id_spaces(file):
    path = file(AIDA)
    expected = [["1 NEWS:w0-1", "Paris"], ["1 NEWS:w2-4", "NIL"], ["2 NEWS:w0-1", "Cöln"]]
    assert links(path, ids="wikipedia_title") == expected
    assert links(path, ids="wikipedia_title", redirects={"Cöln": "Koeln", "Koeln": "Cologne"})[2][1] == "Cologne"
    assert [entity for _, entity in links(path, ids="wikipedia_id")] == ["22989", "NIL", "6187"]
    assert read_mentions(path)[["docno", "mention"]].to_numpy().tolist() == [
        ["1 NEWS", "Paris"],
        ["1 NEWS", "M. Dupont"],
        ["2 NEWS", "Cologne"],
    ]
    # Addresses as in the file, one for each mention.
    assert read_answers(path)["entity_id"].tolist()[0] == "http://en.wikipedia.org/wiki/Paris"
    with pytest.raises(
        InputError, match=r"'http://en.wikipedia.org/wiki/Paris' is of wikipedia_title, wanted wikidata"
    ):
        read_entity_links(path, ids="wikidata")
    mapping = {"Paris": "Q90", "http://en.wikipedia.org/wiki/C%C3%B6ln": "http://www.wikidata.org/entity/Q365"}
    assert [entity for _, entity in links(path, ids="wikidata", mapping=mapping)] == ["Q90", "NIL", "Q365"]


def test_json_of_elq_and_blink(file):
    result = read_entity_links(file(ELQ))
    assert result.to_numpy().tolist() == [["q1:w2-3", "q1", 2, 3, "ohio", "10902", -0.5]]
    gold = {"id": "q1", "text": "who governs ohio", "label_id": [10902], "tokenized_mention_idxs": [[2, 3]]}
    assert linking_report({"elq": file(ELQ)}, file([gold], "gold")).figures().iloc[0]["LinkP"] == 1.0
    assert links(file(json.dumps(ELQ, indent=1))) == [["q1:w2-3", "10902"]]
    assert links(file(BLINK)) == [["1", "10902"], ["2", "NIL"]]
    with pytest.warns(DegenerateWarning, match="1 mention without an entity gives no tags"):
        assert vbterrier.read_tags(file(BLINK))[["docno", "entity_id"]].to_numpy().tolist() == [["1", "10902"]]


def test_tac_2014_names_queries(file):
    path = file("E1\tkb_A\tGPE\t1.0\nE2\tNIL01\tPER\t0.5\n")
    assert links(path) == [["E1", "kb_A"], ["E2", "NIL01"]]
    with pytest.raises(FileError, match=r"TAC 2014 .* which has no documents; wanted tags"):
        vbterrier.read_tags(path)


def test_tags_are_the_best_candidates_and_leave_nil_out(file):
    with pytest.warns(DegenerateWarning, match="1 mention without an entity gives no tags"):
        tags = vbterrier.read_tags(file(OFFSETS["neleval"]))
    assert tags[["docno", "entity_id", "weight", "start", "end"]].to_numpy().tolist() == [
        ["d1", PARIS, 1.0, 0, 5],
        ["d1", BONN, 0.5, 20, 24],
    ]
    with pytest.raises(FileError, match=r"neleval .* which has no texts of mentions"):
        read_mentions(file(OFFSETS["neleval"]))


REL_ROWS = [[0, 3, "Fox", "Fox_Broadcasting_Company", 0.9, 0.99, "ORG"], [5, 3, "Abc", "ABC", 0.8, 0.9, "ORG"]]


def test_ids_of_tables_take_the_spelling_of_a_space(file):
    tags = vbterrier.read_tags(file("docno\tentity_id\nd1\tq42\nd2\twd:Q5\nd3\tnull\nd4\tO\n"), ids="wikidata")
    assert tags["entity_id"].tolist() == ["Q42", "Q5", "NIL", "NIL"]
    names = file("docno\tentity_id\nd1\tNew York\nd2\tCaf%C3%A9\nd3\tdbr:Paris\nd4\tnull\n")
    assert vbterrier.read_tags(names, ids="dbpedia")["entity_id"].tolist() == ["New_York", "Café", "Paris", "null"]
    path = file("docno\tentity_id\nd1\tQ42\nd2\tO\n")
    assert converted_tags(path, ids="wikidata")["entity_id"].tolist() == ["Q42"]
    assert converted_tags(path, ids="wikidata", mapping={"O": "Q5"})["entity_id"].tolist() == ["Q42", "Q5"]


def test_a_confidence_under_another_name_is_no_weight_in_silence(file):
    for name in ("rho", "link_probability", "conf"):
        with pytest.raises(FileError, match=f"column '{name}' is not read; if it is the weight, rename it to 'weight'"):
            vbterrier.read_tags(file(f"docno\tentity_id\t{name}\nd1\tQ42\t0.4\n"))


def test_a_weight_of_slightly_more_than_1_is_shown_with_its_digits():
    run = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [1.0]})
    with pytest.raises(InputError, match=r"has weight 1.00000012, wanted 0 to 1"):
        link_pool(run, pd.DataFrame({"docno": ["d1"], "entity_id": ["Q1"], "weight": [1 + 2**-23]}))


def test_confidences_are_the_weights_of_tags(file):
    path = file(json.dumps({"d1": REL_ROWS}))
    assert vbterrier.read_tags(path)["weight"].tolist() == [0.9, 0.8]
    run = pd.DataFrame({"qid": ["q"], "docno": ["d1"], "score": [1.0]})
    # Links as they are read serve pools as their tags do: their qid is a mention.
    for tags in (vbterrier.read_tags(path), vbterrier.frames.read_entity_links(path)):
        pool = vbterrier.entities.link_pool(run, tags)
        assert list(zip(pool.entities.text.to_pylist(), pool.weight, strict=True)) == [
            ("ABC", 0.8),
            ("Fox_Broadcasting_Company", 0.9),
        ]


def test_scores_that_are_no_probabilities_are_no_weights(file):
    rows = [[*row[:4], -row[4], *row[5:]] for row in REL_ROWS]
    path = file(json.dumps({"d1": rows}))
    with pytest.warns(DegenerateWarning, match=r"REL, whose scores are -0.9 to -0.8, .* gets the weight 1"):
        assert vbterrier.read_tags(path)["weight"].tolist() == [1.0, 1.0]
    run = pd.DataFrame({"qid": ["q"], "docno": ["d1"], "score": [1.0]})
    with pytest.raises(InputError, match=r"has weight -0.9, wanted 0 to 1; convert scores to probabilities first"):
        vbterrier.entities.link_pool(run, vbterrier.frames.read_entity_links(path))


def test_tags_of_a_file_serve_measures_and_link_pools(file):
    run = pd.DataFrame({"qid": ["q", "r"], "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    intents = pd.DataFrame({"qid": ["q", "q", "r"], "entity_id": [PARIS, "other", BONN], "prob": [0.75, 0.25, 1.0]})
    path = file(NIF.replace("http://example.org/d1#", "d1#"))
    with pytest.warns(DegenerateWarning, match="1 mention without an entity gives no tags"):
        result = vbterrier.score(
            {"mine": run}, None, ["ES@1"], intents=intents, tags=path, inference=Inference(n_resamples=2)
        )
    assert result.means().iloc[0, 0] == 0.375


def test_nif_of_several_id_spaces(file):
    both = phrase(0, 5, PARIS, "http://www.wikidata.org/entity/Q90")
    path = file(NIF_HEAD + both + phrase(20, 24, "http://www.wikidata.org/entity/Q586", BONN))
    assert links(path, ids="wikidata") == [
        ["http://example.org/d1:0-5", "Q90"],
        ["http://example.org/d1:20-24", "Q586"],
    ]
    assert [entity for _, entity in links(path, ids="dbpedia")] == ["Paris", "Bonn"]
    for read in (read_answers, vbterrier.read_tags):
        with pytest.raises(FileError, match="has several entities; choose an id space"):
            read(path)
        assert read(path, ids="wikidata")["entity_id"].tolist() == ["Q90", "Q586"]
        assert read(path, ids="dbpedia")["entity_id"].tolist() == ["Paris", "Bonn"]


def test_ids_of_plain_answers_and_tags_are_brought_to_one_space(file):
    path = file("q1\thttp://www.wikidata.org/entity/Q90\nq2\tQ5\nq3\tNIL\n")
    for read in (read_answers, vbterrier.read_tags):
        assert read(path, ids="wikidata")["entity_id"].tolist() == ["Q90", "Q5", "NIL"]
        with pytest.raises(InputError, match="is of wikidata, wanted dbpedia"):
            read(path, ids="dbpedia")


PADDED = (
    HIPE.replace("= p1\n", "= p1\t\t\t\t\t\n").replace("MISC\n", "MISC\t\t\n").replace("EndOfLine\n", "EndOfLine\t\n")
)
TABS = HIPE.replace("# hipe2022:document_id = p", "#\thipe2022:document_id\t=\tp").replace(
    "# hipe2022:date", "#\tdate\t"
)


@pytest.mark.parametrize("content", [PADDED, TABS])
def test_tables_of_hipe_may_be_padded_and_have_comments_between_tabs(file, content):
    assert content != HIPE
    assert read_entity_links(file(content)).equals(read_entity_links(file(HIPE, "plain")))


def test_a_word_that_is_a_number_sign_is_no_comment_of_hipe(file):
    lines = HIPE.replace("in\tO\t", "#\tO\t")
    assert read_entity_links(file(lines)).equals(read_entity_links(file(HIPE, "plain")))


@pytest.mark.parametrize("nil", ["NIL", "<NIL>", "--NME--", "<unk_wiki>", "notInWiki", "http://aksw.org/notInWiki/Xyz"])
def test_spellings_of_nil_are_nil_in_files_of_mentions(file, nil):
    lines = file(f"d1\t0\t4\tQ90\nd1\t10\t15\t{nil}\n")
    assert links(lines) == [["d1:0-5", "Q90"], ["d1:10-16", "NIL"]]
    with pytest.warns(DegenerateWarning, match="1 mention without an entity gives no tags"):
        assert vbterrier.read_tags(lines)["entity_id"].tolist() == ["Q90"]
    rel = file(json.dumps({"d1": [[0, 5, "Paris", "Paris", 0.9, 0.8, "LOC"], [10, 6, "Dupont", nil, 0.0, 0.8, "PER"]]}))
    assert links(rel) == [["d1:0-5", "Paris"], ["d1:10-16", "NIL"]]


def test_mentions_of_neleval_without_an_entity_are_nil(file):
    path = file("d1\t0\t4\nd1\t6\t8\t\nd1\t10\t15\tQ5\t0.5\n")
    assert links(path) == [["d1:0-5", "NIL"], ["d1:6-9", "NIL"], ["d1:10-16", "Q5"]]
    with pytest.warns(DegenerateWarning, match="2 mentions without an entity give no tags"):
        assert vbterrier.read_tags(path)["entity_id"].tolist() == ["Q5"]
    # Without any entity, the numbers are scores of answers.
    assert read_answers(file("q1\t0\t4\n"))["score"].tolist() == [4.0]


TAGME = {
    "time": 3,
    "annotations": [
        {"start": 24, "end": 31, "spot": "Mexican", "id": 18333, "title": "Mexican cuisine", "rho": 0.24},
        {"start": 0, "end": 2, "spot": "My", "id": 0, "rho": 0.0},
    ],
}
WAT_CORPUS = [
    {"doc_id": "d0", "entities": []},
    {"doc_id": "d1", "entities": [{"wikipedia_title": "Michael_Jordan", "wikipedia_id": 20455, "start": 0, "end": 6}]},
]
WAT_CORPUS[1]["entities"][0] |= {"rho": 0.61, "prior_prob": 0.26}
ENTITY = {"wikidata_entity_id": "Q41421", "wikipedia_entity_title": "Michael Jordan", "human_readable_name": "MJ"}
REFINED = [
    {"docno": "d1", "spans": [{"text": "Jordan", "start": 4, "ln": 6, "predicted_entity": ENTITY}]},
    {"docno": "d2", "spans": [{"text": "Xyz", "start": 0, "ln": 3, "predicted_entity": None}]},
]
REFINED[0]["spans"][0]["entity_linking_model_confidence_score"] = 0.75
SPACY = {"text": "Paris is", "ents": [{"start": 0, "end": 5, "label": "GPE", "kb_id": "Q90"}], "tokens": []}


@pytest.mark.parametrize("form", ["lines", "list", "by document"])
def test_answers_of_tagme_and_wat_are_read(file, form):
    lines = [{"docno": "d1", **TAGME}, {"docno": "d2", "annotations": []}]
    by_document = {"d1": TAGME, "d2": {"annotations": []}}
    path = file({"lines": lines, "list": json.dumps(lines), "by document": json.dumps(by_document, indent=1)}[form])
    with pytest.warns(DegenerateWarning, match="1 mention is linked to nothing and left out"):
        result = read_entity_links(path)
    assert result.to_numpy().tolist() == [["d1:24-31", "d1", 24, 31, "Mexican", "Mexican cuisine", 0.24]]
    with pytest.warns(DegenerateWarning, match="linked to nothing"):
        assert vbterrier.read_tags(path)[["docno", "entity_id", "weight"]].to_numpy().tolist() == [
            ["d1", "Mexican cuisine", 0.24]
        ]
    with pytest.warns(DegenerateWarning, match="linked to nothing"):
        assert vbterrier.read_tags(path, ids="wikipedia_id")["entity_id"].tolist() == ["18333"]


def test_an_answer_of_a_linker_without_its_document_is_refused(file):
    for answer, name in ((TAGME, "TagMe or WAT"), (SPACY, "spaCy")):
        for read in (read_entity_links, vbterrier.read_tags):
            with pytest.raises(FileError, match=f"an answer of {name} that does not name its document; add a member"):
                read(file(json.dumps(answer)))


def test_corpora_of_wat_spans_of_refined_and_entities_of_spacy(file):
    assert read_entity_links(file(WAT_CORPUS)).to_numpy().tolist() == [
        ["d1:0-6", "d1", 0, 6, "", "Michael_Jordan", 0.61]
    ]
    assert links(file(WAT_CORPUS), ids="wikipedia_id") == [["d1:0-6", "20455"]]
    assert read_entity_links(file(REFINED)).iloc[:, 2:6].to_numpy().tolist() == [
        [4, 10, "Jordan", "Q41421"],
        [0, 3, "Xyz", "NIL"],
    ]
    assert links(file(REFINED), ids="wikipedia_title") == [["d1:4-10", "Michael_Jordan"], ["d2:0-3", "NIL"]]
    assert read_entity_links(file(REFINED))["score"].tolist()[0] == 0.75
    assert links(file([{"id": "d1", **SPACY}])) == [["d1:0-5", "Q90"]]


RESOURCE = {"@URI": PARIS, "@surfaceForm": "Paris", "@offset": "0", "@similarityScore": "0.9"}
FORM = {"@name": "Paris", "@offset": "0"}
CANDIDATE = {"@uri": "Paris", "@finalScore": "0.8"}
FISHING = {"rawName": "Paris", "offsetStart": 0, "offsetEnd": 5}
MMEAD = {"entity_id": "22989", "start_pos": "0", "end_pos": "5", "entity": "Paris"}
FRAGMENT = {"tokenFragment": {"start": 0, "end": 0}, "charFragment": {"start": 0, "end": 4}, "DBpediaURL": PARIS}
PLACE = {"text": "Paris", "length": 5, "confidenceScore": 0.3}
SPOT = {"start": 0, "end": 5, "spot": "x", "id": 22989, "title": "Paris"}
EXTEND = {"char_start": 0, "char_end": 5, "mention": "Paris", "entity": "Paris"}
BOOTLEG = {"sent_idx_unq": 0, "aliases": ["paris"], "char_spans": [[0, 5]], "qids": ["Q90"], "probs": [0.7]}
BOOTLEG |= {"cands": [["Q830149", "Q90", "-1"]], "cand_probs": [[0.2, 0.7, 0.1]], "spans": [[0, 1]]}
TEXAS = "http://en.wikipedia.org/wiki/Paris,_Texas"
WIKIFIER = {"url": "http://en.wikipedia.org/wiki/Paris", "wikiDataItemId": "Q90", "dbPediaIri": PARIS, "pageRank": 0.4}
WIKIFIER |= {"title": "Paris", "support": [{"chFrom": at, "chTo": at + 4, "wFrom": 0, "wTo": 0} for at in (0, 9)]}
CORENLP = {"characterOffsetBegin": 0, "characterOffsetEnd": 5, "text": "Paris", "ner": "CITY", "entitylink": "Paris"}
RESOLVED = {"text": "Paris", "start": 0, "end": 5, "label": "city", "entity_id": "Q90", "entity_title": "Paris"}
RESOLVED |= {"candidates": [{"entity_id": "Q90", "score": 0.9, "description": None}]}
PROVENANCE = {"wikipedia_id": "22989", "title": "Paris"}
KILT = {"input": "[START_ENT] Paris [END_ENT] is", "meta": {"mention": "Paris"}, "output": [{"answer": "Paris"}]}
# Answers of linkers by docno, and the rows (qid, entity_id, score) of their candidates; NaN scores are None.
LINKERS = {
    "Spotlight": ({"d0": {"@text": "none"}, "d1": {"@text": "x", "Resources": [RESOURCE]}}, [("d1:0-5", PARIS, 0.9)]),
    "Spotlight, one resource": ({"d1": {"@text": "x", "Resources": RESOURCE}}, [("d1:0-5", PARIS, 0.9)]),
    "Spotlight's candidates": (
        {
            "d0": {"annotation": {"@text": "none"}},
            "d1": {
                "annotation": {
                    "@text": "x",
                    "surfaceForm": [
                        FORM | {"resource": [CANDIDATE, {"@uri": "Paris,_Texas", "@finalScore": "0.2"}]},
                        FORM | {"@offset": "9", "resource": CANDIDATE},
                    ],
                }
            },
        },
        [("d1:0-5", "Paris", 0.8), ("d1:0-5", "Paris,_Texas", 0.2), ("d1:9-14", "Paris", 0.8)],
    ),
    "entity-fishing": (
        {
            "d0": {"runtime": 3},
            "d1": {
                "runtime": 3,
                "entities": [
                    FISHING | {"nerd_score": "0.7", "wikipediaExternalRef": "22989", "wikidataId": "Q90"},
                    FISHING | {"nerd_score": "0.2", "wikipediaExternalRef": "31102", "wikidataId": "Q830149"},
                    FISHING | {"offsetStart": 9, "offsetEnd": 14, "confidence_score": 0.5, "wikidataId": "Q90"},
                ],
            },
        },
        [("d1:0-5", "22989", 0.7), ("d1:0-5", "31102", 0.2), ("d1:9-14", "NIL", 0.5)],
    ),
    "MMEAD": (
        {"d1": {"title": [MMEAD], "headings": [], "body": [MMEAD]}, "d2": {"passage": [MMEAD]}},
        [("d1:0-5", "Paris", None), ("d1:title.0-5", "Paris", None), ("d2:0-5", "Paris", None)],
    ),
    "Nordlys": (
        {
            "q1": {
                "processed_query": "x",
                "results": [
                    {"entity": "<dbpedia:Paris>", "mention": "paris", "score": 0.4},
                    {"entity": "<dbpedia:Paris,_Texas>", "mention": "paris", "score": 0.3},
                ],
            }
        },
        [("q1", "<dbpedia:Paris>", 0.4), ("q1", "<dbpedia:Paris,_Texas>", 0.3)],
    ),
    "Babelfy": ({"d0": [], "d1": [FRAGMENT | {"score": 1.0}]}, [("d1:0-5", PARIS, 1.0)]),
    "GENRE": ({"d0": [], "d1": [[0, 5, "Paris"]]}, [("d1:0-5", "Paris", None)]),
    "REL, another order": ({"d1": [[0, 5, "Paris", "Paris", 0.9, "LOC", 0.8]]}, [("d1:0-5", "Paris", 0.9)]),
    "ELEVANT": (
        {"d1": {"labels": [], "entity_mentions": [{"span": [0, 5], "id": "Q90"}, {"span": [9, 14], "id": None}]}},
        [("d1:0-5", "Q90", None), ("d1:9-14", "NIL", None)],
    ),
    "gold of ELEVANT": ({"d1": {"labels": [{"id": 0, "span": [0, 5], "entity_id": "Q90"}]}}, [("d1:0-5", "Q90", None)]),
    "ELEVANT's lines": (
        {"d1": {"predictions": [{"start_char": 0, "end_char": 5, "entity_reference": "Q90"}]}},
        [("d1:0-5", "Q90", None)],
    ),
    "OpenTapioca": (
        {
            "d1": {
                "annotations": [
                    {"start": 0, "end": 5, "best_qid": "Q90", "tags": [{"id": "Q90", "score": 2.5}]},
                ]
            }
        },
        [("d1:0-5", "Q90", 2.5)],
    ),
    "Ambiverse": (
        {
            "d1": {
                "matches": [
                    {"charOffset": 0, "charLength": 5, "text": "Paris", "entity": {"id": "Q90", "confidence": 0.6}}
                ]
            }
        },
        [("d1:0-5", "Q90", 0.6)],
    ),
    "Azure": (
        {
            "d1": {
                "entities": [
                    {
                        "url": "https://en.wikipedia.org/wiki/Paris",
                        "dataSource": "Wikipedia",
                        "matches": [
                            {"text": "Paris", "offset": at, "length": 5, "confidenceScore": 0.3} for at in (0, 9)
                        ],
                    }
                ]
            }
        },
        [(f"d1:{at}-{at + 5}", "https://en.wikipedia.org/wiki/Paris", 0.3) for at in (0, 9)],
    ),
    "Google": (
        {
            "d1": {
                "entities": [
                    {
                        "metadata": {"wikipedia_url": "https://en.wikipedia.org/wiki/Paris"},
                        "mentions": [{"text": {"content": "Paris", "beginOffset": 0}}],
                    }
                ]
            }
        },
        [("d1:0-5", "https://en.wikipedia.org/wiki/Paris", None)],
    ),
    "Dandelion": (
        {
            "d1": {
                "annotations": [{"start": 0, "end": 5, "spot": "x", "id": 22989, "title": "Paris", "confidence": 0.7}]
            }
        },
        [("d1:0-5", "Paris", 0.7)],
    ),
    "ExtEnD": (
        {"d0": {"text": "", "disambiguated_entities": []}, "d1": {"text": "Paris", "disambiguated_entities": [EXTEND]}},
        [("d1:0-5", "Paris", None)],
    ),
    "EntQA": ({"d0": [], "d1": [[0, 5, "Paris"]]}, [("d1:0-5", "Paris", None)]),
    "BELA": (
        {
            "d0": {"offsets": [], "lengths": [], "entities": [], "md_scores": [], "el_scores": []},
            "d1": {"offsets": [0], "lengths": [5], "entities": ["Q90"], "md_scores": [0.9], "el_scores": [0.8]},
        },
        [("d1:0-5", "Q90", 0.8)],
    ),
    "BELA's disambiguation": (
        {"d1": {"offsets": [0], "lengths": [5], "entities": ["Q90"], "scores": [44.5]}},
        [("d1:0-5", "Q90", 44.5)],
    ),
    # Two sentences of a document, the second without a candidate for its mention.
    "Bootleg": (
        {"d1": BOOTLEG, "d2": {"sent_idx_unq": 1, "char_spans": [[0, 4]], "qids": ["NC"], "probs": [0.6]}},
        [("d1:0.0-5", "Q90", 0.7), ("d1:0.0-5", "Q830149", 0.2), ("d2:1.0-4", "NIL", 0.6)],
    ),
    "ZELDA": (
        {"d1": {"index": [[0, 5]], "wikipedia_titles": ["Paris"], "wikipedia_ids": [22989], "text": "Paris"}},
        [("d1:0-5", "Paris", None)],
    ),
    "CREL": (
        {"d1": {"speaker": "USER", "utterance": "in Paris", "annotations": [[3, 5, "Paris", "Paris"]]}},
        [("d1:3-8", "Paris", None)],
    ),
    "CREL's dialogues": (
        {
            "d1": [
                {"speaker": "USER", "utterance": "in Paris", "annotations": [[3, 5, "Paris", "Paris"]]},
                {"speaker": "SYSTEM", "utterance": "where?"},
                {"speaker": "USER", "utterance": "in Texas", "annotations": [[3, 5, "Texas", "Texas"]]},
            ]
        },
        [("d1:0.3-8", "Paris", None), ("d1:2.3-8", "Texas", None)],
    ),
    "Wikifier": (
        {
            "d0": {"annotations": [], "words": ["x"]},
            "d1": {"annotations": [WIKIFIER, WIKIFIER | {"url": TEXAS, "wikiDataItemId": "Q830149", "pageRank": 0.1}]},
        },
        [(f"d1:{place}", *each) for place in ("0-5", "9-14") for each in ((WIKIFIER["url"], 0.4), (TEXAS, 0.1))],
    ),
    "CoreNLP": (
        {"d1": {"docId": "x", "sentences": [{"entitymentions": []}, {"entitymentions": [CORENLP]}]}},
        [("d1:0-5", "Paris", None)],
    ),
    "Rosette": (
        {
            "d1": {
                "entities": [
                    {
                        "entityId": "Q90",
                        "linkingConfidence": 0.7,
                        "mentionOffsets": [{"startOffset": 0, "endOffset": 5}],
                    },
                    {"entityId": "T1", "confidence": 0.2, "mentionOffsets": [{"startOffset": 9, "endOffset": 14}]},
                ]
            }
        },
        [("d1:0-5", "Q90", 0.7), ("d1:9-14", "NIL", 0.2)],
    ),
    "Watson": (
        {
            "d1": {
                "entities": [
                    {
                        "disambiguation": {"dbpedia_resource": PARIS},
                        "mentions": [{"text": "Paris", "location": [at, at + 5]} for at in (0, 9)],
                    }
                ]
            }
        },
        [("d1:0-5", PARIS, None), ("d1:9-14", PARIS, None)],
    ),
    "LELA": (
        {
            "d1": {
                "text": "x",
                "entities": [RESOLVED, RESOLVED | {"start": 9, "end": 14, "entity_id": None}],
                "meta": {},
            }
        },
        [("d1:0-5", "Q90", 0.9), ("d1:9-14", "NIL", None)],
    ),
    "mGENRE": (
        {"q1": [{"id": "Q90", "texts": ["Paris >> fr"], "scores": [-0.1], "score": -0.1}]},
        [("q1", "Q90", -0.1)],
    ),
    "mGENRE without ids": (
        {"q1": [{"text": "Paris (Texas) >> fr", "score": -0.1}, {"text": "Paris >> en", "score": -0.5}]},
        [
            ("q1", "https://fr.wikipedia.org/wiki/Paris_(Texas)", -0.1),
            ("q1", "https://en.wikipedia.org/wiki/Paris", -0.5),
        ],
    ),
    "KILT": (
        {"q1": KILT, "q2": KILT | {"output": [{"answer": "Texas"}]}},
        [("q1", "Paris", None), ("q2", "Texas", None)],
    ),
    "ExtEnD's predictions": (
        {
            "q1": KILT
            | {"candidates": ["Paris"], "output": [{"answer": "Paris", "provenance": [{"title": "Paris"}]}, [0, 5]]}
        },
        [("q1", "Paris", None)],
    ),
    "ReLiK": (
        {
            "d1": {
                "text": "Paris is NATO",
                "spans": [
                    {"start": 0, "end": 5, "label": "Paris", "text": "Paris"},
                    {"start": 6, "end": 8, "label": "--NME--", "text": "is"},
                ],
            }
        },
        [("d1:0-5", "Paris", None), ("d1:6-8", "NIL", None)],
    ),
    "ReLiK's lists": ({"d1": {"text": "Paris", "spans": [[0, 5, "Paris", "Paris"]]}}, [("d1:0-5", "Paris", None)]),
    "lists of links": (
        {"d1": {"links": [[0, 5, "Q90", "Paris"], [9, 14, "<NIL>"]]}},
        [("d1:0-5", "Q90", None), ("d1:9-14", "NIL", None)],
    ),
}


@pytest.mark.filterwarnings("ignore:.*mentions? without an entity gives? no tags:vbterrier.errors.DegenerateWarning")
@pytest.mark.filterwarnings("ignore:.*so that every tag gets the weight 1:vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("linker", LINKERS)
def test_saved_answers_of_linkers_are_read_in_all_forms(file, linker):
    by_document, rows = LINKERS[linker]
    forms = [json.dumps(by_document), json.dumps(by_document, indent=1)]
    if all(isinstance(answer, dict) for answer in by_document.values()):
        named = [{"docno": docno, **answer} for docno, answer in by_document.items()]
        forms += [json.dumps(named), "".join(json.dumps(each) + "\n" for each in named)]
    for form in forms:
        result = read_entity_links(file(form))
        score = [None if np.isnan(each) else each for each in result["score"]]
        assert list(zip(result["qid"], result["entity_id"], score, strict=True)) == rows
        best = result.drop_duplicates("qid")
        tags = vbterrier.read_tags(file(form))
        assert tags["entity_id"].tolist() == [each for each in best["entity_id"] if each != "NIL"]


def test_answers_of_wikifier_zelda_and_kilt_have_two_id_spaces(file):
    wikifier, kilt = LINKERS["Wikifier"][0], KILT | {"output": [{"answer": "x", "provenance": [PROVENANCE]}]}
    assert links(file(json.dumps(wikifier)), ids="wikidata")[:2] == [["d1:0-5", "Q90"], ["d1:0-5", "Q830149"]]
    assert links(file(json.dumps(LINKERS["ZELDA"][0])), ids="wikipedia_id") == [["d1:0-5", "22989"]]
    assert links(file(json.dumps({"q1": kilt})), ids="wikipedia_id") == [["q1", "22989"]]
    assert links(file(json.dumps({"q1": kilt})), ids="wikipedia_title") == [["q1", "Paris"]]


@pytest.mark.filterwarnings("ignore:.*mentions? without an entity gives? no tags:vbterrier.errors.DegenerateWarning")
def test_answers_of_linkers_give_the_links_of_a_pool(file):
    run = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [1.0]})
    for linker, entity, weight in (("BELA", "Q90", 0.8), ("Bootleg", "Q90", 0.7), ("ReLiK", "Paris", 1.0)):
        pool = link_pool(run, vbterrier.read_tags(file(json.dumps(LINKERS[linker][0]))))
        assert (pool.entities.text.to_pylist(), pool.weight.tolist()) == ([entity], [weight])


def test_candidates_of_entity_fishing_have_two_id_spaces(file):
    answers = LINKERS["entity-fishing"][0]
    assert links(file(json.dumps(answers)), ids="wikidata") == [
        ["d1:0-5", "Q90"],
        ["d1:0-5", "Q830149"],
        ["d1:9-14", "Q90"],
    ]
    assert links(file(json.dumps(LINKERS["MMEAD"][0])), ids="wikipedia_id")[0] == ["d1:0-5", "22989"]


UNREAD = {
    "AIDA": (
        {"mentions": [{"bestEntity": {"kbIdentifier": "YAGO:Paris"}}]},
        "an answer of AIDA, whose ids are",
    ),
    "TextRazor": ({"response": {"entities": [{"wikiLink": "x"}]}}, "an answer of TextRazor"),
    "Falcon": ({"entities_wikidata": [["x", "y"]]}, "an answer of Falcon, which has no offsets"),
    "Bootleg alone": (BOOTLEG, "an answer of Bootleg that does not name its document"),
    "Bootleg without offsets": (
        {"sent_idx_unq": 0, "qids": ["Q90"], "spans": [[0, 1]]},
        "an answer of Bootleg without char_spans",
    ),
    "Bootleg's annotator": ({"qids": [["Q90"]], "cand_probs": [[[0.9]]]}, "an answer of Bootleg's annotator, whose"),
    "EntQA's windows": (
        {"doc_id": "1", "text": [101, 3], "predicts": [[0, 1, "Paris"]], "golds": []},
        "an answer of EntQA's reader, whose spans are of windows",
    ),
    "EntQA alone": ([[0, 5, "Paris"]], "an answer of GENRE or EntQA that does not name its document"),
    "ExtEnD alone": ([{"text": "x", "disambiguated_entities": [EXTEND]}], "an answer of ExtEnD that does not name"),
    "mGENRE alone": ([[{"text": "Paris >> fr", "score": -0.1}]], "an answer of mGENRE that does not name its mentions"),
    "mGENRE's entity": (
        {"id": "Q90", "texts": ["Paris >> fr"], "scores": [-0.1], "score": -0.1},
        "an answer of mGENRE that does not name its mention",
    ),
    "ConEL": (
        [{"dialogue_id": "1", "turns": {"0": {"el_tool_annotations": [{"mention": "x", "entity": "X"}]}}}],
        "an answer of ConEL, which has no offsets",
    ),
    "Diffbot": ({"d1": {"entities": [{"diffbotUri": "x", "mentions": [{"beginOffset": 0}]}]}}, "an answer of Diffbot"),
    "Illinois": ({"wikifierEntities": [{"entitySurfaceForm": "x"}]}, "an answer of the Illinois Wikifier"),
    "Dexter": ({"spots": [{"linkProbability": 0.5, "entity": 1}]}, "an answer of Dexter"),
    "MeaningCloud": ({"entity_list": [{"form": "x"}]}, "an answer of MeaningCloud"),
    "NIF in JSON-LD": ({"@context": {"nif": NIF_HEAD[14:77]}}, "NIF in JSON-LD"),
    "REL in a member": (
        {"annotations": [[0, 5, "Paris", "Paris", 0.9, 0.8, "LOC"]]},
        "recognised as links in the member 'annotations'",
    ),
    "GENRE in a member": ({"annotations": [[0, 5, "Paris"]]}, "recognised as links in the member 'annotations'"),
    "Babelfy alone": ([FRAGMENT | {"score": 1.0}], "an answer of Babelfy that does not name its document"),
    "REL alone": ([[0, 5, "Paris", "Paris", 0.9, 0.8, "LOC"]], "an answer of REL that does not name its document"),
    "GENRE's beams": ([[{"text": "Paris", "score": -0.1}]], "an answer of GENRE without offsets"),
    "Spotlight alone": (
        {"@text": "x", "Resources": [RESOURCE]},
        "an answer of Spotlight that does not name",
    ),
    "MMEAD alone": ({"passage": [MMEAD]}, "an answer of MMEAD that does not name its document"),
    "Nordlys alone": (LINKERS["Nordlys"][0]["q1"], "an answer of Nordlys that does not name its document"),
}


@pytest.mark.parametrize("linker", UNREAD)
def test_answers_that_are_not_read_are_refused_by_name(file, linker):
    answer, message = UNREAD[linker]
    for read in (read_entity_links, vbterrier.read_tags, read_answers):
        with pytest.raises(FileError, match=f"is {message}.*; (write|add|save|wanted)"):
            read(file(json.dumps(answer)))


FAULTY_ANSWERS = {
    "spaCy without links": ({"id": 1, "ents": [{"start": 0, "end": 5, "label": "GPE"}]}, "spaCy leaves links out: add"),
    "offsets of spaCy": ({"id": 1, "ents": [{"start": 5, "end": 0, "label": "G", "kb_id": "Q1"}]}, "offsets 5 to 0"),
    "TagMe without rho": ({"id": 1, "annotations": [{"start": 0, "end": 1, "spot": "x", "id": 1}]}, "'rho'"),
    "a score in words": (
        {"id": 1, "annotations": [{"start": 0, "end": 1, "spot": "x", "id": 1, "title": "X", "rho": "high"}]},
        "the score of a mention is \"'high'\", wanted a number",
    ),
    "unequal lists of BELA": (
        {"d1": {"offsets": [0], "lengths": [5, 1], "entities": ["Q90"]}},
        "wanted an item of BELA, found \"'offsets, lengths, entities of 1, 2, 1 elements'",
    ),
    "words of ReLiK": (
        {"id": "d1", "text": "in Paris", "spans": [{"start": 1, "end": 2, "label": "Paris", "text": "Paris"}]},
        "wanted an item of ReLiK.*annotation_type='char'",
    ),
    "Wikifier without support": (
        {"d1": {"annotations": [{"url": TEXAS, "pageRank": 0.1}]}},
        "wanted an item of Wikifier.*'support'",
    ),
    "ReFinED without length": ({"id": 1, "spans": [{"text": "x", "start": 0, "predicted_entity": None}]}, "'ln'"),
    "another answer among documents": ({"d1": TAGME, "d2": 7}, "'d2': wanted an answer of TagMe or WAT, found '7'"),
}


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("fault", FAULTY_ANSWERS)
def test_faults_of_answers_are_named(file, fault):
    answer, message = FAULTY_ANSWERS[fault]
    for read in (read_entity_links, vbterrier.read_tags):
        with pytest.raises(FileError, match=message):
            read(file(json.dumps(answer)))


def test_turtle_is_read_as_its_grammar_says(file):
    text = r"""BASE <http://example.org/>
PREFIX : <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> # a comment
prefix its: <http://www.w3.org/2005/11/its/rdf#>
<d.txt#char=0,5> :isString 'a"\u00e9\nb', "c"@en-GB ; ; .
_:m.1 :anchorOf '''\U000000e9''' ; :beginIndex 2 ; :endIndex 3 ; :referenceContext <d.txt#char=0,5> ;
  its:taIdentRef <http://dbpedia.org/resource/%C3%89> ; its:taConfidence 5e-1 ; a :Phrase .
"""
    result = read_entity_links(file(text), ids="dbpedia")
    assert result.to_numpy().tolist() == [
        ["http://example.org/d.txt:2-3", "http://example.org/d.txt", 2, 3, "é", "É", 0.5]
    ]


CUT = NIF[: NIF.rindex(" .")]
BAD = {
    "a cut line of neleval": (f"d1\t0\t4\t{PARIS}\nd1\t10\n", ":2: wanted docno, start.* found 2 fields.* cut"),
    "an incomplete triple": ("d1\t0\t4\tA\td1\t1\td1\t2\n", ":1: wanted docno"),
    "an offset that is no number": ("d1\t0\t4\tA\nd1\tx\t4\tA\n", ":2: start is 'x', wanted a whole number"),
    "an end before the start": ("d1\t0\t4\tA\nd1\t9\t4\tA\n", ":2: the mention in 'd1' ends at 5, before its start"),
    "a score that is no number": ("d1\t0\t4\tA\nd1\t9\t12\tA\tx\n", ":2: score is 'x', wanted a number"),
    "a duplicated mention": ("d1\t0\t4\tA\nd1\t0\t4\tA\n", r":2: mention 'd1:0-5' occurs twice"),
    "another spelling of NIL": ("d1\t0\t4\tA\nd1\t9\t12\tnil\n", ":2: found 'nil' as an entity, which resembles"),
    "a mention without document": ("d1\t0\t4\tA\n\t9\t12\tA\n", ":2: a mention has no document"),
    "a cut line of TAC": (OFFSETS["tac"] + "me\tm4\tBo", ":4: wanted run, .* found 3 fields .* cut"),
    "a cut line of TAC 2014": ("E1\tA\tGPE\t1\nE2\tB\n", ":2: wanted query, entity, type"),
    "a cut line of HIPE": (HIPE + "Bonn\tB-l", ":12: wanted 6 fields; found 2 .* cut"),
    "another NIL of HIPE": (HIPE + "y\tB-loc\tO\tQ1|nil\t_\t_\n", ":12: found 'nil' .* resembles 'NIL'"),
    "HIPE without documents": (HIPE.replace("document_id", "x"), ":4: a word precedes the first document"),
    "HIPE without links": (HIPE.replace("NEL-LIT", "X"), ":1: is a table of HIPE without the column NEL-LIT"),
    "a cut line of AIDA": (AIDA + "Bonn\tB\n", ":9: wanted a word, or word, B or I"),
    "another NIL of AIDA": (AIDA + "Bonn\tB\tBonn\t--nme--\n", ":9: found '--nme--' .* resembles '--NME--'"),
    "a repeated document of AIDA": (AIDA + AIDA, "'1 NEWS:w0-1' occurs twice"),
    "a mention beyond the text": (
        NIF_HEAD + phrase(20, 24, BONN).replace("24", "99"),
        r"the mention from 20 to 99 is not within its text of 25 characters",
    ),
    "a mention without its text": (NIF_HEAD + phrase(0, 5, PARIS, context="x"), "wanted nif:referenceContext"),
    "a mention without offsets": (
        NIF_HEAD + phrase(0, 5, PARIS).replace("beginIndex", "begin").replace("#char=0,5", "#m"),
        "wanted nif:beginIndex and nif:endIndex",
    ),
    "a repeated mention of NIF": (NIF + phrase(0, 5, PARIS).replace("#char=0,5>", "#m>"), "occurs twice"),
    "a cut file of NIF": (CUT, r"is not Turtle .* is the file cut?"),
    "an undeclared prefix": (NIF + "x:y x:z x:a .", r':19: is not Turtle \(Prefix "x:" not bound\); repair the line'),
    "a node without the text of its document": (NIF + "[] nif:anchorOf 'x' ; itsrdf:taIdentRef <a> .", "wanted nif:"),
    "a confidence in words": (
        NIF_HEAD + phrase(0, 5, PARIS, more="  itsrdf:taConfidence 'high' ;\n"),
        "itsrdf:taConfidence is 'high', wanted a number",
    ),
    "Turtle without documents": (NIF_HEAD.replace("isString", "x"), "is Turtle, but not NIF: wanted documents"),
    "NIF in XML": (f'<?xml version="1.0"?>\n<rdf:RDF xmlns:nif="{NIF_HEAD[14:77]}">', "is NIF in RDF/XML"),
    "a short list of REL": (
        '{"d1": [[0, 5, "P", "P", 1, 1, "L"]]}\n{"d1": [[9, 5, "P"]]}',
        ":2: document 'd1': wanted",
    ),
    "a negative offset of REL": ('{"d1": [[-1, 5, "P", "P", 1, 1, "L"]]}', ":1: document 'd1': wanted"),
    "no id in ELQ": ('{"text": "x", "pred_triples": []}', ":1: member 'id' is 'None', wanted an id"),
    "a span of ELQ": ('{"id": 1, "pred_triples": [["7", 2]]}', ":1: '1': wanted an entity with start and end"),
    "a number in the list of ELQ": ('{"id": 1, "pred_triples": [7]}', "'1': wanted an entity with start and end"),
    "a list with a number": ('[{"id": 1, "pred_triples": []},\n 7]', "wanted a list of objects, found '7' in it"),
    "a repeated member": ('{"id": 1, "pred_triples": []}\n{"id": 1, "id": 2}', ":2: has two members 'id'"),
    "a cut line of JSON": ('{"id": 1, "pred_triples": []}\n{"id": 2, "pred', ":2: is not JSON"),
    "unequal lists of ELQ": ('{"id": 1, "label_id": [1, 2], "tokenized_mention_idxs": [[0, 1]]}', "1 mentions and 2"),
    "no text in BLINK": ('{"id": 1, "context_left": "", "mention": 3, "label_id": 1}', "wanted the members mention"),
}


@pytest.mark.parametrize("fault", BAD)
def test_faults_are_named_with_their_line(file, fault):
    content, message = BAD[fault]
    path = file(content)
    for read in (read_entity_links, read_answers):
        with pytest.raises(FileError, match=message):
            read(path)


def test_unknown_json_is_refused_with_its_members_and_the_layouts_that_are_read(file):
    unknown = {"d1": [{"text": "x", "score": 1, "more": {"a": {"b": [1]}}}]}
    spans = {"docno": "d1", "text": "Paris", "spans": [{"start": 0, "end": 5, "label": "GPE", "text": "Paris"}]}
    for value, members in (
        (unknown, r"{d1: \[{text, score, more: {a: {...}}}\]}"),
        ([{"docno": "d1"}], r"\[{docno}\]"),
        # Types of entities, where ReLiK has titles.
        (spans, r"{docno, text, spans: \[{start, end, label, text}\]}"),
        (
            {"docno": "d1", "other": []} | {f"m{at}": 1 for at in range(9)},
            "{docno, other: \\[\\], m0, m1, m2, m3, ...}",
        ),
    ):
        for read in (vbterrier.read_tags, read_answers, read_mentions):
            with pytest.raises(
                FileError, match=f"is missing, wanted text; found {members}; wanted objects with .*REL, "
            ):
                read(file(json.dumps(value)))
        with pytest.raises(FileError, match=f"not recognised as linked mentions; found {members}; wanted one of"):
            read_entity_links(file(json.dumps(value)))


def test_xml_is_refused_where_links_are_read(file):
    path = file('<?xml version="1.0"?><ReferenceProblem></ReferenceProblem>')
    for read in (vbterrier.read_tags, read_answers, read_mentions, read_entity_links):
        with pytest.raises(
            FileError, match="is XML, which is read as topics and as intents alone; write it as a table"
        ):
            read(path)


def test_other_files_are_not_taken_for_linked_mentions(file):
    with pytest.raises(FileError, match=r"not recognised as linked mentions; found 'q1.*; wanted one of neleval, TAC"):
        read_entity_links(file("q1\tQ90\n"))
    qrels = read_answers(file("q1\t0\t20455\t1\n"))
    assert qrels[["entity_id", "label"]].to_numpy().tolist() == [["20455", 1]]
    assert read_mentions(file("d1\tParis\tNIL\n")).to_numpy().tolist() == [["d1", "Paris", "NIL"]]
    runs = file("q1\t7\t9\t0.5\ttag\n")
    assert vbterrier.read_run(runs)["docno"].tolist() == ["7"]


@pytest.mark.parametrize(
    ("link", "pattern", "expected"),
    [
        ("http://www.wikidata.org/entity/Q90", "", ("wikidata", "Q90")),
        ("wd:Q90", "", ("wikidata", "Q90")),
        ("Q90", "", ("wikidata", "Q90")),
        ("Q90", "wikipedia_title", ("wikipedia_title", "Q90")),
        ("<http://dbpedia.org/resource/AC/DC>", "", ("dbpedia", "AC/DC")),
        ("http://de.dbpedia.org/resource/Bonn", "", ("dbpedia:de", "Bonn")),
        ("https://en.wikipedia.org/wiki/New%20York", "", ("wikipedia_title", "New_York")),
        ("http://fr.wikipedia.org/wiki/Bonn", "", ("wikipedia_title:fr", "Bonn")),
        ("http://en.wikipedia.org/wiki?curid=22989", "", ("wikipedia_id", "22989")),
        ("E0604067", "", ("", "E0604067")),
        ("New York", "wikipedia_title", ("wikipedia_title", "New_York")),
        ("//de.m.wikipedia.org/wiki/Bonn?action=raw#Lage", "", ("wikipedia_title:de", "Bonn")),
        ("en.wikipedia.org/wiki/C%23", "", ("wikipedia_title", "C#")),
    ],
)
def test_ids_are_found_by_their_place_in_a_link(link, pattern, expected):
    assert space_and_id(link, pattern) == expected


def test_id_spaces_are_never_merged(file):
    path = file(f"d1\t0\t4\t{PARIS}\nd1\t6\t9\thttp://en.wikipedia.org/wiki/Paris\nd1\t11\t12\tQ90\n")
    for space in ("wikidata", "dbpedia", "wikipedia_title", "wikipedia_id", "dbpedia:de"):
        with pytest.raises(InputError, match="ids of different spaces are different entities unless mapping="):
            read_entity_links(path, ids=space)
    mapping = pd.DataFrame({"entity_id": ["Paris"], "target": ["Q90"]})
    assert [entity for _, entity in links(path, ids="wikidata", mapping=mapping)] == ["Q90"] * 3
    with pytest.raises(ParameterError, match="ids='freebase': wanted one of wikidata, dbpedia"):
        read_entity_links(path, ids="freebase")
    with pytest.raises(ParameterError, match="mapping and redirects apply to ids of one space"):
        read_entity_links(path, mapping=mapping)


def test_redirects_are_followed_within_their_space(file):
    path, redirects = file("d1\t0\t4\tdbr:A\nd1\t6\t9\tdbr:D\n"), "entity_id\ttarget\ndbr:A\tdbr:B\ndbr:B\tdbr:C\n"
    result = links(path, ids="dbpedia", redirects=file(redirects, "redirects.tsv"))
    assert [entity for _, entity in result] == ["C", "D"]
    with pytest.raises(InputError, match=r"redirects: .*'A'.* lead in a circle"):
        read_entity_links(path, ids="dbpedia", redirects={"A": "B", "B": "C", "C": "A"})
    with pytest.raises(InputError, match="redirects: 'Q90' is of wikidata, wanted ids of dbpedia alone"):
        read_entity_links(path, ids="dbpedia", redirects={"dbr:A": "wd:Q90"})
    with pytest.raises(InputError, match="mapping: 'A' has two targets"):
        read_entity_links(path, ids="dbpedia", mapping=pd.DataFrame({"entity_id": "A", "target": ["B", "C"]}))
    for missing in ({"A": None}, pd.DataFrame({"entity_id": ["A"], "target": [float("nan")]})):
        with pytest.raises(InputError, match=r"mapping: row 0 \(A\) lacks an id or its target; leave it out"):
            read_entity_links(path, ids="dbpedia", mapping=missing)


def test_mentions_of_nif_without_link_or_with_other_text_are_reported(file):
    odd = phrase(20, 24, BONN).replace('"Bonn"', '"Born"')
    with pytest.warns(DegenerateWarning) as caught:
        assert len(read_entity_links(file(NIF_HEAD + phrase(0, 5) + odd))) == 1
    message = " ".join(str(each.message) for each in caught)
    assert "1 mention without itsrdf:taIdentRef is left out" in message
    assert "the nif:anchorOf of 1 mention differs from the text" in message


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_texts_of_turtle_survive(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("turtle") / "file.ttl"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")
    head = "@prefix n: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .\n"
    mention = "<m> n:referenceContext <a> ; n:beginIndex 0 ; n:endIndex %d ; <%staIdentRef> <wd:Q1> .\n"
    its = "http://www.w3.org/2005/11/its/rdf#"
    path.write_text(f'{head}<a> n:isString """{escaped}""" .\n' + mention % (len(text), its), "utf-8", newline="")
    assert read_entity_links(path)[["docno", "mention"]].to_numpy().tolist() == [["a", text]]


JSON_LINES = ELQ, BLINK, [{"docno": "d1", **TAGME}], WAT_CORPUS, REFINED, [{"id": "d1", **SPACY}]
MUTATED = [*OFFSETS.values(), HIPE, AIDA, *("\n".join(map(json.dumps, each)) for each in JSON_LINES)]
PIECES = [
    "\t",
    "\n",
    '"',
    "{",
    "}",
    "[",
    "]",
    ",",
    ".",
    ";",
    "<",
    "\0",
    "-1",
    "null",
    "nil",
    "\\u12",
    "9" * 20,
    "_:",
    "B",
]


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("n_damaged", [8, at_night(100)])
@pytest.mark.parametrize("content", MUTATED)
def test_damaged_files_are_read_or_refused(file, content, n_damaged):
    rng = np.random.default_rng(0)
    for _ in range(n_damaged):
        start, stop = np.sort(rng.integers(0, len(content) + 1, 2)).tolist()
        path = file(content[:start] + str(rng.choice(PIECES)) + content[start if rng.random() < 0.5 else stop :])
        for read in (read_entity_links, read_answers, read_mentions, vbterrier.read_tags, vbterrier.read_run):
            with contextlib.suppress(VBTerrierError):
                assert isinstance(read(path), pd.DataFrame)
