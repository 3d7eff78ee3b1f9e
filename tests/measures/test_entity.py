"""Measures of entity runs against plain loops over sets, and in the hands of their hosts."""

import math

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import vbterrier
from vbterrier import measures_from
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.ranking import Run
from vbterrier.measures import (
    ENTITY,
    OER,
    BaitRate,
    DiscRatio,
    NonRelCov,
    ObsCov,
    OERCorr,
    OracleCov,
    RelCov,
    SignalRate,
    TopBait,
)
from vbterrier.measures.base import evaluate
from vbterrier.measures.target import EvaluationTarget
from vbterrier.stats.topic_statistics import disc_ratio

# Random entities may all be others than those of the documents.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*no document of the links mentions any:vbterrier.errors.DegenerateWarning"
)

ENTITIES = "ABCDEFGH"
# For each topic its documents, each a label and its entities; and its run of entities, X being no one's.
WORLDS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(-1, 2), st.sets(st.sampled_from(ENTITIES))), min_size=1, max_size=10),
        st.dictionaries(st.sampled_from([*ENTITIES, "X"]), st.sampled_from([0.0, 1.0, 1.0 + 1e-12, 2.5, -3.0])),
    ),
    min_size=1,
    max_size=3,
)
CUTOFFS = (1, 2, 3, 20, None)


def links_of(world):
    rows = [
        (f"q{number}", f"d{rank}", entity, label, rank, 1.0)
        for number, (documents, _) in enumerate(world)
        for rank, (label, entities) in enumerate(documents)
        for entity in (sorted(entities) or [None])
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "entity_id", "label", "rank", "weight"])


def run_of(world):
    rows = [(f"q{n}", entity, score) for n, (_, run) in enumerate(world) for entity, score in run.items()]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def bait_or_signal(oer, df_rel, df_other):
    """Section 2.5 in its order; sparse and unnamed entities are neither."""
    df = df_rel + df_other
    if df <= 2:
        return "neither"
    if oer > 0:
        return "core" if df_rel >= 2 and df_rel > df_other and oer >= 0.5 else "conditional"
    return "bait" if (oer < 0 and df_other > df_rel) or df >= 50 else "neither"


def textbook(documents, run, k, rel=1, alpha=0.5, tau=5.0):
    """All measures of one topic by plain loops; None where undefined."""
    relevant = [entities for label, entities in documents if label >= rel]
    other = [entities for label, entities in documents if label < rel]
    ranking = sorted(sorted(run, reverse=True), key=lambda entity: -np.float32(run[entity]))[:k]

    def covered(some):
        return sum(bool(entities & set(ranking)) for entities in some) / len(some) if some else None

    def oer(entity):
        a, b = (sum(entity in entities for entities in some) for some in (relevant, other))
        p, r = (a + alpha) / (len(relevant) + 2 * alpha), (b + alpha) / (len(other) + 2 * alpha)
        value = (1 - math.exp(-(a + b) / tau)) * (math.log(p / (1 - p)) - math.log(r / (1 - r)))
        # Here two logarithms of equal odds may differ by a rounding.
        value = 0.0 if abs(value) < 1e-12 else value
        return value, bait_or_signal(value, a, b)

    results = {"RelCov": covered(relevant), "NonRelCov": covered(other)}
    names = ["DiscRatio", "OER", "SignalRate", "BaitRate", "TopBait", "OERCorr"]
    results |= dict.fromkeys(names)
    kinds = {entity: oer(entity)[1] for entity in ENTITIES} if relevant and other else {}
    core = {entity for entity, kind in kinds.items() if kind == "core"}
    results["ObsCov"] = None
    if not (relevant and other):
        return results
    results["ObsCov"] = sum(bool(entities & core) for entities in relevant) / len(relevant)
    results["DiscRatio"] = results["RelCov"] / (results["NonRelCov"] + 1 / (2 * len(other)))
    values, kinds = zip(*(oer(entity) for entity in ranking), strict=True) if ranking else ((), ())
    n = max(len(ranking), 1)
    results["OER"] = sum(values) / n
    results["SignalRate"] = sum(kind in ("core", "conditional") for kind in kinds) / n
    results["BaitRate"] = kinds.count("bait") / n
    best = min(run, key=lambda entity: (-np.float32(run[entity]), -ord(entity))) if run else None
    results["TopBait"] = float(best is not None and oer(best)[1] == "bait")
    scores = [np.float32(run[entity]) for entity in ranking]
    if len(ranking) >= 3 and len(set(scores)) > 1 and len({round(value, 12) for value in values}) > 1:
        results["OERCorr"] = stats.spearmanr(scores, np.round(values, 12)).statistic
    return results


def values_of(measures, links, run):
    """(measure, topic) -> value, all in one call."""
    return {(str(m), qid): value for qid, m, value in evaluate(measures, EvaluationTarget(links), Run(run))}


def at(measure, k):
    return measure(cutoff=k) if k and "cutoff" in measure.SUPPORTED_PARAMS else measure


@given(WORLDS, st.sampled_from(CUTOFFS), st.integers(1, 2))
@settings(max_examples=150, deadline=None)
@pytest.mark.slow
def test_every_measure_of_every_topic_is_what_plain_loops_find(world, k, rel):
    links, run = links_of(world), run_of(world)
    if not len(run):
        return
    # Repeated links and weights do not matter.
    links = pd.concat([links, links.iloc[::2].assign(weight=0.5)])
    for measure in ENTITY:
        if measure is OracleCov:
            continue
        one = at(measure(rel=rel, undefined="skip"), k)
        values = values_of([one], links, run)
        expected = {
            (str(one), f"q{number}"): value
            for number, (documents, entities) in enumerate(world)
            if (value := textbook(documents, entities, k, rel)[measure.NAME]) is not None
        }
        assert values == pytest.approx(expected, abs=1e-9), measure.NAME


@pytest.mark.nightly
@given(WORLDS)
@settings(max_examples=25, deadline=None)
def test_many_cutoffs_in_one_pass_are_each_by_itself(world):
    links, run = links_of(world), run_of(world)
    if not len(run):
        return
    every = [at(measure(undefined="zero"), k) for measure in ENTITY for k in CUTOFFS]
    every += [measure(undefined="zero", rel=2) for measure in ENTITY]
    every += [measure(undefined="zero", **other) for measure in (OER, ObsCov) for other in ({"alpha": 50}, {"tau": 50})]
    alone = {}
    for measure in every:
        alone |= values_of([measure], links, run)
    assert values_of(every, links, run) == alone
    assert values_of(every[::-1], links, run) == alone


@given(WORLDS, st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_bounds_and_identities(world, k):
    links, run = links_of(world), run_of(world)
    if not len(run):
        return
    oracles = [OracleCov @ k, OracleCov(exact=True) @ k, OracleCov]
    more = [RelCov @ k, RelCov @ (k + 1), *oracles, RelCov, TopBait, BaitRate @ 1]
    values = values_of([measure(undefined="zero") for measure in more], links, run)
    for qid in links["qid"].unique():
        few, next_, greedy, exact, ceiling, all_, top, first = (values[str(m(undefined="zero")), qid] for m in more)
        assert few <= next_ <= all_ <= ceiling <= 1
        assert few <= exact + 1e-12
        assert (1 - 1 / math.e) * exact <= greedy <= exact <= ceiling
        assert top == first


def by_hand():
    """Three relevant documents, five others; A is core, B bait, C sparse, D of one document without others."""
    relevant, others = [(1, {"A", "B"}), (2, {"A"}), (1, {"D"})], [(0, {"B"}), (0, {"B"}), (-1, {"B", "C"})]
    return [([*relevant, *others, (0, set()), (0, {"A"})], {"A": 4.0, "B": 3.0, "X": 2.0, "C": 1.0})]


def test_the_measures_by_hand():
    measures = {
        RelCov @ 1: 2 / 3,
        NonRelCov @ 1: 1 / 5,
        DiscRatio @ 1: (2 / 3) / (1 / 5 + 1 / 10),
        DiscRatio(epsilon=1e-6) @ 1: (2 / 3) / (1 / 5 + 1e-6),
        RelCov @ 2: 2 / 3,
        NonRelCov @ 2: 4 / 5,
        RelCov(rel=2) @ 20: 1.0,
        # A: odds (2.5/1.5) / (1.5/4.5) = 5 with 3 documents; B: (1.5/2.5) / (3.5/2.5) = 3/7 with 4.
        OER @ 1: (1 - math.exp(-3 / 5)) * math.log(5),
        OER @ 3: ((1 - math.exp(-3 / 5)) * math.log(5) + (1 - math.exp(-4 / 5)) * math.log(3 / 7)) / 3,
        SignalRate @ 4: 1 / 4,
        BaitRate @ 4: 1 / 4,
        BaitRate @ 20: 1 / 4,
        TopBait: 0.0,
        # OER falls A, X, C, B: by ranks 4, 3, 2, 1 the run says A, B, X, C.
        OERCorr @ 20: 1 - 6 * (0 + 4 + 1 + 1) / (4 * 15),
        ObsCov: 2 / 3,
        OracleCov @ 1: 2 / 3,
        OracleCov @ 2: 1.0,
    }
    values = values_of(list(measures), links_of(by_hand()), run_of(by_hand()))
    assert values == pytest.approx({(str(measure), "q0"): value for measure, value in measures.items()})


# What has no value


PLAIN = [(1, {"A"}), (0, {"B"})]
ONLY_OTHER, ONLY_RELEVANT = [(0, {"A"}), (-1, {"B"})], [(1, {"A"}), (2, {"B"})]
RUN = {"A": 3.0, "B": 2.0, "X": 1.0}
NEEDS_RELEVANT = {RelCov, OracleCov}


@pytest.mark.parametrize("measure", ENTITY, ids=[measure.NAME for measure in ENTITY])
@pytest.mark.parametrize(("documents", "what"), [(ONLY_OTHER, "relevant"), (ONLY_RELEVANT, "other")])
def test_topics_without_relevant_or_without_other_documents(measure, documents, what):
    world = [(PLAIN, RUN), (documents, RUN)]
    links, run = links_of(world), run_of(world)
    defined = what == "relevant" if measure is NonRelCov else what == "other" and measure in NEEDS_RELEVANT
    if defined:
        assert len(values_of([measure], links, run)) == 2
        return
    with pytest.raises(InputError, match=rf"{measure.NAME}\(undefined='raise'\) is undefined for 1 topic \('q1'\)"):
        values_of([measure(undefined="raise")], links, run)
    assert list(values_of([measure], links, run).values()) == list(
        values_of([measure(undefined="skip")], links, run).values()
    )
    zero, skip = (values_of([measure(undefined=policy)], links, run) for policy in ("zero", "skip"))
    assert {qid: value for (_, qid), value in zero.items()}["q1"] == 0.0
    assert [qid for _, qid in skip] == ["q0"]


@pytest.mark.parametrize(
    "run", [{"A": 1.0, "B": 2.0}, {"A": 1.0, "B": 1.0, "C": 1.0}, {"X": 3.0, "Y": 2.0, "Z": 1.0}, {}]
)
def test_no_correlation_of_few_or_of_constants_but_of_infinite_scores(run):
    world = [(PLAIN, RUN), (PLAIN, run)]
    with pytest.raises(InputError, match=r"OERCorr\(undefined='raise'\) is undefined for 1 topic"):
        values_of([OERCorr(undefined="raise")], links_of(world), run_of(world))
    documents = [(1, {"A", "C"}), (1, {"A"}), (0, {"B"}), (0, {"B", "C"})]
    world = [(documents, {"A": math.inf, "C": 0.0, "B": -math.inf})]
    assert values_of([OERCorr], links_of(world), run_of(world)) == {("OERCorr", "q0"): pytest.approx(1.0)}


def test_a_topic_without_a_list_scores_nothing_but_what_the_pool_itself_is():
    world = [(PLAIN, RUN), (PLAIN, {})]
    measures = [measure for measure in ENTITY if measure is not OERCorr]
    values = values_of(measures, links_of(world), run_of(world))
    assert {name for (name, qid), value in values.items() if qid == "q1" and value} == {"OracleCov"}
    with pytest.warns(DegenerateWarning, match="run: empty"):
        empty = values_of(measures, links_of(world), run_of(world).iloc[:0])
    assert {name for (name, _), value in empty.items() if value} == {"OracleCov"}


# What is refused


def test_qrels_that_are_no_links_are_named_and_topics_as_integers_never_meet_text(values_of):
    qrels = pd.DataFrame({"qid": ["q0"], "docno": ["d0"], "label": [1]})
    run = run_of([(PLAIN, RUN)])
    words = r"need the links of a pool.*found qid, docno, label.*vbterrier.entities.link_pool"
    with pytest.raises(InputError, match=words):
        values_of(RelCov @ 20, qrels, run)
    with pytest.raises(InputError, match="qrels column 'qid' holds integers, run column 'qid' holds text"):
        values_of(RelCov @ 20, links_of([(PLAIN, RUN)]).assign(qid=7), run.assign(qid="7"))


# Hosts


def collection(n_topics=8, seed=3):
    rng = np.random.default_rng(seed)
    world = []
    for _ in range(n_topics):
        documents = [(int(rng.integers(-1, 3)), set(rng.choice(list(ENTITIES), rng.integers(0, 4)))) for _ in range(30)]
        world.append((documents, dict(zip([*ENTITIES, "X"], rng.random(9), strict=True))))
    return links_of(world), run_of(world)


def test_an_experiment_with_links_as_qrels():
    links, run = collection()
    topics = pd.DataFrame({"qid": links["qid"].unique(), "query": "words"})
    run = run.assign(rank=run.groupby("qid")["score"].rank(ascending=False).astype(int) - 1)
    systems = {"one": run, "other": run.assign(score=-run["score"], rank=8 - run["rank"])}
    measures = list(dict.fromkeys(at(measure, k) for measure in ENTITY for k in (3, 20)))
    table = pt.Experiment(list(systems.values()), topics, links, measures, names=list(systems), perquery=True)
    assert set(table["qid"]) == set(topics["qid"])
    for name, frame in systems.items():
        mine = table[table["name"] == name]
        got = dict(zip(zip(mine["measure"].astype(str), mine["qid"], strict=True), mine["value"], strict=True))
        assert got == pytest.approx(values_of(measures, links, frame), abs=1e-12)


def test_ir_measures_takes_links_and_a_pool_itself(theirs):
    links, run = collection()
    measures = measures_from("RelCov@3", "OER(tau=2)@5", "OracleCov(exact=True)@2", "TopBait", "ObsCov(alpha=1)")
    frames = map(theirs, (links, run))
    results = {(str(m.measure), m.query_id): m.value for m in ir_measures.iter_calc(measures, *frames)}
    assert results == values_of(measures, links, run)
    target = EvaluationTarget.of_links(LinkedPool.from_frame(links))
    assert {(str(m), qid): value for qid, m, value in evaluate(measures, target, Run(run))} == results


# Collections


def test_the_ratio_of_a_collection_is_that_of_the_means():
    result = disc_ratio([1.0, 0.9, 0.8], [0.5, 0.9, 0.0], seed=4)
    assert (result.value, result.n_qids) == (pytest.approx(2.7 / 1.4), 3)
    assert result.low < result.value < result.high
    assert disc_ratio([1.0, 0.9, 0.8], [0.5, 0.9, 0.0], seed=4) == result
    above, below = np.linspace(0.5, 1, 30), np.linspace(0.9, 0.1, 30)
    assert disc_ratio(above, below, seed=4).low != disc_ratio(above, below, seed=5).low
    same = disc_ratio([0.6] * 5, [0.5] * 5)
    assert (same.low, same.value, same.high) == pytest.approx((1.2, 1.2, 1.2))
    with pytest.warns(DegenerateWarning, match="the ratio is infinite"):
        result = disc_ratio([1.0, 0.0], [0.0, 0.0])
    assert (result.value, result.high) == (math.inf, math.inf)
    with pytest.warns(DegenerateWarning, match="no document is reached: the ratio is undefined"):
        assert math.isnan(disc_ratio([0.0], [0.0]).low)


def test_the_interval_of_the_ratio_holds_it_as_often_as_it_says():
    """Per-topic pairs of shares; of 400 nominal 90 % intervals, 360 should hold the ratio of expectations."""
    rng, hits, n = np.random.default_rng(8), 0, 400
    for number in range(n):
        base = rng.beta(4, 2, 80)
        result = disc_ratio(np.sqrt(base), base * rng.random(80), level=0.9, n_resamples=300, seed=number)
        # E sqrt(B(4, 2)) = Γ(4.5) Γ(6) / (Γ(4) Γ(6.5)), E B(4, 2) U = 1/3.
        truth = math.gamma(4.5) * math.gamma(6) / (math.gamma(4) * math.gamma(6.5)) * 3
        hits += result.low <= truth <= result.high
    low, high = stats.binom.interval(0.999, n, 0.9)
    assert low <= hits <= high


def test_a_ratio_needs_resamples():
    with pytest.raises(ParameterError, match="n_resamples=0"):
        disc_ratio([1.0], [0.5], n_resamples=0)


OF_MEANS = {
    "intervals": vbterrier.stats.intervals,
    "analysis of variance": vbterrier.stats.analysis_of_variance,
    "posteriors": vbterrier.stats.bayesian_comparison,
    "risk": lambda values: vbterrier.stats.risk_table(values, baseline="a"),
    "batches": lambda values: vbterrier.stats.TopicStatistics().add(values),
    "labels of some queries": lambda values: vbterrier.stats.prediction_powered(values, values),
    "comparisons": vbterrier.compare,
    "track": vbterrier.evaluate.leaderboard,
    "sizes": vbterrier.design.score_by_size,
    "discriminative power": vbterrier.design.discriminative_power,
    "plan": lambda values: vbterrier.design.queries_needed(values, delta=0.1),
    "width": vbterrier.design.interval_width,
}


@pytest.mark.parametrize("call", OF_MEANS)
def test_means_of_disc_ratios_of_topics_are_refused(call):
    values = pd.DataFrame(
        {"name": ["a"] * 6 + ["b"] * 6, "qid": [*"123456"] * 2, "measure": "DiscRatio@2", "value": np.arange(12.0)}
    )
    with pytest.raises(ParameterError, match=r"DiscRatio@2: .*[ .]coverage_report"):
        OF_MEANS[call](values)


def test_scores_report_that_the_mean_of_ratios_is_a_diagnostic():
    links, entities = links_of(by_hand() * 2), run_of(by_hand() * 2)
    with pytest.warns(DegenerateWarning) as caught:
        scored = vbterrier.score({"a": entities}, links, [DiscRatio @ 1, RelCov @ 1])
    (message,) = [str(each.message) for each in caught if "diagnostic" in str(each.message)]
    assert message.startswith(
        "DiscRatio@1: the mean of the ratios of topics is a diagnostic; the ratio of a collection"
    )
    assert message in scored.notes
