"""How fast texts are linked, beside a plain regular expression and a Python loop: pytest tests/bench --benchmark-only.

Seconds are those of the processor, so that a busy machine changes little. Speeds are read from the table and from
``extra_info``, never asserted; that all find the same is.
"""

import re
import time

import numpy as np
import pandas as pd
import pytest

from vbterrier.linking.dictionary import DictionaryLinker, FuzzyLinker
from vbterrier.linking.words import Words

pytestmark = pytest.mark.benchmark(timer=time.process_time)
N_TEXTS, N_WORDS = 2000, 150
PLAIN = {"min_length": 1, "numeric": True, "stop_aliases": None, "case": "ignore"}


@pytest.fixture(scope="module")
def names(shared_data):
    path = shared_data / "kb_us_congress" / "alias.tsv.gz"
    return pd.read_csv(path, sep="\t", names=["alias", "entity_id"], dtype=str, na_filter=False)


@pytest.fixture(scope="module")
def texts(names):
    """Texts of made-up words with a name of two or more words every 30 words or so."""
    draw = np.random.default_rng(5)
    letters = np.array(list("aeionrtlsdm"))
    words = ["q" + "".join(draw.choice(letters, size=draw.integers(1, 9))) for _ in range(5000)]
    names_of_words = names["alias"][names["alias"].str.contains(" ")].unique()
    mixed = draw.random((N_TEXTS, N_WORDS)) < 1 / 30
    plain, named = draw.choice(words, (N_TEXTS, N_WORDS)), draw.choice(names_of_words, (N_TEXTS, N_WORDS))
    return [", ".join(row) for row in np.where(mixed, named, plain).tolist()]


@pytest.fixture(scope="module")
def speeds():
    """Megabytes a second of each way, so that those that come later say how many times slower they are."""
    return {}


def with_linker(dictionary, texts):
    links = dictionary.link(texts).frame.drop_duplicates(["text", "start"])
    return list(zip(links["text"], links["start"], links["end"], strict=True))


def with_regex(pattern, texts):
    return [(place, *match.span()) for place, text in enumerate(texts) for match in pattern.finditer(text)]


def with_loop(forms, texts):
    """Every run of words of a text looked up in a set, the longest first."""
    most, result = max(len(name) for name in forms), []
    for place, text in enumerate(texts):
        spans = [match.span() for match in re.finditer(r"\w+", text)]
        words = [text[start:end].casefold() for start, end in spans]
        first = 0
        while first < len(words):
            for last in range(min(first + most, len(words)), first, -1):
                if tuple(words[first:last]) in forms:
                    result.append((place, spans[first][0], spans[last - 1][1]))
                    first = last - 1
                    break
            first += 1
    return result


def report(benchmark, speeds, way, texts):
    seconds = benchmark.stats.stats.min
    speeds[way] = sum(map(len, texts)) / 1e6 / seconds
    benchmark.extra_info["texts/s"] = round(len(texts) / seconds)
    benchmark.extra_info["MB/s"] = round(speeds[way], 3)
    benchmark.extra_info["times slower than the linker"] = round(speeds.get("linker", np.nan) / speeds[way], 1)


def test_linker(benchmark, names, texts, speeds):
    dictionary = DictionaryLinker(names, id_space="bioguide", **PLAIN)
    result = benchmark(with_linker, dictionary, texts)
    assert len(result) > N_TEXTS
    report(benchmark, speeds, "linker", texts)


def test_python_loop(benchmark, names, texts, speeds):
    forms = {tuple(form.split()) for form in Words.of(names["alias"].tolist()).forms()}
    result = benchmark.pedantic(with_loop, (forms, texts), rounds=3)
    assert result == with_linker(DictionaryLinker(names, id_space="bioguide", **PLAIN), texts)
    report(benchmark, speeds, "Python loop", texts)


def test_regular_expression(benchmark, names, texts, speeds):
    some = texts[:4]
    by_length = sorted(names["alias"].unique(), key=len, reverse=True)
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, by_length))})(?!\w)")
    result = benchmark.pedantic(with_regex, (pattern, some), rounds=1)
    assert len(result) > len(some)
    report(benchmark, speeds, "regular expression", some)


def test_making_the_dictionary(benchmark, names):
    made = benchmark.pedantic(DictionaryLinker, (names,), {"id_space": "bioguide", **PLAIN}, rounds=5)
    assert made.link(["John Smith of Ohio"]).frame["mention"].tolist() == ["John Smith"]


def test_fuzzy(benchmark, names):
    fuzzy = FuzzyLinker(names, id_space="bioguide")
    misspelt = [name[:-2] + name[-1] for name in names["alias"].drop_duplicates().sample(200, random_state=1)]
    links = benchmark.pedantic(fuzzy.link, (misspelt,), rounds=3)
    assert links.frame["text"].nunique() > 150
    median = benchmark.stats.stats.median
    benchmark.extra_info["mentions/s"] = round(len(misspelt) / median)
    benchmark.extra_info["million comparisons/s"] = round(len(misspelt) * names["alias"].nunique() / median / 1e6)
