"""A knowledge base of a million entities and two million aliases, beside SQLite and pyahocorasick.

``pytest tests/bench/test_million.py --benchmark-only -s``; seconds are of the processor, sizes of the kernel
(``Pss`` counts a page that n processes share as 1/n of it). With ``--once`` it is a sixteenth of the size.
"""

import gc
import json
import sqlite3
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import pairwise

import ahocorasick
import numpy as np
import pytest

from vbterrier.linking.dictionary import DictionaryLinker
from vbterrier.linking.kb.files import build_kb
from vbterrier.linking.kb.sqlite import lexicon_path
from vbterrier.linking.words import Words

pytestmark = pytest.mark.benchmark(timer=time.process_time)
N_ENTITIES, N_WORDS, N_TEXTS, LENGTH = 1_000_000, 200_000, 20_000, 100
SYLLABLES = np.array([first + second for first in "bcdfghjklmnprstvwz" for second in "aeiou"], dtype=object)


def words_of(n, draw, before=""):
    """Distinct words of two to four syllables."""
    parts = SYLLABLES[draw.integers(0, len(SYLLABLES), (4, n))]
    size = draw.integers(2, 5, n)
    parts[2, size < 3] = parts[3, size < 4] = ""
    return np.array([before + word for word in dict.fromkeys(parts.sum(axis=0).tolist())], dtype=object)


def zipf(words, shape, draw):
    weight = 1 / np.arange(1, len(words) + 1) ** 0.9
    return words[draw.choice(len(words), p=weight / weight.sum(), size=shape)]


def names_of(words, n, draw):
    """Names of one to four words, mostly two; those of one word have one or two entities each."""
    capitals = np.array([word.capitalize() for word in words], dtype=object)
    parts = zipf(capitals, (4, n), draw)
    size = draw.choice(4, p=[0.15, 0.55, 0.22, 0.08], size=n)
    parts[0, size == 0] = draw.choice(capitals, int((size == 0).sum()))
    parts[1:] = " " + parts[1:]
    for place in range(1, 4):
        parts[place, size < place] = ""
    return parts.sum(axis=0)


@pytest.fixture(scope="module")
def records(request):
    """Entities with a name each, and as many aliases again."""
    n = N_ENTITIES // (16 if request.config.getoption("--once", default=False) else 1)
    draw = np.random.default_rng(0)
    names = names_of(words_of(N_WORDS, draw), 2 * n, draw)
    owner = np.concatenate([np.arange(n), draw.integers(0, n, n)])
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(n + 1)).tolist()
    names = names[order].tolist()
    results = [
        {"id": f"Q{place}", "label": names[low], "aliases": names[low + 1 : high]}
        for place, (low, high) in enumerate(pairwise(bounds))
    ]
    # The collector would otherwise visit these objects again and again during a build.
    gc.freeze()
    return results


@pytest.fixture(scope="module")
def texts(records):
    """Texts of 100 words: a name every 25 words or so; a third of the other words are words of names."""
    draw = np.random.default_rng(1)
    aliases = np.array([record["label"] for record in records[:: len(records) // 20_000]], dtype=object)
    shape = N_TEXTS, LENGTH
    other = np.where(draw.random(shape) < 1 / 3, zipf(words_of(N_WORDS, np.random.default_rng(0)), shape, draw), "")
    plain = np.where(other == "", zipf(words_of(5000, draw, "q"), shape, draw), other)
    return [" ".join(row) for row in np.where(draw.random(shape) < 1 / 25, draw.choice(aliases, shape), plain).tolist()]


@pytest.fixture(scope="module")
def path(records, tmp_path_factory):
    made = tmp_path_factory.mktemp("million") / "million.kb"
    begin = time.process_time()
    build_kb(made, records, id_space="million", progress=False).close()
    print(f"\nbuild: {time.process_time() - begin:.1f} s, {megabytes(made)} MB, {megabytes(lexicon_path(made))} MB")
    return made


@pytest.fixture(scope="module")
def automaton(records):
    made = ahocorasick.Automaton(ahocorasick.STORE_INTS)
    names = dict.fromkeys(name.casefold() for record in records for name in (record["label"], *record["aliases"]))
    begin = time.process_time()
    for number, name in enumerate(names):
        made.add_word(f" {name} ", number)
    made.make_automaton()
    print(f"\npyahocorasick, build: {time.process_time() - begin:.1f} s")
    return made


def megabytes(*paths):
    return round(sum(path.stat().st_size for path in paths) / 1e6)


def test_building(benchmark, records, tmp_path):
    made = benchmark.pedantic(
        build_kb, (tmp_path / "m.kb", records), {"id_space": "million", "progress": False}, rounds=1
    )
    assert len(made) == len(records)
    benchmark.extra_info.update(MB=megabytes(made.path), lexicon_MB=megabytes(lexicon_path(made.path)))


def test_building_with_plain_sqlite(benchmark, records, tmp_path):
    """Entities and aliases with one index each: no normal forms, priors, checks, fuzzy look-ups or linkers."""

    def build():
        with closing(sqlite3.connect(tmp_path / "plain.db")) as db:
            db.execute("CREATE TABLE entity(id TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID")
            db.execute("CREATE TABLE alias(text TEXT, id TEXT)")
            db.executemany("INSERT INTO entity VALUES (?, ?)", ((one["id"], one["label"]) for one in records))
            pairs = ((name, one["id"]) for one in records for name in (one["label"], *one["aliases"]))
            db.executemany("INSERT INTO alias VALUES (?, ?)", pairs)
            db.execute("CREATE INDEX by_text ON alias(text)")
            db.commit()

    benchmark.pedantic(build, rounds=1)
    benchmark.extra_info["MB"] = megabytes(tmp_path / "plain.db")


OPENED = """
import gc, json, pathlib, sys, time
from vbterrier.linking import DictionaryLinker, KnowledgeBase
import vbterrier.linking.lexicon, pandas, pyarrow
def memory():
    lines = pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    return {line.split()[0]: int(line.split()[1]) / 1e3 for line in lines}
DictionaryLinker(pandas.DataFrame({"alias": ["a b"], "entity_id": ["a"]}), id_space="x").link(["a b"])
before, begin = memory(), time.process_time()
linker = DictionaryLinker(KnowledgeBase(sys.argv[1]))
seconds = time.process_time() - begin
n = len(linker.link(json.loads(pathlib.Path(sys.argv[2]).read_text())).frame)
def wait(sign):
    own = pathlib.Path(sys.argv[3]).with_suffix(sign)
    own.touch()
    while sum(1 for _ in own.parent.glob("*" + sign)) < int(sys.argv[4]):
        time.sleep(0.05)
wait(".ready")
gc.collect()
after = memory()
found = {kind: round(after[kind + ":"] - before[kind + ":"]) for kind in ("Rss", "Pss", "Private_Dirty")}
print(json.dumps({"seconds": round(seconds, 2), "links": n, **found}), flush=True)
wait(".measured")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("n", [1, 2])
def test_opening_in_processes(benchmark, path, texts, tmp_path, n):
    """Seconds to open, and additional memory in MB after 2,000 texts, of one process and of two at the same time."""

    (tmp_path / "texts.json").write_text(json.dumps(texts[:2000]))

    def opened():
        with ThreadPoolExecutor(n) as pool:
            arguments = [[path, tmp_path / "texts.json", tmp_path / f"{place}.ready", str(n)] for place in range(n)]
            commands = [[sys.executable, "-W", "ignore", "-c", OPENED, *argument] for argument in arguments]
            done = list(pool.map(partial(subprocess.run, capture_output=True, check=True), commands))
        return [json.loads(one.stdout) for one in done]

    result = benchmark.pedantic(opened, rounds=1)
    assert len({one["links"] for one in result}) == 1
    print(n, result)


def test_linking(benchmark, path, texts):
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase

    with KnowledgeBase(path) as base, warnings.catch_warnings():
        # Short names, digits and function words are left out.
        warnings.simplefilter("ignore")
        linker = DictionaryLinker(base)
        links = benchmark.pedantic(linker.link, (texts,), rounds=3, warmup_rounds=1)
    benchmark.extra_info["texts/s"] = round(len(texts) / benchmark.stats.stats.min)
    mentions = links.frame.drop_duplicates(["text", "start"])
    benchmark.extra_info["mentions a text"] = len(mentions) / len(texts)
    benchmark.extra_info["links a text"] = len(links.frame) / len(texts)


def test_matches_alone(benchmark, path, texts):
    """All occurrences, also overlapping ones, of the names in folded texts: what pyahocorasick does."""
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase

    folded = [Words.of(texts[place : place + 1000]).utf8() for place in range(0, len(texts), 1000)]
    with KnowledgeBase(path) as base:
        phrases = base.lexicon().phrases

    def find():
        return sum(len(phrases.find(np.frombuffer(some, np.uint8))[0]) for some in folded)

    benchmark.extra_info["matches"] = benchmark.pedantic(find, rounds=3, warmup_rounds=1)
    benchmark.extra_info["texts/s"] = round(len(texts) / benchmark.stats.stats.min)


def test_pyahocorasick(benchmark, automaton, texts):
    folded = [Words.of(texts[place : place + 1000]).folded_words() for place in range(0, len(texts), 1000)]

    def find():
        return sum(len(list(automaton.iter(some))) for some in folded)

    benchmark.extra_info["matches"] = benchmark.pedantic(find, rounds=3, warmup_rounds=1)
    benchmark.extra_info["texts/s"] = round(len(texts) / benchmark.stats.stats.min)
