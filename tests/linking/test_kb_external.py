"""Knowledge bases from REL, wikimapper and spaCy; invalid files."""

import bz2
import gzip
import json
import random
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.linking.dictionary import DictionaryLinker, FuzzyLinker
from vbterrier.linking.kb.files import build_kb, kb_from_file
from vbterrier.linking.kb.knowledge_base import KnowledgeBase
from vbterrier.linking.kb.libraries import kb_from_rel, kb_from_spacy, kb_from_wikimapper
from vbterrier.linking.kb.sqlite import FORMAT_VERSION
from vbterrier.linking.kb.wikidata import kb_from_wikidata

TABLES = {
    "rel": "CREATE TABLE wiki(word text primary key, p_e_m blob, lower text, freq INTEGER)",
    "wikimapper": "CREATE TABLE mapping(wikipedia_id int PRIMARY KEY, wikipedia_title text, wikidata_id text)",
}


NAMES = {"rel": "wiki", "wikimapper": "mapping"}


def changed(path, sql):
    with closing(sqlite3.connect(path)) as db:
        db.executescript(sql)
    return path


def database(path, kind, rows):
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(TABLES[kind])
        db.executemany(f"INSERT INTO {NAMES[kind]} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return path


def coded(value):
    """Encode text as in REL."""
    return " ".join(format(ord(letter), "b") for letter in json.dumps(value))


def values(frame, *columns):
    return [tuple(row) for row in frame[list(columns)].to_numpy().tolist()]


@pytest.fixture(scope="module")
def rel_sample(shared_data, tmp_path_factory):
    path = tmp_path_factory.mktemp("rel") / "entity_word_embedding.db"
    packed = (shared_data / "rel_pem_sample" / "entity_word_embedding.sample.db.gz").read_bytes()
    path.write_bytes(gzip.decompress(packed))
    return path


@pytest.fixture(scope="module")
def decoded(shared_data):
    return json.loads((shared_data / "rel_pem_sample" / "p_e_m.decoded.json").read_text("utf-8"))


@pytest.mark.slow
def test_the_sample_of_rel_comes_out_as_its_decoded_twin(decoded, rel_sample, tmp_path):
    with pytest.warns(DegenerateWarning) as record:
        base = kb_from_rel(tmp_path / "rel.kb", rel_sample)
    messages = sorted(str(one.message) for one in record)
    n_zero = sum(record["n_candidates"] for record in decoded.values())
    with base:
        candidates = base.lookup(list(decoded), how="exact")
        n_zero -= len(candidates)
        assert messages == [
            f"rel.kb: left out {n_zero:,} titles of probability 0 (keep_zeros=True keeps them)",
            "the priors of 17 aliases sum to 1.001 to 2.045, not 1: divided by their sum",
        ]
        assert (base.id_space, base.has_priors) == ("wikipedia_title", True)
        for place, twin in enumerate(decoded.values()):
            mine = candidates[candidates["text"] == place]
            assert mine["score"].sum() == pytest.approx(1, abs=1e-12)
            positive = [(title, prior) for title, prior in twin["p_e_m"] if prior > 0]
            # The other file has the first hundred titles, and their rounded sum.
            expected = {title: prior / twin["sum_p"] for title, prior in positive}
            scores = dict(zip(mine["entity_id"], mine["score"], strict=True))
            assert {title: scores[title] for title in expected} == pytest.approx(expected, rel=1e-3)
            first = positive[0]
            shares = {title: prior / first[1] for title, prior in positive}
            assert {title: scores[title] / scores[first[0]] for title in expected} == pytest.approx(shares, rel=1e-12)
            if twin["n_candidates"] <= 100:
                assert set(scores) == set(expected)
    with pytest.warns(DegenerateWarning, match="the priors of 17 aliases"):
        base = kb_from_rel(tmp_path / "all.kb", rel_sample, keep_zeros=True)
    with base:
        n_found = base.lookup(list(decoded), how="exact")["text"].value_counts().sort_index()
        assert n_found.tolist() == [record["n_candidates"] for record in decoded.values()]


@pytest.mark.parametrize("batch", [2, 1000])
def test_titles_of_probability_0_are_counted_and_left_out(tmp_path, monkeypatch, batch):
    """Priors of REL sum to more than 1, and most titles have none; rows are written in batches."""
    monkeypatch.setattr("vbterrier.linking.kb.staging._BLOCK_ROWS", batch)
    rows = [
        ("fox", coded([["Fox", 0.9], ["Fox_Network", 0.3], ["Fox_(film)", 0.0], ["Fox,_Alaska", 0.0]]), "fox", 3),
        ("dog", coded([["Dog", 0.75], ["Dog_(film)", 0.25]]), "dog", 2),
        ("cat", coded([["Cat", 1.0], ["Cat_(film)", 0.0]]), "cat", 1),
    ]
    source = database(tmp_path / "rel.db", "rel", rows)
    with pytest.warns(DegenerateWarning) as caught:
        base = kb_from_rel(tmp_path / "rel.kb", source)
    messages = sorted(str(one.message) for one in caught)
    assert messages[0] == "rel.kb: left out 3 titles of probability 0 (keep_zeros=True keeps them)"
    assert messages[1].startswith("the priors of 1 alias ")
    assert len(messages) == 2
    with base:
        candidates = base.lookup(["fox", "dog", "cat"], how="exact")
    scores = {(row.text, row.entity_id): row.score for row in candidates.itertuples()}
    expected = {(0, "Fox"): 0.75, (0, "Fox_Network"): 0.25, (1, "Dog"): 0.75, (1, "Dog_(film)"): 0.25, (2, "Cat"): 1.0}
    assert scores == pytest.approx(expected)
    with pytest.warns(DegenerateWarning, match="the priors of 1 alias "):
        base = kb_from_rel(tmp_path / "all.kb", source, keep_zeros=True)
    with base:
        assert len(base.lookup(["fox", "dog", "cat"], how="exact")) == 8


def test_mentions_of_a_form_are_weighed_by_how_often_they_occur(tmp_path):
    rows = [
        ("fox", coded([["Fox", 1.0]]), "fox", 30),
        ("Fox", coded([["Fox", 0.25], ["Fox_Network", 0.75]]), "fox", 60),
        ("FOX", coded([["Fox_Network", 1.0]]).encode(), "fox", 10),
        ("Zoë", coded([["Zoë_(名)", 1.0]]), "zoë", None),
    ]
    source = database(tmp_path / "rel.db", "rel", rows)
    with kb_from_rel(tmp_path / "rel.kb", source) as base:
        assert values(base.lookup(["Fox"]), "entity_id", "alias", "name") == [
            ("Fox_Network", "Fox", "Fox Network"), ("Fox", "fox", "Fox")
        ]  # fmt: skip
        assert base.lookup(["Fox"])["score"].tolist() == pytest.approx([0.55, 0.45])
        assert values(base.lookup(["fox"], how="exact"), "entity_id", "score") == [("Fox", 1.0)]
        assert base.names(["Zoë_(名)"]) == ["Zoë (名)"]
        weights = base.alias_table().drop_duplicates("alias").set_index("alias")["weight"]
        assert weights.to_dict() == {"fox": 30, "Fox": 60, "FOX": 10, "Zoë": 1}


def test_linkers_of_names_agree_with_the_knowledge_base_itself(decoded, rel_sample, tmp_path):
    with pytest.warns(DegenerateWarning):
        base = kb_from_rel(tmp_path / "rel.kb", rel_sample)
    with base:
        names = list(decoded)
        expected = pytest.approx(linked(base, names), rel=1e-12)
        assert len(names) > 20
        assert set(base.link(names).frame["text"]) == set(range(len(names))), "all are known"
        dictionary = DictionaryLinker(base, case="ignore", min_length=1, numeric=True, stop_aliases=None)
        assert linked(dictionary, names) == expected
        assert linked(FuzzyLinker(base, min_similarity=1, limit=10**6), names) == expected


ROWS = {"rel": [("a", coded([["A", 1.0]]), "a", 1)], "wikimapper": [(1, "A", "Q1")]}
BUILDERS = [kb_from_rel, kb_from_wikimapper]
READERS = [lambda path, source: kb_from_file(path, source, id_space="test"), kb_from_wikidata]


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize(("pack", "tool"), [(gzip, "gunzip"), (bz2, "bunzip2")])
def test_packed_databases_are_to_be_unpacked(tmp_path, build, pack, tool):
    source = tmp_path / "source.db"
    source.write_bytes(pack.compress(database(tmp_path / "plain.db", "rel", ROWS["rel"]).read_bytes()))
    with pytest.raises(FileError, match=rf"source.db: is compressed; wanted .*: decompress it first \({tool}\)$"):
        build(tmp_path / "made.kb", source)


@pytest.mark.parametrize("build", READERS)
def test_builders_that_read_lines_say_who_reads_a_database(tmp_path, build):
    rel, mapper = (database(tmp_path / f"{kind}.db", kind, rows) for kind, rows in ROWS.items())
    packed, other = tmp_path / "packed.db", changed(tmp_path / "other.db", "CREATE TABLE t(a)")
    packed.write_bytes(gzip.compress(rel.read_bytes()))
    with build_kb(tmp_path / "own.kb", [{"id": "a", "label": "A"}], id_space="test") as base:
        path = base.path
    for source, remedy in [
        (rel, r"it looks like a file of REL: .*kb_from_rel \(--kind rel\)"),
        (mapper, r"it looks like a file of wikimapper: .*kb_from_wikimapper \(--kind wikimapper\)"),
        (path, r"it is a built knowledge base: open it with KnowledgeBase\(path\), or pass it to --kb"),
        (other, "build one with build_kb, kb_from_file"),
        (packed, r"it is also compressed: decompress it first \(gunzip\)"),
    ]:
        with pytest.raises(FileError, match=rf"{source.name}: is a SQLite file, wanted lines of text; {remedy}"):
            build(tmp_path / "made.kb", source)


@pytest.mark.filterwarnings("ignore:1 alias has entities:vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("prior", [None, 0.5])
def test_they_agree_where_some_spellings_have_no_priors(tmp_path, prior):
    entities = [
        {"id": "a", "aliases": ["J. Fox", "j fox", {"alias": "Fuchs", "prior": prior}]},
        {"id": "b", "aliases": ["J. Fox"]},
        {"id": "c", "aliases": ["Fuchs", "fuchs"]},
    ]
    with build_kb(tmp_path / "made.kb", entities, id_space="test") as base:
        texts = ["j fox", "FUCHS"]
        share = 0.5 if prior is None else 0.75
        expected = pytest.approx({(0, "a"): share, (0, "b"): 1 - share, (1, "a"): 1 - share, (1, "c"): share})
        assert linked(base, texts) == expected
        assert linked(DictionaryLinker(base), texts) == expected
        # Without priors the score of a fuzzy link is its similarity.
        if prior is not None:
            assert linked(FuzzyLinker(base, min_similarity=1), texts) == expected


def linked(linker, texts):
    """Return the candidates of each text as {(place, entity): score}."""
    frame = linker.link(texts).frame
    assert frame["end"].tolist() == [len(texts[place]) for place in frame["text"]], "whole texts"
    return dict(zip(zip(frame["text"], frame["entity_id"], strict=True), frame["score"], strict=True))


def test_titles_and_mentions_that_are_none_are_counted(tmp_path):
    rows = [("a", coded([["A", 1.0], ["", 0.5], ["B\x00", 0.5]]), "a", 1), (" ", coded([["A", 1.0]]), " ", 1)]
    source = database(tmp_path / "rel.db", "rel", rows)
    message = "left out 1 aliases whose text is blank; 1 titles whose text contains a NUL; 1 titles whose text is blank"
    with pytest.warns(DegenerateWarning, match=message):
        base = kb_from_rel(tmp_path / "rel.kb", source)
    with base:
        assert values(base.alias_table(), "alias", "entity_id") == [("a", "A")]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("1011011 2", r"mention 'x': p_e_m has invalid code points \(.*'2'.*\); download the file again"),
        ("1" * 40, "mention 'x': p_e_m has invalid code points .*is not a code point"),
        ("1" * 21, "mention 'x': p_e_m has invalid code points"),
        ("-1", "invalid code points"),
        (b"\xff\xff", "invalid code points"),
        (7, "mention 'x': p_e_m is not text of binary code points"),
        (coded("[["), "mention 'x': p_e_m is not a list of titles"),
        (" ".join(format(ord(letter), "b") for letter in "[["), "mention 'x': p_e_m is not JSON"),
        (coded(["A"]), "mention 'x': p_e_m has 'A', wanted a title and its probability"),
        (coded([["A", 0.5, 1]]), "wanted a title and its probability"),
        (coded([["A", 2]]), "row 1: alias 'x' of 'A' has prior '2', wanted a number in 0 to 1"),
        (coded([["A", "much"]]), "row 1: alias 'x' of 'A' has prior 'much'"),
        ("", "p_e_m is not JSON"),
    ],
)
def test_cells_that_are_none_are_refused_with_their_mention(tmp_path, cell, message):
    source = database(tmp_path / "rel.db", "rel", [("x", cell, "x", 1)])
    with pytest.raises(FileError, match=f"rel.db: {message}|rel.db: .*{message}"):
        kb_from_rel(tmp_path / "rel.kb", source)
    assert not (tmp_path / "rel.kb").exists()


PAGES = [(10, "Rome_(Italy)", "Q220"), (30, "Roma_city", "Q220"), (20, "Eternal_City", "Q220")]
PAGES += [(5, "Carthage", "Q6343"), (6, "Nowhere", None), (7, "Erewhon", None)]


@pytest.mark.parametrize(
    ("id_space", "ids", "others"),
    [
        ("wikidata", ["Q220", "Q6343"], []),
        ("wikipedia_title", ["Rome_(Italy)", "Carthage", "Nowhere"], ["Roma_city", "Eternal_City"]),
        ("wikipedia_id", ["10", "5", "6"], ["30", "20"]),
    ],
)
@pytest.mark.filterwarnings("ignore:wiki.kb. left out:vbterrier.errors.DegenerateWarning")
def test_pages_of_an_item_are_an_article_and_its_redirects(tmp_path, id_space, ids, others):
    source = database(tmp_path / "index.db", "wikimapper", PAGES)
    with kb_from_wikimapper(tmp_path / "wiki.kb", source, id_space=id_space) as base:
        assert (base.id_space, base.has_priors) == (id_space, False)
        assert len(base) == (2 if id_space == "wikidata" else 4)
        assert base.names(ids) == ["Rome (Italy)", "Carthage", "Nowhere"][: len(ids)]
        for mention in ("rome italy", "ROME", "Roma_City", "eternal city"):
            assert values(base.lookup([mention]), "entity_id", "score") == [(ids[0], 1.0)]
        assert base.resolve(others) == [ids[0]] * len(others)


def test_pages_without_an_item_are_counted_where_ids_are_items(tmp_path):
    source = database(tmp_path / "index.db", "wikimapper", [*PAGES, (8, None, "Q1"), (9, "", "Q1")])
    message = (
        "^wiki.kb: left out 1 pages whose title is NoneType, wanted text; 1 pages whose title is blank; "
        "2 pages without a Wikidata item$"
    )
    with pytest.warns(DegenerateWarning, match=message):
        base = kb_from_wikimapper(tmp_path / "wiki.kb", source, unqualified=False)
    with base:
        assert len(base) == 2
        assert len(base.lookup(["rome"])) == 0
    with pytest.raises(ParameterError, match=r"id_space='wikipedia': wanted one of .*Did you mean wikipedia_id\?"):
        kb_from_wikimapper(tmp_path / "wiki.kb", source, id_space="wikipedia")
    with pytest.raises(FileError, match=r"index.db: page 1: the id is blank"):
        kb_from_wikimapper(tmp_path / "wiki.kb", database(source, "wikimapper", [(1, "A", " ")]))


@pytest.mark.parametrize("build", BUILDERS)
def test_files_that_are_none_are_refused(tmp_path, build):
    source = tmp_path / "source.db"
    with pytest.raises(FileError, match="no such file"):
        build(tmp_path / "made.kb", source)
    with pytest.raises(FileError, match="is a folder"):
        build(tmp_path / "made.kb", tmp_path)
    source.write_text("no database at all, but long enough to look like one " * 20)
    with pytest.raises(FileError, match=r"source.db: cannot be read as .* \(file is not a database\)"):
        build(tmp_path / "made.kb", source)
    other = "wikimapper" if build is kb_from_rel else "rel"
    with pytest.raises(FileError, match=r"is not a file of .*: wanted a table \w+\(w.*\), there is none"):
        build(tmp_path / "made.kb", database(source, other, ROWS[other]))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["source.db"]


@pytest.mark.parametrize("build", BUILDERS)
def test_views_are_not_asked_for_they_may_have_no_end(build, tmp_path):
    kind = build.__name__.removeprefix("kb_from_")
    source, table = database(tmp_path / "source.db", kind, ROWS[kind]), NAMES[kind]
    changed(source, f"ALTER TABLE {table} RENAME TO kept; CREATE VIEW {table} AS SELECT * FROM kept")
    with pytest.raises(FileError, match=f"is not a file of .*: {table} is not a table"):
        build(tmp_path / "made.kb", source)


def test_tables_with_other_columns_are_refused_and_do_not_steer_the_terminal(tmp_path):
    source = changed(tmp_path / "source.db", 'CREATE TABLE wiki("\x1b[2Jword" TEXT, p TEXT)')
    with pytest.raises(FileError, match=r"wiki\(word, p_e_m, freq\), its columns are \\x1b\[2Jword, p$"):
        kb_from_rel(tmp_path / "made.kb", source)


def test_a_locked_file_is_said_to_be_one(tmp_path, monkeypatch):
    source = database(tmp_path / "rel.db", "rel", [("x", coded([["A", 1.0]]), "x", 1)])
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, timeout=0.05, **options))
    with closing(connect(source, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(FileError, match=r"\(database is locked\); close the program that writes to it"):
            kb_from_rel(tmp_path / "made.kb", source)


@pytest.fixture
def spacy_kb():
    spacy = pytest.importorskip("spacy")
    from spacy.kb import InMemoryLookupKB

    base = InMemoryLookupKB(spacy.blank("en").vocab, entity_vector_length=3)
    base.set_entities(["Q2", "Q10", "Q3"], [1, 2, 3], [[0.0] * 3] * 3)
    base.add_alias("Emerson", ["Q2", "Q10"], [0.75, 0.25])
    base.add_alias("Ralph", ["Q2"], [0.5])
    return base


def test_spacys_knowledge_base_is_read_from_memory_and_from_disk(spacy_kb, tmp_path):
    spacy_kb.to_disk(tmp_path / "folder")
    for source in (spacy_kb, tmp_path / "folder", str(tmp_path / "folder")):
        with pytest.warns(DegenerateWarning, match="priors of 1 alias sum to 0.5 to 0.5, not 1"):
            base = kb_from_spacy(tmp_path / "made.kb", source, id_space="wikidata", names={"Q2": "Ralph Waldo Emerson"})
        with base:
            assert len(base) == 3
            assert values(base.alias_table(), "alias", "entity_id", "score") == [
                ("Emerson", "Q2", 0.75), ("Emerson", "Q10", 0.25), ("Ralph", "Q2", 1.0)
            ]  # fmt: skip
            assert base.names(["Q2", "Q3"]) == ["Ralph Waldo Emerson", ""]


def test_what_is_none_of_spacys_is_refused(spacy_kb, tmp_path, monkeypatch):
    spacy_kb.to_disk(tmp_path / "folder")
    (tmp_path / "folder" / "contents").write_bytes(b"\x00" * 7)
    for source, message in [
        (tmp_path / "folder", "folder: cannot be read as a spaCy knowledge base"),
        (tmp_path / "nowhere", "nowhere: no such folder; wanted the folder"),
        (tmp_path / "folder" / "contents", "contents: is a file; wanted the folder"),
        ({}, "wanted spaCy's InMemoryLookupKB or the folder of one, found dict"),
    ]:
        with pytest.raises(InputError, match=message):
            kb_from_spacy(tmp_path / "made.kb", source, id_space="x")
    monkeypatch.setitem(sys.modules, "spacy.kb", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'vbterrier\[spacy\]'"):
        kb_from_spacy(tmp_path / "made.kb", tmp_path / "folder", id_space="x")


@pytest.fixture
def made(tmp_path):
    entities = [{"id": f"E{i}", "label": f"name {i}", "attributes": {"n": i}} for i in range(3000)]
    with build_kb(tmp_path / "made.kb", entities, id_space="test"):
        pass
    return tmp_path / "made.kb"


def test_other_files_are_refused_on_opening(tmp_path):
    path = tmp_path / "made.kb"
    with pytest.raises(FileError, match="no such file"):
        KnowledgeBase(path)
    with pytest.raises(FileError, match="is no regular file"):
        KnowledgeBase(tmp_path)
    for content, message in [
        (b"", "is empty; wanted a knowledge base: build one with build_kb"),
        (b"id\tlabel\n", "is not a SQLite file; wanted a knowledge base"),
        (b"SQLite format 3\x00" + bytes(84), "not a knowledge base of this package; build one with build_kb"),
    ]:
        path.write_bytes(content)
        with pytest.raises(FileError, match=message):
            KnowledgeBase(path)
    with pytest.raises(FileError, match=r"not a knowledge base of .*; it looks like a file of REL: .*kb_from_rel"):
        KnowledgeBase(database(path, "rel", ROWS["rel"]))
    with pytest.raises(FileError, match="it looks like a file of wikimapper: build with kb_from_wikimapper"):
        KnowledgeBase(database(path, "wikimapper", PAGES))


def test_another_format_and_a_cut_off_file_are_told_on_opening(made):
    content = made.read_bytes()
    made.write_bytes(content[:60] + (99).to_bytes(4, "big") + content[64:])
    with pytest.raises(
        FileError, match=f"a knowledge base of format 99, this version reads {FORMAT_VERSION}: build it again"
    ):
        KnowledgeBase(made)
    for n_bytes in (len(content) - 1, 4096, 100):
        made.write_bytes(content[:n_bytes])
        with pytest.raises(FileError, match=f"is truncated: {n_bytes:,} bytes of {len(content):,}; copy or build"):
            KnowledgeBase(made)
    made.write_bytes(content)
    with KnowledgeBase(made) as base:
        assert len(base) == 3000


def test_a_file_that_does_not_say_what_it_is_is_damaged(made):
    changed(made, "DELETE FROM meta WHERE key = 'id_space'")
    with pytest.raises(FileError, match=r"is damaged \(id_space is missing\); build it again"):
        KnowledgeBase(made)


@pytest.mark.slow
def test_damage_is_an_error_of_the_file_or_goes_unseen_but_never_another_error(made):
    content = made.read_bytes()
    draw = random.Random(5)
    n_told = 0
    for _ in range(60):
        broken = bytearray(content)
        start = draw.randrange(100, len(content))
        broken[start : start + 3000] = bytes(draw.randrange(256) for _ in broken[start : start + 3000])
        made.write_bytes(broken)
        try:
            with KnowledgeBase(made) as base:
                base.lookup([f"name {i}" for i in range(0, 3000, 7)])
                base.names([f"E{i}" for i in range(0, 3000, 7)])
                base.attributes([f"E{i}" for i in range(0, 3000, 7)])
                base.alias_table()
        except FileError as error:
            n_told += "made.kb: is damaged" in str(error)
    assert n_told > 30


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="Linux says how much was read")
@pytest.mark.slow
def test_opening_and_asking_read_no_more_than_they_need(tmp_path):
    entities = ({"id": f"E{i:06}", "label": f"some name {i}", "attributes": {"text": "x" * 300}} for i in range(20_000))
    path = tmp_path / "made.kb"
    build_kb(path, entities, id_space="test").close()

    def n_read():
        return int(next(line for line in Path("/proc/self/io").read_text().splitlines() if "rchar" in line).split()[1])

    assert path.stat().st_size > 8e6
    before = n_read()
    with KnowledgeBase(path) as base:
        assert base.id_space == "test"
        opened = n_read() - before
        assert len(base.lookup(["some name 77"])) == len(base.attributes(["E000077"])) == 1
        n_pages = n_read() - before
    assert opened < 30_000
    assert n_pages < 200_000
