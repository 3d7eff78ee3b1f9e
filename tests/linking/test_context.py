"""Disambiguation by the words around a mention."""

import pickle

import numpy as np
import pandas as pd
import pytest

from vbterrier import CandidateIntents, TagEntities
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.intents import TagOptions
from vbterrier.linking import ContextLinker, DictionaryLinker, FuzzyLinker, build_kb
from vbterrier.linking.lexicon import STOP_ALIASES
from vbterrier.linking.words import Words

TEXTS = {
    "baker": "John Smith, owner of a bakery in Paris",
    "senator": "John Smith, senator from Ohio, a lawyer",
    "poet": "poet",
}
DESCRIBED = pd.DataFrame({"entity_id": TEXTS.keys(), "text": TEXTS.values()})
NAMES = pd.DataFrame(
    [("John Smith", "baker", 0.1), ("John Smith", "senator", 0.6), ("John Smith", "poet", 0.2), ("Paris", "city", 1.0)],
    columns=["alias", "entity_id", "score"],
)
ASKED = ["John Smith bakery", "The bakery of John Smith, lawyer in Paris", "John Smith", ""]
ASKED += ["a poet met John Smith: poet"]


@pytest.fixture(scope="module")
def names():
    return DictionaryLinker(NAMES, id_space="people")


def oracle(text, start, end, candidates, weight, window):
    """The formula of the docstring, mention by mention and word by word; also the share of unknown words."""

    def words(part):
        return set("".join(Words.of([part]).forms()).split()) - STOP_ALIASES

    context = set()
    for part, some in ((text[:start], slice(-window, None)), (text[end:], slice(window))):
        context |= set(Words.of([part]).forms()[0].split()[some]) - STOP_ALIASES
    described = {one: words(TEXTS.get(one, "")) for one in candidates}
    every = set().union(*described.values())
    squared = {
        word: np.log((len(candidates) + 1) / sum(word in words_of for words_of in described.values())) ** 2
        for word in every
    }
    unknown = min(len(context - every), 3) * np.log(len(candidates) + 1) ** 2
    of_context = sum(squared[word] for word in every & context) + unknown
    raised = {}
    for one, prior in candidates.items():
        shared = sum(squared[word] for word in described[one] & context)
        length = np.sqrt(sum(squared[word] for word in described[one]) * of_context)
        raised[one] = prior * np.exp(weight * (shared / length if length else 0))
    total = sum(candidates.values()) / sum(raised.values())
    share = unknown / of_context if unknown else 0.0
    return {one: value * total for one, value in raised.items()}, share


@pytest.mark.parametrize(("weight", "window"), [(8, 50), (3, 1), (0, 5)])
def test_probabilities_are_those_of_a_plain_loop(names, weight, window):
    frame = ContextLinker(names, DESCRIBED, weight=weight, window=window).link(ASKED).frame
    prior = names.link(ASKED).frame
    assert len(frame) == len(prior)
    for (text, start, end), rows in prior.groupby(["text", "start", "end"]):
        candidates = dict(zip(rows["entity_id"], rows["score"], strict=True))
        links = frame[(frame["text"] == text) & (frame["start"] == start)]
        expected, share = oracle(ASKED[text], start, end, candidates, weight, window)
        assert links["nil"].tolist() == pytest.approx([0.3 * share] * len(links), rel=1e-12)
        assert dict(zip(links["entity_id"], links["score"], strict=True)) == pytest.approx(expected, rel=1e-12)
        assert links["score"].is_monotonic_decreasing


def test_the_same_name_means_different_people_in_queries(names):
    queries = ["John Smith bakery", "John Smith senator from Ohio", "John Smith"]
    topics = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": queries})
    intents = CandidateIntents(ContextLinker(names, DESCRIBED))(topics)
    first = intents.groupby("qid").first()
    assert first["entity_id"].tolist() == ["baker", "senator", "senator"]
    assert intents.groupby("qid")["prob"].sum().tolist() == pytest.approx([1, 1, 1])
    assert intents[intents["qid"] == "q3"]["prob"].tolist() == pytest.approx([6 / 9, 2 / 9, 1 / 9])


def test_words_that_describe_nobody_are_evidence_that_nobody_is_meant(names):
    """Without priors: 14 people called John Smith, and a query about none of them."""
    ids = [f"p{n:02}" for n in range(14)]
    people = DictionaryLinker(pd.DataFrame({"alias": "John Smith", "entity_id": ids}), id_space="people")
    described = pd.DataFrame({"entity_id": ids, "text": [f"senator of district {n}" for n in range(14)]})
    linker = ContextLinker(people, described)
    texts = ["John Smith bakery", "John Smith of district 5", "John Smith"]
    run = pd.DataFrame({"qid": "q", "docno": ["bakery", "five", "name"], "score": 1.0, "text": texts})
    tagged = TagEntities(linker, options=TagOptions(on_ties="drop"))(run)
    assert tagged["entity_id"].tolist() == [[], ["p05"], []]
    # By default a tie is a guess, but a page about somebody else is left untagged.
    with pytest.warns(DegenerateWarning, match="1 of 3 ambiguous mentions have tied best candidates"):
        guessed = TagEntities(linker)(run)
    assert guessed["entity_id"].tolist() == [[], ["p05"], ["p00"]]
    assert guessed["n_abstained"].tolist() == [1, 0, 0]
    topics = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": texts})
    intents = CandidateIntents(linker, nil="context")(topics)
    nil = intents[intents["entity_id"] == "NIL"].set_index("qid")["prob"].to_dict()
    assert nil == pytest.approx({"q1": 0.3}), "the number of a linker without any known word"
    assert intents.groupby("qid")["prob"].sum().tolist() == pytest.approx([1, 1, 1])
    assert not CandidateIntents(linker)(topics)["entity_id"].eq("NIL").any()
    # One person of this name is more probable than nobody.
    one = ContextLinker(DictionaryLinker(NAMES, id_space="people"), DESCRIBED)
    page = pd.DataFrame({"qid": "q", "docno": ["d"], "score": 1.0, "text": ["Paris hotels"]})
    assert TagEntities(one)(page)["entity_id"].tolist() == [["city"]]
    with pytest.raises(ParameterError, match="nil='context': DictionaryLinker"):
        CandidateIntents(people, nil="context")(topics)
    with pytest.raises(ParameterError, match="nil=1: wanted less than 1"):
        ContextLinker(people, described, nil=1)


def test_a_single_rare_word_does_not_decide_among_others():
    """'representative' describes one William Smith by chance; the rest of the query describes nobody."""
    ids = [f"p{n}" for n in range(10)]
    people = DictionaryLinker(pd.DataFrame({"alias": "William Smith", "entity_id": ids}), id_space="people")
    texts = ["Virginia representative", *(f"code{n} politician" for n in range(1, 10))]
    linker = ContextLinker(people, pd.DataFrame({"entity_id": ids, "text": texts}))
    frame = linker.link(["William Smith representative from Texas since long", "William Smith representative"]).frame
    first = frame.drop_duplicates("text")
    assert first["entity_id"].tolist() == ["p0", "p0"]
    assert first["score"].iloc[0] < 0.9
    assert first["score"].iloc[1] > 0.95


def test_a_title_with_a_qualifier_needs_its_parenthesis():
    """'James Hughes representative' is no mention of the page 'James Hughes (representative)' alone."""
    rows = [("James Hughes (representative)", "a"), ("James Hughes", "a"), ("James Hughes", "b"), ("AC (DC)", "c")]
    names = DictionaryLinker(pd.DataFrame(rows, columns=["alias", "entity_id"]), id_space="people")
    frame = names.link(["James Hughes representative", "James Hughes (representative)", "AC DC"]).frame
    assert frame[["text", "mention", "entity_id"]].values.tolist() == [
        [0, "James Hughes", "a"],
        [0, "James Hughes", "b"],
        [1, "James Hughes (representative", "a"],
    ]


def test_a_text_is_linked_alike_in_any_company(names):
    linker = ContextLinker(names, DESCRIBED)
    together = linker.link(ASKED).frame
    alone = pd.concat(linker.link([text]).frame.assign(text=place) for place, text in enumerate(ASKED))
    pd.testing.assert_frame_equal(alone.reset_index(drop=True), together, check_exact=True)
    assert pickle.loads(pickle.dumps(linker)) == linker == ContextLinker(names, DESCRIBED)
    assert linker != ContextLinker(names, DESCRIBED, weight=1)
    assert not len(linker.link(["", "nobody"]).frame)


def test_a_knowledge_base_describes_its_entities(tmp_path):
    people = [
        {"id": "A", "label": "John Smith", "attributes": {"state": "Ohio", "veteran": True, "current": False}},
        {"id": "B", "label": "John Smith", "attributes": {"state": "Iowa", "current": True}},
    ]
    with build_kb(tmp_path / "people.kb", people, id_space="people") as base:
        linker = ContextLinker(DictionaryLinker(base))
        texts = ["John Smith of Iowa", "John Smith, veteran", "Ohio: John Smith", "the current John Smith"]
        result = linker.link(texts).frame.drop_duplicates("text")
        assert result["entity_id"].tolist() == ["B", "A", "A", "B"]
        assert ContextLinker(base).link(["John Smith"]).frame["score"].tolist() == [0.5, 0.5]


def test_an_encoder_gives_the_similarity(names):
    def encoder(texts):
        return np.array([[text.count("bak"), text.count("lawyer") + 0.0] for text in texts])

    frame = ContextLinker(names, DESCRIBED, encoder=encoder, weight=5).link(["John Smith, baker"]).frame
    raised = {"baker": 0.1 * np.exp(5), "senator": 0.6, "poet": 0.2}
    expected = {one: 0.9 * value / sum(raised.values()) for one, value in raised.items()}
    assert dict(zip(frame["entity_id"], frame["score"], strict=True)) == pytest.approx(expected)


def test_a_fit_finds_the_likeliest_weight(names):
    rows = [(0, 0, 10, "baker"), (1, 14, 24, "baker"), (1, 36, 41, "city"), (2, 0, 10, "poet"), (4, 11, 21, "senator")]
    gold = pd.DataFrame(rows, columns=["text", "start", "end", "entity_id"])
    fitted = ContextLinker(names, DESCRIBED).fit(ASKED, gold)

    def loss(weight):
        links = ContextLinker(names, DESCRIBED, weight=weight).link(ASKED).frame
        return -np.log(gold.merge(links, on=["text", "start", "end", "entity_id"])["score"]).sum()

    assert 0 < fitted.weight < 100
    assert loss(fitted.weight) <= min(loss(fitted.weight * 1.01), loss(fitted.weight * 0.99), loss(8))
    with pytest.raises(InputError, match="gold: no labelled mention has the labelled entity and another one"):
        ContextLinker(names, DESCRIBED).fit(ASKED, gold.assign(start=gold["start"] + 1))


def test_what_cannot_be_used_is_refused(names):
    with pytest.raises(ParameterError, match="wanted a linker"):
        ContextLinker("names", DESCRIBED)
    with pytest.raises(ParameterError, match="descriptions: wanted a frame"):
        ContextLinker(names)
    with pytest.raises(ParameterError, match="weight=-1"):
        ContextLinker(names, DESCRIBED, weight=-1)
    with pytest.raises(InputError, match="entity 'baker' has two; join their texts"):
        ContextLinker(names, pd.concat([DESCRIBED, DESCRIBED]))
    fuzzy = ContextLinker(FuzzyLinker(NAMES, id_space="people"), DESCRIBED)
    with pytest.raises(ParameterError, match="its scores are not probabilities"):
        fuzzy.link(["John Smith"])


def test_a_large_weight_prefers_the_most_similar_entity_without_overflow(names):
    links = ContextLinker(names, DESCRIBED, weight=1e6).link(["John Smith bakery in Paris"]).frame
    smiths = links[links["mention"] == "John Smith"]
    assert smiths.loc[smiths["score"].idxmax(), "entity_id"] == "baker"
    assert links["score"].between(0, 1).all()


@pytest.mark.parametrize("header", ["entity_id\ttext", "Entity\tdescription"])
def test_descriptions_are_read_from_a_path(tmp_path, header):
    names = pd.DataFrame({"alias": ["jordan"] * 2, "entity_id": ["land", "player"]})
    linker = DictionaryLinker(names, id_space="x")
    path = tmp_path / "texts.tsv"
    path.write_text(f"{header}\nland\tAmman river desert\nplayer\tbasketball NBA\n")
    frame = pd.DataFrame({"entity_id": ["land", "player"], "text": ["Amman river desert", "basketball NBA"]})
    assert ContextLinker(linker, path) == ContextLinker(linker, str(path)) == ContextLinker(linker, frame)
    assert ContextLinker(linker, path).link(["jordan played basketball"]).frame["entity_id"].iloc[0] == "player"
