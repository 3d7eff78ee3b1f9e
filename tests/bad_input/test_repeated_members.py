"""Objects of JSON with two members of one name, of which a parser would keep the last."""

import time

import pytest

import vbterrier
from vbterrier.errors import FileError
from vbterrier.frames import read_annotations, read_labels, read_nuggets, read_rated_list
from vbterrier.linking import corpora
from vbterrier.linking.kb import kb_from_file

HIT = '{"hit": {"_index": "shop", "_id": "d1"}, "rating": 1}'
DETAILS = f'{{"details": {{"shoes": {{"hits": [{HIT}]}}, "shoes": {{"hits": []}}}}}}'
REQUEST = '{"requests": [{"id": "a", "id": "b", "ratings": [{"_index": "s", "_id": "d1", "rating": 1}]}]}'
NUGGET = '{"text": "x", "importance": "vital", "assignment": "support", "assignment": "not_support"}'
FILES = {
    "run": (vbterrier.read_run, '{"qid": "1", "docno": "a", "score": 1, "score": 2}', "score", 1),
    "qrels": (vbterrier.read_qrels, '{"qid": "1", "docno": "a", "label": 1, "label": 0}', "label", 1),
    "topics": (vbterrier.read_topics, '{"qid": "1", "query": "a", "query": "b"}', "query", 1),
    "documents": (vbterrier.read_documents, '{"docno": "1", "text": "a", "text": "b"}', "text", 1),
    "labels": (read_labels, '{"qid": "1", "docno": "a", "label": 1, "label": 0}', "label", 1),
    "nuggets": (read_nuggets, f'{{"qid": "1", "nuggets": [{NUGGET}]}}', "assignment", 1),
    "annotations": (read_annotations, '{"qid": "1", "entity_id": "A", "label": "1", "label": "0"}', "label", 1),
    "details": (vbterrier.read_run, DETAILS, "shoes", 1),
    "rated details": (read_rated_list, DETAILS, "shoes", 1),
    "requests": (read_rated_list, REQUEST, "id", 1),
    "calibration": (vbterrier.Calibrate.load, '{"temperature": 1, "temperature": 2}', "temperature", None),
}


@pytest.mark.parametrize("form", FILES)
def test_a_repeated_member_is_named(tmp_path, form):
    read, text, member, line = FILES[form]
    path = tmp_path / "file.json"
    path.write_text(text + "\n")
    with pytest.raises(FileError, match=f"has two members '{member}' in one object; keep one") as error:
        read(path)
    assert error.value.line == line


def test_entities_and_linked_corpora_have_each_member_once(tmp_path):
    path = tmp_path / "entities.jsonl"
    path.write_text('{"id": "A", "label": "a"}\n{"id": "B", "label": "b", "label": "c"}\n')
    with pytest.raises(FileError, match=r"entities\.jsonl:2: has two members 'label' in one object; keep one"):
        kb_from_file(tmp_path / "made.kb", path, id_space="own")
    path.write_text('{"id": "1", "annotations": [], "annotations": []}\n')
    with pytest.raises(FileError, match=r"entities\.jsonl:1: has two members 'annotations' in one object"):
        corpora.read_wat_corpus(path)


def test_a_repeated_member_of_many_is_found_in_linear_time(tmp_path):
    members = ", ".join(f'"m{number}": 0' for number in range(100_000))
    path = tmp_path / "run.jsonl"
    path.write_text(f'{{"qid": "1", "docno": "a", {members}, "score": 1, "score": 2}}\n')
    started = time.process_time()
    with pytest.raises(FileError, match="has two members 'score' in one object"):
        vbterrier.read_run(path)
    assert time.process_time() - started < 10
