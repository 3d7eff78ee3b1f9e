"""Answer formats of linkers: unusual JSON, and the offsets of mentions."""

import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.linking.links import COLUMNS
from vbterrier.linking.services.annotators import REL, WAT, EntityFishing, SpotlightAnnotate, SpotlightCandidates, TagMe
from vbterrier.linking.services.json_answers import Node, Places, dbpedia_id, utf16_length

FORMATS = [WAT, TagMe, REL, SpotlightAnnotate, SpotlightCandidates, EntityFishing]


@pytest.fixture
def sample(shared_data):
    folder = shared_data / "linker_response_samples"
    return lambda name: json.loads((folder / name).read_text())


def rows(links):
    return links.frame.to_numpy().tolist()


def placed(links):
    return links.frame[["start", "end", "mention"]].to_numpy().tolist()


def annotation(**changes):
    results = {"start": 0, "end": 6, "spot": "Jordan", "id": 20455, "title": "Michael_Jordan", "rho": 0.61}
    return {key: value for key, value in (results | changes).items() if value is not ...}


def test_wat_answers(sample):
    answer = sample("wat_raw.shape.json")
    links = WAT().links([answer], ["Jordan won"])
    assert rows(links) == [[0, 0, 6, "Jordan", "Michael_Jordan", 0.61, "Michael Jordan"]]
    assert (links.id_space, links.scale) == ("wikipedia_title", "score")
    prior = WAT(score="prior", ids="wikipedia_id").links([answer])
    assert rows(prior) == [[0, 0, 6, "Jordan", "20455", 0.26, "Michael Jordan"]]
    assert (prior.id_space, prior.scale) == ("wikipedia_id", "probability")
    too_large = {"prior_explanation": {"entity_mention_probability": 1.5}}
    with pytest.raises(InputError, match=r"to text 0: annotations\[0\]: wanted a probability as prior, 0 to 1 .* 1\.5"):
        WAT(score="prior").links([{"annotations": [annotation(explanation=too_large)]}])


def test_tagme_answers_leave_out_what_has_no_title_and_say_so_once(sample):
    answer = sample("tagme_tag.shape.json")
    message = r"2 mentions .* left out, the first at TagMe answer to text 0: annotations\[1\]"
    with pytest.warns(DegenerateWarning, match=message) as caught:
        links = TagMe().links([answer, answer])
    assert len(caught) == 1
    assert rows(links) == [[n, 24, 31, "Mexican", "Mexican_cuisine", 0.24, "Mexican cuisine"] for n in (0, 1)]


@pytest.mark.parametrize(
    "changes", [{"title": None}, {"title": ""}, {"title": ...}, {"id": 0}, {"id": "0"}, {"id": -1}]
)
def test_ids_of_nothing_are_no_entities(changes):
    answer = {"annotations": [annotation(**changes), annotation(id=7)]}
    with pytest.warns(DegenerateWarning, match="1 mention is linked to nothing"):
        assert TagMe(ids="wikipedia_id").links([answer]).frame["entity_id"].tolist() == ["7"]
    if "id" in changes:
        # The id is not used if titles are requested.
        assert len(TagMe().links([answer]).frame) == 2


def test_rel_answers_in_both_orders_of_fields(sample):
    answers = [sample("rel_api.shape.json"), sample("rel_process_results.test.verbatim.json")]
    assert rows(REL().links(answers)) == [
        [0, 41, 57, "Charles Bukowski", "Charles_Bukowski", 0.9, "Charles Bukowski"],
        [1, 10, 13, "Fox", "fox", -1.0, "fox"],
    ]
    md = REL(score="conf_md").links(answers)
    assert md.frame["score"].tolist() == [0.99, 0.0]
    assert md.scale == "score"
    with pytest.warns(DegenerateWarning, match="REL: 1 mention is linked to nothing"):
        assert len(REL().links([[[0, 3, "Fox", "NIL", 0.0, 0.5, "ORG"]], {"a": []}]).frame) == 0
    with pytest.raises(InputError, match=r"text 0: wanted a list of links, .*found an object with a, b"):
        REL().links([{"a": [], "b": []}])


def test_spotlight_annotations(sample):
    brazil, dutch = (sample(f"spotlight_annotate.{name}json") for name in ("brazil.verbatim.", "verbatim."))
    links = SpotlightAnnotate().links([brazil], [brazil["@text"]])
    assert rows(links) == [
        [0, 0, 9, "Brazilian", "Brazil", 0.9999203720889515, "Brazil"],
        [0, 38, 47, "Petrobras", "Petrobras", 1.0, "Petrobras"],
    ]
    assert (links.id_space, links.scale) == ("dbpedia", "score")
    of_nl = SpotlightAnnotate(edition="nl").links([dutch], [dutch["@text"]])
    assert of_nl.frame["entity_id"].tolist() == ["Lidwoord", "Apen"]
    assert of_nl.id_space == "dbpedia:nl"
    with pytest.raises(InputError, match=r"Resources\[0\]\.@URI: wanted an address under http://dbpedia.org/resource/"):
        SpotlightAnnotate().links([dutch])


def test_spotlight_says_nothing_of_what_it_did_not_find(sample):
    brazil = sample("spotlight_annotate.brazil.verbatim.json")
    alone = brazil | {"Resources": brazil["Resources"][1]}
    none = {key: value for key, value in brazil.items() if key != "Resources"}
    links = SpotlightAnnotate().links([none, alone])
    assert links.frame[["text", "entity_id"]].to_numpy().tolist() == [[1, "Petrobras"]]
    with pytest.raises(InputError, match="text 0: wanted an object with '@text', found an object with error"):
        SpotlightAnnotate().links([{"error": "overloaded"}])


def test_spotlight_candidates(sample):
    single = sample("spotlight_candidates.single_surfaceform.verbatim.json")
    several = sample("spotlight_candidates.list_surfaceform.verbatim.json")
    links = SpotlightCandidates().links([single, several])
    delft, english = "Technische Universiteit Delft", "Delft University of Technology"
    assert rows(links) == [
        [0, 25, 54, delft, "Technische_Universiteit_Delft", 0.8754365122251001, delft],
        [0, 25, 54, delft, "Delft_University_of_Technology", 0.12456348777489806, english],
        [1, 28, 37, "Wednesday", "Sheffield_Wednesday_F.C.", 0.059119582176208496, "Sheffield Wednesday F.C."],
    ]
    assert links.scale == "probability"
    for score, first in (("contextualScore", 0.9991813164782087), ("priorScore", 2.8799662606192636e-8)):
        other = SpotlightCandidates(score=score).links([single])
        assert (other.scale, other.frame["score"][0]) == ("score", first)


def test_spotlight_candidates_as_objects_lists_or_nothing(sample):
    single = sample("spotlight_candidates.single_surfaceform.verbatim.json")
    form = single["annotation"]["surfaceForm"]
    resource = form["resource"][0]
    shapes = [form | {"resource": resource}, [form | {"resource": [resource]}], [], None]
    shapes += [form | {"resource": []}, {key: value for key, value in form.items() if key != "resource"}]
    answers = [{"annotation": {"@text": "", "surfaceForm": shape}} for shape in shapes]
    links = SpotlightCandidates().links([*answers, {"annotation": {"@text": ""}}])
    assert links.frame["text"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("uri", "entity"),
    [
        ("http://dbpedia.org/resource/AC/DC", "AC/DC"),
        ("https://www.dbpedia.org/resource/Caf%C3%A9", "Café"),
        ("http://dbpedia.org/resource/Café", "Café"),
        ("http://dbpedia.org/resource/100%25_Dynamite", "100%_Dynamite"),
        ("100%_Cotton", "100%_Cotton"),
        ("<dbpedia:Total_Recall_(1990_film)>", "Total_Recall_(1990_film)"),
        ("Delft University", "Delft_University"),
    ],
)
def test_dbpedia_names(uri, entity):
    assert dbpedia_id(Node(uri, "answer")) == entity


def test_entity_fishing_answers(sample):
    text, query = (sample(f"entity_fishing_{kind}.verbatim_elided.json") for kind in ("text", "query"))
    links = EntityFishing().links([text, query], [text["text"], query["shortText"]])
    assert rows(links) == [
        [0, 0, 7, "Austria", "26964606", 0.5447067973132087, ""],
        [1, 0, 8, "concrete", "5371", 0.3416037625644609, ""],
        [1, 0, 13, "concrete pump", "7088907", 0.695783745626837, ""],
        [1, 9, 13, "pump", "23617", 0.33995668143945024, ""],
    ]
    assert (links.id_space, links.scale) == ("wikipedia_id", "score")
    selected = EntityFishing(score="nerd_selection_score").links([query])
    assert selected.frame["score"].tolist() == [0.9793831523036264, 0.9576960838921623, 0.9640450279784305]
    with pytest.raises(
        InputError, match=r"entities\[0\]: wanted an object with 'confidence_score', found .*nerd_score"
    ):
        EntityFishing(score="confidence_score").links([query])


def test_entity_fishing_of_later_versions():
    entity = {"rawName": "Linux", "offsetStart": 0, "offsetEnd": 5, "confidence_score": 0.7, "wikidataId": "Q388"}
    answer = {"runtime": 3, "entities": [entity | {"preferredTerm": "Linux OS", "wikipediaExternalRef": 6097297}]}
    later = EntityFishing(score="confidence_score", ids="wikidata")
    assert rows(later.links([answer])) == [[0, 0, 5, "Linux", "Q388", 0.7, "Linux OS"]]
    assert later.id_space == "wikidata"
    assert len(later.links([{"runtime": 3}]).frame) == 0
    with pytest.raises(InputError, match="wanted an object with 'runtime', found an empty object"):
        later.links([{}])
    unresolved = {"rawName": "Tux", "type": "PERSON", "offsetStart": 0, "offsetEnd": 3}
    with pytest.warns(DegenerateWarning, match="1 mention is linked to nothing"):
        assert len(later.links([{"entities": [unresolved]}]).frame) == 0


@pytest.mark.parametrize("kind", FORMATS)
def test_no_answers_are_no_links(kind):
    for links in (kind().links([]), kind().links([None, None], ["", " "])):
        assert links.frame.columns.tolist() == list(COLUMNS)
        assert links.frame[["text", "start", "end"]].dtypes.astype(str).tolist() == ["int64"] * 3


def test_numbers_may_be_text():
    answer = {"annotations": [annotation(start="0", end="6", rho="6.1E-1", id="020455")]}
    assert rows(WAT(ids="wikipedia_id").links([answer])) == [[0, 0, 6, "Jordan", "20455", 0.61, "Michael Jordan"]]


@pytest.mark.parametrize("kind", FORMATS)
def test_parameters_that_a_linker_does_not_have_are_refused(kind):
    for name in ("score", "ids", "misplaced"):
        with pytest.raises(ParameterError, match=f"{kind.service}: {name}='odd': wanted one of '"):
            kind(**{name: "odd"})
    assert kind() == kind()
    assert hash(kind()) == hash(kind())


def at(start, end, spot="Jordan"):
    return {"annotations": [annotation(start=start, end=end, spot=spot)]}


def test_places_are_checked_against_the_text():
    message = r"text 1: annotations\[0\]: wanted the mention 'Jordan' at 1 to 7 .*misplaced='unplaced'"
    with pytest.raises(InputError, match=message):
        WAT().links([at(0, 6), at(1, 7)], ["Jordan won", "Jordan won"])
    with pytest.raises(InputError, match="wanted the mention 'Jordan' at 4 to 10"):
        WAT().links([at(4, 10)], ["The Jor"])
    links = WAT(misplaced="unplaced").links([at(0, 6), at(1, 7)], ["Jordan won", "Jordan won"])
    assert placed(links) == [[0, 6, "Jordan"], [-1, -1, "Jordan"]]
    # The mention is that of the text.
    assert placed(WAT().links([at(0, 8, "new york"), at(0, 3, "")], ["New\nYork"] * 2)) == [
        [0, 8, "New\nYork"], [0, 3, "New"]
    ]  # fmt: skip


def test_java_counts_utf16_and_python_code_points():
    text = "😀 Jordan 🏀 Jordan"
    answer = {"annotations": [annotation(start=3, end=9), annotation(start=13, end=19)]}
    places = [[2, 8, "Jordan"], [11, 17, "Jordan"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert placed(WAT().links([answer], [text])) == places
        of_rel = [[start, 6, "Jordan", "X", 0.5, 0.5, "PER"] for start in (2, 11)]
        assert placed(REL().links([of_rel], [text])) == places
    # Offsets cannot be converted without the text.
    assert WAT().links([answer]).frame["start"].tolist() == [3, 13]
    resource = {"@URI": "http://dbpedia.org/resource/Emoji", "@surfaceForm": "a😀b", "@offset": "3"}
    answer = {"@text": "", "Resources": resource | {"@similarityScore": "1"}}
    assert placed(SpotlightAnnotate().links([answer], ["🏀 a😀b c"])) == [[2, 5, "a😀b"]]


def test_another_unit_of_a_whole_answer_is_accepted_with_a_warning():
    text = "😀 Jordan"
    with pytest.warns(DegenerateWarning, match="WAT: 1 answer counts code points instead of .* to text 1"):
        links = WAT().links([at(0, 6), at(2, 8)], ["Jordan", text])
    assert links.frame["start"].tolist() == [0, 2]
    with pytest.warns(DegenerateWarning, match="REL: 1 answer counts UTF-16 units instead of code points"):
        assert REL().links([[[3, 6, "Jordan", "X", 0.5, 0.5, "PER"]]], [text]).frame["start"].tolist() == [2]
    mixed = {"annotations": [annotation(start=2, end=8), annotation(start=3, end=9)]}
    with pytest.raises(InputError, match="wanted the mention"):
        WAT().links([mixed], [text])
    assert placed(WAT(misplaced="unplaced").links([mixed], [text])) == [[-1, -1, "Jordan"], [2, 8, "Jordan"]]


@given(text=st.text(alphabet="aé\u0301ß漢\uffff😀🏀 \n", max_size=12), data=st.data())
def test_every_place_is_found_from_its_utf16_units(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    units = [len(text[:place].encode("utf-16-le")) // 2 for place in (start, end)]
    assert Places(text).find(*units, text[start:end], utf16=True) == (start, end)
    assert Places(text).find(start, end, text[start:end], utf16=False) == (start, end)
    assert utf16_length(text) == len(text.encode("utf-16-le")) // 2


def test_half_a_sign_is_no_place():
    assert Places("😀😀").find(1, 2, "", utf16=True) is None
    assert Places("😀😀").find(0, 5, "", utf16=True) is None
    assert Places("😀😀").find(0, 4, "", utf16=True) == (0, 2)
    assert Places("ab").find(0, 3, "", utf16=True) is None
