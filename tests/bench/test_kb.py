"""How long knowledge bases take, next to plainer ways: pytest tests/bench/test_kb.py --benchmark-only -s."""

import gzip
import json
import time

import numpy as np
import pytest

from vbterrier.frames.names import normal_form
from vbterrier.linking.kb import building
from vbterrier.linking.kb.files import build_kb, kb_from_file
from vbterrier.linking.kb.knowledge_base import KnowledgeBase

N_MENTIONS, N_FUZZY = 10_000, 500


@pytest.fixture(scope="module")
def people(shared_data):
    with gzip.open(shared_data / "kb_us_congress" / "entities.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def base(shared_data, tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "people.kb"
    with kb_from_file(path, shared_data / "kb_us_congress" / "entities.jsonl.gz", id_space="bioguide") as made:
        yield made


@pytest.fixture(scope="module")
def mentions(base):
    return np.random.default_rng(7).choice(base.alias_table()["alias"].unique(), N_MENTIONS).tolist()


@pytest.fixture(scope="module")
def misspelt(mentions):
    return [typos(name, 1, np.random.default_rng(place)) for place, name in enumerate(mentions[:N_FUZZY])]


def typos(name, n_typos, draw):
    for _ in range(n_typos):
        place = int(draw.integers(len(name)))
        name = name[:place] + str(draw.choice(["", "e" + name[place], "o"])) + name[place + 1 :]
    return name


def test_building_from_thirteen_thousand_entities(benchmark, shared_data, tmp_path):
    source = shared_data / "kb_us_congress" / "entities.jsonl.gz"
    made = benchmark.pedantic(kb_from_file, (tmp_path / "people.kb", source), {"id_space": "bioguide"}, rounds=3)
    assert len(made) == 12_766
    benchmark.extra_info["MB"] = round(made.path.stat().st_size / 1e6, 1)
    made.close()


@pytest.mark.parametrize("how", ["a dictionary in memory", "exact", "normalised"])
def test_ten_thousand_look_ups(benchmark, base, people, mentions, how):
    if how in {"exact", "normalised"}:
        result = benchmark.pedantic(base.lookup, (mentions,), {"how": how}, rounds=5, warmup_rounds=1)
        assert set(result["text"]) == set(range(N_MENTIONS))
    else:
        senses = {}
        for record in people:
            for name in [*record["aliases"], record["label"]]:
                senses.setdefault(normal_form(name), set()).add(record["id"])
        benchmark.pedantic(lambda: [senses[normal_form(name)] for name in mentions], rounds=5)
    benchmark.extra_info["mentions a second"] = round(N_MENTIONS / benchmark.stats.stats.min)


@pytest.mark.parametrize("how", ["RapidFuzz, one by one", "fuzzy"])
def test_fuzzy_look_ups(benchmark, base, misspelt, how):
    from rapidfuzz import fuzz, process

    if how == "fuzzy":
        result = benchmark.pedantic(base.lookup, (misspelt,), {"how": "fuzzy"}, rounds=3, warmup_rounds=1)
        assert result["text"].nunique() > len(misspelt) / 2
    else:
        names = sorted(set(map(normal_form, base.alias_table()["alias"])))
        options = {"scorer": fuzz.ratio, "score_cutoff": 85, "limit": None}
        benchmark.pedantic(
            lambda: [process.extract(normal_form(name), names, **options) for name in misspelt], rounds=3
        )
    benchmark.extra_info["mentions a second"] = round(N_FUZZY / benchmark.stats.stats.min)


@pytest.mark.parametrize("n_typos", [1, 2, 3])
def test_narrowed_look_ups_find_what_full_ones_find(benchmark, base, mentions, tmp_path_factory, monkeypatch, n_typos):
    """Recall of the index, on the same names: those that it is meant for are too many to compare."""
    monkeypatch.setattr(building, "MAX_COMPARED_NAMES", 1000)
    path = tmp_path_factory.getbasetemp() / "narrowed.kb"
    records = [{"id": name, "aliases": [name]} for name in base.alias_table()["alias"].unique()]
    misspelled = [typos(name, n_typos, np.random.default_rng(place)) for place, name in enumerate(mentions[:200])]
    with build_kb(path, records, id_space="names") as narrowed:
        result = benchmark.pedantic(narrowed.lookup, (misspelled,), {"how": "fuzzy", "min_similarity": 0.75}, rounds=1)
    full = base.lookup(misspelled, how="fuzzy", min_similarity=0.75)
    best, all_best = (frame.groupby("text")["score"].max() for frame in (result, full))
    benchmark.extra_info["best name found"] = float(np.isclose(best.reindex(all_best.index), all_best).mean())
    pairs, all_pairs = (set(zip(frame["text"], frame["alias"], strict=True)) for frame in (result, full))
    benchmark.extra_info["names found"] = round(len(pairs & all_pairs) / len(all_pairs), 3)
    assert benchmark.extra_info["best name found"] > 0.95


def test_opening_takes_the_same_for_small_and_large(benchmark, base, tmp_path):
    entities = ({"id": f"E{i}", "label": f"name {i}", "attributes": {"text": "x" * 2000}} for i in range(50_000))
    build_kb(tmp_path / "large.kb", entities, id_space="test").close()
    begin = time.perf_counter()
    KnowledgeBase(base.path).close()
    small = time.perf_counter() - begin
    benchmark.pedantic(lambda: KnowledgeBase(tmp_path / "large.kb").close(), rounds=20)
    sizes = (tmp_path / "large.kb").stat().st_size / base.path.stat().st_size
    assert sizes > 5
    benchmark.extra_info["times the size"] = round(sizes, 1)
    benchmark.extra_info["times the time"] = round(benchmark.stats.stats.min / small, 2)
