"""Rankings of a topic side by side: documents, grades, moves, lines, choice of systems, keyboard, paper."""

import pytest
from browsing import NASTY, PHONE, choose, emulated, n_printed_pages, one, press, shown, texts

pytestmark = pytest.mark.slow

CARD = "td[data-column='{}'][data-rank='{}']"


@pytest.fixture
def topic(page, data):
    """Open a topic in which the first two systems share several documents, and return its position."""
    first, second = data["order"][:2]
    shared = [len({*of["ranks"][first]} & {*of["ranks"][second]}) for of in data["rankings"]["topics"]]
    place = next(place for place, n in enumerate(shared) if 2 <= n <= 6)
    page.execute_script("document.querySelectorAll('#table tbody button')[arguments[0]].click()", place)
    return place


def documents(data, topic, system):
    """Ids of the documents of a ranking, in order."""
    result = data["rankings"]["topics"][topic]
    return [data["rankings"]["ids"][result["ids"][place]] for place in result["ranks"][system]]


def columns(page):
    """Ids of the documents of each shown system."""
    n = len(texts(page, ".rankings thead th")) - 1
    return [texts(page, f".rankings td[data-column='{column}'] .id") for column in range(n)]


def systems(page):
    """Names of the shown systems."""
    return texts(page, ".rankings thead th bdi")


def test_the_best_system_is_beside_the_second_best(page, data, topic):
    means = [sum(of) for of in data["values"][0]]
    best, second = sorted(range(4), key=lambda system: -means[system])[:2]
    assert systems(page) == [data["systems"][system] for system in (second, best)]
    assert columns(page) == [documents(data, topic, system) for system in (second, best)]
    assert texts(page, ".rankings thead .ends") == [f" {shown(data['values'][0][n][topic])}" for n in (second, best)]
    assert texts(page, ".rankings tbody th") == [str(rank) for rank in range(1, 11)]


def test_grades_probabilities_labels_intents_and_texts(page, data, topic):
    result, seen = data["rankings"]["topics"][topic], set()
    first = data["order"][0]
    intents = data["intents"]["topics"][topic]
    covered = [text.split(",") for text in intents["ranks"][first].split(";")]
    for rank, place in enumerate(result["ranks"][first]):
        card = one(page, CARD.format(0, rank))
        chips = [chip.get_attribute("textContent") for chip in card.find_elements("css selector", ".chip")]
        grade = result["grades"][place]
        chance = f"probability of relevance P {result['chances'][place] / 100:.2f}"
        expected = [f"grade {grade}"] if grade >= 0 else ["unjudged", chance]
        names = [name for name, ranks in zip(intents["names"], covered, strict=True) if str(rank + 1) in ranks]
        expected += [f"llm {result['label0'][place]}", *(f"covers {name}" for name in names)]
        assert chips == expected
        seen.add(len(expected) - (grade < 0))
        docno = data["rankings"]["ids"][result["ids"][place]]
        assert card.find_element("css selector", ".snippet").text.startswith(f"what {docno} says{NASTY}")
    assert seen == {2, 3}
    assert {"unjudged", "grade 0", "grade 1", "grade 2"} <= set(texts(page, ".rankings .chip"))


def test_moves_and_lines(page, data, topic):
    first, second = columns(page)
    for rank, docno in enumerate(second):
        mark = one(page, f"{CARD.format(1, rank)} .move > :first-child").text
        if docno not in first:
            assert mark == "new"
        else:
            up = first.index(docno) - rank
            assert mark == ("=" if not up else f"▲ {up}" if up > 0 else f"▼ {-up}")
    alone = [rank for rank, docno in enumerate(first) if docno not in second]
    marked = page.find_elements("css selector", "td[data-column='0'] .move.only")
    assert [int(mark.find_element("xpath", "./ancestor::td").get_attribute("data-rank")) for mark in marked] == alone
    shared = [docno for docno in first if docno in second]
    lines = page.find_elements("css selector", ".joins path")
    assert 0 < len(lines) == len(shared) < 10
    # A line ends at the heights of the cards that it joins.
    for line, docno in zip(lines, shared, strict=True):
        box, ends = line.rect, [first.index(docno), second.index(docno)]
        heights = [one(page, CARD.format(column, rank)).rect for column, rank in enumerate(ends)]
        middles = sorted(height["y"] + height["height"] / 2 for height in heights)
        assert [box["y"], box["y"] + box["height"]] == pytest.approx(middles, abs=4)


def test_two_to_four_systems_are_chosen(page, data, topic):
    choose(page, "select[data-column='0']", "dense")
    choose(page, "select[data-column='1']", "bm25")
    assert systems(page) == ["dense", "bm25"]
    # The select keeps the focus.
    assert page.switch_to.active_element.get_attribute("data-column") == "1"
    # A fourth system without a third one becomes the third.
    choose(page, "select[data-column='3']", "odd")
    choose(page, "select[data-column='3']", "a-name")
    names = ["dense", "bm25", f"odd{NASTY}", "a-name-that-is-longer-than-columns-like-to-be"]
    assert systems(page) == names
    assert columns(page) == [documents(data, topic, data["systems"].index(name)) for name in names]
    assert len(page.find_elements("css selector", ".joins")) == 3
    # Moves are from the first system in every column.
    dense, odd = columns(page)[0], columns(page)[2]
    up = [dense.index(docno) - rank if docno in dense else None for rank, docno in enumerate(odd)]
    marks = [one(page, f"{CARD.format(2, rank)} .move > :first-child").text for rank in range(10)]
    assert marks == ["new" if by is None else "=" if not by else f"▲ {by}" if by > 0 else f"▼ {-by}" for by in up]
    choose(page, "select[data-column='2']", "none")
    assert systems(page) == ["dense", "bm25"]
    # The choice remains for the next topic.
    press(page, "\ue00c")
    page.find_elements("css selector", "#table tbody button")[topic].click()
    assert systems(page) == ["dense", "bm25"]


def test_arrow_keys_move_among_documents_and_mark_the_same_document(page, data, topic):
    cards = page.find_elements("css selector", ".rankings td[tabindex='0']")
    assert [card.get_attribute("data-rank") for card in cards] == ["0"]
    page.execute_script("arguments[0].focus()", cards[0])
    press(page, "\ue015", "\ue015", "\ue014")
    focus = page.switch_to.active_element
    assert (focus.get_attribute("data-column"), focus.get_attribute("data-rank")) == ("1", "2")
    assert focus.get_attribute("tabindex") == "0"
    assert len(page.find_elements("css selector", ".rankings td[tabindex='0']")) == 1
    place = focus.get_attribute("data-place")
    shared = sum(
        data["rankings"]["ids"][data["rankings"]["topics"][topic]["ids"][int(place)]] in ids for ids in columns(page)
    )
    marked = page.find_elements("css selector", ".rankings td.hit")
    assert len(marked) == shared
    assert {card.get_attribute("data-place") for card in marked} == {place}
    assert len(page.find_elements("css selector", ".joins .hit")) == shared - 1
    # Beyond the edge, the focus stays; another topic is not opened.
    press(page, "\ue014")
    assert page.switch_to.active_element == focus
    assert one(page, "#topic h2").text == f"Topic {data['topics'][topic]}"


def test_arrow_keys_open_the_next_and_the_previous_topic(page, data, topic):
    press(page, "\ue014")
    assert one(page, "#topic h2").text == f"Topic {data['topics'][topic + 1]}"
    press(page, *["\ue012"] * (topic + 1))
    assert one(page, "#topic h2").text == "Topic q1"
    press(page, "\ue012")
    assert one(page, "#topic h2").text == "Topic q1"


def test_two_rankings_fit_a_phone(page, topic):
    emulated(page, PHONE)
    hidden = "const area = document.querySelector('#rankings .scroll'); return area.scrollWidth - area.clientWidth"
    assert page.execute_script(hidden) <= 0
    choose(page, "select[data-column='2']", "dense")
    assert page.execute_script(hidden) > 100


def test_an_open_topic_is_printed_alone(page, topic):
    assert n_printed_pages(page) <= 3
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert one(page, "#topic .rankings").is_displayed()
    assert not one(page, "#verdict").is_displayed()
    assert not one(page, "#topic .ways").is_displayed()


def test_the_page_says_what_is_left_out(page, data, other):
    click = "document.querySelector('#table tbody button').click();"
    note = f"{click} return document.querySelector('#topic .note').textContent"
    assert "size of the page" not in page.execute_script(note)
    cut = {**data, "cutoff": 50, "rankings": {**data["rankings"], "are_texts_cut": True}}
    other(cut)
    message = page.execute_script(note)
    assert "Ranks 11 to 50 are left out to limit the size of the page." in message
    assert "only documents at high ranks have a text" in message
