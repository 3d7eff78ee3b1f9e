"""The matrix of systems and measures: means, intervals, marks, the best in bold."""

import re

import pytest

import vbterrier
from vbterrier.report.page.evaluated import ReportContent
from vbterrier.settings import Data, Inference


def table_of(text):
    """The matrix as rows of cells, each a dictionary of what it shows, by system and measure."""
    table = re.search(r'<table id="means">.*?</table>', text, re.DOTALL).group(0)
    head = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table.partition("</thead>")[0])
    rows = {}
    for row in re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], re.DOTALL):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
        rows[re.search(r"<bdi>(.*?)</bdi>", row).group(1)] = {
            re.sub(" ?<.*", "", name): {
                "mean": "".join(re.findall(r'class="mean[^"]*">([^<]*)', cell)),
                "best": "best" in cell,
                "mark": "".join(re.findall(r'class="mark"[^>]*>([^<]*)', cell)),
                "ends": re.findall(r'class="ends">([^<]*)', cell),
                "lines": len(re.findall("<path", cell)),
                "text": cell,
            }
            for name, cell in zip(head[1:], cells, strict=True)
        }
    return rows


def in_text(value):
    return f"{value:.3f}".replace("-", "−")


def test_means_and_intervals_are_those_of_score(demo_page, demo_scores):
    rows = table_of(demo_page[1])
    n_sources = 0
    for (name, measure), part in demo_scores.intervals.groupby(["name", "measure"]):
        cell = rows[name][measure]
        assert cell["mean"] == in_text(part["value"].iloc[0])
        sources = [method.partition(" (")[0] for method in part["method"]]
        expected = [f"{in_text(low)} to {in_text(high)}" for low, high in zip(part["low"], part["high"], strict=True)]
        if len(part) > 1:
            expected = [f"{ends} {source}" for ends, source in zip(expected, sources, strict=True)]
            n_sources += 1
        assert cell["ends"] == expected
        assert cell["lines"] == 1 + len(part)
    assert n_sources == 3


def test_bars_are_where_the_axis_of_their_measure_has_their_numbers(demo_page, demo_scores):
    head = re.search(r'<table id="means">.*?</thead>', demo_page[1], re.DOTALL)[0]
    axes = dict(
        re.findall(r'<th scope="col">([^ <]+)(?: <span class="aside">[^<]*</span>)?<div.*?aria-label="([^"]*)"', head)
    )
    rows = table_of(demo_page[1])
    for measure, part in demo_scores.intervals.groupby("measure"):
        low, high = part["low"].min(), part["high"].max()
        assert axes[measure] == f"axis from {low:.4g} to {high:.4g}"
        for name, value in part.drop_duplicates("name")[["name", "value"]].itertuples(index=False):
            # Bars have 100 units between margins of 4 pixels of 120, as the axis has.
            box, place = re.search(r'viewBox="(\S+) .*class="mean" d="M(\S+) ', rows[name][measure]["text"]).groups()
            margin, width = -float(box), 100 - 2 * float(box)
            assert float(place) == pytest.approx(100 * (value - low) / (high - low), abs=0.051)
            assert 120 * margin / width == pytest.approx(4, abs=0.01)


def test_the_best_mean_is_bold_and_nothing_else(demo_page):
    _, text, data = demo_page
    rows = table_of(text)
    for measure, name in enumerate(data["measures"]):
        means = [sum(of) for of in data["values"][measure]]
        best = {data["systems"][place] for place, mean in enumerate(means) if mean == pytest.approx(max(means))}
        # The share of unjudged documents describes runs.
        expected = set() if name == "Unjudged@10" else best
        assert {system for system in rows if rows[system][name]["best"]} == expected
    first = [float(row["ENDCG@10"]["mean"]) for row in rows.values()]
    assert first == sorted(first, reverse=True)
    assert first[0] > first[-1]


def test_letters_of_all_pairs(demo_page, demo_scores):
    _, text, _ = demo_page
    rows, measures = table_of(text), ["nDCG@10", "VB@10"]
    for row in vbterrier.compare(
        demo_scores, measures=measures, inference=Inference(n_resamples=200, seed=3)
    ).systems.itertuples():
        assert rows[row.name][row.measure]["mark"] == row.letters
    assert "share a letter" in text


def test_signs_of_differences_from_a_baseline(written, small):
    runs, qrels = small
    _, text, _ = written(
        {**runs, "twin": runs["first"]}, qrels, "nDCG@10", baseline="first", inference=Inference(test="randomisation")
    )
    marks = {name: row["nDCG@10"]["mark"] for name, row in table_of(text).items()}
    assert marks == {"first": "", "twin": "", "second": "▼"}
    assert 'title="significantly lower than first"' in text
    assert {name for name, row in table_of(text).items() if row["nDCG@10"]["best"]} == {"first", "twin"}
    _, text, _ = written(runs, qrels, "nDCG@10", baseline="second", inference=Inference(test="randomisation"))
    assert table_of(text)["first"]["nDCG@10"]["mark"] == "▲"
    assert "▲ and ▼: significantly higher and lower than second." in text


def test_equal_means_have_no_best_and_empty_topics_are_counted(written, small):
    runs, qrels = small
    _, text, _ = written({"a": runs["first"], "b": runs["first"]}, qrels, "nDCG@10")
    assert [row["nDCG@10"]["best"] for row in table_of(text).values()] == [False, False]
    assert ">Empty</th>" not in text
    part = runs["second"][runs["second"]["qid"].isin(["q0", "q1"])]
    with pytest.warns(vbterrier.errors.DegenerateWarning):
        _, text, _ = written({"first": runs["first"], "part": part}, qrels, "nDCG@10", data=Data(on_topics="all"))
    assert table_of(text)["part"]["Empty"]["text"] == "8"
    assert table_of(text)["part"]["Topics"]["text"] == "10"


def test_a_single_system_and_a_single_topic(written, small):
    runs, qrels = small
    _, text, _ = written({"second": runs["second"]}, qrels, "nDCG@10")
    cell = table_of(text)["second"]["nDCG@10"]
    assert (cell["mean"], cell["best"], cell["mark"]) == ("0.631", False, "")
    one = {name: run[run["qid"] == "q0"] for name, run in runs.items()}
    with pytest.warns(vbterrier.errors.DegenerateWarning):
        _, text, _ = written(one, qrels[qrels["qid"] == "q0"], "nDCG@10")
    assert table_of(text)["first"]["nDCG@10"]["ends"] == []


def test_lower_values_are_the_best_of_measures_of_mistakes(written, mistakes):
    runs, pool = mistakes
    runs = {name: runs[name] for name in ("bad", "good")}
    with pytest.warns(vbterrier.errors.DegenerateWarning):
        _, text, data = written(runs, None, ["NonRelCov@1", "DiscRatio@1"], content=ReportContent(links=pool))
    rows = table_of(text)
    assert [row["NonRelCov@1"]["best"] for row in rows.values()] == [True, False]
    assert list(rows) == ["good", "bad"]
    assert 'NonRelCov@1 <span class="aside">lower is better</span>' in text
    assert 'DiscRatio@1 <span class="aside">ratio of means</span>' in text
    # Rankings of entities have no grades.
    assert "grades" not in data["rankings"]["topics"][0]
    assert data["rankings"]["ids"] == ["y", "x"]
