"""What must not change a number, and what must change it in a known way, for every registered measure.

No expected value stands here: a measure is compared with itself after its input was changed.
"""

import numpy as np
import pandas as pd
import pytest
from night import at_night

from vbterrier import (
    BP,
    BRBP,
    EAP,
    EERR,
    ENDCG,
    EP,
    EQ,
    ERBP,
    ES,
    VB,
    NDCGBound,
    TopIntent,
    Unjudged,
    VarPenalty,
)
from vbterrier.frames.ranking import Run
from vbterrier.measures import (
    BOOTSTRAPPED,
    DNDCG,
    ENTITY,
    LINKING,
    MEASURES,
    DSharpNDCG,
    IRec,
    MarcoRR,
    NonRelCov,
    OracleCov,
    RelCov,
    WeightedAlphaNDCG,
    WeightedERRIA,
    WeightedNRBP,
)
from vbterrier.measures.base import evaluate
from vbterrier.measures.target import EvaluationTarget
from vbterrier.measures.unjudged import needs_model
from vbterrier.unjudged import fit

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")

K = 4
N_TOPICS = 20
SURE = {0: 0.5, 1: 0.25, 3: 0.25}
STATS = ("mean", "std", "mode", "q10")
OVER_UNJUDGED = (*BOOTSTRAPPED, BRBP(rel=0, max_grade=3))
BOUNDS = [
    NDCGBound(side=side, kind=kind, max_grade=3) @ K
    for side in ("lower", "upper")
    for kind in ("naive", "rbp", "guaranteed", "posthoc")
]
# Every measure by what it wants in the place of qrels; those whose topics see each other stand apart.
FAMILIES = {
    "judgments": [
        *(
            measure(prior=prior, stat=stat) @ K
            for measure in OVER_UNJUDGED
            for prior in ("pool", SURE)
            for stat in STATS
        ),
        *(measure(prior="pool", stat="mean") for measure in OVER_UNJUDGED if measure is not BP),
        *(measure(prior="pool+run") @ K for measure in OVER_UNJUDGED),
        *(measure(prior="run", all_unjudged="pool") @ K for measure in OVER_UNJUDGED),
        *BOUNDS,
        Unjudged @ K,
        Unjudged,
        MarcoRR @ K,
        MarcoRR(rel=2),
    ],
    "model": [
        measure(stat=stat) @ K for measure in (ENDCG, ERBP, EP, EAP, EERR, EQ) for stat in ("mean", "std", "q10")
    ],
    "subtopics": [
        *(m(gain=gain) @ K for m in (ES, VB, VarPenalty, TopIntent) for gain in ("binary", "dcg")),
        *(m(variance="intent", gain="dcg") @ K for m in (VB, VarPenalty)),
        VB(monotone=True) @ K,
        VB(clip=True, alpha=2) @ K,
        *(m(alpha=alpha) @ K for m in (WeightedERRIA, WeightedAlphaNDCG, WeightedNRBP) for alpha in (0.5, 0.9)),
        *(m(dcg=dcg) @ K for m in (DNDCG, DSharpNDCG) for dcg in ("log2", "exp-log2")),
        *(DSharpNDCG(weighted=True) @ K, IRec @ K, WeightedNRBP, DNDCG),
        ES,
    ],
    "links": [
        *(m(undefined="zero", cutoff=k) for m in ENTITY if "cutoff" in m.SUPPORTED_PARAMS for k in (K, None)),
        *(m(undefined="zero") for m in ENTITY if "cutoff" not in m.SUPPORTED_PARAMS),
        OracleCov(undefined="zero", exact=True) @ 2,
    ],
    "answers": [
        *(m(undefined="zero") if "undefined" in m.SUPPORTED_PARAMS else m for m in LINKING),
    ],
}
# Where the value of a topic is its own, whatever the others are.
ALONE = ("judgments", "subtopics", "links")
# Draws of the model depend on ids, and the model on all documents and topics.
COMPUTED = [family for family in FAMILIES if family != "model"]


def ranking(rng, documents, least):
    """A list with ties and, beside the documents, some that nobody knows."""
    every = [*documents, *(f"x{place:02d}" for place in range(4))]
    result = rng.permutation(every)[: rng.integers(least, len(every) + 1)]
    return [(docno, float(score)) for docno, score in zip(result, rng.integers(0, 6, len(result)), strict=True)]


def judgments(rng):
    documents = [f"d{place:02d}" for place in range(12)]
    qrels, run = [], []
    for number in range(N_TOPICS):
        # Two of the least: the judged part is never empty, nor is the pool.
        judged = rng.permutation(documents)[: rng.integers(6, 11)]
        qrels += [
            (f"q{number:02d}", docno, int(label))
            for docno, label in zip(judged, rng.choice(4, len(judged)), strict=True)
        ]
        run += [(f"q{number:02d}", *row) for row in ranking(rng, documents, 8)]
    return qrels, ["qid", "docno", "label"], run


def subtopics(rng):
    documents = [f"d{place:02d}" for place in range(12)]
    rows, run = [], []
    for number in range(N_TOPICS):
        for subtopic in range(rng.integers(1, 6)):
            judged = rng.permutation(documents)[:6]
            labels = rng.choice([-2, 0, 0, 1, 2], len(judged))
            rows += [(f"q{number:02d}", f"i{subtopic}", d, int(label)) for d, label in zip(judged, labels, strict=True)]
        run += [(f"q{number:02d}", *row) for row in ranking(rng, documents, K)]
    return rows, ["qid", "iteration", "docno", "label"], run


def links(rng):
    entities = [f"E{place:02d}" for place in range(10)]
    rows, run = [], []
    for number in range(N_TOPICS):
        for rank in range(12):
            label = (1, 0)[rank] if rank < 2 else int(rng.integers(-1, 2))
            named = [e for e in entities if rng.random() < 0.25] or [None]
            rows += [(f"q{number:02d}", f"d{rank:02d}", entity, label, rank, 1.0) for entity in named]
        run += [(f"q{number:02d}", *row) for row in ranking(rng, entities, K)]
    return rows, ["qid", "docno", "entity_id", "label", "rank", "weight"], run


def answers(rng):
    ids = np.array(["A", "B", "C", "NIL"])
    gold = rng.choice(ids, N_TOPICS)
    system = np.where(rng.random(N_TOPICS) < 0.5, gold, rng.choice(ids, N_TOPICS))
    rows = [(f"q{number:02d}", entity) for number, entity in enumerate(gold)]
    run = [(f"q{number:02d}", entity, 1.0) for number, entity in enumerate(system) if rng.random() < 0.9]
    return rows, ["qid", "entity_id"], run


WORLDS = dict(zip(FAMILIES, (judgments, judgments, subtopics, links, answers), strict=True))


@pytest.fixture(params=range(2), ids=lambda seed: f"seed{seed}")
def worlds(request):
    """(what stands in the place of qrels, run) of a family."""

    def world(family):
        rows, columns, run = WORLDS[family](np.random.default_rng(request.param))
        return pd.DataFrame(rows, columns=columns), pd.DataFrame(run, columns=["qid", "docno", "score"])

    return world


def values_by_topic(measures, frame, run, **target):
    """A row a topic, a column a measure."""
    models = {"": fit({"run": run}, frame, cutoff=K)} if needs_model(measures) else {}
    rows = evaluate(measures, EvaluationTarget(frame, **target), Run(run), models)
    table = pd.DataFrame(rows, columns=["qid", "measure", "value"])
    return table.assign(measure=table["measure"].map(str)).pivot(index="qid", columns="measure", values="value")


def assert_same(one, other, within=1e-11):
    # A variance of rounding alone is a deviation of its root.
    root = [column for column in one if "std" in column or column.startswith(("VarPenalty", "VB"))]
    for columns, most in ((root, 1e-7), (one.columns.difference(root), within)):
        difference = (one[columns] - other[columns]).abs()
        assert list(one.index) == list(other.index)
        assert not difference.isna().any(axis=None)
        assert (difference <= most).all(axis=None), difference.max().nlargest(3)


def test_the_families_hold_every_measure():
    assert {measure.NAME for family in FAMILIES.values() for measure in family} == {m.NAME for m in MEASURES}


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_and_columns_come_in_any_order(worlds, family):
    frame, run = worlds(family)
    before = values_by_topic(FAMILIES[family], frame, run)
    shuffled = [
        table.sample(frac=1, random_state=7)[table.columns[::-1]].set_axis(range(len(table), 0, -1))
        for table in (frame, run)
    ]
    assert_same(before, values_by_topic(FAMILIES[family], *shuffled))
    # The comparison would see a change.
    assert before.std().gt(0).mean() > 0.9


@pytest.mark.parametrize("family", COMPUTED)
def test_topics_have_any_names(worlds, family):
    frame, run = worlds(family)
    names = {f"q{number:02d}": f"é {(number * 17) % N_TOPICS}" for number in range(N_TOPICS)}
    renamed = values_by_topic(FAMILIES[family], *(table.assign(qid=table["qid"].map(names)) for table in (frame, run)))
    before = values_by_topic(FAMILIES[family], frame, run).rename(names)
    assert_same(before.sort_index(), renamed.sort_index())


def renamed(frame, names):
    """Documents of run and qrels, and entities, under other names."""
    columns = [column for column in ("docno", "entity_id", "iteration") if column in frame.columns]
    return frame.assign(**{column: frame[column].map(names, na_action="ignore") for column in columns})


@pytest.mark.parametrize("family", [family for family in COMPUTED if family != "answers"])
def test_names_that_keep_their_order_keep_ties_and_any_names_do_where_nothing_is_tied(worlds, family):
    frame, run = worlds(family)
    changed = [renamed(table, lambda name: f"http://example.org/{name}?東京") for table in (frame, run)]
    assert_same(values_by_topic(FAMILIES[family], frame, run), values_by_topic(FAMILIES[family], *changed))
    run = run.assign(score=np.random.default_rng(1).permutation(len(run)).astype(float))
    changed = [renamed(table, lambda name: name[::-1]) for table in (frame, run)]
    measures = [m for m in FAMILIES[family] if m.NAME != "OracleCov" or m.params.get("exact")]
    assert_same(values_by_topic(measures, frame, run), values_by_topic(measures, *changed))


def test_entities_of_answers_have_any_names(worlds):
    frame, run = worlds("answers")
    names = {"A": "zz", "B": "aa", "C": "nil", "NIL": "NIL"}
    changed = [renamed(table, names.get) for table in (frame, run)]
    assert_same(values_by_topic(FAMILIES["answers"], frame, run), values_by_topic(FAMILIES["answers"], *changed))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rise", [np.exp, at_night(lambda score: score**3 - 1e4)])
def test_scores_go_through_any_rising_function(worlds, family, rise):
    frame, run = worlds(family)
    assert_same(
        values_by_topic(FAMILIES[family], frame, run),
        values_by_topic(FAMILIES[family], frame, run.assign(score=rise(run["score"]))),
    )


@pytest.mark.parametrize("family", [family for family in COMPUTED if family != "answers"])
def test_what_comes_below_the_cutoff_changes_nothing(worlds, family):
    frame, run = worlds(family)
    more = pd.DataFrame({"qid": sorted(run["qid"].unique())}).merge(
        pd.DataFrame({"docno": ["zz1", "zz2", "zz3"], "score": [-1.0, -1.0, -2.0]}), how="cross"
    )
    cut = [measure for measure in FAMILIES[family] if measure.cutoff or measure.NAME in ("TopBait", "ObsCov")]
    assert_same(values_by_topic(cut, frame, run), values_by_topic(cut, frame, pd.concat([more, run])))


@pytest.mark.parametrize("family", ALONE)
def test_topics_come_in_any_batches(worlds, family):
    frame, run = worlds(family)
    number = [table["qid"].str[1:].astype(int) for table in (frame, run)]
    batches = [
        values_by_topic(
            FAMILIES[family], *(table[of % 3 == batch] for table, of in zip((frame, run), number, strict=True))
        )
        for batch in range(3)
    ]
    assert_same(values_by_topic(FAMILIES[family], frame, run), pd.concat(batches).sort_index())


@pytest.mark.parametrize("family", COMPUTED)
def test_a_collection_beside_its_copy_has_the_same_means(worlds, family):
    frame, run = worlds(family)
    doubled = [pd.concat([table, table.assign(qid=table["qid"] + " again")]) for table in (frame, run)]
    before, after = values_by_topic(FAMILIES[family], frame, run), values_by_topic(FAMILIES[family], *doubled)
    assert_same(before, after.loc[before.index])
    assert_same(before.mean().to_frame().T, after.mean().to_frame().T)


# Judgments


def complete(frame, run):
    return run.merge(frame[["qid", "docno"]])


def added(frame, label):
    """An unretrieved document for every topic."""
    new = pd.DataFrame({"qid": frame["qid"].unique(), "docno": "nobody found it", "label": label})
    return pd.concat([frame, new], ignore_index=True)


def test_a_document_that_is_neither_relevant_nor_retrieved_changes_nothing_where_the_prior_is_given(worlds):
    frame, run = worlds("judgments")
    measures = [m for m in FAMILIES["judgments"] if not isinstance(m.params.get("prior"), str)]
    assert len(measures) > 30
    assert_same(values_by_topic(measures, frame, run), values_by_topic(measures, added(frame, 0), run))


def test_a_relevant_document_that_is_not_retrieved_is_missed_by_recall_alone(worlds):
    frame, run = worlds("judgments")
    run = complete(frame, run)
    stats = [m(prior="pool", stat=stat) @ K for m in OVER_UNJUDGED for stat in ("mean", "q10", "hi")]
    # Without a highest grade, gains would be parts of a new one.
    before, after = values_by_topic(stats, frame, run), values_by_topic(stats, added(frame, 3), run)
    blind = [column for column in before if column.startswith(("BP(", "BRBP", "BERR"))]
    assert_same(before[blind], after[blind])
    seeing = before.columns.difference(blind)
    assert (after[seeing] <= before[seeing] + 1e-12).all(axis=None)
    assert (after[seeing] < before[seeing] - 1e-3).any().all()
    bounds = [NDCGBound(kind=kind, max_grade=3) @ K for kind in ("naive", "rbp")]
    assert (values_by_topic(bounds, added(frame, 3), run) <= values_by_topic(bounds, frame, run) + 1e-12).all(axis=None)


@pytest.mark.parametrize("place", range(K))
def test_a_better_document_moved_up_never_lowers_a_score(worlds, place):
    frame, run = worlds("judgments")
    listed = complete(frame, run).merge(frame).sort_values(["qid", "score", "docno"], ascending=[True, False, False])
    listed["rank"] = listed.groupby("qid").cumcount()
    upper, lower = (listed[listed["rank"] == at].set_index("qid") for at in (place, place + 1))
    better = lower.index[lower["label"] > upper["label"].reindex(lower.index)]
    assert len(better) > 3
    here, there = (listed["qid"].isin(better) & (listed["rank"] == at) for at in (place, place + 1))
    moved = listed.assign(rank=listed["rank"] + here.astype(int) - there.astype(int))
    stats = [m(prior="pool", stat=stat) @ K for m in OVER_UNJUDGED for stat in ("mean", "q10")]
    before, after = (
        values_by_topic(stats, frame, table.assign(score=-table["rank"].astype(float))) for table in (listed, moved)
    )
    assert (after >= before - 1e-12).all(axis=None)
    assert (after.loc[better] > before.loc[better] + 1e-9).any().sum() >= (4 if place == K - 1 else 8)


# Intents


def intents_and_tags(frame):
    """The subtopics as intents of random probabilities, and their documents as tags."""
    prob = frame[["qid", "iteration"]].drop_duplicates().rename(columns={"iteration": "entity_id"})
    prob["prob"] = np.random.default_rng(5).gamma(1.0, size=len(prob))
    prob["prob"] /= prob.groupby("qid")["prob"].transform("sum")
    tags = frame[frame["label"] > 0].rename(columns={"iteration": "entity_id"})
    return prob, tags[["qid", "docno", "entity_id"]].assign(weight=1.0)


def test_an_intent_split_in_two_with_the_same_documents_changes_nothing(worlds):
    frame, run = worlds("subtopics")
    intents, tags = intents_and_tags(frame)
    halves = pd.concat(
        [
            intents.assign(prob=0.3 * intents["prob"]),
            intents.assign(prob=0.7 * intents["prob"], entity_id=intents["entity_id"] + "'"),
        ]
    )
    twins = pd.concat([tags, tags.assign(entity_id=tags["entity_id"] + "'")])
    measures = [measure for measure in FAMILIES["subtopics"] if measure.NAME != "TopIntent"]
    assert_same(values_by_topic(measures, intents, run, tags=tags), values_by_topic(measures, halves, run, tags=twins))


def test_a_document_more_for_an_intent_is_missed_by_discounted_gain_alone(worlds):
    frame, run = worlds("subtopics")
    new = frame[["qid", "iteration"]].drop_duplicates().assign(docno="nobody found it", label=1)
    # Intents that had no document keep a gain of 0.
    before, after = (values_by_topic(FAMILIES["subtopics"], table, run) for table in (frame, pd.concat([frame, new])))
    # Measures that divide by an ideal ranking.
    binary = [column for column in before if "dcg" not in column.casefold()]
    assert_same(before[binary], after[binary])
    es = f"ES(gain='dcg')@{K}"
    assert (after[es] <= before[es] + 1e-12).all()
    assert (after[es] < before[es] - 1e-3).any()


def test_one_more_intent_that_nothing_retrieved_serves_takes_its_share(worlds):
    frame, run = worlds("subtopics")
    n = frame.groupby("qid")["iteration"].nunique()
    new = pd.DataFrame({"qid": n.index, "iteration": "new", "docno": "nobody found it", "label": 1})
    measures = [ES @ K, ES(gain="dcg") @ K]
    before, after = (values_by_topic(measures, table, run) for table in (frame, pd.concat([frame, new])))
    assert_same(before.mul(n / (n + 1), axis=0), after)


# Links and answers


@pytest.mark.parametrize(("label", "changed", "kept"), [(1, RelCov, NonRelCov), (0, NonRelCov, RelCov)])
def test_a_document_more_that_no_entity_reaches_counts_among_its_kind_alone(worlds, label, changed, kept):
    frame, run = worlds("links")
    new = pd.DataFrame({"qid": frame["qid"].unique(), "docno": "new", "entity_id": None, "label": label, "rank": 99})
    after = values_by_topic([changed @ K, kept @ K], pd.concat([frame, new.assign(weight=1.0)]), run)
    before = values_by_topic([changed @ K, kept @ K], frame, run)
    documents = frame.drop_duplicates(["qid", "docno"])
    n = documents[(documents["label"] >= 1) == (label == 1)].groupby("qid").size()
    before[str(changed @ K)] *= n / (n + 1)
    assert_same(before, after)


def test_a_query_that_nobody_answers_counts_in_recall_alone(worlds):
    frame, run = worlds("answers")
    measures = FAMILIES["answers"]
    more = pd.concat([frame, pd.DataFrame({"qid": ["new"], "entity_id": ["A"]})])
    before, after = (values_by_topic(measures, table, run).mean() for table in (frame, more))
    for measure in ("LinkP(undefined='zero')", "NilP(undefined='zero')", "NilR(undefined='zero')"):
        assert after[measure] == pytest.approx(before[measure], abs=1e-12)
    n, n_links = len(frame), (frame["entity_id"] != "NIL").sum()
    assert after["LinkingR"] == pytest.approx(before["LinkingR"] * n / (n + 1))
    assert after["LinkR(undefined='zero')"] == pytest.approx(
        before["LinkR(undefined='zero')"] * n_links / (n_links + 1)
    )
