"""Files of vectors: word2vec, GloVe and Wikipedia2Vec."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.entities.rankers.similarity import EntitySimilarity
from vbterrier.entities.vectors import read_vectors
from vbterrier.errors import FileError

NAMES = ["the", "ENTITY/New_York", "ENTITY/Zürich", "ENTITY/東京", "1", "a-b"]


def written(path, kind, names, vectors):
    header = f"{len(names)} {vectors.shape[1]}\n".encode()
    if kind in {"binary", "binary with newlines"}:
        end = b"\n" if kind != "binary" else b""
        parts = [n.encode() + b" " + v.astype("<f4").tobytes() + end for n, v in zip(names, vectors, strict=True)]
        return path.write_bytes(header + b"".join(parts))
    gap = "\t" if kind == "wikipedia2vec" else " "
    lines = [f"{name}{gap}{' '.join(map(repr, v.tolist()))}\n" for name, v in zip(names, vectors, strict=True)]
    return path.write_bytes((header if kind == "word2vec" else b"") + "".join(lines).encode())


KINDS = ("binary", "binary with newlines", "word2vec", "glove", "wikipedia2vec")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), d=st.integers(2, 6))
def test_every_format_gives_the_vectors_that_were_written(tmp_path_factory, kind, seed, d):
    path = tmp_path_factory.mktemp("vectors") / "file"
    # Arbitrary bytes, which may be spaces and line ends.
    raw = np.random.default_rng(seed).integers(0, 2**32, (len(NAMES), d), dtype=np.uint32).view(np.float32)
    vectors = np.where(np.isfinite(raw), raw, 1.0).astype(np.float64)
    written(path, kind, NAMES, vectors)
    found = read_vectors(path, form="binary" if kind.startswith("binary") else "auto")
    assert list(found) == NAMES
    assert (len(found), found.dimension) == (len(NAMES), d)
    np.testing.assert_array_equal([found[name] for name in NAMES], vectors)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.table(again.rows(NAMES[::-1])), vectors[::-1])
    entities = read_vectors(path, prefix="ENTITY/", form="binary" if kind.startswith("binary") else "auto")
    assert list(entities) == ["New_York", "Zürich", "東京"]
    np.testing.assert_array_equal(entities["Zürich"], vectors[2])
    assert "the" not in entities
    assert entities.rows(["x", "東京", "New York"]).tolist() == [-1, 2, -1]


def test_binary_and_text_are_recognised(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(len(NAMES), 50))
    for kind in KINDS:
        written(tmp_path / kind, kind, NAMES, vectors)
        assert read_vectors(tmp_path / kind).is_binary is kind.startswith("binary")


def test_rankers_read_the_vectors_of_a_file_as_those_of_a_dictionary(tmp_path):
    names = [f"E{i}" for i in range(30)]
    vectors = np.random.default_rng(0).normal(size=(25, 5)).astype(np.float32).astype(float)
    written(tmp_path / "file", "binary", names[:25], vectors)
    pool = pd.DataFrame({"qid": "q", "docno": [f"d{i}" for i in range(30)], "score": 1.0})
    tags = pd.DataFrame({"docno": pool["docno"], "entity_id": names})
    query = pd.DataFrame({"qid": ["q"], "entity_id": ["E3"]})
    found = []
    for embeddings in (read_vectors(tmp_path / "file"), dict(zip(names[:25], vectors, strict=True))):
        with pytest.warns(UserWarning, match="5 of 30 entities have no vector"):
            found.append(EntitySimilarity(tags, embeddings=embeddings, query_entities=query)(pool))
    pd.testing.assert_frame_equal(*found)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x80\x04model", "a pickled model, which is never loaded"),
        (b"\x1f\x8bzip", "is compressed"),
        (b"2 3\na 1 2 3\n", "says 2 vectors of 3 numbers, found 1 of 3: was it written to its end"),
        (b"a 1 2\nb 1 2\na 3 4\n", "has two vectors of 'a'"),
        (b"a 1 2\nb\n", ":2: wanted a name and numbers"),
        (b"a 1 2\nb 1\n", ":2: has 1 words after the name, wanted 2 numbers"),
        (b"2 2\nNew York " + bytes(8) + b"b " + bytes(8), "vector 1 of 2 has the name|has the name"),
        (b"1 2\na " + bytes(8) + b"b " + bytes(8), "more than the 1 vectors of 2 numbers that its header says"),
        (b"2 3\nNew York 1 2 3\nb 1 2 3\n", "has 4 words after the name|has 3 words after the name"),
        (b"\n\n", "has no vectors"),
        (b"9 100\na " + bytes(50), "more than the file has"),
        (b"3 2\na " + bytes(8) + b"b " + bytes(8) + b"c " + bytes(7), "ends in vector 3 of 3"),
        (b"2 2\n " + bytes(8) + b"b " + bytes(8), "vector 1 of 2 has no name"),
    ],
)
def test_bad_files_are_refused(tmp_path, content, message):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_vectors(tmp_path / "file")


def test_bad_vectors_are_refused_when_they_are_read(tmp_path):
    (tmp_path / "file").write_text("a 1 2\nb 1 -\nc 1 x\nd 1 nan\n")
    vectors = read_vectors(tmp_path / "file")
    for name, message in (("b", "wanted 2 numbers, found b'1 -'"), ("c", "wanted 2 numbers"), ("d", "is not finite")):
        with pytest.raises(FileError, match=f"vector of '{name}'.*{message}|{message}"):
            _ = vectors[name]
    with pytest.raises(KeyError):
        _ = vectors["e"]
    with pytest.raises(FileError, match="no name begins with 'ENTITY/'; found 'a'"):
        read_vectors(tmp_path / "file", prefix="ENTITY/")
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read_vectors(tmp_path / "none")


def test_tables_of_vectors_are_equal_if_their_files_and_names_are(tmp_path):
    (tmp_path / "file").write_text("a 1 2\nb 1 3\n")
    (tmp_path / "other").write_text("a 1 2\nb 1 3\n")
    one, same, other = (read_vectors(tmp_path / name) for name in ("file", "file", "other"))
    assert one == same
    assert hash(one) == hash(pickle.loads(pickle.dumps(one)))
    assert one != other
    assert one != read_vectors(tmp_path / "file", prefix="a")
