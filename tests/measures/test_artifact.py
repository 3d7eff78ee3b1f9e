import json
import pickle
import shutil
import subprocess
import sys
from types import SimpleNamespace

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier.errors import FileError, InputError
from vbterrier.measures.artifact import IntentSet

INTENTS = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["01", "NA", "B"], "prob": [0.8, 0.2, 1.0]})
TAGS = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["01", "B"]})
RUN = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d1", "d9"], "score": [1.0, 1.0]})


@pytest.fixture
def build(tmp_path):
    def made(name="set", intents=INTENTS, tags=TAGS):
        return IntentSet.build(tmp_path / name, intents, tags)

    return made


def test_what_is_saved_is_loaded(build, tmp_path):
    lists = [[0.5], [], [1.0, 2.0]]
    rich = INTENTS.assign(score=[1.0, np.nan, 2.0], name=["x", "", "z"], violations=lists, year=[1, 2, 3])
    tags = TAGS.assign(weight=[0.5, 1.0], qid=["q1", "q2"])
    build("rich", rich, tags)
    loaded = IntentSet(tmp_path / "rich")
    pd.testing.assert_frame_equal(loaded.intents(), rich, check_dtype=False)
    pd.testing.assert_frame_equal(loaded.tags(), tags, check_dtype=False)
    assert loaded.intents()["violations"].tolist() == lists
    for copied in (loaded.intents, loaded.to_frame):
        mine = copied()
        assert mine["prob"].tolist() == INTENTS["prob"].tolist()
        mine.loc[0, "prob"] = 9
        assert loaded.intents().loc[0, "prob"] == 0.8, "a copy"
    assert build("bare", tags=None).tags() is None
    assert repr(loaded) == f"IntentSet({str(tmp_path / 'rich')!r})"


def test_pyterrier_finds_an_intent_set_as_an_artifact(build, monkeypatch):
    made = build()
    assert json.loads((made.path / "pt_meta.json").read_text()) == {
        "type": "intent_set",
        "format": "vbterrier",
        "package_hint": "vbterrier",
    }
    entry = SimpleNamespace(name="intent_set.vbterrier", load=lambda: IntentSet)
    monkeypatch.setattr(pt.utils, "entry_points", lambda group: [entry] if group == "pyterrier.artifact" else [])
    result = pt.Artifact.load(str(made.path))
    assert isinstance(result, IntentSet)
    assert pt.inspect.artifact_type_format(result) == ("intent_set", "vbterrier")


def test_an_intent_set_is_packed_and_unpacked(build, tmp_path):
    made = build()
    package = made.build_package(str(tmp_path / "set.tar.lz4"), verbose=False)
    import tarfile

    from lz4.frame import LZ4FrameFile

    with LZ4FrameFile(package) as file, tarfile.open(fileobj=file, mode="r|") as tar:
        # Python before 3.11.4 has no filters.
        tar.extractall(tmp_path / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    assert IntentSet(tmp_path / "unpacked").VB == made.VB


def test_bound_measures_score_with_the_data_of_the_set(build):
    made = build()
    expected = {
        made.ES @ 5: [0.8, 0.0],
        made.VB @ 5: [0.4, 0.0],
        made.VB(alpha=0.5) @ 5: [0.6, 0.0],
        made.VarPenalty @ 5: [0.4, 0.0],
        made.TopIntent @ 5: [1.0, 0.0],
    }
    result = vbterrier.score({"run": RUN}, INTENTS, list(expected)).values
    result = result.pivot(index="measure", columns="qid", values="value")
    for measure, values in expected.items():
        assert result.loc[str(measure)].tolist() == pytest.approx(values)
    # Without tags, those of the run count; ids come back as text.
    bare = build("bare", tags=None)
    assert "tags" not in (bare.ES @ 1).params
    tagged = RUN.assign(entity_id=["NA", "B"])
    assert vbterrier.score({"run": tagged}, INTENTS, [bare.ES @ 1]).values["value"].tolist() == [0.2, 1.0]
    numbers = build("numbers", pd.DataFrame({"qid": [1], "entity_id": [7], "prob": [1]}), None)
    assert numbers.intents().values.tolist() == [["1", "7", 1.0]]


def test_bound_measures_work_in_experiments_and_as_text(build):
    made = build()
    measure = made.ES @ 1
    parsed = ir_measures.parse_measure(repr(measure))
    assert parsed == measure
    assert pickle.loads(pickle.dumps(measure)) == measure
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ""})
    system = pt.Transformer.from_df(RUN.assign(rank=0))
    table = pt.Experiment([system], topics, made.intents(), [measure], names=["run"])
    assert table[str(measure)].tolist() == [0.4]


def test_two_are_equal_exactly_when_parameters_and_data_are(build):
    made = build()
    same = build("other", INTENTS.sample(frac=1, random_state=1), TAGS[::-1].assign(weight=1.0))
    assert same.VB @ 10 == made.VB @ 10
    assert hash(same.VB @ 10) == hash(made.VB @ 10)
    extra = build("extra", INTENTS.assign(name="x"), TAGS.assign(tagger="t"))
    assert extra.VB == made.VB, "columns that no measure sees"
    others = {
        "prob": build("prob", INTENTS.assign(prob=[0.7, 0.3, 1.0])),
        "entity": build("entity", INTENTS.assign(entity_id=["01", "NB", "B"])),
        "weights": build("weights", tags=TAGS.assign(weight=0.5)),
        "queries": build("queries", tags=TAGS.assign(qid="q1")),
        "none": build("none", tags=None),
    }
    assert len({repr(each.VB) for each in [made, *others.values()]}) == 6
    assert made.VB @ 10 != made.VB @ 5
    assert made.VB(alpha=1) == made.VB
    assert IntentSet.VB == vbterrier.VB, "the class has the unbound ones"


def test_sets_are_equal_when_they_are_one_folder(build, tmp_path, monkeypatch):
    made = build()
    copy = pickle.loads(pickle.dumps(made))
    assert copy == made == IntentSet(tmp_path / "." / "set")
    assert len({made, copy, build("other")}) == 2
    assert made != str(made.path)
    monkeypatch.chdir(tmp_path)
    assert IntentSet("set") == made


@pytest.mark.slow
def test_measures_of_a_copy_mean_something_in_another_process(build):
    made = build()
    name = made.names["intents"]
    code = """
import pickle, sys
from vbterrier.frames.named import named_frame
made = pickle.loads(bytes.fromhex(sys.argv[2]))
try:
    named_frame("intents", sys.argv[1])
except ValueError as error:
    print(error)
print(made.VB, len(named_frame("intents", sys.argv[1])))
"""
    command = [sys.executable, "-c", code, name, pickle.dumps(made).hex()]
    result = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "IntentSet(path)" in result
    assert f"{made.VB} 3" in result


def test_what_is_there_is_not_replaced_and_nothing_half_done_stays(build, tmp_path, monkeypatch):
    build()
    with pytest.raises(FileError, match="set: exists already; use another folder"):
        build()
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="exists already"):
        build("file")
    with pytest.raises(FileError, match="cannot be written: No such file"):
        build("no/such/place")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(FileError, match="full: cannot be written: No space left"):
        build("full")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "set"]


@pytest.mark.parametrize(
    ("intents", "tags", "message"),
    [
        (INTENTS.assign(prob=0.3), TAGS, "probabilities of query 'q1' sum to 0.6"),
        (INTENTS, TAGS.assign(weight=2.0), "weight 2, wanted 0 to 1"),
        (INTENTS.assign(odd=[1, "x", object()]), TAGS, "intents: cannot be saved .*; drop or convert the column"),
        (INTENTS.drop(columns="qid"), TAGS, "intents: wanted columns qid"),
    ],
)
def test_frames_that_are_none_are_not_saved(build, tmp_path, intents, tags, message):
    with pytest.raises(InputError, match=message):
        build(intents=intents, tags=tags)
    assert not list(tmp_path.iterdir())


def _write(name, content):
    return lambda path: (path / name).write_bytes(content)


def _half(path):
    content = (path / "intents.parquet").read_bytes()
    (path / "intents.parquet").write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("damage", "read", "message"),
    [
        (lambda path: (path / "pt_meta.json").unlink(), IntentSet, "is no IntentSet: pt_meta.json cannot be read"),
        (_write("pt_meta.json", b"{"), IntentSet, "is no JSON"),
        (_write("pt_meta.json", b"[1]"), IntentSet, "wanted .*intent_set.*, found .1."),
        (_write("pt_meta.json", b'{"type": "sparse_index", "format": "pisa"}'), IntentSet, "found .*sparse_index"),
        (
            lambda path: (path / "intents.parquet").unlink(),
            IntentSet,
            "intents.parquet: is missing; build the set again",
        ),
        (shutil.rmtree, IntentSet, "is no folder"),
        (_half, lambda path: IntentSet(path).intents(), r"intents\.parquet: is not a readable Parquet file"),
        (
            lambda path: TAGS.drop(columns="docno").to_parquet(path / "tags.parquet"),
            lambda path: IntentSet(path).tags(),
            "docno",
        ),
    ],
)
def test_damaged_and_other_folders_are_refused(build, damage, read, message):
    path = build().path
    damage(path)
    with pytest.raises(FileError, match=message):
        read(path)


def test_what_documents_a_set_is_kept_with_it(build, tmp_path):
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["jordan", "NA"]})
    labels = INTENTS[["qid", "entity_id"]].assign(ann=[1.0, np.nan, 0.0])
    made = IntentSet.build(tmp_path / "full", INTENTS, topics=topics, annotations=labels, datasheet="# Names\n\nÄ\n")
    pd.testing.assert_frame_equal(made.topics(), topics, check_dtype=False)
    pd.testing.assert_frame_equal(made.annotations(), labels, check_dtype=False)
    assert made.datasheet() == "# Names\n\nÄ\n"
    assert made.digest == build("again", INTENTS.iloc[::-1]).digest != build("other", INTENTS.iloc[2:]).digest
    assert made.names["intents"].endswith(made.digest[:16])
    bare = build()
    assert (bare.topics(), bare.annotations(), bare.datasheet()) == (None, None, "")
    (bare.path / "datasheet.md").write_bytes(b"\xff")
    with pytest.raises(FileError, match=r"datasheet\.md: is not UTF-8"):
        bare.datasheet()
