"""Registered frames."""

import pandas as pd
import polars as pl
import pytest

from vbterrier.errors import InputError
from vbterrier.frames import named as registry
from vbterrier.frames.named import named_frame, register_intents, register_tags

INTENTS = pd.DataFrame({"qid": ["q1"], "entity_id": ["E1"], "prob": [1.0]})
TAGS = pd.DataFrame({"docno": ["d1"], "entity_id": ["E1"]})


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    monkeypatch.setattr(registry, "_NAMED", {"intents": {}, "tags": {}})


def test_a_registered_frame_is_found_by_its_name_and_kind_and_does_not_change(tmp_path, monkeypatch):
    frame = INTENTS.copy()
    register_intents("mine", frame)
    register_tags("mine", pl.from_pandas(TAGS))
    register_intents("mine", INTENTS.copy())
    frame.loc[0, "prob"] = 0.5
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text("q9\tE9\t1.0\n")
    assert named_frame("intents", "mine").equals(INTENTS), "before a file of this name"
    assert named_frame("tags", "mine").to_numpy().tolist() == TAGS.to_numpy().tolist()


@pytest.mark.parametrize(("register", "frame"), [(register_intents, INTENTS), (register_tags, TAGS)])
def test_other_data_under_a_registered_name_need_replace(register, frame):
    register("mine", frame)
    other = frame.assign(entity_id=["E2"])
    with pytest.raises(InputError, match=r"'mine' are registered with other data; .*replace=True"):
        register("mine", other)
    register("mine", other, replace=True)
    kind = "intents" if register is register_intents else "tags"
    assert named_frame(kind, "mine").equals(other)


def test_files_are_read_by_their_kind(tmp_path):
    (tmp_path / "intents.tsv").write_text("q1\tE1\t0.5\n")
    (tmp_path / "tags.tsv").write_text("d1\tE1\n")
    assert named_frame("intents", str(tmp_path / "intents.tsv")).to_numpy(dtype=object).tolist() == [["q1", "E1", 0.5]]
    assert named_frame("tags", str(tmp_path / "tags.tsv")).to_numpy(dtype=object).tolist() == [["d1", "E1", 1.0]]


def test_an_unknown_name_is_refused_with_the_nearest_one():
    register_tags("wikipedia", TAGS)
    with pytest.raises(InputError, match=r"tags='wikpedia': .*register_tags.* or a path\. Did you mean wikipedia\?"):
        named_frame("tags", "wikpedia")
    with pytest.raises(InputError, match=r"tags='intent_set-0': the set .* not open .*; .* IntentSet\(path\)\.VB"):
        named_frame("tags", "intent_set-0")
    with pytest.raises(InputError, match=r"intents='wikipedia': .*registered: none; use vbterrier\.register_intents"):
        named_frame("intents", "wikipedia")


def test_similarities_are_registered_or_read_from_a_file_with_a_header(tmp_path, monkeypatch):
    monkeypatch.setitem(registry._NAMED, "similarities", {})
    frame = pd.DataFrame({"qid": ["1"], "entity_id": ["007"], "other_id": ["NA"], "similarity": [0.5]})
    registry.register_similarities("mine", frame)
    assert named_frame("similarities", "mine").equals(frame)
    path = tmp_path / "similarities.tsv"
    frame.to_csv(path, sep="\t", index=False)
    read = named_frame("similarities", str(path))
    assert read[list(frame)].to_numpy().tolist() == [["1", "007", "NA", 0.5]]
    path.write_text("007\tNA\t0.5\n")
    with pytest.raises(InputError, match="entity_id"):
        named_frame("similarities", path)
    with pytest.raises(InputError, match=r"use vbterrier\.frames\.register_similarities\(name, frame\)"):
        named_frame("similarities", "other")
