"""Look-ups in a knowledge base."""

import multiprocessing
import os
import pickle
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from operator import methodcaller

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.errors import FileError, InputError, ParameterError
from vbterrier.frames.names import normal_form
from vbterrier.linking import DictionaryLinker, QueryLinker
from vbterrier.linking.kb import building, knowledge_base
from vbterrier.linking.kb.files import build_kb
from vbterrier.linking.kb.knowledge_base import KnowledgeBase
from vbterrier.linking.kb.sqlite import KBConnection
from vbterrier.linking.links import Linker

SMITHS = [
    {"id": "S2", "label": "John Smith (Ohio)", "aliases": ["John Smith", "J. Smith"]},
    {"id": "S10", "label": "John Smith (Iowa)", "aliases": ["John Smith", "JOHN SMITH"]},
    {"id": "S1", "label": "Joan Smyth", "aliases": ["J Smith"], "redirects": ["S0"]},
]
# One alias with its count, as p(e|m): chosen so that the sums are exact.
FOXES = [
    {"id": "animal", "label": "fox", "aliases": [["fox", 0.75], ["Fox", 0.25]]},
    {"id": "channel", "label": "Fox Network", "aliases": [["Fox", 0.5], ["FOX", 1.0]]},
    {"id": "band", "label": "Fox (band)", "aliases": [["fox", 0.25], ["Fox", 0.25]]},
]


@pytest.fixture
def build(tmp_path):
    bases = []

    def built(entities, **options):
        bases.append(build_kb(tmp_path / f"{len(bases)}.kb", entities, **({"id_space": "test"} | options)))
        return bases[-1]

    yield built
    for base in bases:
        base.close()


@pytest.fixture
def smiths(build):
    return build(SMITHS)


@pytest.fixture
def foxes(build):
    return build(FOXES, labels_are_aliases=False)


def rows(frame, *columns):
    return list(frame[list(columns) if columns else ["entity_id", "score"]].itertuples(index=False, name=None))


def test_exact_look_ups_find_the_same_alias_alone(smiths):
    candidates = smiths.lookup(["John Smith", "john smith", "JOHN SMITH", "J. Smith"], how="exact")
    assert rows(candidates, "text", "mention", "alias", "entity_id", "score", "name") == [
        (0, "John Smith", "John Smith", "S10", 0.5, "John Smith (Iowa)"),
        (0, "John Smith", "John Smith", "S2", 0.5, "John Smith (Ohio)"),
        (2, "JOHN SMITH", "JOHN SMITH", "S10", 1.0, "John Smith (Iowa)"),
        (3, "J. Smith", "J. Smith", "S2", 1.0, "John Smith (Ohio)"),
    ]


def test_the_alias_of_an_entity_is_the_one_that_gives_it_most(foxes):
    # channel: Fox .5, FOX 1; animal: fox .75, Fox .25; band: fox .25, Fox .25, the first in case of a tie.
    expected = [("channel", "FOX", 0.5), ("animal", "fox", pytest.approx(1 / 3)), ("band", "Fox", 1 / 6)]
    assert rows(foxes.lookup(["fox"]), "entity_id", "alias", "score") == expected


def test_ties_come_in_the_order_of_ids_as_text(build):
    base = build([{"id": one, "aliases": ["x"]} for one in ["10", "9", "a", "B", "é", "𝒳", "\uffff", "007"]])
    assert base.lookup(["x"])["entity_id"].tolist() == ["007", "10", "9", "B", "a", "é", "\uffff", "𝒳"]
    assert set(base.lookup(["x"])["score"]) == {0.125}


def test_a_limit_keeps_the_first(foxes):
    for how in ("exact", "normalised", "fuzzy"):
        whole = foxes.lookup(["Fox", "none", "FOX"], how=how)
        first = foxes.lookup(["Fox", "none", "FOX"], how=how, limit=1)
        pd.testing.assert_frame_equal(first, whole.groupby("text").head(1).reset_index(drop=True))
        pd.testing.assert_frame_equal(foxes.lookup(["Fox", "none", "FOX"], how=how, limit=3), whole)


def test_what_nothing_is_known_of_has_no_rows_but_columns_and_types(smiths):
    for how in ("exact", "normalised", "fuzzy"):
        for mentions in ([], ["nobody"], ["", " ", "\x00", "!"]):
            candidates = smiths.lookup(mentions, how=how)
            assert candidates.columns.tolist() == ["text", "mention", "alias", "entity_id", "score", "name"]
            assert len(candidates) == 0
            assert candidates.dtypes.astype(str).to_dict() == smiths.lookup(["j smith"]).dtypes.astype(str).to_dict()
    assert len(smiths.lookup(["John Smith\x00", "John Smith\x00x"], how="exact")) == 0


def test_many_mentions_are_answered_in_their_place_with_few_parameters_a_statement(build, monkeypatch):
    base = build([{"id": f"E{i}", "aliases": [f"name {i}"]} for i in range(2500)])
    requests, rows = [], KBConnection.rows
    monkeypatch.setattr(
        KBConnection,
        "rows",
        lambda self, sql, parameters=(): requests.append(len(parameters)) or rows(self, sql, parameters),
    )
    for how in ("exact", "normalised"):
        candidates = base.lookup([f"name {i % 2500}" for i in range(6000)], how=how)
        assert candidates["text"].tolist() == list(range(6000))
        assert candidates["entity_id"].tolist() == [f"E{i % 2500}" for i in range(6000)]
    base.names([f"E{i}" for i in range(2500)])
    base.attributes([f"E{i}" for i in range(2500)])
    # Older versions of SQLite accept 999.
    assert 2500 < sum(requests) >= 999 >= max(requests) > 0


NAMES = st.text(alphabet="abAB .'é", min_size=1, max_size=4).filter(lambda text: not text.isspace())
ENTITIES = st.dictionaries(
    st.text(alphabet="abc", min_size=1, max_size=2),
    st.dictionaries(NAMES, st.sampled_from([None, 0.0, 0.125, 0.25, 0.5, 1.0]), max_size=4),
    min_size=1,
    max_size=6,
)


def by_hand(entities, mention, how):
    """Compute the definition in a loop."""
    form = normal_form if how == "normalised" else str
    aliases = sorted(
        {alias for aliases_of in entities.values() for alias in aliases_of if form(alias) == form(mention)}
    )
    total = {}
    any_prior = any(prior is not None for priors_of in entities.values() for prior in priors_of.values())
    for alias in aliases:
        priors = {
            entity: aliases_of_entity[alias]
            for entity, aliases_of_entity in entities.items()
            if alias in aliases_of_entity
        }
        present = [prior for prior in priors.values() if prior is not None]
        left = max(0.0, 1 - sum(present)) / max(1, len(priors) - len(present))
        shares = {entity: left if prior is None else prior for entity, prior in priors.items()}
        if sum(present) == 0 and len(present) in {0, len(priors)}:
            shares = dict.fromkeys(priors, 1.0)
        for entity, share in shares.items():
            total[entity] = total.get(entity, 0) + share / sum(shares.values())
    if not any_prior and how == "normalised":
        total = dict.fromkeys(total, 1.0)
    mass = sum(total.values())
    return {entity: share / mass for entity, share in total.items()}


@settings(max_examples=40, deadline=None)
@given(ENTITIES)
@pytest.mark.filterwarnings("ignore:the priors of:vbterrier.errors.DegenerateWarning")
@pytest.mark.filterwarnings("ignore:. alias(es have| has) entities:vbterrier.errors.DegenerateWarning")
def test_scores_are_those_of_the_definition(tmp_path_factory, entities):
    path = tmp_path_factory.getbasetemp() / "definition.kb"
    records = [{"id": entity, "aliases": [*map(list, aliases.items())]} for entity, aliases in entities.items()]
    mentions = sorted({alias for aliases in entities.values() for alias in aliases})
    with build_kb(path, records, id_space="test") as base:
        for how in ("exact", "normalised"):
            candidates = base.lookup(mentions, how=how)
            for place, mention in enumerate(mentions):
                mine = candidates[candidates["text"] == place]
                expected = by_hand(entities, mention, how)
                assert dict(rows(mine)) == pytest.approx(expected, abs=1e-12)
                order = list(zip(-mine["score"], mine["entity_id"], strict=True))
                assert order == sorted(order)


def test_fuzzy_scores_weigh_priors_and_meet_normalised_ones_where_the_name_is_known(foxes):
    exact = foxes.lookup(["FOX"])
    assert rows(foxes.lookup(["FOX"], how="fuzzy")) == rows(exact)
    like = foxes.lookup(["foxx"], how="fuzzy")
    assert like["score"].tolist() == pytest.approx((exact["score"] * 6 / 7).tolist(), abs=1e-15)


def test_equally_similar_names_come_in_the_order_of_ids(build):
    names = {"E2": ["abz"], "E1": ["zab", "aab"], "E3": ["aba"]}
    base = build([{"id": entity, "aliases": aliases} for entity, aliases in names.items()])
    candidates = base.lookup(["ab"], how="fuzzy", min_similarity=0.8)
    assert rows(candidates, "entity_id", "alias", "score") == [
        ("E1", "aab", 0.8),
        ("E2", "abz", 0.8),
        ("E3", "aba", 0.8),
    ]


def brute_force(names, mention, cutoff):
    from rapidfuzz.distance import Indel

    form = normal_form(mention)
    scored = ((Indel.normalized_similarity(form, normal_form(name)), place) for place, name in enumerate(names))
    return {f"E{place}": score for score, place in scored if score >= cutoff}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(NAMES, min_size=1, max_size=8, unique_by=normal_form),
    st.lists(NAMES, max_size=5),
    st.sampled_from([0.4, 0.5, 0.6, 2 / 3, 0.8, 1.0]),
)
def test_small_knowledge_bases_are_compared_name_by_name(tmp_path_factory, names, mentions, cutoff):
    path = tmp_path_factory.getbasetemp() / "fuzzy.kb"
    records = [{"id": f"E{place}", "aliases": [name]} for place, name in enumerate(names)]
    with build_kb(path, records, id_space="test") as base:
        candidates = base.lookup(mentions, how="fuzzy", min_similarity=cutoff)
        for place, mention in enumerate(mentions):
            assert dict(rows(candidates[candidates["text"] == place])) == pytest.approx(
                brute_force(names, mention, cutoff)
            )


WORDS = ["amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "isle", "juniper", "knoll", "lagoon"]


@pytest.fixture
def indexed(build, monkeypatch):
    monkeypatch.setattr(building, "MAX_COMPARED_NAMES", 100)
    names = [f"{one} {two} {three}" for one in WORDS for two in WORDS for three in WORDS[:7] if one != two]
    return build([{"id": f"E{place}", "aliases": [name]} for place, name in enumerate(names)]), names


def test_large_knowledge_bases_narrow_by_trigrams_and_find_the_best_name(indexed):
    base, names = indexed
    assert base._meta["has_trigrams"] == "1"
    draw = np.random.default_rng(3)
    chosen, places = draw.choice(names, 60).tolist(), draw.integers(12, size=60).tolist()
    mentions = [name[:place] + name[place + 1 :] for name, place in zip(chosen, places, strict=True)]
    candidates = base.lookup(mentions, how="fuzzy", min_similarity=0.8)
    for place, mention in enumerate(mentions):
        expected, mine = brute_force(names, mention, 0.8), dict(rows(candidates[candidates["text"] == place]))
        assert max(mine.values()) == pytest.approx(max(expected.values()))
        assert mine == pytest.approx({entity: expected[entity] for entity in mine})


def test_narrowing_compares_few_names_and_reads_few_postings(indexed, monkeypatch):
    base, names = indexed
    compared, read = [], []
    similar, having = knowledge_base._similar, knowledge_base.Names._having

    def counted(self, *args):
        places = having(self, *args)
        read.append(len(places))
        return places

    monkeypatch.setattr(knowledge_base, "_N_CANDIDATES", 16)
    monkeypatch.setattr(knowledge_base, "_N_POSTINGS", 400)
    monkeypatch.setattr(knowledge_base, "_similar", lambda f, t, p, c: compared.append(len(t)) or similar(f, t, p, c))
    monkeypatch.setattr(knowledge_base.Names, "_having", counted)
    candidates = base.lookup([names[5], names[700], "qqq"], how="fuzzy", limit=1)
    assert sorted(candidates["alias"]) == sorted([names[5], names[700]])
    assert sorted(compared) == [0, 16, 16]
    assert 0 < sum(read) <= 2 * 400


def test_short_and_similar_names_are_found_by_trigrams(build, monkeypatch):
    monkeypatch.setattr(building, "MAX_COMPARED_NAMES", 1)
    names = ["x", "é", '"', "a\"b'c*", "東京", "a OR b", "!!!"]
    base = build([{"id": name, "aliases": [name]} for name in names])
    candidates = base.lookup(names, how="fuzzy", min_similarity=1.0)
    assert rows(candidates, "text", "entity_id") == list(enumerate(names))
    # Of names that share as many trigrams, those with the nearest length are compared.
    monkeypatch.setattr(knowledge_base, "_N_CANDIDATES", 2)
    names = ["abc", "abc d", "abc de", "abc def", "abc d f", "abc def gh"]
    base = build([{"id": name, "aliases": [name]} for name in names])
    candidates = base.lookup(["abc xxx"], how="fuzzy", min_similarity=0.3)
    assert set(candidates["alias"]) == {"abc def", "abc d f"}


def test_without_an_index_many_names_are_not_compared_in_silence(build, monkeypatch):
    monkeypatch.setattr(building, "MAX_COMPARED_NAMES", 1)
    monkeypatch.setattr(building, "_trigram_fault", lambda: "no such module: fts5")
    with pytest.warns(UserWarning, match=r"5 names need an index of trigrams .*no such module: fts5"):
        base = build(SMITHS)
    assert len(base.lookup(["john smith"])) == 2
    assert len(base.lookup(["john smith"], how="fuzzy")) >= 2, "few enough for this reader"
    monkeypatch.setattr(knowledge_base, "MAX_COMPARED_NAMES", 1)
    with pytest.raises(InputError, match=r"kb: has 5 names but no index of trigrams, .*; build it again"):
        base.lookup(["john smith"], how="fuzzy")


def test_a_sqlite_without_fts5_still_looks_up_exactly(indexed, monkeypatch):
    base, names = indexed

    class Poor:
        """A connection without FTS5."""

        def __init__(self, db):
            self.db = db

        def execute(self, sql, parameters=()):
            if "form_trigram" in sql:
                raise sqlite3.OperationalError("no such module: fts5")
            return self.db.execute(sql, parameters)

        def close(self):
            self.db.close()

    db, lock = base._connection._db()
    monkeypatch.setitem(base._connection._by_process, os.getpid(), (Poor(db), lock))
    assert len(base.lookup([names[0]])) == 1
    with pytest.raises(InputError, match=r"has an index that this SQLite .* cannot read .*exact and normalised"):
        base.lookup([names[0]], how="fuzzy")


def test_rapidfuzz_is_asked_for_only_where_it_is_needed(smiths, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rapidfuzz.process", None)
    assert len(smiths.lookup(["john smith"])) == 2
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'vbterrier\[linkers\]'"):
        smiths.lookup(["john smith"], how="fuzzy")


def test_names_and_redirects_of_ids(smiths):
    assert smiths.resolve(["S0", "S1", "nobody", "S0"]) == ["S1", "S1", "nobody", "S1"]
    assert smiths.names(["S0", "nobody", "S10", ""]) == ["Joan Smyth", "", "John Smith (Iowa)", ""]
    assert smiths.resolve([]) == smiths.names([]) == []


def test_attributes_come_typed_in_the_order_of_the_source(build):
    attributes = {"state": "OH", "born": "1850", "current": False, "votes": 1200, "share": 0.25, "died": None}
    first = {"id": "a", "attributes": attributes | {"party": ["A", "B", "A"]}, "wikipedia": "A (Ohio)"}
    entities = [first | {"redirects": ["z"]}, {"id": "b", "attributes": {"born": -44}}, {"id": "c"}]
    base = build(entities, types={"born": "year"})
    result = base.attributes(["b", "z", "c", "nobody", "b"])
    assert result.columns.tolist() == ["entity_id", "attribute", "value", "type"]
    assert result["entity_id"].tolist() == ["b", *["z"] * 8]
    assert rows(result, "attribute", "value", "type") == [
        *[("born", "-44", "year"), ("state", "OH", "text"), ("born", "1850", "year"), ("current", "false", "boolean")],
        *[("votes", "1200", "number"), ("share", "0.25", "number"), ("party", "A", "text"), ("party", "B", "text")],
        ("wikipedia", "A (Ohio)", "text"),
    ]
    assert base.attributes([]).columns.tolist() == result.columns.tolist()
    assert base.attribute_names() == ["born", "current", "party", "share", "state", "votes", "wikipedia"]


def test_the_table_of_aliases_agrees_with_exact_look_ups(foxes):
    table = foxes.alias_table()
    assert table["alias"].tolist() == ["FOX", *["Fox"] * 3, *["fox"] * 2]
    candidates = foxes.lookup(table["alias"].unique().tolist(), how="exact")
    pd.testing.assert_frame_equal(candidates[["alias", "entity_id", "score"]], table.drop(columns="weight"))
    assert set(table["weight"]) == {1.0}


def test_a_knowledge_base_links_whole_texts(smiths):
    assert isinstance(smiths, Linker)
    links = smiths.link(["John Smith", "the John Smith", "zoë", "J Smith"])
    assert (links.id_space, links.scale) == ("test", "probability")
    john, j = (0, 0, 10, "John Smith"), (3, 0, 7, "J Smith")
    expected = [(*john, "S10", 0.5), (*john, "S2", 0.5), (*j, "S1", 0.5), (*j, "S2", 0.5)]
    assert rows(links.frame, "text", "start", "end", "mention", "entity_id", "score") == expected
    assert len(smiths.link([]).frame) == 0


def test_a_knowledge_base_links_by_its_lookup_and_is_equal_by_contents_and_lookup(foxes, smiths):
    assert (smiths.id_space, smiths.has_priors, foxes.has_priors) == ("test", False, True)
    assert (len(smiths), smiths.n_aliases) == (3, 7)
    assert smiths == KnowledgeBase(str(smiths.path)) != foxes
    for how in ("exact", "normalised", "fuzzy"):
        base = KnowledgeBase(foxes.path, how=how)
        links, result = base.link(["FOX", "fux"]), base.lookup(["FOX", "fux"], how=how)
        assert links.scale == ("score" if how == "fuzzy" else "probability")
        assert rows(links.frame, "text", "entity_id", "score") == rows(result, "text", "entity_id", "score")
        again = pickle.loads(pickle.dumps(base))
        assert (again, hash(again), again.how) == (base, hash(base), how)
        assert repr(again) == repr(base)
        assert (base == foxes) == (how == "normalised")
    assert repr(base) == f"KnowledgeBase({base.path.name!r}, {base.digest[:8]}, how='fuzzy')"
    assert repr(foxes) == f"KnowledgeBase({base.path.name!r}, {base.digest[:8]})"
    assert rows(KnowledgeBase(foxes.path, how="exact").link(["FOX"]).frame, "entity_id") == [("channel",)]
    with pytest.raises(ParameterError, match="how='fuzy': wanted one of 'exact', 'normalised', 'fuzzy'"):
        KnowledgeBase(foxes.path, how="fuzy")


def test_a_moved_knowledge_base_is_the_same(foxes, tmp_path, monkeypatch):
    moved = tmp_path / foxes.path.name
    moved.write_bytes(foxes.path.read_bytes())
    monkeypatch.chdir(tmp_path)
    for other in map(KnowledgeBase, (moved, moved.name)):
        assert (other, hash(other), repr(other)) == (foxes, hash(foxes), repr(foxes))


CHANGES = [{"id": "c"}, {"label": "Bea!"}, {"aliases": [["B", 0.25], "BB"]}, {"aliases": ["B"]}]
CHANGES += [{"aliases": [["B", 0.5], "bb"]}, {"redirects": ["b1"]}, {"redirects": []}, {"born": "1850"}]
CHANGES += [{"seats": ["y", "x"]}]


@pytest.mark.filterwarnings("ignore:the priors of:vbterrier.errors.DegenerateWarning")
@pytest.mark.filterwarnings("ignore:. alias(es have| has) entities:vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("change", CHANGES)
def test_the_digest_of_a_knowledge_base_is_that_of_its_contents(tmp_path, change):
    one = {"id": "a", "aliases": [["B", 0.5]]}
    other = {"id": "b", "label": "Bea", "aliases": [["B", 0.5], "BB"], "redirects": ["b0"], "born": 1850}
    other["seats"] = ["x", "y"]

    def digest(*entities, id_space="test"):
        with build_kb(tmp_path / "made.kb", entities, id_space=id_space) as base:
            return base.digest

    made = digest(one, other)
    assert made == digest(other, one), "the order of entities says nothing"
    assert len({made, digest(one, other | change), digest(one, other, id_space="others")}) == 3


@pytest.mark.parametrize(
    ("mentions", "message"),
    [
        ("John Smith", r"mentions: wanted a list of texts, found one text; pass \[text\]"),
        (["a", None], "mentions: place 1 is NoneType, wanted text"),
        (["a", 5], "mentions: place 1 is int, wanted text: '5'; repair"),
        (["a", "\ud800b"], r"mentions: place 1 contains half a surrogate pair: '\\ud800b'; repair"),
    ],
)
def test_mentions_that_are_none_are_refused_with_their_place(smiths, mentions, message):
    for ask in (smiths.lookup, smiths.link):
        with pytest.raises(InputError, match=message):
            ask(mentions)
    for ask in (smiths.names, smiths.resolve, smiths.attributes):
        with pytest.raises(InputError, match=message.replace("mentions", "ids")):
            ask(mentions)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("how", "exactly", "wanted one of 'exact', 'normalised', 'fuzzy'. Did you mean exact?"),
        ("limit", 0, "wanted a whole number, 1 or more"),
        *(("min_similarity", value, "wanted a number above 0 and at most 1") for value in (0, 80)),
    ],
)
def test_parameters_that_are_none_are_refused(smiths, name, value, message):
    with pytest.raises(ParameterError, match=f"{name}={value!r}: {message}"):
        smiths.lookup(["x"], **{name: value})


def test_a_closed_knowledge_base_can_be_opened_again(smiths):
    copy = pickle.loads(pickle.dumps(smiths))
    smiths.close()
    smiths.close()
    pd.testing.assert_frame_equal(smiths.lookup(["j smith"]), copy.lookup(["j smith"]))
    copy.close()


def look_ups(base):
    return base.lookup(["j smith"])["entity_id"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_processes_share_it(smiths, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    look_ups(smiths)
    # A function of the standard library, because a new process cannot import this file.
    with multiprocessing.get_context(method).Pool(2) as pool:
        answers = pool.map_async(methodcaller("lookup", ["j smith"]), [smiths] * 4).get(timeout=60)
    assert [answer["entity_id"].tolist() for answer in answers] == [["S1", "S2"]] * 4
    if method == "fork":

        def child():
            is_open = look_ups(smiths) == ["S1", "S2"] and os.getpid() in smiths._connection._by_process
            raise SystemExit(0 if is_open else 1)

        process = multiprocessing.get_context(method).Process(target=child)
        process.start()
        process.join()
        assert process.exitcode == 0, "a fork opens the file again"


@pytest.mark.slow
def test_threads_share_it_even_while_another_closes_it(smiths):
    stop = threading.Event()

    def close_again():
        while not stop.is_set():
            smiths.close()

    closer = threading.Thread(target=close_again)
    closer.start()
    try:
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(look_ups, [smiths] * 60)) == [["S1", "S2"]] * 60
    finally:
        stop.set()
        closer.join()


def test_a_new_file_in_its_place_disturbs_nobody(build, smiths):
    look_ups(smiths)
    with build_kb(smiths.path, [{"id": "new", "aliases": ["J Smith"]}], id_space="test") as new:
        assert look_ups(new) == ["new"]
    assert look_ups(smiths) == ["S1", "S2"], "the file that was opened"
    smiths.close()
    assert look_ups(smiths) == ["new"]


def test_asking_leaves_the_folder_and_the_file_as_they_were(smiths):
    with closing(sqlite3.connect(smiths.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert look_ups(smiths) == ["S1", "S2"], "locks do not matter"
    before = smiths.path.read_bytes(), sorted(smiths.path.parent.iterdir())
    smiths.lookup(["john smith"], how="fuzzy")
    smiths.attributes(["S1"])
    smiths.path.chmod(0o444)
    smiths.close()
    assert look_ups(smiths) == ["S1", "S2"]
    assert (smiths.path.read_bytes(), sorted(smiths.path.parent.iterdir())) == before


RENAMED = "ALTER TABLE meta RENAME TO kept; "
COMPUTED = {
    "view": RENAMED + "CREATE VIEW meta AS SELECT key, value FROM kept",
    "generated": RENAMED + "CREATE TABLE meta(key TEXT, own TEXT, value TEXT AS (own));"
    "INSERT INTO meta(key, own) SELECT key, value FROM kept",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM meta; END",
    "virtual": "CREATE VIRTUAL TABLE words USING fts5(text)",
    # Other versions of SQLite report a malformed file.
    "disguised": "CREATE VIEW hidden AS SELECT 1; PRAGMA writable_schema = ON;"
    "UPDATE sqlite_master SET type = 'table' WHERE name = 'hidden'",
}


@pytest.mark.parametrize("changes", COMPUTED.values(), ids=COMPUTED)
def test_nothing_in_a_file_is_computed_as_it_is_read(smiths, changes):
    assert look_ups(smiths) == ["S1", "S2"]
    smiths.close()
    with closing(sqlite3.connect(smiths.path)) as db:
        db.executescript(changes)
    with pytest.raises(FileError, match=r"is damaged \(('\w+' is computed, unlike the tables|malformed)"):
        look_ups(smiths)


def test_functions_are_not_called_from_the_schema_of_a_file(smiths):
    assert smiths._connection.rows("PRAGMA trusted_schema") == [(0,)]
    assert smiths._connection.rows("PRAGMA cell_size_check") == [(1,)]


SPELLED = [("1", "Fox News", 900), ("2", "Fox News", 100), ("3", "fox news", 10)]


@pytest.mark.parametrize("of_aliases", [True, False])
def test_counts_of_spellings_add_up(tmp_path, of_aliases):
    """The look-up and the linkers: 901 of (900 + 1) + (100 + 1) + (10 + 1), not half of 10/10."""
    expected = pytest.approx({"1": 901 / 1013, "2": 101 / 1013, "3": 11 / 1013})
    frame = pd.DataFrame(SPELLED, columns=["entity_id", "alias", "count"])
    records = [
        {"id": one, "aliases": [{"alias": name, "count": n}]} if of_aliases else {"id": one, "label": name, "count": n}
        for one, name, n in SPELLED
    ]
    with build_kb(tmp_path / "kb", records, id_space="test") as base:
        sources = [base, DictionaryLinker(base), QueryLinker(base), DictionaryLinker(frame, id_space="test")]
        for source in sources:
            result = source.link(["fox news"]).frame
            assert dict(zip(result["entity_id"], result["score"], strict=True)) == expected


def test_counts_of_an_entity_count_once_for_all_its_spellings(tmp_path):
    records = [
        {"id": "1", "label": "Fox News", "aliases": ["fox news", "FOX news"], "count": 100},
        {"id": "2", "label": "Fox News", "count": 300},
    ]
    with build_kb(tmp_path / "kb", records, id_space="test") as base:
        for source in (base, DictionaryLinker(base), QueryLinker(base)):
            frame = source.link(["fox  news"]).frame
            scores = dict(zip(frame["entity_id"], frame["score"], strict=True))
            assert scores == pytest.approx({"1": 101 / 402, "2": 301 / 402})
    counted = [
        {"id": "1", "aliases": [{"alias": "Fox News", "count": 50}, {"alias": "fox news", "count": 50}]},
        {"id": "2", "aliases": [{"alias": "Fox News", "count": 300}]},
    ]
    with build_kb(tmp_path / "kb2", counted, id_space="test") as base:
        for source in (base, DictionaryLinker(base), QueryLinker(base)):
            frame = source.link(["fox  news"]).frame
            scores = dict(zip(frame["entity_id"], frame["score"], strict=True))
            assert scores == pytest.approx({"1": 102 / 403, "2": 301 / 403})
