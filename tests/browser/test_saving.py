"""Tables saved as CSV, the arrow keys of the table of topics, and shadows of tables that continue."""

import csv
import time
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from browsing import PHONE, column, emulated, one, press, shown, texts

from vbterrier import compare
from vbterrier.report.page.build import write_report
from vbterrier.settings import Inference

pytestmark = pytest.mark.slow


@pytest.fixture
def saved(page, tmp_path):
    """Click a button and read the CSV that the browser saves."""
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})

    def save(css):
        before = set(tmp_path.iterdir())
        page.execute_script("arguments[0].click()", one(page, css))
        for _ in range(100):
            new = [path for path in set(tmp_path.iterdir()) - before if path.suffix == ".csv" and path.stat().st_size]
            if new:
                text = new[0].read_bytes().decode("utf-8-sig")
                return new[0].name, list(csv.reader(text.splitlines()))
            time.sleep(0.1)
        raise AssertionError("nothing was saved")

    return save


def test_the_matrix_is_saved(page, data, saved):
    name, rows = saved(".scroll:has(#means) + .csv")
    assert name == "Means-of-31-topics.csv"
    parts = [f"{measure}{part}" for measure in data["measures"] for part in ("", " mark", " intervals")]
    assert rows[0] == ["System", *parts]
    assert len(rows) == 5
    assert {row[0] for row in rows[1:]} == set(data["systems"])
    for row in rows[1:]:
        values = data["values"][0][data["systems"].index(row[0])]
        assert float(row[1]) == pytest.approx(sum(values) / len(values), abs=6e-4)
        assert row[3].count(" to ") == 2
        assert row[3].endswith(" unjudged")


def test_all_topics_are_saved_in_their_order(page, data, saved):
    page.find_elements("css selector", "#table thead button")[3].click()
    name, rows = saved("#table + .csv")
    assert name == f"{data['measures'][0]}-of-each-topic.csv"
    assert rows[0][:4] == ["Topic", "Query", "Change", "bm25"]
    assert [row[0] for row in rows[1:]] == column(page, 1)
    assert [row[3] for row in rows[1:]] == sorted((shown(value) for value in data["values"][0][0]), reverse=True)
    assert any(float(row[2]) < 0 for row in rows[1:])


def test_pairs_that_are_not_shown_are_saved(page, saved, other, tmp_path):
    rng = np.random.default_rng(1)
    qids = [f"q{n}" for n in range(8)]
    qrels = pd.DataFrame([(qid, f"d{n}", n % 2) for qid in qids for n in range(10)], columns=["qid", "docno", "label"])
    runs = {f"s{n:02}": qrels[["qid", "docno"]].assign(score=rng.random(len(qrels))) for n in range(21)}
    few = Inference(n_resamples=50)
    other(write_report(runs, qrels, ["P@1", "nDCG@5"], path=tmp_path / "many.html", inference=few).path.as_uri())
    # Filters that have nothing to select by are not shown.
    displayed = {name: one(page, f"#{name}").is_displayed() for name in ("difficulty", "length", "intents")}
    assert displayed == {"difficulty": True, "length": False, "intents": False}
    names = [head.text for head in page.find_elements("css selector", "#means tbody th")]
    for place, measure in enumerate(("P@1", "nDCG@5")):
        name, rows = saved(f".scroll:has([data-rest='{place}']) + .csv")
        assert name.startswith(f"Differences-of-{measure}")
        assert {len(row) for row in rows} == {8}
        assert len(rows) == 1 + 210
        assert {frozenset(row[:2]) for row in rows[1:]} == {frozenset(pair) for pair in combinations(names, 2)}
        assert len(page.find_elements("css selector", f"[data-rest='{place}'] tbody tr")) == 20
        best = set.intersection(*(set(row[:2]) for row in rows[1:21]))
        message = f"20 pairs, those of the best system, {best.pop()}; the CSV has all 210."
        assert message in one(page, "#pairs .note").text
        # All rows have the differences of their systems.
        differences = compare(runs, qrels, [measure], inference=Inference(n_resamples=50)).pairs.set_index(
            ["name_a", "name_b"]
        )["diff"]
        for row in rows[1:]:
            assert float(row[2]) == pytest.approx(differences[row[0], row[1]], abs=6e-5)


def test_every_table_has_one_button_also_in_a_topic_of_the_address(page, address):
    page.get("about:blank")
    page.get(f"{address}#topic=q7")
    tables, buttons = (page.find_elements("css selector", css) for css in (".scroll:has(table)", "button.csv"))
    assert len(page.find_elements("css selector", "dialog[open] .scroll:has(table)")) > 2
    assert len(buttons) == len(tables)


def test_pairs_are_saved_without_drawings(page, saved):
    _, rows = saved("#pairs .csv")
    assert len({len(row) for row in rows}) == 1
    assert rows[0] == ["a", "b", "a − b", "95% interval", "Adjusted p", "Significant", "Effect", "Won/lost/tied"]
    assert len(rows) == 7


def test_rankings_are_saved(page, data, saved):
    page.find_elements("css selector", "#table tbody button")[1].click()
    _, rows = saved("#rankings .csv")
    first, second = (data["systems"][place] for place in data["order"][:2])
    value = shown(data["values"][0][data["order"][0]][1])
    assert rows[0][:3] == ["Rank", f"{first} {value}", f"{first} {value} judgments and intents"]
    assert [row[0] for row in rows[1:]] == [str(rank) for rank in range(1, 11)]
    assert [row[1] for row in rows[1:]] == texts(page, "td[data-column='0'] .id")
    assert all("llm " in row[2] for row in rows[1:])
    assert rows[0][5].startswith(second)
    assert {row[7] for row in rows[1:]} <= {f"not in {first}", *(row[7] for row in rows[1:] if first in row[7])}


def test_formulas_are_saved_as_text(page):
    quoted = "return ['=1+1', '-2', '−0.5', '@x', 'a,b', 'say \"x\"', '+', 'plain'].map(quoted)"
    assert page.execute_script(quoted) == ["'=1+1", "-2", "-0.5", "'@x", '"a,b"', '"say ""x"""', "'+", "plain"]


def test_arrow_keys_move_along_topics(page):
    buttons = page.find_elements("css selector", "#table tbody button")
    page.execute_script("arguments[0].focus()", buttons[0])
    press(page, "\ue015", "\ue015", "\ue013")
    assert page.switch_to.active_element.text == "q2"
    press(page, "\ue013", "\ue013")
    assert page.switch_to.active_element.text == "q1"


def test_a_shadow_shows_that_a_table_continues(page):
    table = one(page, "#table")
    assert "continues" not in table.get_attribute("class").split()
    emulated(page, PHONE)
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert "continues" in table.get_attribute("class").split()
    page.execute_script("arguments[0].scrollLeft = 9999", table)
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert "continues" not in table.get_attribute("class").split()


def test_long_names_are_cut_where_they_begin_to_differ(page, data, other):
    names = [f"a-system-with-a-long-name-{number}" for number in ("01", "02", "13", "x")]
    other({**data, "systems": names})
    assert texts(page, "#table thead th bdi")[3:7] == ["…me-01", "…me-02", "…me-13", "…me-x"]
    header = page.find_elements("css selector", "#table thead th")[3]
    assert header.get_attribute("title") == names[0]
    saved = page.execute_script("return csv(document.querySelector('#table table')).split('\\r\\n')[0]")
    assert saved.startswith(f"Topic,Query,Change,{','.join(names)},")
