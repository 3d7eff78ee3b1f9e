"""The report in a browser: mouse, keyboard, dark mode, phone, print."""

import pytest
from browsing import NASTY, PHONE, WIDE, choose, column, emulated, n_printed_pages, one, opened, press, shown

pytestmark = pytest.mark.slow


def test_numbers_are_those_of_the_data(page, data):
    for measure, name in enumerate(data["measures"]):
        choose(page, "#measure", name)
        order = [data["topics"].index(text) for text in column(page, 1)]
        assert sorted(order) == list(range(31))
        for system in range(4):
            expected = [shown(data["values"][measure][system][topic]) for topic in order]
            assert column(page, 4 + system) == expected, (name, system)
    unjudged = [str(max(counts[topic] for counts in data["unjudged"])) for topic in order]
    assert column(page, 9) == unjudged


def test_a_table_is_sorted_by_a_click_on_its_heading(page, data):
    first = column(page, 1)
    assert first[:4] == ["q1", "q2", "q3", "q4"]
    assert first.index("q9") < first.index("q10")
    header = "#table thead th:nth-child(5)"
    one(page, f"{header} button").click()
    assert one(page, header).get_attribute("aria-sort") == "descending"
    values = [float(text) for text in column(page, 5)]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]
    # The button keeps the focus, so that Enter reverses the order.
    assert page.switch_to.active_element.text.startswith("dense")
    press(page, "\ue007")
    assert one(page, header).get_attribute("aria-sort") == "ascending"
    assert [float(text) for text in column(page, 5)] == sorted(values)
    assert one(page, "#table thead th:first-child").get_attribute("aria-sort") == "none"


def test_tables_are_filtered_and_searched(page, data):
    queries = [f"what is meant by {number}" for number in (2, *range(20, 30))]
    for text, place, result in (
        ("Q1", 1, ["q1", *(f"q1{digit}" for digit in range(10))]),
        ("WHAT is meant by 2", 2, queries),
        ("no such topic", 1, []),
        (" ", 1, data["topics"]),
    ):
        one(page, "#search").clear()
        one(page, "#search").send_keys(text)
        assert column(page, place) == result
        assert one(page, "#count").text.startswith(f"{len(result)} of 31 topics.")
    choose(page, "#filter", "systems differ")
    values = data["values"][0]
    apart = [n for n in range(31) if max(of[n] for of in values) - min(of[n] for of in values) >= 0.1 - 1e-9]
    assert sorted(column(page, 1)) == sorted(data["topics"][n] for n in apart)
    assert 0 < len(apart) < 31
    assert f"0.1 or more ({len(apart)})" in one(page, "#filter").text


def test_a_topic_opens_by_click_and_shows_its_data(page, data):
    row = page.find_elements("css selector", "#table tbody tr")[4]
    assert not opened(page)
    row.find_element("css selector", "td.query").click()
    assert opened(page)
    assert one(page, "#topic h2").text == "Topic q5"
    topic = data["topics"].index("q5")
    tables = page.find_elements("css selector", "#topic table")
    scores = [cell.text for cell in tables[1].find_elements("css selector", "tbody tr:first-child td")]
    assert scores == [shown(of[0][topic], 4) for of in data["values"]]
    drawn = [cell.text for cell in tables[2].find_elements("css selector", "tbody tr:nth-child(2) td")]
    low, high = (data["distributions"][end][1][topic] for end in ("low", "high"))
    n_unjudged = data["unjudged"][1][topic]
    assert drawn[:3] == [str(n_unjudged), shown(data["values"][0][1][topic]), f"{shown(low)} to {shown(high)}"]
    bars = len(tables[2].find_elements("css selector", "tbody tr:nth-child(2) rect"))
    assert bars == sum(sign != "0" for sign in data["distributions"]["shapes"][1][topic]) > 0
    intents = data["intents"]["topics"][topic]
    assert [cell.text for cell in tables[3].find_elements("css selector", "tbody th")] == intents["names"]
    ranks = [cell.text for cell in tables[3].find_elements("css selector", "tbody td:nth-child(3)")]
    assert ranks == [text.replace(",", ", ") or "–" for text in intents["ranks"][0].split(";")]


def test_everything_by_keyboard(page):
    press(page, "\ue004")
    assert page.switch_to.active_element.text == "Skip to the results"
    press(page, "\ue007")
    assert page.execute_script("return document.activeElement.id") == "main"
    page.execute_script("document.getElementById('search').focus()")
    # Tab: the topics that decide, bars, the region of the table, its headers, then the first topic.
    for _ in range(40):
        press(page, "\ue004")
        if page.switch_to.active_element.get_attribute("data-topic") == "0":
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


def test_the_verdict_is_beside_the_matrix_and_above_it_on_a_phone(page):
    table, text = (one(page, css).rect for css in ("#means", ".said"))
    assert text["x"] > table["x"] + 400
    assert abs(text["y"] - table["y"]) < 50
    emulated(page, PHONE)
    lead, step, table, caveats = (one(page, css).rect["y"] for css in (".lead", ".next", "#means", ".caveats"))
    assert 0 < lead < step < table < caveats


def test_only_the_best_means_are_bold(page):
    weights = "return [...document.querySelectorAll('#means *')].filter(e => getComputedStyle(e).fontWeight > 500)"
    bold = page.execute_script(f"{weights}.map(e => e.closest('.best') !== null)")
    assert len(bold) >= 4
    assert all(bold)


def test_caveats_are_folded_by_severity(page):
    folded = page.find_elements("css selector", ".said details")
    titles = [one.find_element("css selector", "summary").text.split(" ", 1)[1] for one in folded]
    assert titles == ["serious caveats", "other caveats", "and other measures"]
    assert [one.get_attribute("open") is not None for one in folded] == [True, False, False]
    inside = folded[1].find_element("css selector", "dd")
    assert not inside.is_displayed()
    page.execute_script("arguments[0].focus()", folded[1].find_element("css selector", "summary"))
    press(page, "\ue007")
    assert inside.is_displayed()


def test_dark_is_dark_and_drawings_follow(page):
    colours = (
        "const of = (css, what) => getComputedStyle(document.querySelector(css))[what];"
        "return [of('body', 'backgroundColor'), of('body', 'color'), of('.cell path.mean', 'stroke'),"
        "of('.chip, #means td', 'color')]"
    )
    light = page.execute_script(colours)
    emulated(page, WIDE, "dark")
    dark = page.execute_script(colours)
    assert light[0] == "rgb(255, 255, 255)"
    assert all(one != other for one, other in zip(light, dark, strict=True))


def test_many_topics_are_shown_in_two_steps(page, data, other):
    times = 14
    many = {**data, "topics": [f"{topic}-{n}" for n in range(times) for topic in data["topics"]]}
    many["queries"] = data["queries"] * times
    many["values"] = [[of * times for of in systems] for systems in data["values"]]
    many["unjudged"] = [of * times for of in data["unjudged"]]
    many["intents"] = {**data["intents"], "topics": data["intents"]["topics"] * times}
    other(many)
    assert len(column(page, 1)) == 400
    assert one(page, "#rest").text == "Show 34 more"
    one(page, "#rest").click()
    assert len(column(page, 1)) == 31 * times == 434
    assert not one(page, "#rest").is_displayed()


def test_a_printed_page_begins_with_the_verdict(page):
    assert n_printed_pages(page) >= 3
    # With the verdict and one heading alone: the topics begin a new page.
    hide = "document.querySelectorAll(arguments[0]).forEach(e => e.style.setProperty('display', 'none', 'important'))"
    page.execute_script(hide, "body > :not(main), main > :not(#verdict, #topics), #topics > :not(h2)")
    divided = n_printed_pages(page)
    page.execute_script("document.getElementById('topics').style.breakBefore = 'auto'")
    assert divided == n_printed_pages(page) + 1


def test_print_leaves_controls_out(page):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    hidden = "return ['nav', '#controls', '.skip'].map(css => getComputedStyle(document.querySelector(css)).display)"
    assert page.execute_script(hidden) == ["none"] * 3
    assert one(page, "#table table").is_displayed()
