"""AIDA-CoNLL: ambiguous names, what people meant by them, and what four sources of tags say documents are about.

Intents of a name are its gold entities, their probabilities the shares of its mentions. A document is about an entity
that is linked anywhere in it; ``<NIL>`` and ``<NO_MAPPING>`` are no entities and no tags. Printed independently for one
BM25 run: VB@10 of .979 with gold tags and .721, .679, .381 with three linkers. Here .979 comes out with gold, .721 with
ReFinED (the third field of its candidates), .381 with WAT, and .629 with GENRE: .679 comes out of nothing.

Tags decide what systems can be told to be: with gold tags an oracle reaches an ES@10 of 1, with WAT's .681, of which
both systems have .66. From WAT to gold VB@10 changes by .6, from DPH to BM25 by .008 at most, in either direction.
"""

from itertools import chain, pairwise, product

import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier import ES, VB
from vbterrier.evaluate.intents import IntentOptions, evaluate_intents
from vbterrier.settings import Inference
from vbterrier.stats.topic_intervals import topics_interval

pytestmark = pytest.mark.slow

TAGGERS = ("gold", "refined", "genre", "wat")
CUTOFFS = (1, 3, 5, 10)
MEASURES = [*(ES @ k for k in CUTOFFS), *(VB @ k for k in CUTOFFS)]
VB_10 = {"gold": 0.979, "refined": 0.721, "genre": 0.629, "wat": 0.381}
# ES and VB at 1, 3, 5 and 10, with 95 % intervals over names.
SUCCESS = {
    ("gold", "bm25"): [
        [(0.657, 0.617, 0.695), (0.902, 0.878, 0.924), (0.956, 0.938, 0.970), (0.995, 0.992, 0.998)],
        [(0.314, 0.260, 0.366), (0.748, 0.703, 0.790), (0.875, 0.837, 0.907), (0.979, 0.966, 0.989)],
    ],
    ("gold", "dph"): [
        [(0.644, 0.603, 0.684), (0.899, 0.874, 0.920), (0.956, 0.940, 0.970), (0.993, 0.987, 0.997)],
        [(0.300, 0.245, 0.353), (0.743, 0.695, 0.789), (0.871, 0.834, 0.901), (0.971, 0.955, 0.985)],
    ],
    ("refined", "bm25"): [
        [(0.624, 0.581, 0.661), (0.803, 0.765, 0.836), (0.838, 0.800, 0.869), (0.872, 0.839, 0.900)],
        [(0.268, 0.214, 0.318), (0.574, 0.514, 0.628), (0.649, 0.589, 0.702), (0.721, 0.665, 0.771)],
    ],
    ("refined", "dph"): [
        [(0.612, 0.570, 0.652), (0.800, 0.762, 0.833), (0.837, 0.800, 0.869), (0.871, 0.838, 0.900)],
        [(0.254, 0.199, 0.304), (0.572, 0.510, 0.627), (0.645, 0.586, 0.699), (0.719, 0.664, 0.770)],
    ],
    ("genre", "bm25"): [
        [(0.603, 0.560, 0.642), (0.770, 0.736, 0.803), (0.806, 0.770, 0.838), (0.829, 0.795, 0.860)],
        [(0.248, 0.197, 0.297), (0.505, 0.449, 0.561), (0.581, 0.521, 0.638), (0.629, 0.569, 0.686)],
    ],
    ("genre", "dph"): [
        [(0.601, 0.559, 0.642), (0.763, 0.727, 0.798), (0.802, 0.767, 0.834), (0.829, 0.795, 0.860)],
        [(0.247, 0.195, 0.298), (0.501, 0.444, 0.561), (0.570, 0.510, 0.628), (0.631, 0.570, 0.688)],
    ],
    ("wat", "bm25"): [
        [(0.421, 0.370, 0.471), (0.575, 0.524, 0.621), (0.608, 0.557, 0.654), (0.661, 0.613, 0.707)],
        [(0.160, 0.114, 0.204), (0.287, 0.226, 0.344), (0.324, 0.259, 0.383), (0.381, 0.318, 0.439)],
    ],
    ("wat", "dph"): [
        [(0.423, 0.370, 0.471), (0.567, 0.517, 0.614), (0.604, 0.553, 0.651), (0.663, 0.616, 0.707)],
        [(0.157, 0.110, 0.203), (0.283, 0.224, 0.337), (0.319, 0.254, 0.377), (0.383, 0.320, 0.442)],
    ],
}


@pytest.fixture(scope="module")
def evaluations(aida):
    """Every tagger with both systems."""
    options = {
        "intents": aida.intents,
        "measures": MEASURES,
        "options": IntentOptions(gold=aida.tags["gold"]),
        "inference": Inference(interval="percentile"),
    }
    return {t: evaluate_intents(aida.runs, aida.topics, tagger=aida.tags[t], **options) for t in TAGGERS}


@pytest.fixture(scope="module")
def values(evaluations):
    """Value of each tagger, system and name (rows) by measure (columns)."""
    frames = [result.values.assign(tagger=tagger) for tagger, result in evaluations.items()]
    return pd.concat(frames).pivot(index=["tagger", "name", "qid"], columns="measure", values="value")


def test_probabilities_are_shares_of_the_gold_mentions(aida):
    gold = aida.links["gold"]
    qid = gold["surface"].str.lower().map(aida.topics.set_index("query")["qid"])
    counted = gold.assign(qid=qid)[gold["entity_id"].str.startswith("Q")].groupby(["qid", "entity_id"]).size()
    assert counted.to_dict() == aida.intents.set_index(["qid", "entity_id"])["mentions"].to_dict()
    assert aida.intents["prob"].to_numpy() == pytest.approx(aida.intents["p"].to_numpy(), abs=1e-6)
    assert (len(aida.topics), gold["docno"].nunique()) == (199, 447)


@pytest.mark.parametrize("tagger", TAGGERS)
def test_printed_numbers_and_all_values_agree_with_plain_loops(aida, evaluations, textbook, tagger):
    assert evaluations[tagger].means().loc["bm25", "VB@10"] == pytest.approx(VB_10[tagger], abs=0.0005)
    expected = textbook.expected(aida.runs, aida.intents, aida.tags[tagger], CUTOFFS)
    textbook.assert_values(evaluations[tagger].values, expected)


def test_a_plain_experiment_agrees(aida, evaluations, textbook):
    vbterrier.register_intents("aida", aida.intents, replace=True)
    for tagger in TAGGERS:
        vbterrier.register_tags(f"aida {tagger}", aida.tags[tagger], replace=True)
    pairs = [(tagger, measure) for tagger in TAGGERS for measure in MEASURES]
    named = [measure(intents="aida", tags=f"aida {tagger}") for tagger, measure in pairs]
    systems, options = list(aida.runs.values()), {"names": list(aida.runs), "perquery": True}
    table = pt.Experiment(systems, aida.topics, aida.intents, named, **options)
    texts = {str(one): (tagger, str(measure)) for one, (tagger, measure) in zip(named, pairs, strict=True)}
    table["tagger"], table["measure"] = zip(*table["measure"].astype(str).map(texts), strict=True)
    for tagger in TAGGERS:
        textbook.assert_values(table[table["tagger"] == tagger], evaluations[tagger].values)


@pytest.mark.parametrize(("tagger", "system"), SUCCESS)
def test_success_and_its_interval_at_every_cutoff(evaluations, tagger, system):
    table = evaluations[tagger].intervals.set_index(["name", "measure"]).loc[system]
    assert set(table["method"]) == {"topics (percentile)"}
    for measure, expected in zip(MEASURES, chain(*SUCCESS[tagger, system]), strict=True):
        result = table.loc[str(measure), ["value", "low", "high"]].astype(float).tolist()
        assert result[0] == pytest.approx(expected[0], abs=0.0006)
        # The ends are of 2,000 resamples: their own standard error is up to .002.
        assert result[1:] == pytest.approx(expected[1:], abs=0.006)


def test_entities_that_linkers_know_nothing_of_are_no_tags(aida, evaluations):
    """Kept as tags they would change nothing: no name means NIL. They only made documents look tagged."""
    with_nil = aida.links["gold"][["docno", "entity_id"]].drop_duplicates()
    assert len(with_nil) > len(aida.tags["gold"])
    evaluation = evaluate_intents(aida.runs, aida.topics, intents=aida.intents, tagger=with_nil, measures=MEASURES)
    pd.testing.assert_frame_equal(evaluation.means(), evaluations["gold"].means())


@pytest.mark.parametrize(
    ("tagger", "precision", "recall", "oracle"),
    [("gold", 1, 1, 1), ("refined", 0.820, 0.922, 0.884), ("genre", 0.870, 0.852, 0.845), ("wat", 0.706, 0.608, 0.681)],
)
def test_what_tags_leave_to_systems(aida, evaluations, tagger, precision, recall, oracle):
    result, gold = (set(aida.tags[name].itertuples(index=False, name=None)) for name in (tagger, "gold"))
    sample = {docno for docno, _ in gold}
    correct, made = len(result & gold), sum(docno in sample for docno, _ in result)
    micro = evaluations[tagger].quality.micro
    assert micro[:2] == pytest.approx((correct / made, correct / len(gold)), abs=1e-12)
    assert micro[:2] == pytest.approx((precision, recall), abs=0.0006)
    left = evaluations[tagger].tagging
    # Documents beyond the retrieved ones count for an oracle, too.
    probs = aida.intents[aida.intents["entity_id"].isin(aida.tags[tagger]["entity_id"])]
    mass = probs.groupby("qid")["prob"].sum().reindex(aida.topics["qid"], fill_value=0.0)
    assert left.loc[left["cutoff"] == 10, "oracle_ES"].tolist() == pytest.approx([mass.mean()] * 2, abs=1e-12)
    assert mass.mean() == pytest.approx(oracle, abs=0.0006)
    assert (left["ES"] <= left["oracle_ES"]).all()


def interval_of(difference):
    interval = topics_interval(difference.to_numpy())
    return interval.low, interval.high


@pytest.mark.parametrize("measure", ["ES@10", "VB@10"])
def test_the_tagger_changes_more_than_the_system(values, measure):
    """Even between the two taggers nearest to each other, and without gold among them."""
    table = values[measure].unstack(["tagger", "name"])
    pairs = product(pairwise(TAGGERS), ("bm25", "dph"))
    taggers = [interval_of(table[better, name] - table[worse, name]) for (better, worse), name in pairs]
    systems = [interval_of(table[tagger, "bm25"] - table[tagger, "dph"]) for tagger in TAGGERS]
    assert min(low for low, _ in taggers) > 0
    assert all(low < 0 < high for low, high in systems), "no tagger tells the systems apart at 10"
    means = table.mean().unstack("name")
    by_tagger, by_system = (means.max() - means.min()).min(), (means["bm25"] - means["dph"]).abs().max()
    assert by_tagger > 70 * by_system
    unlabelled = means.drop(index="gold")
    assert (unlabelled.max() - unlabelled.min()).min() > 90 * (unlabelled["bm25"] - unlabelled["dph"]).abs().max()


def test_the_tagger_decides_which_system_wins(values):
    means = values["VB@10"].groupby(["tagger", "name"]).mean().unstack("name")
    assert (means["bm25"] > means["dph"]).to_dict() == {
        "gold": True,
        "refined": True,
        "genre": False,
        "wat": False,
    }
    # At 1 the difference is there with gold tags, and not with those of GENRE and WAT.
    table = values["VB@1"].unstack(["tagger", "name"])
    lows = {tagger: interval_of(table[tagger, "bm25"] - table[tagger, "dph"])[0] for tagger in TAGGERS}
    assert {tagger for tagger, low in lows.items() if low > 0} == {"gold", "refined"}
