"""The planted collection: what was planted is what is drawn, what is measured, and what is missed."""

import math
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import KINDS, planted_collection

from vbterrier import BaitRate, SignalRate, TopBait
from vbterrier.entities.oer import EntityTable
from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.hybrid import OERFilter
from vbterrier.errors import ParameterError, VBTerrierError
from vbterrier.evaluate.coverage import coverage_report
from vbterrier.evaluate.settings import evaluate_settings
from vbterrier.frames.ranking import Run
from vbterrier.kernels.coverage import CLASSES
from vbterrier.measures.base import evaluate
from vbterrier.measures.target import EvaluationTarget

FRAMES = ("topics", "pool", "qrels", "mentions", "tags", "entities")
# So near to 0 and 1 that nothing is left to chance.
CERTAIN = {
    "log_odds": {
        "core": (60.0, 60.0),
        "conditional": (0.0, 0.0),
        "generic bait": (0.0, 0.0),
        "anti-signal": (-60.0, -60.0),
    },
    "shares": {"core": 1e-13, "conditional": 1e-13, "generic bait": 1 - 1e-13, "anti-signal": 1 - 1e-13},
    "n_entities": {"core": 2, "conditional": 0, "generic bait": 1, "anti-signal": 1, "sparse": 0},
}


def linked(made):
    return link_pool(made.pool, made.tags, made.qrels)


def measured(made):
    """Values of the library for each planted entity."""
    pool = linked(made)
    table = EntityTable(pool)
    found = pd.DataFrame(
        {
            "qid": np.array(pool.topics, dtype=object)[table.topic],
            "entity_id": pool.entities.take(table.entity).text.to_pylist(),
            "oer": table.oer(),
            "signal": [CLASSES[code] for code in table.classes()],
            "df": table.df,
        }
    )
    return found.merge(made.entities, on=["qid", "entity_id"], validate="one_to_one")


def values_of(measures, made, name):
    """(measure, qid) -> value of one of the entity runs."""
    found = evaluate(measures, EvaluationTarget.of_links(linked(made)), Run(made.runs[name]))
    return {(str(measure), qid): value for qid, measure, value in found}


def counted(made):
    """(qid, entity) -> (df_rel, df_other), by a loop over mentions; and how many documents of each there are."""
    labels = {docno: (qid, label) for qid, docno, label in made.qrels.itertuples(index=False)}
    df, n = defaultdict(lambda: [0, 0]), defaultdict(lambda: [0, 0])
    for qid, label in labels.values():
        n[qid][1 - label] += 1
    for docno, entity in made.tags.itertuples(index=False):
        qid, label = labels[docno]
        df[qid, entity][1 - label] += 1
    return df, n


def textbook(df_rel, df_other, n_rel, n_other, alpha=0.5, tau=5.0):
    """OER and signal class as section 2.5 has them."""
    p, q = (df_rel + alpha) / (n_rel + 2 * alpha), (df_other + alpha) / (n_other + 2 * alpha)
    df = df_rel + df_other
    oer = (1 - math.exp(-df / tau)) * (math.log(p / (1 - p)) - math.log(q / (1 - q)))
    if df <= 2:
        return oer, "sparse"
    if df_rel >= 2 and df_rel > df_other and oer >= 0.5:
        return oer, "core"
    if oer > 0:
        return oer, "conditional"
    if oer < 0 and df_other > df_rel:
        return oer, "anti-signal"
    return oer, "generic bait" if df >= 50 else "neutral"


# What is drawn


def test_frames_are_what_the_rest_of_the_package_takes():
    made = planted_collection(n_topics=3, n_documents=30, n_relevant=5)
    assert [list(getattr(made, name).columns) for name in FRAMES] == [
        ["qid", "query"],
        ["qid", "docno", "score", "rank"],
        ["qid", "docno", "label"],
        ["docno", "entity_id"],
        ["docno", "entity_id"],
        ["qid", "entity_id", "kind", "log_odds", "p_relevant", "p_other"],
    ]
    assert made.qrels.groupby("qid")["label"].agg(["sum", "size"]).to_numpy().tolist() == [[5, 30]] * 3
    assert not made.mentions.duplicated().any()
    assert made.pool["docno"].is_unique
    for run in (made.pool, *made.runs.values()):
        again = run.assign(single=run["score"].astype("float32")).sort_values(
            ["qid", "single", "docno"], ascending=[True, False, False]
        )
        assert again.index.tolist() == run.index.tolist()
        assert (run.groupby("qid")["rank"].diff().dropna() == 1).all()
    assert repr(made) == f"Planted(3 topics, 90 documents, {len(made.tags)} of {len(made.tags)} mentions linked)"


def test_all_topics_share_generic_bait_and_nothing_else():
    entities = planted_collection(n_topics=4, n_documents=10, n_relevant=2).entities
    n_topics = entities.groupby("entity_id")["qid"].nunique()
    everywhere = entities.loc[entities["kind"] == "generic bait", "entity_id"].unique()
    assert len(everywhere) == KINDS["generic bait"].n
    assert set(n_topics[n_topics == 4].index) == set(everywhere)
    assert set(n_topics) == {1, 4}


def test_entities_are_mentioned_as_often_as_planted():
    made = planted_collection(n_topics=20, n_documents=500, n_relevant=100)
    df, n = counted(made)
    off = []
    for row in made.entities.itertuples():
        assert math.log(row.p_relevant / (1 - row.p_relevant)) - math.log(row.p_other / (1 - row.p_other)) == (
            pytest.approx(row.log_odds, abs=1e-9)
        )
        for p, found, among in zip((row.p_relevant, row.p_other), df[row.qid, row.entity_id], n[row.qid], strict=True):
            off.append((found - among * p) / math.sqrt(among * p * (1 - p)))
    # Standard scores of over 2,000 binomials.
    assert np.mean(off) == pytest.approx(0, abs=4 / math.sqrt(len(off)))
    assert np.var(off) == pytest.approx(1, abs=0.2)


def test_runs_are_what_they_are_called():
    made = planted_collection(n_topics=3, n_documents=100, n_relevant=30)
    planted = made.entities.set_index(["qid", "entity_id"])
    frequency = 0.3 * planted["p_relevant"] + 0.7 * planted["p_other"]
    wanted = {"odds": planted["log_odds"], "topical": planted["log_odds"].abs(), "frequency": frequency}
    for name, scores in wanted.items():
        run = made.runs[name].set_index(["qid", "docno"])["score"]
        assert run.to_dict() == pytest.approx(scores.to_dict())
    assert made.runs["chance"]["score"].is_unique


def test_same_seed_same_collection_and_topics_do_not_know_of_each_other():
    few, many = (planted_collection(n_topics=n, n_documents=40, n_relevant=8, seed=3) for n in (2, 4))
    for name in ("topics", "pool", "qrels", "entities"):
        frame = getattr(many, name)
        kept = frame[frame["qid"].isin(few.topics["qid"])].reset_index(drop=True)
        pd.testing.assert_frame_equal(getattr(few, name), kept)
    other = planted_collection(n_topics=2, n_documents=40, n_relevant=8, seed=4)
    assert not other.mentions.equals(few.mentions)
    assert not other.pool.equals(few.pool)


def test_relevant_documents_stand_higher_in_the_pool_but_not_all_of_them():
    made = planted_collection(n_topics=20)
    joined = made.pool.merge(made.qrels)
    mean = joined.groupby("label")["rank"].mean()
    assert mean[1] + 20 < mean[0]
    assert joined.groupby("qid")["label"].first().mean() < 1


# What the linker finds


def pairs(tags):
    return set(tags.itertuples(index=False, name=None))


def test_less_recall_finds_less_of_the_same():
    found = [pairs(planted_collection(n_topics=5, linker_recall=recall).tags) for recall in (0, 0.2, 0.5, 0.9, 1)]
    assert found[0] == set()
    assert all(less < more for less, more in pairwise(found))
    made = planted_collection(n_topics=5)
    assert found[-1] == pairs(made.mentions) == pairs(made.tags)
    for kept, recall in zip(found, (0, 0.2, 0.5, 0.9, 1), strict=True):
        assert len(kept) / len(found[-1]) == pytest.approx(recall, abs=4 * math.sqrt(0.25 / len(found[-1])))


def test_what_is_found_depends_on_seed_document_and_entity_alone():
    small = planted_collection(n_topics=2, linker_recall=0.5)
    other = planted_collection(n_topics=3, linker_recall=0.5, n_entities={"sparse": 0}, n_relevant=50)
    both = pairs(small.mentions) & pairs(other.mentions)
    assert len(both) > 200
    assert pairs(small.tags) & both == pairs(other.tags) & both
    again = planted_collection(n_topics=2, linker_recall=0.5, seed=1)
    both = pairs(small.mentions) & pairs(again.mentions)
    assert pairs(small.tags) & both != pairs(again.tags) & both


def test_all_is_the_same_but_the_tags_whatever_the_recall():
    full, half = (planted_collection(n_topics=2, linker_recall=recall) for recall in (1, 0.5))
    for name in FRAMES:
        assert getattr(full, name).equals(getattr(half, name)) == (name != "tags")
    assert all(full.runs[name].equals(half.runs[name]) for name in full.runs)


# What is measured


def test_oer_recovers_the_planted_order():
    made = planted_collection(n_topics=20, n_documents=1000, n_relevant=300)
    found = measured(made)
    supported = found[found["df"] >= 20]
    assert len(supported) > 200
    assert supported["oer"].corr(supported["log_odds"], method="spearman") > 0.95
    gone = (supported["oer"] - supported["log_odds"]).groupby(supported["kind"]).mean()
    assert gone.abs().max() < 0.1, "and its size, for the bias of the pseudo-counts is small where support is large"


def test_kinds_are_mostly_of_the_signal_class_they_are_called_after():
    found = measured(planted_collection())
    share = (found["signal"] == found["kind"]).groupby(found["kind"]).mean()
    for kind in ("core", "conditional", "anti-signal", "sparse"):
        assert share[kind] > 0.85, kind
    # An entity that tells nothing lies on either side of 0.
    bait = found.loc[found["kind"] == "generic bait", "signal"]
    assert set(bait) <= {"anti-signal", "generic bait", "conditional"}


def test_a_tiny_case_by_hand():
    """4 of 10 documents are relevant: core entities are in these, the bait in all, the anti-signal in the other 6."""
    made = planted_collection(n_topics=1, n_documents=10, n_relevant=4, **CERTAIN)
    found = measured(made).set_index("entity_id")
    assert found["df"].to_dict() == {"anti-q001-1": 6, "bait-1": 10, "core-q001-1": 4, "core-q001-2": 4}
    # (4.5/5)/(0.5/5) = 9 against (0.5/7)/(6.5/7) = 1/13, and so on; 1 - exp(-4/5) of it.
    assert found["oer"].to_dict() == pytest.approx(
        {
            "core-q001-1": (1 - math.exp(-4 / 5)) * math.log(9 * 13),
            "core-q001-2": (1 - math.exp(-4 / 5)) * math.log(9 * 13),
            "bait-1": (1 - math.exp(-10 / 5)) * math.log(9 / 13),
            "anti-q001-1": -(1 - math.exp(-6 / 5)) * math.log(9 * 13),
        }
    )
    assert found["signal"].to_dict() == {
        "core-q001-1": "core",
        "core-q001-2": "core",
        "bait-1": "anti-signal",
        "anti-q001-1": "anti-signal",
    }
    assert made.runs["odds"]["docno"].tolist() == ["core-q001-2", "core-q001-1", "bait-1", "anti-q001-1"]
    rates = [SignalRate @ 2, SignalRate @ 3, SignalRate @ 4, BaitRate @ 3, BaitRate @ 4, TopBait]
    values = values_of(rates, made, "odds")
    assert [values[str(rate), "q001"] for rate in rates] == pytest.approx([1, 2 / 3, 1 / 2, 1 / 3, 1 / 2, 0])


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), recall=st.sampled_from([0.3, 0.7, 1.0]))
def test_classes_and_rates_equal_counts(seed, recall):
    made = planted_collection(
        n_topics=3, n_documents=80, n_relevant=25, n_entities={"sparse": 5}, linker_recall=recall, seed=seed
    )
    df, n = counted(made)
    wanted = {key: textbook(*counts, *n[key[0]]) for key, counts in df.items()}
    found = measured(made).set_index(["qid", "entity_id"])
    assert found["signal"].to_dict() == {key: signal for key, (_, signal) in wanted.items()}
    assert found["oer"].to_dict() == pytest.approx({key: oer for key, (oer, _) in wanted.items()})
    k, names = 7, {"SignalRate": ("core", "conditional"), "BaitRate": ("generic bait", "anti-signal")}
    for name, run in made.runs.items():
        listed = {qid: entities.tolist()[:k] for qid, entities in run.groupby("qid")["docno"]}
        for (measure, qid), value in values_of([SignalRate @ k, BaitRate @ k], made, name).items():
            asked = names[measure.partition("@")[0]]
            assert value == pytest.approx(sum(wanted.get((qid, e), (0, ""))[1] in asked for e in listed[qid]) / k)


# What hiding does


def average_precision(ranking, relevant):
    found, total = 0, 0.0
    for rank, docno in enumerate(ranking, 1):
        if docno in relevant:
            found += 1
            total += found / rank
    return total / len(relevant)


@pytest.mark.parametrize("recall", [1.0, 0.3])
def test_conditional_and_open_world_differ_exactly_by_what_was_hidden(recall):
    k = 6
    # Two entities of which every document mentions one: nothing but the linker hides anything.
    made = planted_collection(
        n_topics=6,
        linker_recall=recall,
        n_entities={"sparse": 0},
        shares={"generic bait": 1 - 1e-13},
        log_odds={"generic bait": (0.0, 0.0)},
    )
    bait = [f"bait-{place}" for place in range(1, KINDS["generic bait"].n + 1)]
    run = pd.concat([made.runs["frequency"].groupby("qid").head(k)])
    assert set(bait) <= set(run["docno"])
    selected = {(qid, entity) for qid, entity in run[["qid", "docno"]].itertuples(index=False)}
    hidden = pairs(made.mentions) - pairs(made.tags)
    found = evaluate_settings({"pool": made.pool}, made.qrels, ["AP"], links=linked(made), entities=run, cutoff=k)
    values = found.values.set_index(["setting", "qid"])["value"]
    named = made.mentions.groupby("docno")["entity_id"].agg(set)
    for qid, ranking in made.pool.groupby("qid")["docno"]:
        lost = {
            docno
            for docno in ranking
            if all((docno, entity) in hidden for entity in named[docno] if (qid, entity) in selected)
        }
        assert bool(lost) == (recall < 1)
        relevant = set(made.qrels.query("qid == @qid and label == 1")["docno"])
        kept = [docno for docno in ranking if docno not in lost]
        assert values["open-world", qid] == pytest.approx(average_precision(ranking, relevant))
        assert values["conditional", qid] == pytest.approx(average_precision(kept, relevant - lost))
        assert found.coverage.set_index("qid").loc[qid, "n_reachable"] == len(kept)
    if recall == 1:
        assert (values["conditional"] == values["open-world"]).all()
        assert found.gaps[["gap", "RelCov", "NonRelCov"]].to_numpy().tolist() == [[0, 1, 1]]


# What the paper found


def test_conditional_gains_stay_while_open_world_gains_vanish_with_recall():
    gains, systems, k = {}, {}, 9
    for recall in (1.0, 0.1):
        made = planted_collection(n_topics=15, n_documents=400, n_relevant=40, linker_recall=recall)
        odds = made.entities[made.entities["kind"].isin(["core", "conditional", "anti-signal"])]
        found = made.tags.merge(made.pool[["qid", "docno"]]).merge(odds)
        evidence = made.pool["docno"].map(found.groupby("docno")["log_odds"].sum()).fillna(0)
        systems = {"pool": made.pool, "entities": made.pool.assign(score=0.8 * made.pool["score"] + evidence)}
        result = evaluate_settings(
            systems, made.qrels, ["AP"], links=linked(made), entities=made.runs["topical"], cutoff=k, baseline="pool"
        )
        gains[recall] = result.comparisons.set_index("setting")["diff"]
    assert gains[1.0].min() > 0.3
    assert gains[0.1]["conditional"] > 0.5 * gains[1.0]["conditional"]
    assert gains[0.1]["open-world"] < 0.25 * gains[1.0]["open-world"]
    assert result.coverage["RelCov"].mean() < 0.2


def test_filtering_by_oer_raises_the_ratio_and_lowers_coverage():
    made = planted_collection(n_topics=15, linker_recall=0.5)
    runs, links = {"all": made.runs["topical"].groupby("qid").head(9)}, linked(made)
    for threshold in (0.0, 0.5, 1.0):
        with pytest.warns(match="as a diagnostic, not as a system"):
            stage = OERFilter(links, threshold=threshold)
        runs[str(threshold)] = stage(runs["all"])
    found = coverage_report(runs, links, cutoff=9).entities.pivot(index="name", columns="measure", values="value")
    rising, falling = (found.loc[list(runs), f"{name}@9"].diff().dropna() for name in ("DiscRatio", "RelCov"))
    assert (rising > 0).all()
    assert (falling < 0).all()
    assert found.loc["0.0", "BaitRate@9"] == 0


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_topics": 0}, "n_topics=0: wanted a whole number of at least 1"),
        ({"n_documents": 2.5}, r"n_documents=2\.5"),
        ({"n_relevant": True}, "n_relevant=True"),
        ({"n_relevant": 201}, "n_relevant=201: wanted at most n_documents=200"),
        ({"seed": -1}, "seed=-1"),
        ({"linker_recall": 1.1}, r"linker_recall=1\.1: wanted a share from 0 to 1"),
        ({"linker_recall": float("nan")}, "linker_recall=nan"),
        ({"n_entities": {"cores": 3}}, "n_entities: no kind 'cores'; wanted 'core', .* Did you mean core"),
        ({"n_entities": {"core": -1}}, r"n_entities\['core'\]=-1"),
        ({"log_odds": {"core": (2.0, 1.0)}}, r"log_odds\['core'\]=\(2.0, 1.0\): wanted two finite numbers in order"),
        ({"log_odds": {"core": (2.0, math.inf)}}, r"log_odds\['core'\]"),
        ({"shares": {"core": 0.0}}, r"shares\['core'\]=0.0: wanted a number above 0 and below 1"),
    ],
)
def test_illegal_parameters(options, message):
    with pytest.raises(ParameterError, match=message):
        planted_collection(**options)
    assert issubclass(ParameterError, VBTerrierError)
