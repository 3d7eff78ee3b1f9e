"""Names in a file that linkers map: equal to those in memory, and checked before use."""

import io
import json
import pickle
import shutil
import tarfile
from importlib.metadata import EntryPoint

import numpy as np
import pandas as pd
import pyarrow as pa
import pyterrier as pt
import pytest
from lz4.frame import LZ4FrameFile

from vbterrier.errors import DegenerateWarning, FileError
from vbterrier.linking import DictionaryLinker, KnowledgeBase, build_kb
from vbterrier.linking.kb import ordering
from vbterrier.linking.kb.sqlite import artifact_metadata, lexicon_path
from vbterrier.linking.lexicon import Lexicon, PhraseIndex

PEOPLE = [
    {"id": "B", "label": "Ann Lee", "aliases": [["Lee", 0.75], ["US", 1.0], "it", "1984"]},
    {"id": "A", "label": "Bo Lee", "aliases": [["Lee", 0.25], "LEE", "us", "IT", "x", "Zo\u00eb", "!"]},
    {"id": "C", "label": "Lee", "redirects": ["D"]},
]
TEXTS = ["Ann Lee met LEE in the US", "ANN LEE, US, IT", "us and it", "Zoe\u0308 in 1984", "", "x ! Bo  Lee"]


@pytest.fixture
def base(tmp_path, monkeypatch):
    monkeypatch.setattr(ordering, "MAX_MEMORY_ALIASES", 3)
    with pytest.warns(DegenerateWarning, match="with and without a prior"):
        made = build_kb(tmp_path / "people.kb", PEOPLE, id_space="people", progress=False)
    with made:
        yield made


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_length": 1, "numeric": True},
        {"max_candidates": 1},
        {"max_candidates": 1, "ambiguous": "truncate", "longest": False},
        {"stop_aliases": ("ann lee",)},
        {"stop_aliases": None},
        {"case": "ignore"},
        {"case": "exact"},
    ],
    ids=str,
)
def test_names_in_a_file_are_those_in_memory(base, options):
    mapped = DictionaryLinker(base, **options)
    result, skipped = mapped.link(TEXTS).frame, mapped.skipped
    assert pickle.loads(pickle.dumps(mapped)).link(TEXTS).frame.equals(result)
    lexicon_path(base.path).unlink()
    in_memory = DictionaryLinker(base, **options)
    assert base.lexicon() is None
    pd.testing.assert_frame_equal(result, in_memory.link(TEXTS).frame, check_exact=True)
    pd.testing.assert_frame_equal(skipped, in_memory.skipped)
    assert len(result) > 2


def test_names_are_mapped_and_not_read(base):
    lexicon = base.lexicon()
    assert not lexicon.phrases.prefix.flags.owndata
    assert not lexicon.phrases.prefix.flags.writeable
    assert lexicon.phrases.text.type == pa.string()


@pytest.mark.filterwarnings("ignore:dictionary")
def test_names_may_have_more_bytes_than_offsets_of_32_bits(base, monkeypatch):
    texts, links = base.lexicon().phrases.text.to_pylist(), DictionaryLinker(base).link(TEXTS).frame
    monkeypatch.setattr("vbterrier.linking.lexicon._MAX_SHORT_BYTES", 10)
    with pytest.warns(DegenerateWarning, match="with and without a prior"):
        large = build_kb(base.path, PEOPLE, id_space="people", progress=False)
    with large:
        lexicon = large.lexicon()
        assert {each.type for each in (lexicon.phrases.text, lexicon.ids, lexicon.labels)} == {pa.large_string()}
        assert lexicon.phrases.text.to_pylist() == texts
        pd.testing.assert_frame_equal(links, DictionaryLinker(large).link(TEXTS).frame, check_exact=True)


def test_a_small_knowledge_base_has_no_such_file_and_its_build_removes_one(base, tmp_path):
    with build_kb(base.path, PEOPLE[2:], id_space="people") as small:
        assert small.lexicon() is None
        assert [one.name for one in tmp_path.iterdir()] == [base.path.name]


def rewritten(path, **changes):
    """Write the file again with other arrays."""
    with pa.ipc.open_file(pa.BufferReader(path.read_bytes())) as reader:
        batch, schema = reader.get_batch(0), reader.schema
    columns = dict(zip(schema.names, batch.columns, strict=True))
    for name, change in changes.items():
        values = columns[name][0].values.to_numpy(zero_copy_only=False).copy()
        columns[name] = pa.array([change(values)], columns[name].type)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.record_batch(list(columns.values()), schema=schema))


def changed(place, value):
    def change(array):
        array[place] = value
        return array

    return change


OUT_OF_RANGE = {
    "entity": [changed(0, 99), changed(0, -1)],
    "score": [changed(0, 1.5), changed(0, np.nan)],
    "first": [changed(1, -5), changed(-1, 10**6), lambda array: array[:-1]],
    "bounds": [changed(-1, 10**6), lambda array: array[::-1]],
    "group": [changed(-1, 10**6)],
    "cased": [changed(slice(None), 1)],
    "longer": [changed(0, 7)],
    "name_of_alias": [changed(0, 10**6), lambda array: array[1:]],
    "text": [lambda array: array[:-1]],
    "ids": [lambda array: array[:-1]],
}


@pytest.mark.parametrize(("name", "change"), [(name, one) for name, some in OUT_OF_RANGE.items() for one in some])
def test_numbers_out_of_range_are_refused(base, name, change):
    rewritten(lexicon_path(base.path), **{name: change})
    with pytest.raises(FileError, match=r"people.kb.lexicon: is damaged \(.*build the knowledge base again"):
        base.lexicon()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: content[:0], "is damaged"),
        (lambda content: content[: len(content) // 2], "is damaged"),
        (lambda content: b"SQLite format 3" + content, "is damaged"),
        (lambda content: content.replace(b"vbterrier lexicon 2", b"vbterrier lexicon 9"), "another knowledge base"),
    ],
    ids=["empty", "cut", "other", "version"],
)
def test_other_files_are_refused(base, change, words, tmp_path):
    path = lexicon_path(base.path)
    other = build_kb(tmp_path / "other.kb", PEOPLE[2:], id_space="people")
    shutil.copy(path, lexicon_path(other.path))
    with pytest.raises(FileError, match="of another knowledge base"), other:
        other.lexicon()
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(FileError, match=words):
        DictionaryLinker(base)


def test_equal_fingerprints_never_join_two_names(monkeypatch):
    """Names are compared in full, so that weak fingerprints change speed alone."""
    names = ["new york", "new york city", "york", "a b", "b a", "newyork"]
    data = np.frombuffer(b" old new york city b a b \n new york ", np.uint8)

    def matches():
        index, _ = PhraseIndex.of(names)
        first, last, name = index.find(data)
        return sorted(zip(first.tolist(), last.tolist(), index.text.take(pa.array(name)).to_pylist(), strict=True))

    expected = matches()
    assert [name for *_, name in expected] == ["new york", "new york city", "york", "b a", "a b", "new york", "york"]
    monkeypatch.setattr("vbterrier.linking.lexicon.of_spans", lambda _, start, __: np.zeros(len(start), np.uint64))
    assert matches() == expected


def test_a_knowledge_base_is_packed_and_loaded_as_an_artifact(base, tmp_path, monkeypatch):
    package = base.build_package(str(tmp_path / "package.tar.lz4"), verbose=False)
    folder = tmp_path / "unpacked"
    with LZ4FrameFile(package) as packed, tarfile.open(fileobj=io.BytesIO(packed.read())) as tar:
        # Python before 3.11.4 has no filters.
        tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    assert sorted(one.name for one in folder.iterdir()) == ["entities.kb", "entities.kb.lexicon", "pt_meta.json"]
    meta = json.loads((folder / "pt_meta.json").read_text())
    assert (meta["type"], meta["format"]) == pt.inspect.artifact_type_format(KnowledgeBase)
    points = {
        "pyterrier.artifact": "vbterrier.linking:KnowledgeBase",
        "pyterrier.artifact.metadata_adapter": "vbterrier.linking.kb.sqlite:artifact_metadata",
    }
    name = "knowledge_base.vbterrier"
    monkeypatch.setattr(pt.utils, "entry_points", lambda group: [EntryPoint(name, points[group], group)])
    for path in (folder, base.path):
        with pt.Artifact.load(str(path)) as loaded:
            assert loaded == base
            assert isinstance(loaded.lexicon(), Lexicon)
            assert loaded.names(["D"]) == ["Lee"]
            assert pickle.loads(pickle.dumps(loaded)) == base
    assert artifact_metadata(str(tmp_path / "package.tar.lz4"), []) is None
    assert artifact_metadata(str(tmp_path), []) is None
