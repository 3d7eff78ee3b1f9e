import numpy as np
import pandas as pd
import pytest

from vbterrier import read_links, read_qrels, read_run
from vbterrier.errors import ParameterError
from vbterrier.evaluate.bench.synthetic import KINDS, Collection, Shape


@pytest.mark.parametrize("kind", KINDS)
def test_frames_have_the_size_that_was_asked_for(kind):
    depth = 1 if kind == "linking" else 60
    made = Shape(kind, 7, depth).made()
    assert made["run"].groupby("qid").size().tolist() == [depth] * 7
    assert not made["run"].duplicated(["qid", "docno"]).any()
    assert set(made["qrels"]["qid"]) == set(made["run"]["qid"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides_everything(kind):
    one, same, other = (Shape(kind, 5, 20, seed=seed).made() for seed in (3, 3, 4))
    for name in one:
        pd.testing.assert_frame_equal(one[name], same[name])
    assert not one["run"].equals(other["run"])


def test_ids_look_like_those_of_collections():
    numbers, clueweb = (Shape("judged", 3, 20, ids=ids).made()["run"]["docno"] for ids in ("numbers", "clueweb"))
    assert numbers.str.fullmatch(r"\d{1,7}").all()
    assert clueweb.str.fullmatch(r"clueweb09-en00\d\d-\d\d-\d{5}").all()
    assert clueweb.is_unique


def test_scores_fall_and_intents_and_grades_are_as_many_as_asked_for():
    made = Shape("intents", 30, 200, n_intents=3, n_grades=5).made()
    assert (made["run"].groupby("qid")["score"].diff().dropna() <= 0).all()
    assert set(made["qrels"]["iteration"]) == {"1", "2", "3"}
    assert set(made["qrels"]["label"]) == {0, 1, 2, 3, 4}
    assert not made["qrels"].duplicated(["qid", "docno", "iteration"]).any()


def test_text_is_held_as_objects_where_asked_for():
    made = Shape("judged", 3, 5, text="object").made()
    assert made["run"]["docno"].dtype == object
    assert made["qrels"]["qid"].dtype == object


@pytest.mark.parametrize("text", ["str", "object"])
def test_kept_frames_and_files_hold_the_same(tmp_path, text):
    shape = Shape("judged", 4, 9, text=text, ids="clueweb")
    made = Collection(shape, tmp_path)
    made.keep()
    again = Collection(shape, tmp_path)
    for name in ("run", "qrels"):
        pd.testing.assert_frame_equal(again.frames[name], shape.made()[name])
    run, qrels = read_run(made.file("run")), read_qrels(made.file("qrels"))
    assert run["docno"].tolist() == made.frames["run"]["docno"].tolist()
    np.testing.assert_allclose(run["score"], made.frames["run"]["score"], atol=1e-6)
    assert qrels["label"].tolist() == made.frames["qrels"]["label"].tolist()


def test_the_links_of_entities_are_a_file_of_links(tmp_path):
    made = Collection(Shape("entities", 4, 30), tmp_path)
    assert sum(read_links(made.file("qrels")).frame()["entity_id"].notna()) == len(made.frames["qrels"])


@pytest.mark.parametrize(
    "wrong", [{"kind": "juged"}, {"n_queries": 0}, {"n_grades": 1}, {"ids": "x"}, {"text": "bytes"}, {"seed": -1}]
)
def test_other_shapes_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        Shape(**wrong)
