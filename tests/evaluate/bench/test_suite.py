import json
import math
from pathlib import Path

import ir_measures
import pandas as pd
import pytest

from vbterrier import measures, score
from vbterrier.errors import FileError, InputError, ParameterError
from vbterrier.evaluate.bench import growth, memory, pairs, suite, targets, ways
from vbterrier.evaluate.bench.bounds import bound_of
from vbterrier.evaluate.bench.kept import joined, read_numbers, write_numbers
from vbterrier.evaluate.bench.synthetic import Collection, Shape
from vbterrier.report.bench import bench_report, comparisons
from vbterrier.report.bench import targets as table_of_targets

SMALL = {"rounds": 1, "memory": False}


def made(kind, folder):
    return Collection(Shape(kind, 5, 1 if kind == "linking" else 30), folder)


def test_every_public_measure_is_measured():
    named = {ways.bare(text) for of in ways.MEASURES.values() for text in of}
    assert named == {measure.NAME for measure in measures.MEASURES}


@pytest.mark.parametrize("kind", ways.MEASURES)
def test_every_way_runs_from_frames_and_from_files(kind, tmp_path):
    collection = made(kind, tmp_path)
    for way in ways.ways(kind):
        if not way.missing():
            for source in ways.SOURCES:
                assert way.ready(collection, source)() is not None, way.name


def test_raw_peers_find_what_ir_measures_finds(tmp_path):
    collection = made("judged", tmp_path)
    wanted = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], *map(collection.as_theirs.get, ("qrels", "run")))
    wanted = wanted[ir_measures.nDCG @ 10]
    for source in ways.SOURCES:
        raw = ways.way_named("pytrec_eval ndcg_cut_10").ready(collection, source)()
        assert sum(found["ndcg_cut_10"] for found in raw.values()) / 5 == pytest.approx(wanted)
        ours = ways.way_named("vbterrier.score nDCG@10").ready(collection, source)()
        assert ours.means().iloc[0, 0] == pytest.approx(wanted)
    diverse = made("intents", tmp_path / "intents")
    (tmp_path / "intents").mkdir()
    alpha = ir_measures.parse_measure("alpha_nDCG@10")
    wanted = ir_measures.calc_aggregate([alpha], *map(diverse.as_theirs.get, ("qrels", "run")))[alpha]
    for source in ways.SOURCES:
        raw = ways.way_named("pyndeval alpha-nDCG@10").ready(diverse, source)()
        assert sum(found["alpha-nDCG@10"] for found in raw.values()) / 5 == pytest.approx(wanted)


@pytest.mark.parametrize("kind", ["entities", "intents"])
def test_files_give_what_frames_give(kind, tmp_path):
    collection = made(kind, tmp_path)
    for text in ways.MEASURES[kind]:
        way = ways.Way(ways.OURS, text, kind)
        (whole,) = way.ready(collection)().values()
        found = way.ready(collection, "file")()
        parts = [value for *_, value in found] if kind == "entities" else found.values["value"]
        assert sum(parts) / len(parts) == pytest.approx(whole), text


def test_a_peer_that_is_not_installed_is_noted_and_nothing_else_changes(monkeypatch):
    monkeypatch.setattr(ways.importlib.util, "find_spec", lambda _: None)
    found = suite.benchmark(sizes=[(4, 12)], measures=["Unjudged"], **SMALL)
    assert {one["way"]: one["why"] for one in found["skipped"]} == {
        f"{tool} {of['judged']}": f"{tool} is not installed" for tool, of in ways.PEERS.items() if "judged" in of
    }
    assert {row["tool"] for row in found["timings"]} == {"vbterrier", "ir_measures"}
    assert "ranx ndcg@10: ranx is not installed" in bench_report(found)


def test_a_peer_that_fails_is_noted(monkeypatch):
    def broken(*_):
        raise TypeError("object strings only")

    monkeypatch.setitem(ways.FROM_FRAMES, "pytrec_eval", broken)
    found = suite.benchmark(sizes=[(4, 12)], measures=["Unjudged@10"], peers=["pytrec_eval"], **SMALL)
    failed = {"way": "pytrec_eval ndcg_cut_10", "why": "TypeError: object strings only", "source": "memory"}
    assert found["skipped"] == [failed]
    assert [row["source"] for row in found["timings"] if row["tool"] == "pytrec_eval"] == ["file"]


def test_numbers_are_kept_in_json_and_join(tmp_path):
    one = suite.benchmark(sizes=[(4, 12)], measures=["LinkP"], **SMALL)
    path = tmp_path / "numbers.json"
    write_numbers(one, path)
    again = read_numbers(path)
    # Nothing is rounded between what was measured and what is kept, so that pages of both are the same.
    assert again == one
    assert set(again) == {"schema", "made", "machine", "versions", "options", "timings", "skipped", "growth", "targets"}
    assert {"python", "numpy", "pandas", "vbterrier", "ir_measures"} <= set(again["versions"])
    record = again["timings"][0]
    assert record.keys() >= {"kind", "n_queries", "depth", "ids", "source", "way", "cpu", "wall", "peak_mib"}
    assert len(record["cpu"]) == len(record["wall"]) == 1
    both = joined([again, again])["timings"]
    assert both == [{**row, "part": place} for place in (0, 1) for row in again["timings"]]
    with pytest.raises(InputError, match="different versions"):
        joined([again, {**again, "versions": {}}])


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 1}', '{"timings": []}'])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(FileError, match=r"other\.json.*vbterrier bench"):
        read_numbers(path)
    wrong_schema = dict.fromkeys(suite.benchmark(sizes=[], **SMALL, grown=False, targets=False)) | {"schema": 0}
    path.write_text(json.dumps(wrong_schema))
    with pytest.raises(FileError, match="of this release"):
        read_numbers(path)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"measures": ["BNDCGG"]}, "Did you mean"), ({"peers": ["ranks"]}, "ranx"), ({"rounds": 0}, "rounds"),
     ({"patience": -1}, "patience"), ({"sizes": [(0, 5)]}, "n_queries")],
)  # fmt: skip
def test_what_there_is_not_is_refused(wrong, said):
    with pytest.raises(ParameterError, match=said):
        suite.benchmark(**{"sizes": [(4, 12)], **SMALL, **wrong})


def test_peaks_are_measured_in_another_process():
    found = suite.benchmark(sizes=[(3, 20)], measures=["LinkP"], peers=["ir_measures"], rounds=1)
    peaks = [row["peak_mib"] for row in found["timings"]]
    assert len(peaks) == 4
    assert all(peak is None or 0 <= peak < 100 for peak in peaks)


def test_times_stand_where_peaks_fail(monkeypatch):
    monkeypatch.setattr(memory.sys, "executable", "false")
    found = suite.benchmark(sizes=[(3, 20)], measures=["LinkP"], peers=["ir_measures"], rounds=1)
    assert [row["peak_mib"] for row in found["timings"]] == [None] * 4
    assert [one["way"] for one in found["skipped"]] == ["memory", "memory"]


def test_growth_has_a_slope_for_each_series():
    series = (("judged", "BNDCG@10", "n_queries", (2, 4)), ("intents", "VB@10", "n_intents", (2, 3)))
    found = growth.growth(1, series=series, replicas=(5, 10))
    assert [(one["task"], one["by"]) for one in found] == [
        ("BNDCG@10", "n_queries"), ("VB@10", "n_intents"), ("VB@10 replicas", "n_replicas")
    ]  # fmt: skip
    assert all(math.isfinite(one["slope"]) and len(one["cpu"]) == 2 for one in found)


def timing(way, tool, measure, cpu):
    about = {"kind": "judged", "n_queries": 250, "depth": 1000, "ids": "numbers", "source": "memory"}
    return {**about, "way": way, "tool": tool, "measure": measure, "cpu": cpu, "wall": cpu, "peak_mib": 12.3}


TIMINGS = [
    timing("vbterrier BNDCG@10", "vbterrier", "BNDCG@10", [0.1, 0.1, 0.2]),
    timing("ir_measures nDCG@10", "ir_measures", "nDCG@10", [4.1, 4.0, 4.0]),
    timing("pytrec_eval ndcg_cut_10", "pytrec_eval", "ndcg_cut_10", [0.2, 0.2, 0.2]),
]


def test_tables_hold_ratios_with_their_spread():
    ((title, table),) = comparisons(TIMINGS)
    assert title == "Judged, 250 queries x 1,000, ids as numbers, from memory"
    assert table.loc[0, "times faster than ir_measures"] == "40 (20–41)"
    assert table.loc[0, "times faster than pytrec_eval"] == "2 (1–2)"
    assert table.loc[0, "nearest"] == "nDCG@10"
    assert table.loc[0, ["CPU s", "peak MiB"]].tolist() == ["0.1", "12"]
    assert (table.loc[1:, "times faster than ir_measures"] == "").all()


def test_the_page_of_the_documentation_is_made_of_the_numbers_beside_it():
    folder = Path(__file__).parents[3] / "docs"
    assert (folder / "benchmarks.md").read_text() == bench_report(read_numbers(folder / "benchmarks.json"))


def test_what_bounds_a_missed_target_is_said_once():
    missed = {"goal": "x", "at_least": True, "wanted": 2, "measured": dict.fromkeys(("median", "low", "high"), 1.0)}
    missed |= {"unit": "times faster", "met": False, "bound": "memory <b>"}
    empty = {"timings": [], "growth": [], "skipped": [], "machine": dict.fromkeys(("n_processors", "processor"), 1)}
    empty["machine"] |= {"memory_gib": 1, "system": "x"}
    head = {"made": "now", "versions": {}, "options": {"rounds": 1, "seed": 0}}
    page = bench_report({**empty, **head, "targets": [missed, missed, {**missed, "met": True, "bound": "none"}]})
    assert page.count("memory") == 1
    assert "none" not in page
    assert "<b>" not in page
    assert bound_of("vbterrier BNDCG@10 against pytrec_eval, 6,980 x 1,000", "times faster").startswith("BNDCG@10")
    assert bound_of("memory above the frames, BNDCG@10, 6,980 x 1,000", "MiB").startswith("Memory")
    assert not bound_of("reading a run against bare pyarrow, 250 x 1,000", "times the time")


def test_only_what_took_turns_is_compared():
    parts = [{**row, "part": int(row["tool"] == "pytrec_eval")} for row in TIMINGS]
    ((_, table),) = comparisons(parts)
    assert "times faster than ir_measures" in table
    assert "times faster than pytrec_eval" not in table


def test_targets_are_read_off_the_timings(monkeypatch):
    monkeypatch.setattr(targets, "of_objects", lambda *_, **__: {row["way"]: {"cpu": [8.0]} for row in TIMINGS})
    monkeypatch.setattr(targets, "_of_collection", lambda *_: [])
    monkeypatch.setattr(targets, "_of_statistics", lambda *_, **__: [])
    found = {one["goal"]: one for one in targets.met([(250, 1000)], TIMINGS, 3)}
    fast = found["vbterrier BNDCG@10 against ir_measures nDCG@10, 250 x 1,000"]
    assert (fast["wanted"], fast["met"], fast["measured"]["low"]) == (40, True, pytest.approx(20))
    assert not found["vbterrier BNDCG@10 against pytrec_eval ndcg_cut_10, 250 x 1,000"]["met"]
    objects = found["vbterrier BNDCG@10 against ir_measures nDCG@10, object columns, 250 x 1,000"]
    assert (objects["wanted"], objects["met"], objects["measured"]["median"]) == (20, False, 1.0)
    table = table_of_targets(list(found.values()))
    assert table["wanted"].iloc[0] == "at least 40 times faster"
    assert table["met"].tolist() == ["yes", "no", "no"]


def test_every_target_is_measured(monkeypatch):
    for name, value in {"LARGE": 4, "N_RESAMPLES": 20, "N_REPLICAS": 5, "N_TOPICS": 30}.items():
        monkeypatch.setattr(targets, name, value)
    monkeypatch.setattr(targets, "peaks", lambda names, *_: dict.fromkeys(names, 3.0))
    rows = [
        {"way": way, "n_queries": 4, "source": "memory", "cpu": [2.0]}
        for target in targets.FASTER
        for way in (target.ours, target.theirs)
    ]
    found = targets.met([(4, 30)], rows, 1)
    assert len(found) == len(targets.FASTER) + 5 + 2
    assert all(math.isfinite(one["measured"]["median"]) for one in found)
    assert next(one for one in found if one["goal"].startswith("memory"))["met"]


def test_pairs_do_the_same(tmp_path):
    collection = made("judged", tmp_path)
    calls = pairs.readings(collection)
    assert len(calls["ours"]()) == len(calls["other"]()) == len(collection.frames["run"])
    five = pairs.five_systems(collection)
    assert five["ours"]() == [five["other"]()] * 5
    both, one = (pairs.experiments(collection)[name]() for name in ("ours", "other"))
    pd.testing.assert_series_equal(both["nDCG@10"], one["nDCG@10"])
    means = pairs.commands(collection)["ours"]().means()
    frames = collection.frames
    assert means.iloc[0, 0] == pytest.approx(score(frames["run"], frames["qrels"], "nDCG@10").means().iloc[0, 0])
