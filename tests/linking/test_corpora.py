"""Readers of linked corpora."""

import gzip
import json

import pytest

from vbterrier.errors import DegenerateWarning, FileError, ParameterError
from vbterrier.intents.coverage import Tags
from vbterrier.linking import corpora as records
from vbterrier.linking.corpora import read_elevant, read_mmead, read_rel, read_spans, read_wat_corpus

READERS = [read_wat_corpus, read_mmead, read_spans, read_elevant]


@pytest.fixture
def write(tmp_path):
    def lines(*records, name="links.jsonl"):
        path = tmp_path / name
        path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
        return path

    return lines


def jordan(**changes):
    entity = {"wikipedia_title": "Michael Jordan", "wikipedia_id": 20455, "start": 0, "end": 6}
    return entity | {"rho": 0.61, "prior_prob": 0.26} | changes


def test_wat_corpus(shared_data):
    path = shared_data / "linker_response_samples" / "wat_corpus_entities.shape.jsonl"
    frame = read_wat_corpus(path)
    assert frame.columns.tolist() == ["docno", "entity_id", "weight", "start", "end", "name"]
    assert frame.to_numpy().tolist() == [["FT911-1", "Michael_Jordan", 1.0, 0, 6, "Michael Jordan"]]
    assert frame[["weight", "start", "end"]].dtypes.astype(str).tolist() == ["float64", "int64", "int64"]
    for weight, value in (("rho", 0.61), ("prior_prob", 0.26)):
        frame = read_wat_corpus(path, ids="wikipedia_id", weight=weight)
        assert frame[["entity_id", "weight"]].to_numpy().tolist() == [["20455", value]]


def test_titles_have_underscores_and_documents_are_selected(write):
    entities = [jordan(), jordan(wikipedia_title="Michael_Jordan")]
    path = write(*({"doc_id": str(n), "entities": entities} for n in range(50)))
    frame = read_wat_corpus(path, docnos=["7", "007", "49"])
    assert frame["docno"].tolist() == ["7", "7", "49", "49"]
    assert frame["entity_id"].tolist() == ["Michael_Jordan"] * 4
    assert frame["name"].tolist() == ["Michael Jordan"] * 4
    assert len(read_wat_corpus(path, docnos=[])) == 0


def test_mmead_passages_and_documents(shared_data, write):
    def on_a_line(name):
        return write(json.loads((shared_data / "linker_response_samples" / name).read_text()))

    passage = read_mmead(on_a_line("mmead_passage.verbatim.json"))
    assert passage.to_numpy().tolist() == [
        ["msmarco_passage_00_587", "965751", 1.0, 181, 187, "BMW M3", "passage"],
        ["msmarco_passage_00_587", "221005", 1.0, 241, 253, "Chevrolet Corvette", "passage"],
    ]
    strings = read_mmead(on_a_line("mmead_passage_v1_strings.verbatim.json"), ids="wikipedia_title")
    assert strings.to_numpy().tolist() == [["123", "Montreal", 1.0, 126, 134, "Montreal", "passage"]]
    document = read_mmead(on_a_line("mmead_doc.verbatim.json"), weight="md_score", ids="wikipedia_title")
    assert document.to_numpy().tolist() == [
        ["msmarco_doc_00_0", "United_States", 0.9995014071464539, 807, 820, "United States", "body"],
        ["msmarco_doc_00_0", "United_States", 0.9995985925197601, 1206, 1219, "United States", "body"],
    ]


def test_mmead_fields_and_ids(write):
    link = {"entity_id": 1, "start_pos": 0, "end_pos": 2, "entity": "A"}
    path = write(
        {"title": [link], "headings": [link], "body": [], "docid": 7},
        {"passage": [], "pid": "007"},
        {"body": [link], "docid": "D1"},
    )
    frame = read_mmead(path)
    assert frame[["docno", "field"]].to_numpy().tolist() == [["7", "title"], ["7", "headings"], ["D1", "body"]]
    with pytest.raises(FileError, match=r"links.jsonl:1: document: title\[0\]: wanted an object with 'details'"):
        read_mmead(path, weight="md_score")


@pytest.mark.slow
def test_spans_of_real_linkers(shared_data):
    folder = shared_data / "aida_ambiguous_labels"
    message = r"gold\.jsonl\.gz: \d+ mentions without an entity are left out"
    with pytest.warns(DegenerateWarning, match=message) as caught:
        gold = read_spans(folder / "links.gold.jsonl.gz")
    assert len(caught) == 1
    with gzip.open(folder / "links.gold.jsonl.gz", "rt") as lines:
        raw = [json.loads(line) for line in lines]
    spans = [(doc["doc"], *span) for doc in raw for span in doc["links"]]
    linked = [span for span in spans if span[3][0] == "Q"]
    assert len(linked) < len(spans)
    assert str(len(spans) - len(linked)) in str(caught[0].message)
    assert gold[["docno", "start", "end", "entity_id", "name"]].to_numpy().tolist() == [list(span) for span in linked]
    assert len(read_spans(folder / "links.gold.jsonl.gz", nil="keep")) == len(spans)
    for linker in ("wat", "genre"):
        frame = read_spans(folder / f"links.{linker}.jsonl.gz", nil="drop")
        assert frame["docno"].nunique() <= 447
        assert frame["entity_id"].str.fullmatch(r"Q\d+").all()
        assert set(frame["weight"]) == {1.0}


def test_spans_without_an_entity_are_counted_kept_or_left_out(write):
    spans = [[0, 4, "Q1", "Seal"], [5, 8, "<NIL>"], [9, 12, "Unknown1"], [13, 15, "Q2"]]
    path = write({"doc": "d1", "links": spans}, {"doc": "d2", "links": []})
    expected = [["d1", "Q1", 1.0, 0, 4, "Seal"], ["d1", "Q2", 1.0, 13, 15, ""]]
    with pytest.warns(DegenerateWarning, match=r"links\.jsonl: 2 mentions without an entity are left out"):
        assert read_spans(path).to_numpy().tolist() == expected
    assert read_spans(path, nil="drop").to_numpy().tolist() == expected
    assert read_spans(path, nil="keep")["entity_id"].tolist() == ["Q1", "<NIL>", "Unknown1", "Q2"]


def article(**changes):
    mention = {"span": [0, 5], "recognized_by": "NER", "id": "Q60036", "linked_by": "WAT", "candidates": ["Q1"]}
    label = {"id": 0, "span": [10, 14], "entity_id": "Q218091", "name": "Seal", "parent": None, "children": []}
    made = {"id": 1, "title": "T", "text": "Heidi and Seal", "entity_mentions": [mention], "labels": [label]}
    return made | changes


def test_elevant_articles(write):
    unknown = [{"span": [0, 1], "id": entity} for entity in (None, "<NIL>", "Unknown1")]
    path = write(article(), article(id="2", entity_mentions=unknown), article(id=3, text=None))
    assert read_elevant(path).values.tolist() == [["1", "Q60036", 1.0, 0, 5, "Heidi"], ["3", "Q60036", 1.0, 0, 5, ""]]
    labels = read_elevant(path, what="labels", docnos=["2"])
    assert labels.values.tolist() == [["2", "Q218091", 1.0, 10, 14, "Seal"]]


def test_rel_results(write, shared_data):
    folder = shared_data / "linker_response_samples"
    shape = json.loads((folder / "rel_api.shape.json").read_text())
    results = json.loads((folder / "rel_process_results.test.verbatim.json").read_text())
    frame = read_rel(write(results, {"bukowski": shape, "NA": []}))
    assert frame.values.tolist() == [
        ["test_doc", "fox", 1.0, 10, 13, "fox"],
        ["bukowski", "Charles_Bukowski", 1.0, 41, 57, "Charles Bukowski"],
    ]
    for weight, value in (("conf_ed", 0.9), ("conf_md", 0.99)):
        assert read_rel(write({"d": shape}), weight=weight)["weight"].tolist() == [value]
    nil = [[0, 3, "Fox", "NIL", 0.5, 0.5, "ORG"]]
    assert len(read_rel(write({"d": nil}))) == 0
    with pytest.raises(FileError, match=r"links\.jsonl:1: .*wanted conf_ed from 0 to 1 \(or pass weight=None\)"):
        read_rel(write(results), weight="conf_ed")


def test_rel_results_have_weights_within_their_range(write):
    linked, confident = (
        [0, 4, "Seal", "Seal_(singer)", 0.25, 0.5, "PER"],
        [5, 9, "Kiss", "Kiss_(band)", 1.5, 1.0, "ORG"],
    )
    path = write({"d1": [linked, [5, 8, "NIL", "NIL", 0.5, 0.5, "PER"]], "d2": []})
    for weight, value in ((None, 1.0), ("conf_ed", 0.25), ("conf_md", 0.5)):
        frame = read_rel(path, weight=weight)
        assert frame.to_numpy().tolist() == [["d1", "Seal_(singer)", value, 0, 4, "Seal (singer)"]]
    with pytest.raises(FileError, match=r"links\.jsonl:1: .*wanted conf_ed from 0 to 1 \(or pass weight=None\)"):
        read_rel(write({"d1": [linked, confident]}), weight="conf_ed")


@pytest.mark.parametrize(
    "line", ["no json", "[]", '{"": []}', '{"d": null}', '{"d": [[1, 2]]}', '{"d": {"a": [], "b": []}}']
)
def test_rel_results_that_are_none_are_named_with_their_line(write, line):
    with pytest.raises(FileError, match=r"links\.jsonl:3: .*wanted") as caught:
        read_rel(write({"d": []}, "", line))
    assert caught.value.line == 3


@pytest.mark.parametrize("reader", READERS)
def test_empty_files_and_blank_lines_give_the_right_columns(write, reader):
    frame = reader(write("", "  "))
    assert frame.columns.tolist()[:6] == ["docno", "entity_id", "weight", "start", "end", "name"]
    assert frame[["weight", "start", "end"]].dtypes.astype(str).tolist() == ["float64", "int64", "int64"]
    assert len(frame) == 0
    Tags(frame)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "line", ["no json", "[]", "3", '{"id": 1}', "[" * 100_000, '{"doc": "", "doc_id": "", "pid": ""}']
)
def test_what_is_no_document_is_named_with_its_line(write, reader, line):
    good = {"doc_id": "d", "doc": "d", "pid": "d", "entities": [], "links": [], "passage": []}
    good |= {"id": "d", "entity_mentions": []}
    with pytest.raises(FileError, match=r"links\.jsonl:3: .*wanted") as caught:
        reader(write(good, "", line))
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("reader", "record", "message"),
    [
        (read_wat_corpus, {"doc_id": "d"}, "document: wanted an object with 'entities', found an object with doc_id"),
        (read_wat_corpus, {"doc_id": "", "entities": []}, "document: doc_id: wanted an id, found ''"),
        (read_wat_corpus, {"doc_id": 1.5, "entities": []}, "document: doc_id: wanted text, found 1.5"),
        (read_wat_corpus, {"doc_id": "d", "entities": [jordan(start="a")]}, r"entities\[0\]\.start: wanted a whole"),
        (read_wat_corpus, {"doc_id": "d", "entities": [jordan(rho=1.5)]}, r"\[0\]\.rho: wanted a weight, 0 to 1"),
        (read_mmead, {"pid": "d"}, "wanted an object with some of passage, title, headings, body"),
        (read_mmead, {"pid": "d", "passage": {}}, "passage: wanted a list, found an empty object"),
        (read_spans, {"doc": "d", "links": [[1, 2]]}, r"links\[0\]: wanted \[start, end, entity\] or"),
        (read_spans, {"doc": "d", "links": [[1, 2, 3]]}, r"links\[0\]\[2\]: wanted text, found 3"),
        (read_elevant, article(entity_mentions=[{"id": "Q1"}]), r"entity_mentions\[0\]: wanted an object with 'span'"),
        (read_elevant, article(entity_mentions=[{"id": "Q1", "span": [1]}]), r"span: wanted \[start, end\], found a"),
        (read_elevant, article(entity_mentions=None), "document: wanted an object with 'entity_mentions'"),
    ],
)
def test_members_that_are_not_as_they_should_are_named(write, reader, record, message):
    options = {"weight": "rho"} if reader is read_wat_corpus else {}
    with pytest.raises(FileError, match=rf"links\.jsonl:1: .*{message}"):
        reader(write(record), **options)


@pytest.mark.parametrize(
    ("reader", "options"),
    [
        *((read_wat_corpus, options) for options in ({"weight": "md_score"}, {"ids": "wikidata"})),
        *((read_mmead, options) for options in ({"weight": "rho"}, {"ids": "dbpedia"})),
        *((read_spans, {"nil": "ignore"}), (read_elevant, {"what": "links"}), (read_rel, {"weight": "rho"})),
    ],
)
def test_parameters_that_do_not_exist_are_refused(write, reader, options):
    with pytest.raises(ParameterError, match="wanted one of"):
        reader(write({}), **options)


def test_files_that_unpack_to_too_much_are_refused(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b" " * 3_000_000))
    with pytest.raises(FileError, match="holds more than 1,000,000 bytes"):
        read_wat_corpus(path, max_bytes=1_000_000)
    with pytest.raises(FileError, match="no such file"):
        read_spans(tmp_path / "none.jsonl")


def test_slabs_are_no_borders(write, monkeypatch):
    monkeypatch.setattr(records, "SLAB", 3)
    path = write(*({"doc": f"d{n}", "links": [[n, n + 1, f"Q{n}"], [0, 1, "Q0"]]} for n in range(10)))
    frame = read_spans(path)
    assert frame["docno"].tolist() == [f"d{n}" for n in range(10) for _ in range(2)]
    assert frame["entity_id"].tolist() == [e for n in range(10) for e in (f"Q{n}", "Q0")]
