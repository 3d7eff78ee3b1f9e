"""Two systems in a browser: scatter plot, sorted changes, topics that decide, filters, links to a state."""

from urllib.parse import parse_qs, urlparse

import numpy as np
import pytest
from browsing import NASTY, choose, column, one, opened, press, shown, texts

from vbterrier.report.page.verdict import influential_topics

pytestmark = pytest.mark.slow


@pytest.fixture
def changes(page, data):
    """Changes of the first measure from bm25 to dense, which are chosen."""
    choose(page, "#from", "bm25")
    choose(page, "#to", "dense")
    return np.array(data["values"][0][1]) - np.array(data["values"][0][0])


def topics_of(page, css):
    return [int(mark.get_attribute("data-topic")) for mark in page.find_elements("css selector", css)]


def test_changes_are_those_of_the_pair(page, data, changes):
    order = [data["topics"].index(text) for text in column(page, 1)]
    assert column(page, 3) == [shown(changes[topic]).replace("−0.000", "0.000") for topic in order]
    assert changes.min() < -0.01
    assert changes.max() > 0.01
    less = topics_of(page, "#table tr:has(td.change.less) button")
    assert sorted(less) == np.flatnonzero(changes < 0).tolist()
    up, down, same = (changes > 0).sum(), (changes < 0).sum(), (changes == 0).sum()
    message = f"dense is higher on {up}, lower on {down} and equal on {same} of 31 topics; the mean change is "
    assert texts(page, "#pair > p")[0] == f"{message}{shown(changes.mean())}."
    assert texts(page, "#pair h3") == ["bm25 → dense"]


def test_points_and_bars(page, data, changes):
    points = page.find_elements("css selector", ".point")
    assert sorted(topics_of(page, ".point")) == list(range(31))
    x, y = (np.array([float(point.get_attribute(end)) for point in points]) for end in ("cx", "cy"))
    at = topics_of(page, ".point")
    for values, place, sign in ((data["values"][0][0], x, 1), (data["values"][0][1], y, -1)):
        slope, origin = np.polyfit(np.array(values)[at], place, 1)
        assert np.sign(slope) == sign
        assert slope * np.array(values)[at] + origin == pytest.approx(place, abs=0.1)
    bars = page.find_elements("css selector", ".delta")
    order = topics_of(page, ".delta")
    assert order == sorted(range(31), key=lambda topic: (-changes[topic], topic))
    heights = np.array([float(bar.get_attribute("height")) for bar in bars])
    sizes = np.abs(changes[order])
    assert heights == pytest.approx(np.maximum(149 * sizes / sizes.max(), 1), abs=0.1)
    kinds = {1: "gain", -1: "loss", 0: "same"}
    for bar, topic in zip(bars, order, strict=True):
        assert kinds[int(np.sign(changes[topic]))] in bar.get_attribute("class").split()


def test_the_topics_that_decide(page, data, changes):
    a, b = (np.array(data["values"][0][system]) for system in (1, 0))
    expected = influential_topics(a, b) if changes.sum() > 0 else influential_topics(b, a)
    assert 0 < len(expected) < 31
    assert texts(page, "#pair .link") == [data["topics"][topic] for topic in expected[:8]]
    assert f"Without {len(expected)} of these topics" in texts(page, "#pair > p")[1]
    for css in (".delta.decides", ".point.decides"):
        assert sorted(topics_of(page, css)) == sorted(expected)
    one(page, "#pair .link").click()
    assert one(page, "#topic h2").text == f"Topic {data['topics'][expected[0]]}"
    # The rankings are those of the pair.
    assert texts(page, ".rankings thead th bdi") == ["bm25", "dense"]


def test_a_point_and_a_bar_open_their_topic(page, data, changes):
    for css in (".point", ".delta"):
        place = next(n for n, topic in enumerate(topics_of(page, css)) if abs(changes[topic]) > 0.05)
        mark = page.find_elements("css selector", css)[place]
        page.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", mark)
        assert one(page, "#topic h2").text == f"Topic {data['topics'][int(mark.get_attribute('data-topic'))]}"
        press(page, "\ue00c")


def test_bars_by_keyboard(page, data, changes):
    bars = one(page, ".bars")
    order = topics_of(page, ".delta")
    page.execute_script("arguments[0].focus()", bars)
    press(page, "\ue014", "\ue014", "\ue012")
    assert bars.get_attribute("aria-valuenow") == "2"
    topic = order[1]
    values = [shown(data["values"][0][system][topic]) for system in (0, 1)]
    message = f"{data['topics'][topic]}: {' → '.join(values)}, {shown(changes[topic])}"
    assert bars.get_attribute("aria-valuetext") == message
    assert topics_of(page, ".delta.hit") == [topic]
    press(page, "\ue010")
    assert bars.get_attribute("aria-valuenow") == "31"
    press(page, "\ue011", "\ue012", "\ue007")
    assert one(page, "#topic h2").text == f"Topic {data['topics'][order[0]]}"


def test_filters_of_unjudged_documents_and_difficulty(page, data, changes):
    means = np.mean(data["values"][0], axis=0)
    hardest = sorted(range(31), key=lambda topic: (means[topic], topic))
    most = np.max(data["unjudged"], axis=0)
    for options, expected in (
        ({"#difficulty": "hardest"}, hardest[:10]),
        ({"#difficulty": "middle"}, hardest[10:21]),
        ({"#difficulty": "easiest"}, hardest[21:]),
        ({"#difficulty": "all", "#unjudged": "20 %"}, np.flatnonzero(most >= 2)),
        ({"#unjudged": "any", "#filter": "second system higher"}, np.flatnonzero(changes > 0)),
        ({"#filter": "second system lower"}, np.flatnonzero(changes < 0)),
        ({"#difficulty": "hardest"}, [topic for topic in hardest[:10] if changes[topic] < 0]),
    ):
        for select, text in options.items():
            choose(page, select, text)
        assert sorted(data["topics"].index(text) for text in column(page, 1)) == sorted(expected), options
        assert sorted(topics_of(page, ".delta")) == sorted(expected)
    choose(page, "#filter", "all systems score 0")
    assert column(page, 1) == []
    assert page.find_elements("css selector", ".delta") == []


def test_filters_of_the_length_of_queries_and_the_numbers_of_intents_and_unjudged_documents(page, data, other):
    words, intents = np.arange(31) % 8 + 1, np.arange(31) % 7
    topics = [
        of | {"names": of["names"][:n] if n < 3 else of["names"], "more": int(max(n - 3, 0))}
        for of, n in zip(data["intents"]["topics"], intents, strict=True)
    ]
    # Several blanks between words are one.
    queries = [f" {'  '.join(['word'] * n)} " for n in words.tolist()]
    most = np.arange(31) % 4
    # Of 10 documents, 2 are 20 %.
    changed = {"intents": data["intents"] | {"topics": topics}, "unjudged": [most.tolist(), *[[0] * 31] * 3]}
    other({**data, **changed, "queries": queries})
    for select, text, expected in (
        ("#length", "up to 2 words", words <= 2),
        ("#length", "3 to 5 words", (words > 2) & (words < 6)),
        ("#length", "6 words or more", words > 5),
        ("#length", "any length", words > 0),
        ("#intents", "up to 2 intents", intents < 3),
        ("#intents", "3 to 5 intents", (intents > 2) & (intents < 6)),
        ("#intents", "6 intents or more", intents > 5),
        ("#intents", "any number", intents >= 0),
        ("#unjudged", "no unjudged", most == 0),
        ("#unjudged", "unjudged doc", most > 0),
        ("#unjudged", "20 %", most >= 2),
        ("#unjudged", "any", most >= 0),
    ):
        choose(page, select, text)
        assert [data["topics"].index(name) for name in column(page, 1)] == np.flatnonzero(expected).tolist(), text
    # The address keeps the filter, and both filters apply together.
    choose(page, "#length", "6 words or more")
    choose(page, "#intents", "6 intents or more")
    assert parse_qs(urlparse(page.current_url).fragment) == {"length": ["long"], "intents": ["many"]}
    both = np.flatnonzero((words > 5) & (intents > 5)).tolist()
    assert [data["topics"].index(name) for name in column(page, 1)] == both


def state_of(page):
    return parse_qs(urlparse(page.current_url).fragment)


def test_the_address_keeps_the_state(page, data):
    assert "#" not in page.current_url
    choose(page, "#from", "odd")
    choose(page, "#to", "bm25")
    choose(page, "#measure", "VB@10")
    choose(page, "#difficulty", "easiest")
    page.find_elements("css selector", "#table thead button")[3].click()
    one(page, "#search").send_keys("2")
    kept = column(page, 1)
    assert 0 < len(kept) < 11
    page.find_elements("css selector", "#table tbody button")[0].click()
    expected = {"measure": ["VB@10"], "system": [f"odd{NASTY}", "bm25"], "difficulty": ["easy"], "search": ["2"]}
    assert state_of(page) == {**expected, "sort": ["-bm25"], "topic": [kept[0]]}
    page.refresh()
    assert opened(page)
    assert one(page, "#topic h2").text == f"Topic {kept[0]}"
    assert texts(page, ".rankings thead th bdi") == [f"odd{NASTY}", "bm25"]
    press(page, "\ue00c")
    assert column(page, 1) == kept
    assert one(page, "#search").get_attribute("value") == "2"
    assert one(page, "#measure").get_attribute("value") == str(data["measures"].index("VB@10"))
    assert one(page, "#table thead th:nth-child(4)").get_attribute("aria-sort") == "descending"
    assert state_of(page) == {**expected, "sort": ["-bm25"]}


def test_a_link_to_a_topic_opens_it_and_an_unknown_state_is_ignored(page, data):
    page.execute_script("location.hash = '#topic=q7&system=dense&system=bm25&system=nobody'")
    page.implicitly_wait(1)
    assert one(page, "#topic[open] h2").text == "Topic q7"
    assert texts(page, ".rankings thead th bdi") == ["dense", "bm25"]
    page.execute_script("location.hash = '#measure=toString&topic=none&filter=constructor&sort=x&system=bm25'")
    page.find_element("css selector", "#topic:not([open])")
    page.implicitly_wait(0)
    assert len(column(page, 1)) == 31
    assert state_of(page) == {}
    # Links to sections remain.
    one(page, "nav a[href='#made']").click()
    assert page.current_url.endswith("#made")
    assert len(column(page, 1)) == 31
