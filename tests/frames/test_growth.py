"""The cost of readers, and of patterns on content of files, is linear: four times the input costs about four times."""

import importlib
import inspect
import json
import pkgutil
import re
import time
from contextlib import suppress

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vbterrier
from vbterrier.errors import VBTerrierError
from vbterrier.frames import read_values
from vbterrier.frames.files import reading
from vbterrier.intents import constraints
from vbterrier.linking import kb_from_file, kb_from_wikidata, read_mediawiki_aliases

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
# Twice the input costs at most 2.5 times, four times 6.25; costs below the first number of seconds are not compared.
MEASURABLE, MOST = 0.05, 2.5**2


def cpu(call, argument):
    """The smallest CPU of three calls, or of one that takes hardly any."""
    times = []
    while len(times) < 3 and (not times or min(times) > MEASURABLE):
        started = time.process_time()
        with suppress(VBTerrierError):
            call(argument)
        times.append(time.process_time() - started)
    return min(times)


def assert_linear(call, small, large, what):
    growth = []
    # Collections of garbage and other processes disturb single measurements.
    while len(growth) < 3 and (not growth or growth[-1] >= MOST):
        cost = cpu(call, large)
        growth.append(cost / max(cpu(call, small), MEASURABLE / 16) if cost > MEASURABLE else 0)
    assert min(growth) < MOST, (what, growth)


# Patterns.

SIZES = (3000, 12_000)
# It reads text whose quotes are closed; see the test of queries.
EXEMPT = {constraints._WORD.pattern}

MODULES = (
    *("frames", "linking", "intents", "entities", "evaluate", "measures", "design", "report", "cli", "execution"),
    *("stats", "hosts", "unjudged"),
)
STARTS = [
    "",
    '"',
    "#",
    "<",
    "[[",
    "* [[",
    "1",
    "+",
    "prefix ",
    "prefix",
    "@prefix ",
    "# document_id =",
    "d:",
    "<text",
    "{",
    '{"',
]
PUMPS = [
    " ",
    "1",
    "a",
    "*",
    ".",
    "-",
    ":",
    "[[",
    "<",
    "<text",
    "<title>",
    '"',
    '\\"',
    "\\",
    "'",
    "(",
    " (",
    "1.",
    "a ",
    "e1",
]


def patterns():
    """Each pattern of a module, and True if the module searches for it at all places."""
    for info in pkgutil.walk_packages(vbterrier.__path__, "vbterrier."):
        if info.name.split(".")[1] not in MODULES or info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        source = inspect.getsource(module)
        for name, value in vars(module).items():
            values = (
                value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else [value]
            )
            for each in (part for one in values for part in (one if isinstance(one, tuple) else [one])):
                if isinstance(each, re.Pattern) and re.search(rf"^{name} = ", source, re.MULTILINE):
                    yield (
                        each,
                        re.search(rf"\b{name}\.(search|sub|findall|finditer|split)\((?!.*count=1)", source) is not None,
                    )


@pytest.mark.slow
def test_patterns_take_linear_time():
    every = {
        (each.pattern, each.flags): (each, searches) for each, searches in patterns() if each.pattern not in EXEMPT
    }
    assert len(every) > 40
    for each, searches in every.values():
        calls = [each.match, each.fullmatch, *([each.search] if searches else [])]
        for start in STARTS:
            for pump in PUMPS:
                texts = [f"{start}{pump * (n // len(pump))}\0" for n in SIZES]
                small, large = texts if isinstance(each.pattern, str) else [text.encode() for text in texts]
                for call in calls:
                    assert_linear(call, small, large, (each.pattern, start, pump))


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [r"\d+\.?\d*", r"\s*\s*x", r"\*+[^\[]*\[\["])
def test_quadratic_patterns_are_noticed(pattern):
    pump = {"d": "1", "s": " ", "*": "*"}[pattern[1]]
    with pytest.raises(AssertionError):
        assert_linear(re.compile(pattern).fullmatch, pump * SIZES[0] + "\0", pump * SIZES[1] + "\0", pattern)


@pytest.mark.parametrize("pump", ['\\"', '"', 'a:"b c" ', '"a', " "])
def test_queries_with_constraints_are_split_in_linear_time(pump):
    texts = [pump * (n // len(pump)) for n in SIZES]
    assert_linear(constraints.parse_query, *texts, pump)


# Readers.

READERS = [
    *(
        getattr(module, name)
        for module in (vbterrier, vbterrier.frames)
        for name in dir(module)
        if name.startswith("read_")
    ),
    vbterrier.entities.read_links,
    reading.read_similarities,
    reading.read_popularity,
    reading.read_descriptions,
    reading.read_spellings,
    reading.read_groups,
    reading.read_costs,
]
RECORD = {"qid": "q", "docno": "d", "label": 1, "score": 1.0}
TEXTS = {
    "digits": lambda n: f"1 0 d {'1' * n}x\n",
    "digits of a score": lambda n: f"1 Q0 d 1 {'1' * n}x t\n",
    "digits between commas": lambda n: f"qid,docno,label,score\n1,d,{'1' * n}x,{'1' * n}x\n",
    "digits in JSON": lambda n: json.dumps({**RECORD, "label": "1" * n + "x", "score": "1" * n + "x"}),
    "blanks": lambda n: f"1 0{' ' * n}d 1\n",
    "blanks behind a prefix": lambda n: f"prefix{' ' * n}x\n",
    "blanks behind a tag": lambda n: f"<top>\n<num>{' ' * n}\n",
    "blanks behind a document": lambda n: f"TOKEN\tNE-COARSE-LIT\tNEL-LIT\n# document_id ={' ' * n}\n",
    "a long id": lambda n: f"1 0 {'d' * n} 1\n",
    "fields": lambda n: "a " * n + "\n",
    "columns": lambda n: (
        f"qid,docno,label,score,{','.join(f'c{i}' for i in range(n // 20))}\n{'1,' * (n // 20 + 3)}1\n"
    ),
    "quotes": lambda n: f'qid,docno,label\n1,"{chr(34) * n}\n',
    "rows": lambda n: "".join(f"q{i % 50} Q0 d{i} {i} {-i} t\n" for i in range(n // 4)),
    "systems": lambda n: "qid,docno,score,system\n" + "".join(f"q1,d{i},1,s{i}\n" for i in range(n // 4)),
    "topics": lambda n: "".join(f"q{i} 0 d 1\n" for i in range(n // 4)),
    "comments": lambda n: "# a b c\n" * n + "1 0 d 1\n",
    "remarks": lambda n: "1 0 d 1 # x\n" * (n // 4),
    "lines of JSON": lambda n: (json.dumps(RECORD) + "\n") * (n // 20),
    # Dictionaries of 40,000 members exceed the processor's cache: json alone takes 6.7 times those of 10,000.
    "members": lambda n: json.dumps([RECORD | {f"m{i}": 1 for i in range(n // 5)}]),
    "different members": lambda n: json.dumps([RECORD | {f"m{i}": 1} for i in range(n // 20)]),
    "columns of JSON": lambda n: json.dumps(
        {key: {} for key in RECORD} | {f"c{i}": {str(i): 1} for i in range(n // 20)}
    ),
    "queries": lambda n: json.dumps({f"q{i}": {"d": 1} for i in range(n // 10)}),
    "documents": lambda n: json.dumps({"q": [f"d{i}" for i in range(n)]}),
    "brackets": lambda n: "[" * n,
    "topics of SGML": lambda n: "<top>\n<num> Number: 1\n<title> a\n" * (n // 20),
    "tags of SGML": lambda n: f"<top>\n{'<' * n}",
    "an attribute": lambda n: f'<t><topic number="{"1" * (100 * n)}"><query>a</query></topic></t>',
    "a text of Turtle": lambda n: f'@prefix a: <b> .\n<a> <b> """{"a" * n}',
    "links": lambda n: "".join(f"d\t{i}\t{i}\tE\n" for i in range(n // 20)),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", TEXTS)
def test_readers_take_linear_time(tmp_path, what):
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_text(TEXTS[what](10_000))
    large.write_text(TEXTS[what](40_000))
    for read in READERS:
        assert_linear(read, small, large, f"{read.__name__}: {what}")


@pytest.mark.slow
def test_columns_of_parquet_that_are_not_read_take_linear_time(tmp_path):
    values = pa.table({"name": ["a"], "qid": ["q"], "measure": ["AP"], "value": [0.5], "docno": ["d"], "score": [1.0]})
    for name, n in (("small", 1000), ("large", 4000)):
        pq.write_table(
            pa.table(
                {**dict(zip(values.column_names, values.columns, strict=True)), **{f"c{i}": [i] for i in range(n)}}
            ),
            tmp_path / name,
        )
    for read in (vbterrier.read_run, read_values):
        assert_linear(read, tmp_path / "small", tmp_path / "large", read.__name__)
    # Of values, no other columns are kept, so that none is read.
    assert list(read_values(tmp_path / "large").columns) == ["name", "qid", "measure", "value"]


KNOWLEDGE = {
    "bullets": (
        read_mediawiki_aliases,
        "<page><title>A</title><ns>0</ns><text>{}\n{{{{disambiguation}}}}</text></page>\n",
        "*",
    ),
    "links of bullets": (
        read_mediawiki_aliases,
        "<page><title>A</title><ns>0</ns><text>* [[{}\n{{{{dab}}}}</text></page>\n",
        "a",
    ),
    "titles": (read_mediawiki_aliases, "<page>{}</page>\n", "<title>"),
    "texts": (read_mediawiki_aliases, "<page><title>A</title>{}{{{{dab}}}}</page>\n", "<text"),
    "aliases": (kb_from_file, "id\tlabel\taliases\nE1\tA\t{}\n", "a|"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", KNOWLEDGE)
def test_readers_of_knowledge_bases_take_linear_time(tmp_path, what):
    read, text, pump = KNOWLEDGE[what]
    for name, n in (("small", 5000), ("large", 20_000)):
        (tmp_path / name).write_text(text.format(pump * n))

    def call(path):
        if read is read_mediawiki_aliases:
            return read(path, progress=False)
        (tmp_path / "kb").unlink(missing_ok=True)
        return read(tmp_path / "kb", path, id_space="mine", progress=False).close()

    assert_linear(call, tmp_path / "small", tmp_path / "large", what)


def test_years_of_wikidata_take_linear_time(tmp_path):
    def call(n):
        value = {"type": "time", "value": {"time": "+" + "0" * n + "x", "precision": 9}}
        claim = [{"mainsnak": {"snaktype": "value", "datavalue": value}}]
        item = {"id": "Q1", "labels": {"en": {"value": "A"}}, "claims": {"P1": claim}}
        (tmp_path / "dump.json").write_text(json.dumps(item) + "\n")
        (tmp_path / "kb").unlink(missing_ok=True)
        kb_from_wikidata(tmp_path / "kb", tmp_path / "dump.json", properties=["P1"], progress=False).close()

    assert_linear(call, 5000, 20_000, "years")


def test_bullets_of_mediawiki_are_read_alike(tmp_path):
    lines = [
        "<page><title>A (disambiguation)</title><ns>0</ns><text xml:space='preserve'>* [[First]], one",
        "** of [[Second#Part|2]] and [[Third]]",
        "no bullet [[Fourth]]",
        "* [one] [[Fifth]]",
        "* [[Sixth|6]",
        "* [[|7]]",
        "{{disambiguation}}</text></page>",
    ]
    (tmp_path / "dump").write_text("\n".join(lines))
    result = read_mediawiki_aliases(tmp_path / "dump", progress=False)
    expected = pd.DataFrame({"alias": "A", "title": ["First", "Second"], "kind": "disambiguation"}, dtype="str")
    pd.testing.assert_frame_equal(result, expected)
