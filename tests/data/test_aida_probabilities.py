"""AIDA names: probabilities of what a name means, from one half of the documents, against people in the other.

Half the documents are dev-*, half test-*. Names are in the collection because they are ambiguous over both: of those
with few mentions, what one half says is bound to miss the other.
"""

import numpy as np
import pandas as pd
import pytest

from vbterrier.design.profile import query_profile
from vbterrier.design.sampling import horvitz_thompson, sample_queries
from vbterrier.errors import DegenerateWarning
from vbterrier.intents.calibrate import Calibrate
from vbterrier.intents.calibration import calibration_error
from vbterrier.intents.relax import RelaxConstraints
from vbterrier.linking.kb.files import build_kb

# Of π from one half of the documents to what people meant in the other: total variation, KL of people from π, Brier
# score and calibration error; the mean of both directions. Names with at least so many mentions in both halves.
DISTANCES = {
    1: {
        "uniform": (0.423, 0.565, 0.354, 0.000),
        "prior": (0.608, np.inf, 0.847, 0.363),
        "softmax": (0.467, 0.707, 0.469, 0.183),
        "softmax, relaxed": (0.473, 0.826, 0.524, 0.212),
        "uniform, relaxed": (0.414, 0.598, 0.375, 0.067),
        "temperature": (0.423, 0.565, 0.354, 0.103),
    },
    10: {
        "uniform": (0.463, 0.609, 0.352, 0.000),
        "prior": (0.280, np.inf, 0.167, 0.106),
        "softmax": (0.338, 0.406, 0.186, 0.124),
        "softmax, relaxed": (0.266, 0.332, 0.127, 0.076),
        "uniform, relaxed": (0.352, 0.423, 0.206, 0.071),
        "temperature": (0.246, 0.320, 0.117, 0.062),
    },
}


@pytest.fixture(scope="module")
def kb(aida, tmp_path_factory):
    """The types of entities."""
    table = pd.read_csv(aida.folder / "entities.tsv", sep="\t", dtype=str, keep_default_na=False)
    rows = zip(table["qid"], table["name"], table["types"].str.split("|"), strict=True)
    entities = [{"id": qid, "label": name, "attributes": {"type": types}} for qid, name, types in rows]
    with build_kb(tmp_path_factory.mktemp("aida") / "entities.kb", entities, id_space="wikidata") as made:
        yield made


def mentions(aida, half):
    """How often each name means each of its entities in the documents of one half: dev-* or test-*."""
    gold = aida.links["gold"]
    qid = gold["surface"].str.lower().map(aida.topics.set_index("query")["qid"])
    here = gold.assign(qid=qid)[gold["docno"].str.startswith(half)]
    counted = here.groupby(["qid", "entity_id"]).size().rename("n")
    return aida.intents[["qid", "entity_id"]].merge(counted.reset_index(), how="left").fillna({"n": 0.0})


def shares(counts, qids):
    kept = counts[counts["qid"].isin(qids)].reset_index(drop=True)
    return kept.assign(prob=kept["n"] / kept.groupby("qid")["n"].transform("sum"))


def ways(fitted, labels, kb):
    """Probabilities of the entities of each name from their shares in the other half."""
    scored = fitted.drop(columns="prob").assign(score=fitted["prob"])
    # The kind of thing that the name means most often there.
    likeliest = fitted.sort_values(["qid", "n"], ascending=[True, False], kind="stable").drop_duplicates("qid")
    facts = kb.attributes(likeliest["entity_id"].tolist()).groupby("entity_id")["value"]
    constraints = facts.agg(lambda types: "; ".join(f"type:{name}" for name in types))
    queries = scored.assign(constraints=scored["qid"].map(likeliest.set_index("qid")["entity_id"].map(constraints)))
    plain = {method: Calibrate(method)(queries) for method in ("uniform", "prior", "softmax")}
    relaxed = {f"{method}, relaxed": RelaxConstraints(kb)(plain[method]) for method in ("softmax", "uniform")}
    return {**plain, **relaxed, "temperature": fitted_on_other_names(queries, labels)}


def fitted_on_other_names(scored, labels):
    """Softmax with the temperature that fits every second name, applied to those between them, and the reverse."""
    qids = sorted(scored["qid"].unique())
    halves = [scored[scored["qid"].isin(qids[start::2])] for start in (0, 1)]
    made = []
    for seen, unseen in (halves, halves[::-1]):
        # Names whose scores are all alike say nothing of T.
        telling = seen[seen.groupby("qid")["score"].transform("nunique") > 1]
        fitted = Calibrate("temperature").fit(telling, labels[labels["qid"].isin(telling["qid"])])
        made.append(fitted(unseen))
    return pd.concat(made, ignore_index=True)


def distances(made, labels):
    """Total variation and KL by plain sums, Brier score and calibration error by the package."""
    both = made.merge(labels[["qid", "entity_id", "prob"]], on=["qid", "entity_id"], suffixes=("", "_people"))
    pi, people = both["prob"].to_numpy(), both["prob_people"].to_numpy()
    n = both["qid"].nunique()
    told = people > 0
    with np.errstate(divide="ignore"):
        kl = float((people[told] * np.log(people[told] / pi[told])).sum() / n)
    error = calibration_error(made, labels[["qid", "entity_id", "prob"]])
    assert error.brier == pytest.approx(((pi - people) ** 2).sum() / n, abs=1e-12)
    if np.isfinite(kl):
        assert error.log_loss == pytest.approx(kl - (people[told] * np.log(people[told])).sum() / n, abs=1e-9)
    return np.abs(pi - people).sum() / 2 / n, kl, error.brier, error.ece


@pytest.fixture(scope="module")
def measured(aida, kb):
    counts = {half: mentions(aida, half) for half in ("dev", "test")}

    def mean_of_both_directions(least):
        enough = [counts[half].groupby("qid")["n"].sum() >= least for half in counts]
        qids = enough[0].index[enough[0] & enough[1]]
        halves = [shares(counts[half], qids) for half in counts]
        results = [
            {way: distances(made, labels) for way, made in ways(fitted, labels, kb).items()}
            for fitted, labels in (halves, halves[::-1])
        ]
        return len(qids), {way: np.mean([one[way] for one in results], axis=0).tolist() for way in results[0]}

    with pytest.warns(DegenerateWarning, match="the loss is flat: scores do not predict the labels"):
        few = mean_of_both_directions(1)
    return {1: few, 10: mean_of_both_directions(10)}


@pytest.mark.parametrize(("least", "n_names"), [(1, 136), (10, 23)])
def test_probabilities_against_what_people_meant(measured, least, n_names):
    found_names, result = measured[least]
    assert found_names == n_names
    assert result.keys() == DISTANCES[least].keys()
    for way, expected in DISTANCES[least].items():
        assert result[way] == pytest.approx(list(expected), abs=0.0006), way


def test_a_prior_is_worth_what_it_was_counted_from(measured):
    """Names with few mentions are ambiguous here because their halves differ: a prior is then worse than none."""
    (_, few), (_, many) = measured[1], measured[10]
    assert few["uniform"][0] < few["softmax"][0] < few["prior"][0]
    assert many["prior"][0] < many["softmax"][0] < many["uniform"][0]
    # Softmax of shares at T = 1 is too flat; fitted on other names, or with a constraint on the type, it is nearer.
    for distance in range(4):
        assert many["temperature"][distance] < many["softmax"][distance]
        assert many["softmax, relaxed"][distance] < many["softmax"][distance]
    # What never happened in one half happened in the other: no finite KL for a prior without smoothing.
    assert few["prior"][1] == many["prior"][1] == np.inf


NIL = ("<NIL>", "<NO_MAPPING>")
# A surface form that is linked to two entities in one document is not unheard of.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*repeat a docno and mention with another 'entity_id'"),
]


@pytest.fixture(scope="module")
def corpus(aida):
    return aida.links["gold"].rename(columns={"surface": "mention"})[["docno", "mention", "entity_id"]]


def share(profile, column, item="link"):
    return profile[profile["item"] == item][column].item()


def test_link_shares_of_both_methods(corpus):
    profile = query_profile(corpus, corpus, nil=NIL)
    first = corpus.drop_duplicates(["docno", "mention"])
    linked = ~first["entity_id"].isin(NIL)
    for place, column in (("docno", "random_document"), ("mention", "random_mention")):
        assert share(profile, column) == pytest.approx(linked.groupby(first[place]).mean().mean())
    names = ("uniform", "random_document", "random_mention")
    assert [round(share(profile, name), 3) for name in names] == [0.785, 0.762, 0.684]


def test_samples_agree_with_what_is_expected_of_their_method(corpus):
    for method in ("random-document", "random-mention"):
        sample = sample_queries(corpus, 400, method=method, seed=1)
        profile = query_profile(sample, corpus, nil=NIL, level=0.999)
        shares = profile[profile["part"].isin(["entity", "frequency"])]
        expected = shares[method.replace("-", "_")]
        assert ((shares["low"] <= expected + 1e-12) & (expected <= shares["high"])).all()


def test_the_link_share_of_the_corpus_is_estimated_from_either(corpus):
    truth = share(query_profile(corpus, corpus, nil=NIL), "uniform")
    for method in ("random-document", "random-mention"):
        sample = sample_queries(corpus, 400, method=method, seed=2)
        linked = (~sample.queries["entity_id"].isin(NIL)).astype(float)
        result = horvitz_thompson(sample, sample.queries.assign(name="gold", measure="link", value=linked), level=0.99)
        assert result["low"].item() < truth < result["high"].item()
