"""The report in a browser: mouse, keyboard, dark mode, phone, print."""

import base64
import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pandas as pd
import pytest

from vbterrier.report import ComparisonOptions, ReportData
from vbterrier.report.page.build import write_report
from vbterrier.report.page.content import script

NASTY = "</script><b>&\"'x"
WIDE, PHONE = (1200, 900), (360, 740)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page with all parts: unjudged documents, intents, figures, names that are markup."""
    rng = np.random.default_rng(5)
    same = rng.permutation(60)
    qids = [f"q{number}" for number in range(1, 31)] + [f"z{NASTY}"]
    docnos = [f"d{number:03d}" for number in range(60)]
    judged = [(qid, docno, int(rng.integers(0, 3))) for qid in qids for docno in docnos[:40:2]]
    names = ["bm25", "dense", f"odd{NASTY}", "a-name-that-is-longer-than-columns-like-to-be"]
    runs = {
        name: pd.DataFrame(
            # In ten topics all systems agree.
            [
                (qid, docnos[place], 10.0 - rank)
                for number, qid in enumerate(qids)
                for rank, place in enumerate((same if number % 3 == 0 else rng.permutation(60))[:10])
            ],
            columns=["qid", "docno", "score"],
        )
        for name in names
    }
    intents = pd.DataFrame(
        [(qid, f"{sense}{NASTY}", prob) for qid in qids for sense, prob in (("one", 0.7), ("two", 0.2), ("none", 0.1))],
        columns=["qid", "entity_id", "prob"],
    )
    tags = pd.DataFrame({"docno": docnos[:40], "entity_id": [f"{('one', 'two')[n % 2]}{NASTY}" for n in range(40)]})
    topics = pd.DataFrame({"qid": qids, "query": [f"what is meant by {number}" for number in range(len(qids))]})
    path = tmp_path_factory.mktemp("browser") / "report.html"
    write_report(
        runs,
        path,
        pd.DataFrame(judged, columns=["qid", "docno", "label"]),
        data=ReportData(intents=intents, tags=tags, topics=topics),
        comparison=ComparisonOptions(n_resamples=300),
        command=["vbterrier", "report", *names, "--a-long-command-line" * 9],
    )
    return path.as_uri()


def emulated(browser, size, scheme="light"):
    width, height = size
    shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})


@pytest.fixture
def page(chromium, address):
    """The page, newly loaded; fails if the browser logs a message or requests anything but the file."""
    emulated(chromium, WIDE)
    chromium.get("about:blank")
    for kind in ("browser", "performance"):
        chromium.get_log(kind)
    chromium.get(address)
    yield chromium
    assert chromium.get_log("browser") == []
    asked = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    urls = {one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"}
    assert urls == {address}


@pytest.fixture
def data(page):
    return json.loads(page.execute_script("return document.getElementById('data').textContent"))


def texts(page, css):
    return page.execute_script("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", css)


def one(page, css):
    return page.find_element("css selector", css)


def column(page, place):
    return texts(page, f"#table tbody tr > :nth-child({place})")


def shown(value, digits=3):
    return f"{value:.{digits}f}".replace("-", "−")


def choose(page, select, text):
    one(page, f"{select}").find_element("xpath", f".//option[starts-with(., '{text}')]").click()


def press(page, *keys):
    from selenium.webdriver import ActionChains

    ActionChains(page).send_keys(*keys).perform()


def test_numbers_are_those_of_the_data(page, data):
    for measure, name in enumerate(data["measures"]):
        choose(page, "#measure", name)
        order = [data["topics"].index(text) for text in column(page, 1)]
        assert sorted(order) == list(range(31))
        for system in range(4):
            wanted = [shown(data["values"][measure][system][topic]) for topic in order]
            assert column(page, 3 + system) == wanted, (name, system)
    unjudged = [str(max(counts[topic] for counts in data["unjudged"]["counts"])) for topic in order]
    assert column(page, 8) == unjudged


def test_sorting(page, data):
    first = column(page, 1)
    assert first[:4] == ["q1", "q2", "q3", "q4"]
    assert first.index("q9") < first.index("q10")
    header = "#table thead th:nth-child(4)"
    one(page, f"{header} button").click()
    assert one(page, header).get_attribute("aria-sort") == "descending"
    values = [float(text) for text in column(page, 4)]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]
    # The button keeps the focus, so that Enter reverses the order.
    assert page.switch_to.active_element.text.startswith("dense")
    press(page, "\ue007")
    assert one(page, header).get_attribute("aria-sort") == "ascending"
    assert [float(text) for text in column(page, 4)] == sorted(values)
    assert one(page, "#table thead th:first-child").get_attribute("aria-sort") == "none"


def test_filter_and_search(page, data):
    search = one(page, "#search")
    search.send_keys("Q1")
    assert column(page, 1) == ["q1", *(f"q1{digit}" for digit in range(10))]
    assert one(page, "#count").text.startswith("11 of 31 topics.")
    search.clear()
    search.send_keys("WHAT is meant by 2")
    assert column(page, 2) == [f"what is meant by {number}" for number in (2, *range(20, 30))]
    search.clear()
    search.send_keys("no such topic")
    assert column(page, 1) == []
    search.clear()
    search.send_keys(" ")
    choose(page, "#filter", "systems differ")
    values = data["values"][0]
    apart = [n for n in range(31) if max(of[n] for of in values) - min(of[n] for of in values) >= 0.1 - 1e-9]
    assert sorted(column(page, 1)) == sorted(data["topics"][n] for n in apart)
    assert 0 < len(apart) < 31
    assert f"0.1 or more ({len(apart)})" in one(page, "#filter").text


def test_differences_from_a_system(page, data):
    choose(page, "#base", "differences from bm25")
    order = [data["topics"].index(text) for text in column(page, 1)]
    for system in range(4):
        own, base = data["values"][0][system], data["values"][0][0]
        wanted = [own[topic] - base[topic] for topic in order]
        found = [float(text.replace("−", "-")) for text in column(page, 3 + system)]
        assert found == pytest.approx(wanted, abs=5.1e-4)
    assert min(found) < 0 < max(found)


def opened(page):
    return page.execute_script("return document.getElementById('topic').open")


def test_a_topic_opens_by_click_and_shows_its_data(page, data):
    row = page.find_elements("css selector", "#table tbody tr")[4]
    assert not opened(page)
    row.find_element("css selector", "td.query").click()
    assert opened(page)
    assert one(page, "#topic h2").text == "Topic q5"
    topic = data["topics"].index("q5")
    tables = page.find_elements("css selector", "#topic table")
    scores = [cell.text for cell in tables[0].find_elements("css selector", "tbody tr:first-child td")]
    assert scores == [shown(of[0][topic], 4) for of in data["values"]]
    drawn = [cell.text for cell in tables[1].find_elements("css selector", "tbody tr:nth-child(2) td")]
    low, high = (data["distributions"][end][1][topic] for end in ("low", "high"))
    n_unjudged = data["unjudged"]["counts"][1][topic]
    assert drawn[:3] == [str(n_unjudged), shown(data["values"][0][1][topic]), f"{shown(low)} to {shown(high)}"]
    bars = len(tables[1].find_elements("css selector", "tbody tr:nth-child(2) rect"))
    assert bars == sum(sign != "0" for sign in data["distributions"]["shapes"][1][topic]) > 0
    intents = data["intents"]["topics"][topic]
    assert [cell.text for cell in tables[2].find_elements("css selector", "tbody th")] == intents["names"]
    ranks = [cell.text for cell in tables[2].find_elements("css selector", "tbody td:nth-child(3)")]
    assert ranks == [text.replace(",", ", ") or "–" for text in intents["ranks"][0].split(";")]
    documents = [cell.text for cell in tables[3].find_elements("css selector", "tbody th")]
    assert documents == data["unjudged"]["documents"][topic]
    assert len(documents) > 5
    for place, at in enumerate(data["unjudged"]["ranks"][topic]):
        ranks = dict(zip(at[::2], at[1::2], strict=True))
        cells = tables[3].find_elements("css selector", f"tbody tr:nth-child({place + 1}) td")
        assert [cell.text for cell in cells] == [str(ranks.get(system, "–")) for system in range(4)]


def test_everything_by_keyboard(page):
    press(page, "\ue004")
    assert page.switch_to.active_element.text == "Skip to the verdict"
    press(page, "\ue007")
    assert page.execute_script("return document.activeElement.id") == "main"
    page.execute_script("document.getElementById('search').focus()")
    # Tab: the region of the table, its headers, then the first topic.
    for _ in range(12):
        press(page, "\ue004")
        if page.switch_to.active_element.get_attribute("data-topic") is not None:
            break
    assert page.switch_to.active_element.text == "q1"
    press(page, "\ue007")
    assert opened(page)
    assert page.switch_to.active_element.text == "Topic q1"
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    # The first topic has no previous one.
    assert not one(page, "#topic button").is_enabled()
    press(page, "\ue004")
    assert page.switch_to.active_element.text == "Next"
    assert page.execute_script(outline) == "solid"
    press(page, "\ue007")
    assert one(page, "#topic h2").text == "Topic q2"
    press(page, "\ue00c")
    assert not opened(page)
    # The focus returns to the topic that was open.
    assert page.switch_to.active_element.text == "q2"


def test_markup_of_ids_is_text(page):
    odd = column(page, 1)[-1]
    assert odd == f"z{NASTY}"
    page.find_elements("css selector", "#table tbody button")[-1].click()
    assert one(page, "#topic h2").text == f"Topic z{NASTY}"
    assert page.find_elements("css selector", "#topic b, #table b, header b, #verdict b") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_axe_finds_nothing_serious(page, scheme, size):
    axe = pytest.importorskip("axe_core_python")
    from importlib import resources

    emulated(page, size, scheme)
    code = (resources.files(axe) / "axe.min.js").read_text(encoding="utf-8")
    page.execute_cdp_cmd("Runtime.evaluate", {"expression": code})
    run = "const done = arguments[0]; axe.run().then(found => done([found.violations, found.passes]))"
    for topic in (False, True):
        if topic:
            page.execute_script("document.querySelector('#table tbody button').click()")
        violations, passes = page.execute_async_script(run)
        told = [(one["id"], one["impact"], [node["html"][:90] for node in one["nodes"]][:3]) for one in violations]
        assert told == []
        # A rule that fails to run reports nothing.
        assert next(len(one["nodes"]) for one in passes if one["id"] == "color-contrast") > 30


def test_regions_have_unique_names(page):
    page.execute_script("document.querySelector('#table tbody button').click()")
    regions = "return [...document.querySelectorAll('[role=region], section, nav, [role=search], dialog, [role=img]')]"
    names = page.execute_script(f"{regions}.map(e => [e.tagName, e.ariaLabel || e.ariaLabelledByElements?.length])")
    assert len(names) > 15
    assert all(name for _, name in names), names


def test_a_phone_scrolls_tables_and_not_the_page(page):
    emulated(page, PHONE)
    for topic in (False, True):
        if topic:
            page.execute_script("document.querySelector('#table tbody button').click()")
        width = "return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
        assert page.execute_script(width) <= 360
        inside = "const d = document.getElementById('topic'); return d.scrollWidth - d.clientWidth"
        assert page.execute_script(inside) <= 0
    regions = "return [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)"
    wide = page.execute_script(regions)
    assert len(wide) > 5
    assert all(region.get_attribute("tabindex") == "0" for region in wide)


def test_dark_is_dark_and_figures_follow(page):
    colours = (
        "const of = (css, what) => getComputedStyle(document.querySelector(css))[what];"
        "return [of('body', 'backgroundColor'), of('body', 'color'), of('.drawing .fill-ink', 'fill')]"
    )
    light = page.execute_script(colours)
    emulated(page, WIDE, "dark")
    dark = page.execute_script(colours)
    assert light[0] == "rgb(255, 255, 255)"
    assert light[1] == light[2]
    assert dark[1] == dark[2]
    assert all(one != other for one, other in zip(light, dark, strict=True))


def test_many_topics_are_shown_in_two_steps(chromium, page, data, address, tmp_path):
    times = 14
    many = {**data, "topics": [f"{topic}-{n}" for n in range(times) for topic in data["topics"]]}
    many["queries"] = data["queries"] * times
    many["values"] = [[of * times for of in systems] for systems in data["values"]]
    many["unjudged"] = {**data["unjudged"], "counts": [of * times for of in data["unjudged"]["counts"]]}
    many["intents"] = {**data["intents"], "topics": data["intents"]["topics"] * times}
    text = Path(unquote(urlparse(address).path)).read_text(encoding="utf-8")
    before, _, rest = text.partition('id="data">')
    path = tmp_path / "many.html"
    path.write_text(f'{before}id="data">{script(many)}<{rest.partition("<")[2]}', encoding="utf-8")
    chromium.get(path.as_uri())
    assert len(column(page, 1)) == 400
    assert one(page, "#rest").text == "Show 34 more"
    one(page, "#rest").click()
    assert len(column(page, 1)) == 31 * times == 434
    assert not one(page, "#rest").is_displayed()
    assert chromium.get_log("browser") == []
    chromium.get_log("performance")
    chromium.get(address)


def test_print(page, tmp_path):
    printed = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    pdf = base64.b64decode(printed["data"])
    assert pdf.startswith(b"%PDF")
    # The verdict is alone on the first page, the topics begin a new one.
    assert pdf.count(b"/Type /Page\n") >= 3
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    hidden = "return ['nav', '#controls', '.skip'].map(css => getComputedStyle(document.querySelector(css)).display)"
    assert page.execute_script(hidden) == ["none"] * 3
    assert one(page, "#table table").is_displayed()
