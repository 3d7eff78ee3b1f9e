"""Diversity measures weighted by the probabilities of intents, and the refusal of measures that ignore them."""

import math

import numpy as np
import pandas as pd
import pytest
from night import at_night

import vbterrier
from vbterrier.errors import InputError, ParameterError
from vbterrier.kernels.novelty import ideal_alpha_dcg, ideal_global_dcg, novel_weights, unit_gains
from vbterrier.measures import DNDCG, DSharpNDCG, IRec, WeightedAlphaNDCG, WeightedERRIA, WeightedNRBP
from vbterrier.settings import Data, Execution, Inference

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
FEW = Inference(n_resamples=2)
IGNORING = [
    *("ERR_IA@10", "nERR_IA@10", "alpha_nDCG@10", "alpha_DCG@10", "P_IA@5", "StRecall@5", "AP_IA", "NRBP", "nNRBP"),
    "alpha_nDCG(judged_only=True)@10",
]


def random_collection(seed, n_topics=30):
    """Intents with unequal probabilities, some without documents; tags with weights; runs of 1 to 15 documents."""
    rng = np.random.default_rng(seed)
    intents, tags, run = [], [], []
    for topic in range(n_topics):
        prob = rng.dirichlet(np.full(rng.integers(1, 6), 0.7))
        names = [f"E{intent}" for intent in range(len(prob))]
        intents += [(f"q{topic}", name, p) for name, p in zip(names, prob, strict=True)]
        docnos = [f"d{place}" for place in range(20)]
        tags += [
            (f"q{topic}", docno, name, rng.choice([1.0, 1.0, 0.5, 0.25]))
            for docno in docnos
            for name in names[: max(len(names) - 1, 1)]
            if rng.random() < 0.3
        ]
        listed = rng.permutation(docnos)[: rng.integers(1, 16)]
        run += [(f"q{topic}", docno, float(-place)) for place, docno in enumerate(listed)]
    return (
        pd.DataFrame(intents, columns=["qid", "entity_id", "prob"]),
        pd.DataFrame(tags, columns=["qid", "docno", "entity_id", "weight"]),
        pd.DataFrame(run, columns=["qid", "docno", "score"]),
    )


def novelties(ranking, weights, alpha):
    """The weight of each intent in each document, times the probability that nothing above satisfied."""
    left = {}
    for docno in ranking:
        about = weights.get(docno, {})
        yield {intent: weight * left.get(intent, 1.0) for intent, weight in about.items()}
        left |= {intent: left.get(intent, 1.0) * (1 - alpha * weight) for intent, weight in about.items()}


def textbook(intents, tags, run, k, alpha, beta=0.8, gamma=0.3):
    """The measures of each topic by the loops of their papers, in the order of ``weighted_measures``."""
    results = {}
    for qid, rows in intents.groupby("qid"):
        prob = dict(zip(rows["entity_id"], rows["prob"], strict=True))
        weights = {}
        for row in tags[tags["qid"] == qid].itertuples():
            weights.setdefault(row.docno, {})[row.entity_id] = row.weight
        listed = run[run["qid"] == qid].sort_values("score", ascending=False)["docno"].tolist()[:k]

        def total(ranking, discount, prob=prob, weights=weights):
            parts = enumerate(novelties(ranking, weights, alpha), 1)
            return math.fsum(prob[e] * w * discount(rank) for rank, part in parts for e, w in part.items())

        def greedy(prob=prob, weights=weights):
            chosen, left = [], sorted(weights, reverse=True)
            while left and len(chosen) < k:
                sums = [
                    round(
                        sum(prob[e] * w for e, w in list(novelties([*chosen, docno], weights, alpha))[-1].items()), 12
                    )
                    for docno in left
                ]
                chosen.append(left.pop(int(np.argmax(sums))))
            return chosen

        norm = sum((1 - alpha) ** (rank - 1) / rank for rank in range(1, k + 1))
        ideal = total(greedy(), log_discount)
        dcg = total(listed, log_discount)
        nrbp = total(listed, lambda rank: beta ** (rank - 1)) * (1 - (1 - alpha) * beta)
        gain = {docno: sum(prob[e] * w for e, w in about.items()) for docno, about in weights.items()}
        d_ndcg = dcg_of([gain.get(docno, 0.0) for docno in listed]) / (
            dcg_of(sorted(gain.values())[: -k - 1 : -1]) or 1
        )
        covered = set().union(*(weights.get(docno, {}) for docno in listed))
        i_rec, p_rec = len(covered) / len(prob), sum(prob[e] for e in covered)
        results[qid] = (
            total(listed, lambda rank: 1 / rank) / norm,
            dcg / ideal if ideal else 0.0,
            nrbp,
            d_ndcg,
            i_rec,
            gamma * i_rec + (1 - gamma) * d_ndcg,
            gamma * p_rec + (1 - gamma) * d_ndcg,
        )
    return results


def log_discount(rank):
    return 1 / math.log2(rank + 1)


def dcg_of(gains):
    return math.fsum(gain * log_discount(rank) for rank, gain in enumerate(gains, 1))


def weighted_measures(k, alpha, beta=0.8, gamma=0.3):
    return [
        WeightedERRIA(alpha=alpha) @ k,
        WeightedAlphaNDCG(alpha=alpha) @ k,
        WeightedNRBP(alpha=alpha, beta=beta) @ k,
        DNDCG @ k,
        IRec @ k,
        DSharpNDCG(gamma=gamma) @ k,
        DSharpNDCG(gamma=gamma, weighted=True) @ k,
    ]


@pytest.mark.parametrize("seed", [0, 1, *map(at_night, (2, 3))])
@pytest.mark.parametrize(("k", "alpha"), [(1, 0.5), (5, 0.5), (10, 0.9), (20, 0.0), (20, 1.0)])
def test_values_are_those_of_the_textbook_loops(seed, k, alpha):
    intents, tags, run = random_collection(seed)
    measures = weighted_measures(k, alpha)
    values = vbterrier.score(run, None, measures, intents=intents, tags=tags, inference=Inference(n_resamples=2)).values
    table = values.pivot(index="qid", columns="measure", values="value")[[str(measure) for measure in measures]]
    for qid, expected in textbook(intents, tags, run, k, alpha).items():
        assert table.loc[qid].tolist() == pytest.approx(expected, abs=1e-12)
    assert table.to_numpy().min() >= 0
    assert table.drop(columns=str(measures[1])).to_numpy().max() <= 1 + 1e-12


def test_whole_rankings_are_rankings_without_a_cutoff():
    intents, tags, run = random_collection(5)
    measures = [WeightedNRBP(beta=0.9), DNDCG, IRec, DSharpNDCG]
    options = {"intents": intents, "tags": tags, "inference": FEW}
    whole, deep = (
        vbterrier.score(run, None, some, **options).values for some in (measures, [m @ 99 for m in measures])
    )
    assert whole["value"].tolist() == pytest.approx(deep["value"].tolist(), abs=1e-15)
    assert whole["value"].mean() > 0.2


GRADED = pd.DataFrame(
    [("q", "1", "a", 3), ("q", "1", "b", 1), ("q", "2", "b", 2), ("q", "2", "c", -2), ("q", "3", "c", 0)],
    columns=["qid", "iteration", "docno", "label"],
).assign(prob=[0.5, 0.5, 0.3, 0.3, 0.2])


@pytest.mark.parametrize(
    ("dcg", "gains"),
    [("log2", {"a": 0.5 * 3, "b": 0.5 * 1 + 0.3 * 2}), ("exp-log2", {"a": 0.5 * 7, "b": 0.5 * 1 + 0.3 * 3})],
)
def test_labels_of_diversity_qrels_are_gains_for_each_intent(dcg, gains):
    """By hand: global gains, and a third intent without documents."""
    run = pd.DataFrame({"qid": "q", "docno": ["b", "c", "a"], "score": [3.0, 2.0, 1.0]})
    expected = (gains["b"] + gains["a"] * log_discount(3)) / (gains["a"] + gains["b"] * log_discount(2))
    measures = [DNDCG(dcg=dcg) @ 3, IRec @ 3, DSharpNDCG(dcg=dcg) @ 3, DSharpNDCG(dcg=dcg, weighted=True) @ 3, "ES@3"]
    values = vbterrier.score(run, GRADED, measures, inference=Inference(n_resamples=2)).means().iloc[0].tolist()
    assert values == pytest.approx([expected, 2 / 3, (expected + 2 / 3) / 2, (expected + 0.8) / 2, 0.8], abs=1e-15)
    # With rel=2, b is not about intent 1.
    expected = {"log2": 0.3 * 2 / (0.5 * 3), "exp-log2": 0.3 * 3 / (0.5 * 7)}[dcg]
    assert vbterrier.score(run, GRADED, [DNDCG(dcg=dcg, rel=2) @ 1]).means().iloc[0, 0] == pytest.approx(expected)


def test_gains_have_no_unit_and_no_overflow():
    small, large = (unit_gains(np.array([1, 3, *more]), exponential=True) for more in ([], [9]))
    assert (small / small[1]).tolist() == (large[:2] / large[1]).tolist() == [1 / 7, 1.0]
    assert unit_gains(np.array([1, 3, 5])).tolist() == [1 / 8, 3 / 8, 5 / 8]
    assert unit_gains(np.array([5000]), exponential=True).tolist() == [1.0]


def test_probabilities_change_them_and_measures_of_ndeval_are_refused():
    tags = pd.DataFrame({"docno": ["a", "b", "c"], "entity_id": ["E1", "E2", "E2"]})
    run = pd.DataFrame({"qid": "q", "docno": ["b", "x", "a"], "score": [3.0, 2.0, 1.0]})
    intents = pd.DataFrame({"qid": "q", "entity_id": ["E1", "E2"], "prob": [0.5, 0.5]})
    odd = intents.assign(prob=[0.99, 0.01])
    options = {"tags": tags, "inference": FEW}
    measures = ["WeightedERRIA@2", "WeightedAlphaNDCG@3", "ES@1"]
    equal, unequal = (
        vbterrier.score(run, None, measures, intents=one, **options).means().iloc[0] for one in (intents, odd)
    )
    assert equal["WeightedERRIA@2"] == pytest.approx(0.5 / 1.25)
    assert unequal.to_dict() == {
        "WeightedERRIA@2": pytest.approx(0.01 / 1.25),
        "WeightedAlphaNDCG@3": pytest.approx(
            (0.01 + 0.99 / 2) / (0.99 + 0.01 / math.log2(3) + 0.01 / 2 / math.log2(4))
        ),
        "ES@1": 0.01,
    }
    theirs = vbterrier.score(run, None, ["ERR_IA@10"], intents=intents, **options).means().iloc[0, 0]
    assert theirs > 0
    for measure in IGNORING:
        with pytest.raises(
            InputError, match=r"ndeval counts all intents equally.* 1 of 1 queries .*'q'.*WeightedERRIA"
        ):
            vbterrier.score(run, None, ["ES@5", measure], intents=odd, **options)
        with pytest.raises(InputError, match="ndeval counts all intents equally"):
            vbterrier.evaluate_intents(
                {"a": run}, pd.DataFrame({"qid": ["q"], "query": ""}), intents=odd, tagger=tags, measures=[measure]
            )


def test_probabilities_of_diversity_qrels_and_of_subtopics_are_not_ignored_either():
    qrels = pd.DataFrame({"qid": "q", "iteration": ["1", "2", "2"], "docno": ["a", "b", "a"], "label": [1, 1, 0]})
    run = pd.DataFrame({"qid": "q", "docno": ["b", "a"], "score": [2.0, 1.0]})
    weighted = qrels.assign(prob=[0.9, 0.1, 0.1])
    subtopics = pd.DataFrame({"qid": "q", "entity_id": ["1", "2"], "prob": [0.9, 0.1]})
    for measure in ("ERR_IA@10", "StRecall@5"):
        assert vbterrier.score(run, qrels, [measure], inference=Inference(n_resamples=2)).means().iloc[0, 0] > 0
        with pytest.raises(InputError, match="ndeval counts all intents equally"):
            vbterrier.score(run, weighted, [measure], inference=Inference(n_resamples=2))
        with pytest.raises(InputError, match="ndeval counts all intents equally"):
            vbterrier.score(
                run, weighted[["qid", "iteration", "docno", "label"]], [measure], data=Data(subtopics=subtopics)
            )
    row = (
        vbterrier.score(run, weighted, ["WeightedERRIA@1", "ES@1"], inference=Inference(n_resamples=2)).means().iloc[0]
    )
    assert row.tolist() == pytest.approx([0.1, 0.1])
    # Ordinary measures do not depend on intents.
    plain = qrels.drop_duplicates("docno")[["qid", "docno", "label"]]
    tags = pd.DataFrame({"docno": ["a", "b"], "entity_id": ["1", "2"]})
    assert vbterrier.score(run, plain, ["P@1"], intents=subtopics, tags=tags).means().iloc[0, 0] == 1


def test_rounded_equal_probabilities_are_equal():
    intents = pd.DataFrame({"qid": "q", "entity_id": [*"ABC"], "prob": [0.333333, 0.333333, 0.333334]})
    tags = pd.DataFrame({"docno": ["a"], "entity_id": ["A"]})
    run = pd.DataFrame({"qid": ["q"], "docno": ["a"], "score": [1.0]})
    assert vbterrier.score(run, None, ["StRecall@5"], intents=intents, tags=tags).means().iloc[0, 0] == 1


def test_the_report_of_weighted_diversity_qrels_shows_weighted_measures(tmp_path):
    rows = [(f"q{t}", str(i), f"d{t}{i}", 1) for t in range(4) for i in (1, 2)]
    qrels = pd.DataFrame(rows, columns=["qid", "iteration", "docno", "label"])
    qrels = pd.concat([qrels, qrels.iloc[:1].assign(iteration="2", label=0)]).assign(prob=0.5)
    run = qrels[["qid", "docno"]].drop_duplicates().assign(score=1.0)
    for weights, shown, absent in (
        ({"1": 0.5, "2": 0.5}, ">ERR_IA@10<", "WeightedERRIA@10"),
        ({"1": 0.8, "2": 0.2}, "WeightedERRIA@10", ">ERR_IA@10<"),
    ):
        weighted = qrels.assign(prob=qrels["iteration"].map(weights))
        vbterrier.write_report({"a": run, "b": run}, weighted, path=tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert shown in page
        assert absent not in page


def test_a_cutoff_and_tags_of_the_collection_are_needed():
    intents, tags, run = random_collection(0, 2)
    for measure in (WeightedERRIA, WeightedAlphaNDCG(alpha=0.2)):
        with pytest.raises(ParameterError, match=f"{measure.NAME}: needs a cutoff, as {measure.NAME}@10"):
            vbterrier.score(run, None, [measure], intents=intents, tags=tags)
    tagged = run.assign(entity_id="E0")
    assert vbterrier.score(tagged, None, [WeightedERRIA @ 5], intents=intents).means().iloc[0, 0] > 0
    for measure in (WeightedAlphaNDCG, DNDCG, DSharpNDCG):
        with pytest.raises(ParameterError, match="the run has only its own tags; give tags="):
            vbterrier.score(tagged, None, [measure @ 5], intents=intents)
    with pytest.raises(ParameterError, match=r"WeightedNRBP: beta=1.0: wanted a number of at least 0 and below 1"):
        WeightedNRBP(beta=1)
    with pytest.raises(ParameterError, match=r"alpha=2: wanted a number from 0 to 1"):
        WeightedERRIA(alpha=2)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_and_memory_do_not_change_them(tmp_path, seed):
    intents, tags, run = random_collection(seed)
    measures = weighted_measures(5, 0.5)
    options = {"measures": measures, "inference": FEW}
    whole = vbterrier.score({"x": run}, None, intents=intents, tags=tags, **options).values
    shuffled = [frame.sample(frac=1, random_state=seed) for frame in (intents, tags, run)]
    values = vbterrier.score({"x": shuffled[2]}, None, intents=shuffled[0], tags=shuffled[1], **options).values
    key = ["qid", "measure"]
    assert whole.merge(values, on=key).eval("abs(value_x - value_y)").max() <= 1e-15
    vbterrier.frames.write_run(run, tmp_path / "x.run")
    parts = vbterrier.score(
        {"x": tmp_path / "x.run"}, None, intents=intents, tags=tags, execution=Execution(memory="64 MiB"), **options
    ).values
    assert whole.merge(parts, on=key).eval("abs(value_x - value_y)").max() == 0


def test_kernels_of_nothing_are_nothing():
    none = np.empty(0, dtype=np.int64)
    assert len(novel_weights(none, none, np.empty(0), 0.5, 3)) == 0
    ideal = ideal_alpha_dcg(np.ones(1), none, none, np.empty(0), none, alpha=0.5, cutoff=5, n_topics=2)
    assert ideal.tolist() == [0.0, 0.0]
    assert ideal_global_dcg(np.empty(0), none, cutoff=None, n_topics=2).tolist() == [0.0, 0.0]
    assert len(unit_gains(none)) == 0
