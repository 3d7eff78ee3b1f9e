"""Building a knowledge base from entities: valid and invalid input, and the file."""

import math
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.linking.kb import building
from vbterrier.linking.kb.files import build_kb
from vbterrier.linking.kb.knowledge_base import KnowledgeBase
from vbterrier.linking.kb.sqlite import MAX_LETTERS, MAX_VALUE


@pytest.fixture
def path(tmp_path):
    return tmp_path / "made.kb"


def senses(base, mention, how="exact"):
    candidates = base.lookup([mention], how=how)
    return dict(zip(candidates["entity_id"], candidates["score"], strict=True))


def built(path, *entities, **options):
    return build_kb(path, entities, **({"id_space": "test"} | options))


def test_entities_come_from_any_iterable_or_frame(path):
    records = [
        {"id": "a", "label": "Anna", "aliases": ["A", ["AA", 0.5]], "attributes": {"born": 1850}, "redirects": ["a0"]},
        {"id": "b", "label": None, "aliases": None, "attributes": None, "redirects": None},
        {"id": "c", "label": "Cleo", "aliases": [{"alias": "AA", "prior": 0.5}, {"alias": "C"}]},
    ]
    frame = pd.DataFrame(records, index=[0.5, 7.0, 0.0])
    polars = pytest.importorskip("polars").DataFrame(
        {"id": ["a", "b", "c"], "label": ["Anna", None, "Cleo"], "aliases": [["A", "AA"], None, ["AA", "C"]]}
    )
    messages = []
    for entities in (records, iter(records), (record for record in records), frame):
        with build_kb(path, entities, id_space="test") as base:
            messages.append((base.alias_table().values.tolist(), base.names(["a", "b", "c"]), base.resolve(["a0"])))
            assert base.attributes(["a", "b", "c"]).values.tolist() == [["a", "born", "1850", "number"]]
            assert len(base) == 3
    assert all(one == messages[0] for one in messages)
    assert messages[0][1:] == (["Anna", "", "Cleo"], ["a"])
    with build_kb(path, polars, id_space="test") as base:
        assert base.alias_table().values.tolist() == messages[0][0], "here priors and none say the same"
    pd.testing.assert_frame_equal(frame, pd.DataFrame(records, index=[0.5, 7.0, 0.0]))
    with build_kb(path, records, id_space="test", labels_are_aliases=False) as base:
        assert base.alias_table()["alias"].tolist() == ["A", "AA", "AA", "C"]
        assert base.names(["a"]) == ["Anna"]


def test_a_generator_is_never_held_in_memory(path):
    class Watched:
        alive = most = 0

        def __init__(self, number):
            self.number = number
            Watched.alive += 1
            Watched.most = max(Watched.most, Watched.alive)

        def __del__(self):
            Watched.alive -= 1

    class Record(dict):
        pass

    def records():
        for number in range(2000):
            record = Record(id=f"E{number}", aliases=[f"name {number}"])
            record.watched = Watched(number)
            yield record

    with build_kb(path, records(), id_space="test") as base:
        assert len(base) == 2000
    assert Watched.most <= 3


def test_ids_stay_the_text_that_they_are(path):
    ids = ["007", "7", "1e3", "1000", "NA", "null", "None", "True", " 7", "0x7", "-0"]
    with built(path, *({"id": one, "label": one, "attributes": {"v": one}} for one in ids)) as base:
        assert len(base) == len(ids)
        assert base.names(ids) == ids
        assert sorted(base.alias_table()["entity_id"]) == sorted(ids)
        result = base.attributes(ids)
        assert result["entity_id"].tolist() == result["value"].tolist() == ids


def test_what_is_said_of_an_entity_twice_adds_up(path):
    with built(
        path,
        {"id": "a", "label": "Anna", "aliases": ["A", "A"], "attributes": {"p": "x"}},
        {"id": "b", "aliases": ["A"]},
        {"id": "a", "aliases": ["A", "B"], "attributes": {"p": ["x", "y"]}},
    ) as base:
        assert senses(base, "A") == {"a": 0.5, "b": 0.5}
        assert senses(base, "B") == {"a": 1.0}
        assert base.names(["a"]) == ["Anna"]
        assert base.attributes(["a"])["value"].tolist() == ["x", "y"]


def test_long_texts_up_to_the_limit_are_taken(path):
    long = "x" * MAX_LETTERS
    with built(path, {"id": long, "label": long, "attributes": {"a": "y" * MAX_VALUE}}) as base:
        assert senses(base, long, "normalised") == {long: 1.0}
        assert base.lookup(["x" * (MAX_LETTERS - 9)], how="fuzzy")["entity_id"].tolist() == [long]


def test_priors_that_do_not_sum_to_one_are_divided_by_their_sum_with_one_warning(path):
    records = [
        {"id": "a", "aliases": [["over", 1.0], ["under", 0.25], ["even", 0.5]]},
        {"id": "b", "aliases": [["over", 0.6], ["under", 0.5], ["even", 0.5]]},
    ]
    with pytest.warns(
        DegenerateWarning, match=r"^the priors of 2 aliases sum to 0.75 to 1.6, not 1: divided"
    ) as record:
        base = build_kb(path, records, id_space="test")
    assert len(record) == 1
    assert record[0].filename == __file__
    with base:
        assert senses(base, "over") == pytest.approx({"a": 1 / 1.6, "b": 0.6 / 1.6})
        assert senses(base, "under") == pytest.approx({"b": 2 / 3, "a": 1 / 3})
        assert senses(base, "even") == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize(
    ("entities", "scores", "message"),
    [
        (
            [{"id": "a", "aliases": [["x", 0.5]]}, {"id": "b", "aliases": ["x"]}, {"id": "c", "label": "x"}],
            {"a": 0.5, "b": 0.25, "c": 0.25},
            "^1 alias has entities with and without a prior",
        ),
        (
            [{"id": "a", "aliases": [["x", 1]]}, {"id": "b", "aliases": [["x", 0.5]]}, {"id": "c", "label": "x"}],
            {"a": 2 / 3, "b": 1 / 3, "c": 0.0},
            "the priors of 1 alias sum to 1.5 to 1.5.*; 1 alias has entities",
        ),
        (
            [{"id": "a", "aliases": [["x", 0]]}, {"id": "b", "aliases": [["x", 0.0]]}],
            {"a": 0.5, "b": 0.5},
            "the priors of 1 alias are all 0: .* equally probable",
        ),
    ],
)
def test_missing_and_zero_priors_are_completed_with_one_warning(path, entities, scores, message):
    with pytest.warns(DegenerateWarning, match=message) as record:
        base = built(path, *entities)
    assert len(record) == 1
    with base:
        assert senses(base, "x") == pytest.approx(scores)


def test_a_prior_counts_once_also_if_the_alias_is_repeated_or_a_label(path):
    first = {"id": "a", "label": "x", "aliases": [["x", 0.75], ["x", 0.75], "x"]}
    with built(path, first, {"id": "b", "aliases": [["x", 0.25]]}) as base:
        assert senses(base, "x") == {"a": 0.75, "b": 0.25}


@pytest.mark.parametrize("prior", [-0.1, 1.5, math.nan, math.inf, "often", True, [0.5], 10**400])
def test_priors_that_are_no_probabilities_are_refused(path, prior):
    with pytest.raises(
        InputError, match=r"entities: number 1: alias 'x' of 'b' has prior '.*', wanted a number in 0 to"
    ):
        built(path, {"id": "a"}, {"id": "b", "aliases": [["x", prior]]})
    assert not path.exists()


def test_chains_of_redirects_end_at_their_end(path):
    chain = [{"id": f"r{i}", "redirects": [f"r{i + 1}"]} for i in range(300)]
    with built(path, {"id": "r0", "label": "Root"}, *chain[1:], {"id": "r0", "redirects": ["r1"]}) as base:
        assert set(base.resolve([f"r{i}" for i in range(301)])) == {"r0"}
        assert base.names(["r300"]) == ["Root"]
        assert len(base) == 1


@pytest.mark.parametrize("order", [1, -1])
def test_aliases_and_attributes_of_an_id_count_for_the_one_it_redirects_to(path, order):
    records = [
        {"id": "new", "label": "New", "aliases": [["x", 0.25]], "attributes": {"p": "1"}, "redirects": ["old"]},
        {"id": "old", "label": "Old", "aliases": [["x", 0.5], "y"], "attributes": {"p": "2"}},
        {"id": "other", "aliases": [["x", 0.25]]},
    ]
    with built(path, *records[::order]) as base:
        assert senses(base, "x") == {"new": 0.75, "other": 0.25}
        assert senses(base, "Old") == senses(base, "New") == senses(base, "y") == {"new": 1.0}
        assert base.names(["old", "new"]) == ["New", "New"]
        assert sorted(base.attributes(["old"])["value"]) == ["1", "2"]
    with built(path, {"id": "a", "label": "Anna"}, {"id": "b", "redirects": ["a"]}) as base:
        assert base.names(["a", "b"]) == ["Anna", "Anna"]
        assert senses(base, "Anna") == {"b": 1.0}


def test_circles_of_redirects_are_left_out_with_a_warning(path):
    records = [
        {"id": "a", "label": "A", "redirects": ["b", "d"]},
        {"id": "b", "label": "B", "redirects": ["a"]},
        {"id": "self", "redirects": ["self"]},
        {"id": "fine", "redirects": ["old"]},
    ]
    message = r"4 redirects are part of a cycle or lead into one \('a', 'b', 'd', \.\.\.\)"
    with pytest.warns(DegenerateWarning, match=message) as record:
        base = build_kb(path, records, id_space="test")
    assert record[0].filename == __file__
    with base:
        assert base.resolve(["a", "b", "d", "self", "old"]) == ["a", "b", "d", "self", "fine"]
        assert base.names(["a", "b"]) == ["A", "B"]


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        ("a", "is str, wanted a mapping with the keys id, label, aliases, attributes, redirects"),
        ({"key": "a", "name": "A"}, "has no id; wanted the keys id, label, aliases, .*, found key, label"),
        ({"id": 7}, r"the id is int, wanted text: '7'; convert it with str\(\)"),
        ({"id": ""}, "the id is blank"),
        ({"id": "a\x00"}, r"the id contains a NUL: 'a\\x00'"),
        ({"id": "x" * (MAX_LETTERS + 1)}, r"the id is longer than 4,096 letters: 'xxx.*\.\.\.'"),
        ({"id": "a", "label": 5}, "the label of 'a' is int, wanted text"),
        ({"id": "a", "label": "\udc80"}, r"the label of 'a' contains half a surrogate pair: '\\udc80'"),
        ({"id": "a", "aliases": "A"}, "aliases of 'a': wanted a list, found str"),
        ({"id": "a", "aliases": [""]}, "alias '' of 'a' is blank; leave it out"),
        ({"id": "a", "aliases": ["\u00a0"]}, "alias .* of 'a' is blank; leave it out"),
        ({"id": "a", "aliases": ["a\x00b"]}, "alias .* of 'a' contains a NUL"),
        ({"id": "a", "aliases": ["x" * (MAX_LETTERS + 1)]}, "alias 'x.*' of 'a' is longer than 4,096 letters"),
        ({"id": "a", "aliases": [5]}, r"alias '5' of 'a': wanted text, \[text, prior\] or"),
        ({"id": "a", "aliases": [["x", 0.5, 1]]}, "of 'a': wanted text"),
        ({"id": "a", "aliases": [{"text": "x"}]}, "of 'a': wanted text"),
        ({"id": "a", "aliases": [[5, 0.5]]}, "alias '5' of 'a' is int, wanted text"),
        ({"id": "a", "attributes": ["x"]}, "attributes of 'a': wanted a mapping of names to values, found list"),
        ({"id": "a", "attributes": {"p": {}}}, "'p' of 'a' is '{}', wanted text, a number, a boolean"),
        ({"id": "a", "attributes": {"p": math.inf}}, "'p' of 'a' is 'inf', wanted text, a number"),
        ({"id": "a", "attributes": {"p": " "}}, "'p' of 'a' is blank"),
        ({"id": "a", "attributes": {"": "x"}}, "the name of an attribute of 'a' is blank"),
        ({"id": "a", "attributes": {"born": "in May"}}, "'born' of 'a' is 'in May', wanted a year"),
        ({"id": "a", "born": 0.5}, "'born' of 'a' is '0.5', wanted a year"),
        ({"id": "a", "votes": "many"}, "'votes' of 'a' is 'many', wanted a number"),
        ({"id": "a", "current": 1}, "'current' of 'a' is '1', wanted a boolean"),
        ({"id": "a", "redirects": ["b", 5]}, "an id that redirects to 'a' is int, wanted text"),
        ({"id": "a", "redirects": "b"}, "redirects of 'a': wanted a list, found str"),
        ({"id": "a\x1b[31m", "aliases": [""]}, r"of 'a\\x1b\[31m' is blank"),
    ],
)
def test_entities_that_are_none_are_refused_with_their_number(path, entity, message):
    with pytest.raises(InputError, match=f"^entities: number 1: .*{message}"):
        built(path, {"id": "fine"}, entity, types={"born": "year", "votes": "number", "current": "boolean"})
    assert list(path.parent.iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"label": "A"}, {"label": "B"}, "id 'a' has the labels 'A' and 'B'; make one an"),
        ({"aliases": [["x", 0.5]]}, {"aliases": [["x", 0.25]]}, "alias 'x' of 'a' has the priors 0.25 and 0.5; keep"),
        ({"redirects": ["c"]}, {"id": "b", "redirects": ["c"]}, "'c' redirects to 'a' and to 'b'"),
    ],
)
def test_entities_that_contradict_each_other_are_refused(path, first, second, message):
    with pytest.raises(InputError, match=f"^entities: number 1: {message}"):
        built(path, {"id": "a"} | first, {"id": "a"} | second)


def test_parameters_are_checked(path):
    with pytest.raises(InputError, match="entities: none; a knowledge base needs at least one"):
        built(path)
    for entities in ("file.jsonl", {"id": "a"}, 5):
        kind = type(entities).__name__
        with pytest.raises(InputError, match=f"entities: wanted an iterable of mappings or a frame, found {kind}"):
            build_kb(path, entities, id_space="test")
    with pytest.raises(ParameterError, match=r"types: 'born' is 'yaer', wanted one of 'text', .*Did you mean year\?"):
        built(path, {"id": "a"}, types={"born": "yaer"})
    for space in ("", None, 5):
        with pytest.raises(ParameterError, match=r"id_space=.*; name the id space"):
            built(path, {"id": "a"}, id_space=space)


def test_missing_cells_of_frames_are_ignored(path):
    frame = pd.DataFrame({"id": ["a", "b"], "label": ["A", np.nan], "born": [1850.0, np.nan], "died": [pd.NaT, None]})
    with build_kb(path, frame, id_space="test", types={"born": "number"}) as base:
        assert base.attributes(["a", "b"]).values.tolist() == [["a", "born", "1850.0", "number"]]
        assert base.names(["a", "b"]) == ["A", ""]


def test_a_build_that_fails_leaves_the_old_file_and_nothing_else(path):
    built(path, {"id": "old", "label": "x"}).close()
    before = path.read_bytes()

    def broken():
        yield {"id": "new", "label": "x"}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_kb(path, broken(), id_space="test")
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_is_said_to_be_one(path, monkeypatch):
    def full(_db, _staging, _ordering):
        yield lambda: (_ for _ in ()).throw(sqlite3.OperationalError("database or disk is full"))

    monkeypatch.setattr(building, "steps", full)
    with pytest.raises(FileError, match=r"made.kb: cannot be written \(database or disk is full\); check the free"):
        built(path, {"id": "a"})
    assert list(path.parent.iterdir()) == []


def test_files_of_others_are_never_replaced(path):
    for content in (b"id\tlabel\n", b"SQLite format 3\x00" + bytes(200)):
        path.write_bytes(content)
        with pytest.raises(FileError, match="exists and is not a knowledge base, so it is not replaced"):
            built(path, {"id": "a"})
        assert path.read_bytes() == content
    path.write_bytes(b"")
    built(path, {"id": "a"}).close()
    built(path, {"id": "b"}).close()
    with KnowledgeBase(path) as base:
        assert base.alias_table().empty
        assert len(base) == 1


def test_names_of_files_may_be_unusual_but_no_folders(tmp_path):
    for path, message in [
        (tmp_path, "is a folder; wanted the name of a file to write"),
        (tmp_path / "none" / "x", "cannot be written: No such file or directory"),
    ]:
        with pytest.raises(FileError, match=message):
            built(path, {"id": "a"})
    for name in ("a b#?%41&mode=rwc.kb", "ünï.kb", "x" * 200):
        with built(tmp_path / name, {"id": "a", "label": "A"}) as base:
            assert senses(base, "A") == {"a": 1.0}
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_the_file_has_the_mode_of_any_new_file_or_of_the_one_it_replaces(path):
    built(path, {"id": "a", "label": "Anna"}).close()
    other = path.parent / "other"
    other.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)
    path.chmod(0o640)
    built(path, {"id": "b", "label": "Bert"}).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert senses(KnowledgeBase(path), "Bert") == {"b": 1.0}


def test_the_file_is_marked_and_whole(path):
    built(path, {"id": "a", "label": "A"}).close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA application_id").fetchone()[0].to_bytes(4, "big") == b"vbKB"
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("PRAGMA freelist_count").fetchone()[0] <= 1


KILLED = """
import os, signal, sys
from vbterrier.linking import build_kb

def entities():
    yield {"id": "a", "label": "A"}
    os.kill(os.getpid(), signal.SIGKILL)

build_kb(sys.argv[1], entities(), id_space="test")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a killed process leaves no lock to test there")
def test_files_of_a_killed_build_are_removed_by_the_next(tmp_path):
    path = tmp_path / "made.kb"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".made.kb.build-")

    def others():
        # A build of the same file that is under way keeps its folder.
        with build_kb(path, [{"id": "b"}], id_space="test"):
            assert len(list(tmp_path.glob(".made.kb.build-*"))) == 1
        yield {"id": "c", "label": "C"}

    build_kb(path, others(), id_space="test").close()
    assert [one.name for one in tmp_path.iterdir()] == ["made.kb"]
