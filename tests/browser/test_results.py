"""Pages of results in a browser: tables are sorted, searched and saved, and the address keeps their state."""

from urllib.parse import parse_qs, urlparse

import pandas as pd
import pytest
from browsing import NASTY, PHONE, WIDE, emulated, one, texts

from vbterrier.frames.notebook import Panel
from vbterrier.frames.results import Shown

pytestmark = pytest.mark.slow


class Result(Shown):
    """A result with a long table and a folded one."""

    def _line(self):
        return "a result"

    def _verdict(self):
        return ["A sentence."]

    def _panels(self):
        values = [(7 * n) % 20 / 10 - 1 for n in range(20)]
        names = [f"s{n}" for n in range(19)] + [NASTY]
        frame = pd.DataFrame({"name": names, "value": values, "reason": "words " * 12})
        yield Panel("Systems", frame.assign(low=frame["value"] - 0.1, high=frame["value"] + 0.2), value="value")
        yield Panel("Details", frame.head(3), folded=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("result") / "page.html"
    path.write_text(Result().page(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(chromium, place):
    emulated(chromium, WIDE)
    chromium.get("about:blank")
    chromium.get(place)
    return chromium


def state_of(page):
    return parse_qs(urlparse(page.current_url).fragment)


def names(page):
    return texts(page, "#systems tbody th")


def test_a_table_is_sorted_and_searched_and_the_address_keeps_it(page):
    from selenium.webdriver.support.ui import WebDriverWait

    before = names(page)
    buttons = page.find_elements("css selector", "#systems thead button")
    assert [button.text for button in buttons] == ["system", "value", "reason", "interval"]
    buttons[1].click()
    values = [float(text) for text in texts(page, "#systems tbody td:nth-child(2)")]
    assert values == sorted(values) != sorted(values, reverse=True)
    buttons[1].click()
    assert [float(text) for text in texts(page, "#systems tbody td:nth-child(2)")] == sorted(values, reverse=True)
    assert one(page, "#systems thead th:nth-child(2)").get_attribute("aria-sort") == "descending"
    one(page, "#systems input").send_keys("s1")
    kept = names(page)
    assert set(kept) == {name for name in before if "s1" in name}
    one(page, "#details summary").click()
    # Browsers report an opened part in a task of its own.
    WebDriverWait(page, 10).until(lambda page: "open" in state_of(page))
    page.refresh()
    assert names(page) == kept
    assert one(page, "#systems input").get_attribute("value") == "s1"
    assert state_of(page) == {"sort-systems": ["-1"], "search-systems": ["s1"], "open": ["details-details"]}
    assert page.execute_script("return document.querySelector('#details details').open")
    assert page.get_log("browser") == []


def test_a_table_is_saved_with_all_columns(page):
    text = page.execute_script("return csv(document.querySelector('#systems table'))")
    head, *rows = text.split("\r\n")
    assert head == "system,value,reason,interval,"
    assert len(rows) == 20
    assert rows[0].startswith("s0,-1.0000,")
    assert len(page.find_elements("css selector", "button.csv")) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_a_page_is_as_wide_as_its_screen_and_can_be_read(page, place, size, scheme):
    emulated(page, size, scheme)
    page.get(place)
    assert page.execute_script("return document.documentElement.scrollWidth") <= size[0]
    rows = page.execute_script("return [...document.querySelectorAll('#systems tbody tr')].map(e => e.offsetHeight)")
    # A sentence takes a few lines, not one for each word.
    assert max(rows) < 120
    paper, ink = page.execute_script("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    assert paper != ink


def test_tables_of_notebooks_scroll_in_their_own_boxes_and_captions_are_within_the_screen(chromium, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(f'<meta name="viewport" content="width=device-width">{Result()._repr_html_()}', encoding="utf-8")
    emulated(chromium, PHONE)
    chromium.get(path.as_uri())
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= PHONE[0]
    boxes = chromium.execute_script(
        "return [...document.querySelectorAll('table')].map(e => [e.parentElement, e.caption])"
        ".map(([box, caption]) => [box.scrollWidth, box.clientWidth, caption.getBoundingClientRect().right])"
    )
    (inner, outer, caption), *_ = boxes
    assert inner > outer
    assert caption <= PHONE[0]
    emulated(chromium, WIDE)
