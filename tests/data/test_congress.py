"""People of one name in the US Congress, asked for by three attributes of which one is wrong.

500 queries "John Smith, senator from OH, born 1850": a name that several people bear, one of them meant, and a mistake
in chamber, state or year of birth. The wrong value is any other (the year up to 20 off); or, which is worse, that of
another bearer of the name where one has another; or there is none, to see what relaxation costs then.
"""

import math
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from night import at_night

from vbterrier.errors import DegenerateWarning
from vbterrier.intents.candidates import CandidateIntents
from vbterrier.intents.relax import RelaxConstraints
from vbterrier.kernels.resample import stream
from vbterrier.linking.kb.files import kb_from_file
from vbterrier.stats.topic_intervals import topics_interval

pytestmark = pytest.mark.slow

N_QUERIES = 500
ASKED = ("chamber", "state", "born")
TITLES = {"sen": "senator", "rep": "representative"}
SENTENCE = re.compile(r"(.+), (senator|representative) from (\w+), born (\d+)")
# MRR, P(rank 1) and mean probability of the person meant; queries with any answer at all.
NONE = (0.707, 0.453, 0.453, 500)
FOUND = {
    "any": {"strict": (0.000, 0.000, 0.000, 2), "none": NONE, "relaxed": (0.956, 0.913, 0.696, 500)},
    "confusing": {"strict": (0.000, 0.000, 0.000, 46), "none": NONE, "relaxed": (0.844, 0.691, 0.585, 500)},
    "no": {"strict": (0.998, 0.996, 0.996, 500), "none": NONE, "relaxed": (0.998, 0.996, 0.822, 500)},
}


@pytest.fixture(scope="module")
def congress(shared_data, tmp_path_factory):
    folder = shared_data / "kb_us_congress"
    names = pd.read_csv(folder / "ambiguous_full_names.tsv", sep="\t", dtype=str)
    source, path = folder / "entities.jsonl.gz", tmp_path_factory.mktemp("congress") / "congress.kb"
    with kb_from_file(path, source, id_space="bioguide", types={"born": "year"}, progress=False) as kb:
        entities = pd.read_json(source, lines=True, dtype=False)
        yield SimpleNamespace(
            kb=kb,
            attributes=dict(zip(entities["id"], entities["attributes"], strict=True)),
            bearers=dict(zip(names["name"], names["ids"].str.split(","), strict=True)),
        )


def mistaken(attribute, person, others, attributes, draw):
    """Another value of an attribute of a person: of one of the others if there is one, or any."""
    true = attributes[person][attribute]
    theirs = sorted({attributes[other].get(attribute, true) for other in others} - {true})
    if theirs:
        return draw.choice(theirs)
    if attribute == "born":
        return str(int(true) + int(draw.choice([year for year in range(-20, 21) if year])))
    return draw.choice(sorted({one[attribute] for one in attributes.values()} - {true}))


def queries(congress, mistake):
    """Sentences, and who is meant. A query's draws are its own."""
    names, rows = sorted(congress.bearers), []
    for number in range(N_QUERIES):
        draw = stream(3, "congress", str(number))
        bearers = []
        while not bearers:
            name = str(draw.choice(names))
            bearers = [one for one in congress.bearers[name] if all(key in congress.attributes[one] for key in ASKED)]
        person = str(draw.choice(bearers))
        told = {key: congress.attributes[person][key] for key in ASKED}
        wrong = str(draw.choice(ASKED))
        others = [one for one in congress.bearers[name] if one != person]
        if mistake != "no":
            told[wrong] = mistaken(wrong, person, others if mistake == "confusing" else [], congress.attributes, draw)
        sentence = f"{name}, {TITLES[told['chamber']]} from {told['state']}, born {told['born']}"
        rows.append((f"c{number}", sentence, person, wrong))
    return pd.DataFrame(rows, columns=["qid", "query", "person", "wrong"])


def parsed(topics):
    """The name as the query, and what is said of the person as constraints."""
    parts = [SENTENCE.fullmatch(query).groups() for query in topics["query"]]
    chambers = {title: chamber for chamber, title in TITLES.items()}
    constraints = [f"chamber:{chambers[title]}; state:{state}; born:{born}" for _, title, state, born in parts]
    return topics.assign(query=[name for name, *_ in parts], constraints=constraints)


def outcome(made, topics):
    """Of the person meant in each query: expected reciprocal rank, chance of rank 1, probability; 0 where gone.

    Equal probabilities are in any order: of the places that the equal ones take, each is as likely.
    """
    right = made.merge(topics[["qid", "person"]], left_on=["qid", "entity_id"], right_on=["qid", "person"])
    both = made[["qid", "prob"]].merge(right[["qid", "prob"]], on="qid", suffixes=("", "_right"))
    better = (both["prob"] > both["prob_right"] + 1e-12).groupby(both["qid"]).sum()
    equal = ((both["prob"] - both["prob_right"]).abs() <= 1e-12).groupby(both["qid"]).sum()
    reciprocal = [np.mean(1 / np.arange(b + 1, b + e + 1)) for b, e in zip(better, equal, strict=True)]
    table = pd.DataFrame({"MRR": reciprocal, "first": (better == 0) / equal}, index=better.index)
    table["prob"] = right.set_index("qid")["prob"]
    return table.reindex(topics["qid"], fill_value=0.0)


@pytest.fixture(scope="module", params=[one if one == "no" else at_night(one) for one in FOUND])
def constrained(request, congress):
    topics = queries(congress, request.param)
    candidates = pt.apply.generic(parsed) >> CandidateIntents(congress.kb)
    plain = candidates(topics)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        strict = RelaxConstraints(congress.kb, strict=True)(plain)
    made = {"strict": strict, "none": plain, "relaxed": (candidates >> RelaxConstraints(congress.kb))(topics)}
    return SimpleNamespace(
        topics=topics,
        mistake=request.param,
        made=made,
        warnings=record,
        outcomes={way: outcome(frame, topics) for way, frame in made.items()},
    )


def test_every_query_has_all_bearers_of_its_name(constrained, congress):
    names = constrained.topics["query"].str.partition(",")[0]
    result = constrained.made["none"].groupby("qid")["entity_id"].agg(set)
    bearers = (set(congress.bearers[name]) for name in names)
    assert result.to_dict() == dict(zip(constrained.topics["qid"], bearers, strict=True))
    alike = 1 / constrained.made["none"].groupby("qid")["prob"].transform("size")
    assert constrained.made["none"]["prob"].to_numpy() == pytest.approx(alike.to_numpy(), abs=1e-15), (
        "there is no prior"
    )


def test_probabilities_agree_with_a_plain_loop(constrained, congress):
    """``π ∝ exp(-Δ)``, and what is not known of a person is no violation."""
    result = constrained.made["relaxed"].set_index(["qid", "entity_id"])[["prob", "delta"]]
    for topic in parsed(constrained.topics).itertuples():
        expected = dict(clause.split(":") for clause in topic.constraints.split("; "))
        facts = {one: congress.attributes[one] for one in congress.bearers[topic.query]}
        deltas = {
            one: sum(fact.get(key, expected[key]) != expected[key] for key in ASKED) for one, fact in facts.items()
        }
        total = math.fsum(math.exp(-delta) for delta in deltas.values())
        here = result.loc[topic.qid]
        assert here["delta"].to_dict() == deltas
        shares = {one: math.exp(-delta) / total for one, delta in deltas.items()}
        assert here["prob"].to_dict() == pytest.approx(shares, abs=1e-12)
        assert deltas[topic.person] == (constrained.mistake != "no")


def test_what_becomes_of_the_person_meant(constrained):
    for way, expected in FOUND[constrained.mistake].items():
        values = constrained.outcomes[way].mean().tolist()
        assert [*values, constrained.made[way]["qid"].nunique()] == pytest.approx(expected, abs=0.0006), way


@pytest.mark.parametrize("constrained", ["any", "confusing"], indirect=True)
def test_relaxation_beats_no_constraints_and_those_beat_a_filter(constrained):
    """In rank, first place and probability, whatever the mistake; by intervals of the differences, query by query."""
    strict, none, relaxed = (constrained.outcomes[way] for way in ("strict", "none", "relaxed"))
    for column in none:
        for better, worse in ((relaxed, none), (none, strict)):
            assert topics_interval((better[column] - worse[column]).to_numpy()).low > 0.1
    # On average, that is: where others share the mistaken value, the person meant loses.
    loses = (relaxed["prob"] < none["prob"] - 1e-12).mean()
    assert 0 < loses < 0.25


def test_a_filter_loses_the_person_and_says_where_nobody_is_left(constrained):
    right = constrained.made["strict"].merge(
        constrained.topics, left_on=["qid", "entity_id"], right_on=["qid", "person"]
    )
    assert len(right) == (N_QUERIES if constrained.mistake == "no" else 0)
    lost = N_QUERIES - FOUND[constrained.mistake]["strict"][-1]
    assert [str(one.message).split(" queries")[0] for one in constrained.warnings] == ([str(lost)] if lost else [])
    assert all(issubclass(one.category, DegenerateWarning) for one in constrained.warnings)


def test_the_weight_of_violations_changes_probabilities_not_ranks(constrained, congress):
    means = [constrained.outcomes["none"]]
    for weight in (0.5, 1, 2, 4):
        made = RelaxConstraints(congress.kb, weights=dict.fromkeys(ASKED, weight))
        relaxed = (pt.apply.generic(parsed) >> CandidateIntents(congress.kb) >> made)(constrained.topics)
        means.append(outcome(relaxed, constrained.topics))
    probs = [one["prob"].mean() for one in means]
    assert probs == sorted(probs)
    for one in means[2:]:
        pd.testing.assert_frame_equal(one[["MRR", "first"]], means[1][["MRR", "first"]])
