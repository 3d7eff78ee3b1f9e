"""Knowledge bases from files of entities and dumps of Wikidata."""

import bz2
import gzip
import io
import json
import re
import subprocess
import sys

import pandas as pd
import pytest

from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.linking.kb import staging
from vbterrier.linking.kb.files import EntityPriors, build_kb, kb_from_file
from vbterrier.linking.kb.mediawiki import read_mediawiki_aliases
from vbterrier.linking.kb.wikidata import WikidataOptions, kb_from_wikidata

PACKS = {"plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress}


@pytest.fixture
def files(tmp_path):
    """Write a source, and build a knowledge base from it."""
    bases = []

    def built(content, build=kb_from_file, **options):
        source = tmp_path / "source"
        source.write_bytes(content if isinstance(content, bytes) else content.encode())
        options = ({"id_space": "test"} if build is kb_from_file else {}) | options
        bases.append(build(tmp_path / "made.kb", source, **options))
        return bases[-1]

    yield built
    for base in bases:
        base.close()


def values(frame):
    return [tuple(row) for row in frame.to_numpy().tolist()]


@pytest.mark.parametrize("pack", PACKS)
def test_json_lines_are_read_plain_and_packed(files, pack):
    text = (
        '\ufeff{"id": "a", "label": "Anna", "aliases": ["A"], "born": 1850}\r\n\n{"id": "b", "aliases": [["A", null]]}'
    )
    base = files(PACKS[pack](text.encode()))
    assert values(base.lookup(["a"])[["entity_id", "score"]]) == [("a", 0.5), ("b", 0.5)]
    assert values(base.attributes(["a"])) == [("a", "born", "1850", "number")]


@pytest.mark.parametrize("pack", PACKS)
def test_columns_are_read_plain_and_packed(files, pack):
    text = (
        "id\tlabel\talias\tprior\taliases\tredirect\tborn\n"
        '007\tJames "Jim" Bond\tBond\t0.75\t\t\t1920\n'
        "007\t\t\t\tJB|Double O\told\t\n"
        "\n"
        "NA\tSodium\tBond\t0.25\t\t\t\n"
    )  # fmt: skip
    base = files(PACKS[pack](text.encode()), types={"born": "year"})
    assert values(base.lookup(["Bond", "double o", 'James "Jim" Bond'])[["entity_id", "score"]]) == [
        ("007", 0.75), ("NA", 0.25), ("007", 1.0), ("007", 1.0)
    ]  # fmt: skip
    assert base.resolve(["old"]) == ["007"]
    assert values(base.attributes(["007", "NA"])) == [("007", "born", "1920", "year")]


def test_columns_without_a_header_line_are_named(files):
    base = files("Anna\ta\nBea\tb\n", columns=["alias", "id"])
    assert values(base.alias_table()) == [("Anna", "a", 1.0, 1.0), ("Bea", "b", 1.0, 1.0)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": "a"}\n\n{"id": "b"', "source:3: is not JSON in UTF-8 .*; wanted one entity per line"),
        (b'{"id": "a"}\n{"id": "\xff"}', "source:2: is not JSON in UTF-8"),
        ('{"id": "a"}\n[1]', "source:2: is list, wanted a mapping"),
        ('{"id": "a"}\n{"id": 5}', "source:2: the id is int, wanted text: '5'"),
        ('{"id": "a", "aliases": [["x", NaN]]}', r"source:1: is not JSON in UTF-8 \(NaN is not JSON\)"),
        ('{"id": "a", "n": ' + "9" * 5000 + "}", "source:1: is not JSON"),
        ('{"id": "a", "n": ' + "[" * 100_000, "source:1: (nests too deeply|is not JSON)"),
        ('{"id": "a", "label": "\\ud800"}', "source:1: the label of 'a' contains half a surrogate pair"),
        ('{"id": "a", "label": "A"}\n{"id": "a", "label": "B"}', "source:2: id 'a' has the labels 'A' and 'B'"),
        ("id\tlabel\na\tA\tx\n", "source:2: has 3 tab-separated cells, wanted 2: id, label"),
        ("id\tprior\na\t0.5\n", "source:2: has a prior, wanted exactly one alias"),
        ("id\talias\tprior\na\tx\toften\n", "source:2: alias 'x' of 'a' has prior 'often', wanted a number in 0 to 1"),
        ("id\talias\n\tx\n", "source:2: the id is blank"),
        (b"id\talias\na\t\xff\n", "source:2: is not UTF-8"),
        ("name\tIDs\na\tb\n", r"source: no column 'id' among 'name', 'IDs'; wanted a .* header .*Did you mean IDs\?"),
        ("id\tlabel\tlabel\n", "source: duplicate column 'label'"),
        ("id\tlabel\n", "entities: none"),
        ("\n\n", "source: is empty; wanted one entity per line"),
        (gzip.compress(b'{"id": "a"}\n' * 9000, mtime=0)[:-20], "cannot be read to its end .*: download or compress"),
        (bz2.compress(b'{"id": "a"}\n' * 9000)[:-20], "source:.*: cannot be read to its end .*: download or compress"),
        (b'{"id": "a", "aliases": [["a", Infinity]]}\n', r"source:1: is not JSON in UTF-8 \(Infinity is not JSON\)"),
        (b"\x1f\x8bnonsense", "source:1: cannot be read to its end"),
    ],
)
def test_lines_that_are_none_are_refused_with_their_number(files, tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        files(content)
    assert not (tmp_path / "made.kb").exists()


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(FileError, match="is a folder; wanted a file"):
        kb_from_file(tmp_path / "made.kb", tmp_path, id_space="test")
    (tmp_path / "entities.tsv").write_text("id\na\n")
    with pytest.raises(FileError, match=r"no such file in the folder .*Did you mean entities.tsv\?"):
        kb_from_file(tmp_path / "made.kb", tmp_path / "entity.tsv", id_space="test")
    with pytest.raises(FileError, match="exists and is not a knowledge base, so it is not replaced"):
        kb_from_file(tmp_path / "entities.tsv", tmp_path / "entities.tsv", id_space="test")
    (tmp_path / "lines.jsonl").write_text('{"id": "a"}')
    with pytest.raises(ParameterError, match="columns: not used for JSON lines"):
        kb_from_file(tmp_path / "made.kb", tmp_path / "lines.jsonl", id_space="test", columns=["id"])


def test_small_files_that_grow_without_end_are_refused(files, monkeypatch):
    bomb = gzip.compress(b'{"id": "a"}\n' * 100_000)
    with pytest.raises(FileError, match="source: has more than 100,000 bytes when decompressed; max_bytes="):
        files(bomb, max_bytes=100_000)
    monkeypatch.setattr(staging, "MAX_LINE", 1000)
    with pytest.raises(FileError, match="source:2: has a line of more than 1,000 bytes"):
        files(b'{"id": "a"}\n' + b" " * 10_000)


def test_of_a_line_without_end_only_the_limit_is_read(tmp_path):
    class Endless:
        def readline(self, size):
            return b"x" * size

    with pytest.raises(FileError, match="source:7: has a line of more than 67,108,864 bytes"):
        staging._read_line(tmp_path / "source", Endless(), 7)


@pytest.mark.nightly
def test_the_legislators_are_what_their_file_says(shared_data, tmp_path):
    source = shared_data / "kb_us_congress" / "entities.jsonl.gz"
    with gzip.open(source, "rt", encoding="utf-8") as file:
        records = {record["id"]: record for record in map(json.loads, file)}
    with kb_from_file(tmp_path / "made.kb", source, id_space="bioguide", types={"born": "year"}) as base:
        assert len(base) == len(records) == 12_766
        assert not base.has_priors
        ids = list(records)
        assert base.names(ids) == [record["label"] for record in records.values()]
        facts = base.attributes(ids)
        assert len(facts) == sum(len(record["attributes"]) + 1 for record in records.values())
        assert set(facts.loc[facts["attribute"] == "born", "type"]) == {"year"}
        pairs = {(name, one) for one, record in records.items() for name in [*record["aliases"], record["label"]]}
        assert {(alias, one) for alias, one, *_ in values(base.alias_table())} == pairs
        ambiguous = (shared_data / "kb_us_congress" / "ambiguous_full_names.tsv").read_text("utf-8").splitlines()[1:]
        names, _, bearers = zip(*(line.split("\t") for line in ambiguous), strict=True)
        candidates = base.lookup(names, how="exact")
        for place, expected in enumerate(bearers):
            mine = candidates[candidates["text"] == place]
            assert set(expected.split(",")) <= set(mine["entity_id"])
            assert mine["score"].tolist() == pytest.approx([1 / len(mine)] * len(mine))
        smiths = base.lookup(["john smith"])["entity_id"].tolist()
        assert len(smiths) >= 14
        assert base.lookup(["jon smith"], how="fuzzy", limit=len(smiths))["entity_id"].tolist() == smiths


def statement(kind, value, rank="normal"):
    return {"rank": rank, "mainsnak": {"snaktype": "value", "datavalue": {"type": kind, "value": value}}}


def time(text, precision=9):
    return {"time": text, "precision": precision}


def item(entity, labels=None, aliases=None, **claims):
    return {
        "type": "item",
        "id": entity,
        "labels": {code: {"language": code, "value": text} for code, text in (labels or {}).items()} or [],
        "aliases": {
            code: [{"language": code, "value": text} for text in texts] for code, texts in (aliases or {}).items()
        },
        "claims": claims or [],
    }


def dump(*entities):
    return "[\n" + ",\n".join(map(json.dumps, entities)) + "\n]\n"


LINCOLN = item(
    "Q91",
    {"en": "Abraham Lincoln", "de": "Abraham Lincoln", "fr": "Lincoln (Abraham)"},
    {"en": ["Abe Lincoln", "Lincoln"], "de": ["Lincoln"]},
    P569=[
        statement("time", time("+1809-02-12T00:00:00Z", 11)),
        statement("time", time("+1808-00-00T00:00:00Z"), "deprecated"),
    ],
    P106=[statement("wikibase-entityid", {"id": "Q40348"}), statement("wikibase-entityid", {"numeric-id": 82955})],
    P39=[statement("wikibase-entityid", {"id": "Q1"}), statement("wikibase-entityid", {"id": "Q2"}, "preferred")],
    P2048=[statement("quantity", {"amount": "+193.5", "unit": "http://www.wikidata.org/entity/Q174728"})],
    P20=[{"rank": "normal", "mainsnak": {"snaktype": "somevalue"}}],
)
ODD = item(
    "Q2",
    {"de": "Erde"},
    P1=[
        statement("time", time("-0044-03-15T00:00:00Z", 11)),
        statement("time", time("+1850-00-00T00:00:00Z", 7)),
        statement("globecoordinate", {"latitude": -1.5, "longitude": 30}),
        statement("monolingualtext", {"language": "la", "text": "Terra"}),
        statement("string", "x"),
        statement("string", "x"),
        statement("unheard of", {"b": 1, "a": 2}),
    ],
)  # fmt: skip
PROPERTY = {"type": "property", "id": "P31", "labels": {"en": {"language": "en", "value": "instance of"}}}


@pytest.mark.parametrize("pack", PACKS)
def test_dumps_are_read_plain_and_packed(files, pack):
    base = files(PACKS[pack](dump(PROPERTY, LINCOLN).encode()), kb_from_wikidata)
    assert base.id_space == "wikidata"
    assert values(base.alias_table()[["alias", "entity_id"]]) == [
        ("Abe Lincoln", "Q91"), ("Abraham Lincoln", "Q91"), ("Lincoln", "Q91")
    ]  # fmt: skip


def test_names_come_in_the_first_language_there_is(files):
    base = files(dump(LINCOLN, ODD), kb_from_wikidata, languages=["fr", "de"])
    assert base.names(["Q91", "Q2"]) == ["Lincoln (Abraham)", "Erde"]
    assert base.alias_table()["alias"].tolist() == ["Abraham Lincoln", "Erde", "Lincoln", "Lincoln (Abraham)"]


def test_properties_become_attributes_of_their_type_and_rank(files):
    expected = {"P569": "born", "P39": "office", "P106": "work", "P2048": "height", "P20": "died in", "P1": "odd"}
    base = files(dump(LINCOLN, ODD), kb_from_wikidata, languages=["en", "de"], properties=expected)
    assert values(base.attributes(["Q91", "Q2"])) == [
        ("Q91", "born", "1809", "year"),
        ("Q91", "office", "Q2", "text"),
        ("Q91", "work", "Q40348", "text"),
        ("Q91", "work", "Q82955", "text"),
        ("Q91", "height", "193.5", "number"),
        ("Q2", "odd", "-44", "year"),
        ("Q2", "odd", "+1850-00-00T00:00:00Z", "text"),
        ("Q2", "odd", "-1.5,30", "text"),
        ("Q2", "odd", "Terra", "text"),
        ("Q2", "odd", "x", "text"),
        ("Q2", "odd", '{"a": 2, "b": 1}', "text"),
    ]
    base = files(dump(LINCOLN), kb_from_wikidata, properties=["P569"])
    assert values(base.attributes(["Q91"])) == [("Q91", "P569", "1809", "year")]


def test_redirects_and_a_choice_of_items_are_given_from_outside(files):
    for redirects in ({"Q5": "Q91", "Q6": "Q5"}, iter([("Q6", "Q5"), ("Q5", "Q91")])):
        options = WikidataOptions(redirects=redirects, where=lambda one: "P569" in one["claims"])
        base = files(dump(LINCOLN, item("Q3", {"en": "life"})), kb_from_wikidata, options=options)
        assert (len(base), base.names(["Q6", "Q3"])) == (1, ["Abraham Lincoln", ""])
    with pytest.raises(InputError, match=r"^redirects: the id that 'Q5' redirects to is int, wanted text"):
        files(dump(LINCOLN), kb_from_wikidata, options=WikidataOptions(redirects={"Q5": 91}))
    # Python takes a text of two letters for a pair.
    for odd in (["Q1"], ["Q1", ("Q5", "Q91")], "", "Q1", 3, [("Q1",)]):
        with pytest.raises(ParameterError, match=r"redirects=.*: wanted a mapping or pairs of ids"):
            WikidataOptions(redirects=odd)


def test_items_without_a_name_and_names_that_are_none_are_counted(files):
    odd = item("Q4", {"en": "four"}, {"en": [" ", "x" * 5000, "fo\x00ur"]}, P1=[statement("string", " ")])
    message = (
        "^made.kb: left out 1 aliases whose text contains a NUL; 1 aliases whose text is blank; 1 aliases whose text "
        "is longer than 4,096 letters; 1 items without a label or alias in these languages; 1 values whose text is bl"
    )
    with pytest.warns(DegenerateWarning, match=message) as warned:
        base = files(dump(ODD, odd), kb_from_wikidata, properties=["P1"])
    assert len(warned) == 1
    assert base.alias_table()["alias"].tolist() == ["four"]


def test_an_item_that_stands_twice_keeps_its_first_name(files):
    base = files(dump(item("Q1", {"en": "b"}), item("Q1", {"en": "a"})), kb_from_wikidata)
    assert base.names(["Q1"]) == ["b"]
    assert len(base.alias_table()) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (dump(LINCOLN)[:-3], "source:2: is truncated: its list has no end"),
        (dump(LINCOLN) + json.dumps(ODD), "source:4: continues after the end of its list"),
        (dump(LINCOLN, ODD)[:-40], "source:3: is not JSON"),
        (dump(LINCOLN, [1]), "source:3: is not a Wikidata entity: wanted an object with an id"),
        (dump(LINCOLN, {"labels": {}}), "source:3: is not a Wikidata entity: wanted an object with an id"),
        (dump(LINCOLN, ODD | {"labels": {"en": "Earth"}}), "source:3: is not a Wikidata entity: labels"),
        (dump(LINCOLN, ODD | {"labels": {"en": {"value": 5}}}), "source:3: the label of 'Q2' is int, wanted text"),
        (json.dumps([LINCOLN]), "source:1: is not a Wikidata entity"),
        ('{"id": "a", "aliases": ["A"]}', "source:1: .* labels, aliases or .* format; .*kb_from_file"),
        ('{"id": "a", "labels": ["en"]}', "source:1: .* labels, aliases or .* format; .*--kind file"),
        ("[\n]\n", "entities: none"),
    ],
)
def test_dumps_that_are_none_are_refused_with_their_line(files, content, message):
    with pytest.raises(InputError, match=message):
        files(content, kb_from_wikidata)


def test_blank_lines_and_lines_without_a_list_are_taken(files):
    assert len(files(f"\n{json.dumps(LINCOLN)}\n\n", kb_from_wikidata)) == 1
    assert len(files(dump(LINCOLN) + "\n\n", kb_from_wikidata)) == 1


def test_one_language_or_property_is_still_a_list(files):
    with pytest.raises(ParameterError, match=r"languages='en': wanted a list of codes"):
        files(dump(LINCOLN), kb_from_wikidata, languages="en")
    with pytest.raises(ParameterError, match=r"properties='P31': wanted a list, or a mapping"):
        files(dump(LINCOLN), kb_from_wikidata, properties="P31")


MEMORY = """
import resource, sys
from vbterrier.linking.kb import kb_from_wikidata
kb_from_wikidata(sys.argv[2], sys.argv[1], properties=["P569"], progress=False).close()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="memory is told in other units elsewhere")
def test_memory_does_not_grow_with_the_dump(tmp_path):
    def peak(n_items):
        source = tmp_path / f"{n_items}.json.gz"
        # Most parts of an entity are not used, as in real dumps.
        ballast = {f"P{place}": [statement("string", "x" * 40)] for place in range(12)}
        with gzip.open(source, "wt", compresslevel=1) as file:
            file.write("[\n")
            for place in range(n_items):
                one = item(f"Q{place}", {"en": f"name {place}"}, {"en": [f"also {place}"]}, **ballast)
                file.write(json.dumps(one) + (",\n" if place + 1 < n_items else "\n]\n"))
        command = [sys.executable, "-c", MEMORY, str(source), str(tmp_path / "made.kb")]
        return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    # 20,000 items are 30 MB of JSON, and need much more memory as objects.
    assert peak(22_000) - peak(2_000) < 20_000, "KB"


PAGES = [
    {"id": "Q1", "label": "Mercury", "sites": {"enwiki": "Mercury (planet)", "dewiki": "Merkur", "frwiki": "Mercure"}},
    {"id": "Q2", "label": "Mercury", "sites": {"enwiki": "Mercury (element)"}},
    {"id": "Q3", "label": "Mercury", "sites": {"enwiki": "Mercury"}, "class": "Q4167410"},
    {"id": "Q4", "label": "Mercury", "sites": {}, "class": "Q5"},
    {"id": "Q5", "label": "List of Mercury missions", "sites": {"enwiki": "X"}, "class": "Q13406463"},
]


def wikidata(pages=PAGES):
    def item(page):
        snak = {"snaktype": "value", "datavalue": {"type": "wikibase-entityid", "value": {"id": page.get("class")}}}
        return {
            "type": "item",
            "id": page["id"],
            "labels": {"en": {"language": "en", "value": page["label"]}},
            "aliases": {},
            "sitelinks": {site: {"site": site, "title": title} for site, title in page["sites"].items()},
            "claims": {"P31": [{"mainsnak": snak, "rank": "normal"}]} if "class" in page else {},
        }

    return "[\n" + ",\n".join(json.dumps(item(page)) for page in pages) + "\n]\n"


def ids_of(base, mention):
    return {entity: round(score, 9) for entity, score in values(base.lookup([mention])[["entity_id", "score"]])}


def test_priors_of_wikidata_are_numbers_of_sitelinks_and_pages_are_no_entities(files):
    """(3 + 1) : (1 + 1) : (0 + 1); the disambiguation page and the list are no candidates."""
    with pytest.warns(DegenerateWarning, match="left out 2 pages that are no entities"):
        base = files(wikidata(), kb_from_wikidata)
    assert base.has_priors
    assert len(base) == 3
    assert ids_of(base, "mercury") == {"Q1": round(4 / 7, 9), "Q2": round(2 / 7, 9), "Q4": round(1 / 7, 9)}
    with pytest.warns(DegenerateWarning, match="left out 2 pages"):
        assert not files(wikidata(), kb_from_wikidata, priors=EntityPriors({})).has_priors
    kept = files(wikidata(), kb_from_wikidata, options=WikidataOptions(excluded=()), priors=EntityPriors({}))
    assert len(ids_of(kept, "mercury")) == 4


@pytest.mark.filterwarnings("ignore:made.kb. left out")
def test_page_views_and_aliases_of_titles_are_those_of_items(files, tmp_path):
    views = tmp_path / "views.tsv"
    views.write_text("entity_id\tcount\nMercury (element)\t9\nQ4\t4\nNobody\t7\n")
    aliases = pd.DataFrame({"alias": ["Hg", "Quick"], "title": ["Mercury_(element)", "Unknown"]})
    options = {"priors": EntityPriors(views, smoothing=0), "options": WikidataOptions(aliases=aliases)}
    base = files(wikidata(), kb_from_wikidata, **options)
    assert ids_of(base, "mercury") == {"Q2": round(9 / 13, 9), "Q4": round(4 / 13, 9), "Q1": 0.0}
    assert ids_of(base, "hg") == {"Q2": 1.0}
    with pytest.warns(DegenerateWarning, match="1 aliases of pages that are no item of the dump"):
        files(wikidata(), kb_from_wikidata, **options)


def test_redirects_and_disambiguation_pages_of_mediawiki_are_aliases(tmp_path):
    dump = tmp_path / "pages.xml.bz2"
    text = """<mediawiki>
  <page>
    <title>Hg &amp; co</title>
    <ns>0</ns>
    <redirect title="Mercury (element)" />
  </page>
  <page>
    <title>Mercury (disambiguation)</title>
    <ns>0</ns>
    <revision><text>'''Mercury''' may be:
* [[Mercury (planet)|the planet]], near the [[Sun]]
** the element [[Mercury_(element)#History]]
Not a bullet: [[Rome]]
{{Disambiguation}}</text></revision>
  </page>
  <page>
    <title>Talk:Mercury</title>
    <ns>1</ns>
    <redirect title="Talk:Other" />
  </page>
  <page>
    <title>Sun</title>
    <ns>0</ns>
    <revision><text>* [[Star]]</text></revision>
  </page>
</mediawiki>
"""
    dump.write_bytes(bz2.compress(text.encode()))
    assert values(read_mediawiki_aliases(dump, progress=False)) == [
        ("Hg & co", "Mercury (element)", "redirect"),
        ("Mercury", "Mercury (planet)", "disambiguation"),
        ("Mercury", "Mercury (element)", "disambiguation"),
    ]
    dump.write_text("nothing\n")
    with pytest.raises(FileError, match="has no <page>; wanted a MediaWiki XML dump"):
        read_mediawiki_aliases(dump)


COUNTED = 'id,label,alias,clicks,team\n007,"Bond, James",Bond,30,HQ\n008,Ed Bond,Bond,9,\n009,Bond,,,\n'


def test_counts_of_a_csv_file_are_priors(files):
    base = files(COUNTED)
    assert base.has_priors
    assert ids_of(base, "bond") == {"007": round(31 / 42, 9), "008": round(10 / 42, 9), "009": round(1 / 42, 9)}
    assert ids_of(base, "bond james") == {"007": 1.0}
    assert values(base.attributes(["007"])) == [("007", "team", "HQ", "text")]
    assert ids_of(files(COUNTED, priors=EntityPriors(smoothing=0)), "bond")["009"] == 0


def test_further_counts_are_added_to_those_of_the_source(files):
    """(30 + 10 + 1) : (9 + 1) : (0 + 1), where the alias of 009 is its label; counts of the rows come first."""
    base = files("id,label,clicks\n007,Bond,30\n008,Bond,9\n009,Bond,\n", priors=EntityPriors({"007": 10}))
    assert ids_of(base, "bond") == {"007": round(41 / 52, 9), "008": round(10 / 52, 9), "009": round(1 / 52, 9)}


def test_priors_of_entities_from_mappings_follow_from_further_counts_without_smoothing(tmp_path):
    entities = [{"id": name, "label": "Bond"} for name in ("007", "008", "009")]
    priors = EntityPriors({"007": 3, "008": 1}, smoothing=0)
    with build_kb(tmp_path / "made.kb", entities, id_space="test", priors=priors, progress=False) as base:
        assert ids_of(base, "bond") == {"007": 0.75, "008": 0.25, "009": 0.0}


def test_illegal_options_of_priors_and_dumps_are_refused():
    with pytest.raises(ParameterError, match="smoothing=-1: wanted a number of at least 0"):
        EntityPriors(smoothing=-1)
    illegal = [("where", ["P31"]), ("excluded", "Q5"), ("excluded", None), ("site", None), ("redirects", 3)]
    for name, value in [*illegal, ("redirects", ["Q91"])]:
        with pytest.raises(ParameterError, match=re.escape(f"{name}={value!r}: wanted")):
            WikidataOptions(**{name: value})


@pytest.mark.parametrize("value", [{}, {"Q1": 3}, EntityPriors])
def test_settings_of_another_kind_are_refused_by_all_builders(value, files, tmp_path):
    # An empty mapping would be the default instead of equal probabilities.
    message = r"{}: wanted settings as {}\(...\), found (dict|type)".format
    for build, content in ((kb_from_file, COUNTED), (kb_from_wikidata, wikidata())):
        with pytest.raises(ParameterError, match=message("priors", "EntityPriors")):
            files(content, build, priors=value)
    with pytest.raises(ParameterError, match=message("options", "WikidataOptions")):
        files(wikidata(), kb_from_wikidata, options=value)
    with pytest.raises(ParameterError, match=message("priors", "EntityPriors")):
        build_kb(tmp_path / "made.kb", [{"id": "007", "label": "Bond"}], id_space="test", priors=value)
    assert not (tmp_path / "made.kb").exists()


def test_redirects_as_an_iterator_are_in_every_knowledge_base(files):
    options = WikidataOptions(redirects=iter([("Q6", "Q91")]))
    bases = [files(dump(LINCOLN), kb_from_wikidata, options=options) for _ in range(2)]
    assert [base.resolve(["Q6"]) for base in bases] == [["Q91"], ["Q91"]]


def test_counts_of_a_spreadsheet_are_those_of_the_csv_file(tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.read_csv(io.StringIO(COUNTED), dtype=str)
    frame.to_excel(tmp_path / "people.xlsx", index=False)
    (tmp_path / "people.csv").write_text(COUNTED)
    digests = set()
    for name in ("people.xlsx", "people.csv"):
        with kb_from_file(tmp_path / "made.kb", tmp_path / name, id_space="test") as base:
            digests.add(base.digest)
    assert len(digests) == 1


def test_scores_of_a_table_are_probabilities(files):
    base = files("id\talias\tscore\na\tx\t0.75\nb\tx\t0.25\n")
    assert ids_of(base, "x") == {"a": 0.75, "b": 0.25}
    with pytest.raises(FileError, match="has the columns prior and score"):
        files("id\talias\tscore\tprior\na\tx\t0.75\t0.5\n")
    for count in ("-1", "many", "inf", "nan"):
        with pytest.raises(FileError, match=rf"source:2: the count of 'a' is '{count}', wanted a finite number"):
            files(f"id\talias\tcount\na\tx\t{count}\n")


@pytest.mark.parametrize(
    "header",
    [
        "id,name,clicks",
        "id,title,clicks",
        "ID,Label,Clicks",
        "entity_id;label;clicks",
        "id;label;popularity",
        "Entity ID\tName\tpage_views",
        "id|name|count",
    ],
)
def test_names_and_counts_of_tables_are_known_by_their_usual_headers(files, header):
    separator = next(sign for sign in "\t;|," if sign in header)
    rows = [header, f"a{separator}Smith{separator}10", f"b{separator}Smith{separator}1000"]
    base = files("\n".join(rows))
    assert values(base.lookup(["smith"])[["entity_id", "score", "name"]]) == [
        ("b", pytest.approx(1001 / 1012), "Smith"),
        ("a", pytest.approx(11 / 1012), "Smith"),
    ]
    assert not len(base.attributes(["a"]))


@pytest.mark.parametrize("pack", ["lines", "frame", "records"])
def test_keys_of_records_are_known_by_the_same_names(tmp_path, files, pack):
    records = [
        {"entity_id": "a", "name": "Smith", "popularity": 10},
        {"entity_id": "b", "name": "Smith", "popularity": 1000},
    ]
    if pack == "lines":
        base = files("\n".join(map(json.dumps, records)))
    else:
        base = build_kb(tmp_path / "kb", pd.DataFrame(records) if pack == "frame" else records, id_space="test")
    assert base.lookup(["smith"])["score"].tolist() == pytest.approx([1001 / 1012, 11 / 1012])
    base.close()


def test_columns_that_have_their_own_name_keep_it(files):
    base = files("id,label,name,title,clicks,popularity\na,Smith,Ann,Dr,10,high\n")
    assert values(base.attributes(["a"])) == [
        ("a", "name", "Ann", "text"),
        ("a", "title", "Dr", "text"),
        ("a", "popularity", "high", "text"),
    ]
    assert base.lookup(["smith"])["entity_id"].tolist() == ["a"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "id,surname,clicks",
            "source: entities have no names; wanted a column 'label', 'alias' or 'aliases', found 'id'",
        ),
        ("id,label,n_clicks_2024", "source: column 'n_clicks_2024' is kept as an attribute; if it is a count"),
    ],
)
def test_tables_that_lose_names_or_counts_warn(files, header, message):
    with pytest.warns(DegenerateWarning, match=message):
        files(f"{header}\na,Smith,10\n")
