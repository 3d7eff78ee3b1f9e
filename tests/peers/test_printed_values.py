"""Values that other tools print for their own test inputs: trec_eval 10 and ir_measures, through score."""

import re
import shutil

import ir_measures
import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.hosts.ir_measures import MEASURES
from vbterrier.measures.adhoc import is_computed_here
from vbterrier.measures.base import Measure
from vbterrier.measures.external import engine_description
from vbterrier.measures.text import _missing_engine
from vbterrier.settings import Data, Inference

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")]
# Printed values have four decimals.
ROUNDING = 0.5001e-4
NAMES = {
    "map": "AP",
    "Rprec": "Rprec",
    "bpref": "Bpref",
    "recip_rank": "RR",
    "infAP": "infAP",
    "ndcg": "nDCG",
    "num_q": "NumQ",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRet(rel=1)",
    "set_P": "SetP",
    "set_relative_P": "SetP(relative=True)",
    "set_recall": "SetR",
    "set_map": "SetAP",
    "set_F": "SetF",
}
AT_K = {"P": "P", "recall": "R", "map_cut": "AP", "ndcg_cut": "nDCG", "success": "Success", "unj": "Judged"}
# Measures of trec_eval that ir_measures does not have.
ABSENT = re.compile(
    r"runid|relstring|gm_map|gm_bpref|Rprec_mult_.*|utility|11pt_avg|binG|G|ndcg_rel|Rndcg|relative_P_\d+|"
    r"num_nonrel_judged_ret|rbp|rbp_resid"
)


def ours(name):
    """The measure of ir_measures that is called ``name`` by trec_eval."""
    stem, _, k = name.rpartition("_")
    if stem == "iprec_at_recall":
        return f"IPrec@{k}"
    return NAMES[name] if name in NAMES else f"{AT_K[stem]}@{k}"


def printed(path):
    """The values of a file by measure and topic."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return {(name, topic): float(value) for name, topic, value in lines if not ABSENT.fullmatch(name)}


@pytest.fixture(scope="session")
def trec_eval10(shared_data):
    return shared_data / "peer_values" / "trec_eval10"


def differences(run, qrels, expected, peers):
    """Keys of the printed values from which ours differ, by topic and for all."""
    measures = dict.fromkeys(ours(name) for name, _ in expected)
    result = peers.scored(vbterrier.read_run(run), vbterrier.read_qrels(qrels), list(measures))
    table = {str(text): result[str(ir_measures.parse_measure(text))] for text in measures}

    def value(name, topic):
        column = table[ours(name)]
        aggregated = column.sum() if name.startswith("num_") else column.mean()
        one = aggregated if topic == "all" else column[topic]
        return 1 - one if name.startswith("unj") else one

    return {key for key, number in expected.items() if abs(value(*key) - number) > ROUNDING}


def at_rounded_recall(expected):
    """Keys of interpolated precision where trec_eval 10 rounds ``recall * num_rel``, to which version 9 adds 0.9."""
    keys = set()
    for name, topic in expected:
        if name.startswith("iprec") and topic != "all":
            share, relevant = float(name[-4:]), expected["num_rel", topic]
            cuts = int(share * relevant + 0.5), int(share * relevant + 0.9)
            if cuts[0] != cuts[1] and cuts[0] <= expected["num_rel_ret", topic]:
                keys.add((name, topic))
    return keys


def test_scores_are_those_that_trec_eval_10_prints(trec_eval10, peers):
    expected = printed(trec_eval10 / "out.test.aq")
    assert len(expected) > 200
    result = differences(trec_eval10 / "results.test", trec_eval10 / "qrels.test", expected, peers)
    of_topics = {(name, topic) for name, topic in result if topic != "all"}
    assert of_topics == {("iprec_at_recall_0.10", "301"), ("iprec_at_recall_0.60", "302")}
    assert of_topics <= at_rounded_recall(expected)
    assert result - of_topics == {(name, "all") for name, _ in of_topics}
    # The engine of these two, as stated beside values, is version 9.
    assert "(trec_eval 9)" in engine_description(ir_measures.IPrec @ 0.1)


@pytest.mark.parametrize(
    ("files", "values"),
    [
        (("results.test", "qrels.test.with-comments"), "out.test.aq"),
        (("results.comment.test.gz", "qrels.comment.test.gz"), "out.comment.test"),
    ],
)
def test_comments_and_ids_with_hashes_are_read_as_trec_eval_10_reads_them(trec_eval10, peers, files, values):
    run, qrels = (trec_eval10 / name for name in files)
    expected = printed(trec_eval10 / values)
    assert len(expected) > 25
    results = {name for name, _ in differences(run, qrels, expected, peers)}
    # Its recall levels are rounded in another way.
    assert all(name.startswith("iprec_at_recall") for name in results), results


@pytest.mark.parametrize("p", [0.95, 0.9, 0.8])
def test_compat_is_the_value_of_ir_measures_own_tests(shared_data, peers, p):
    folder = shared_data / "peer_values" / "ir_measures"
    expected = {
        0.95: [0.51779512165509, 0.018400100569017922],
        0.9: [0.3761334522946854, 0.004344079941789211],
        0.8: [0.16723008845234535, 0.00022806427320561776],
    }
    run, qrels = vbterrier.read_run(folder / "compat.run"), vbterrier.read_qrels(folder / "compat.qrels")
    result = peers.scored(run, qrels, [f"Compat(p={p})"])
    assert list(result.index) == ["31_1", "31_2"]
    assert result.iloc[:, 0].tolist() == pytest.approx(expected[p], abs=1e-12)


@pytest.mark.parametrize("shift", [0.0, -100.0])
def test_compat_ranks_documents_that_were_not_retrieved_last(peers, shift):
    """Of equal grades, the ideal ranking has first those that the run retrieved, whatever the sign of scores."""
    qrels = pd.DataFrame({"qid": "1", "docno": ["x", "y", "b", "a"], "label": [1, 1, 1, 0]})
    run = pd.DataFrame({"qid": "1", "docno": ["a", "b", "c"], "score": np.array([3.0, 2.0, 1.0]) + shift})
    assert peers.scored(run, qrels, ["Compat(p=0.8)"]).iloc[0, 0] == pytest.approx(compat("abc", "bxy", 0.8), abs=1e-12)
    assert compat("abc", "bxy", 0.8) == pytest.approx(0.2514, abs=5e-5)


def compat(ranking, ideal, p):
    def overlap(one, other):
        depth = max(len(ranking), len(ideal))
        shares = [len(set(one[:k]) & set(other[:k])) / k for k in range(1, depth + 1)]
        return sum(p**k * share for k, share in enumerate(shares))

    return overlap(ranking, ideal) / overlap(ideal, ideal)


def test_every_measure_that_is_passed_on_is_compared_with_its_engine():
    measures = [at_ten(kind) for kind in MEASURES.values()]
    engines = [measure for measure in measures if not (isinstance(measure, Measure) or is_computed_here(measure))]
    passed_on = {measure.NAME for measure in engines if not _missing_engine(measure)}
    here = {re.split(r"[(@]", ours(name))[0] for name in [*NAMES, "P_5", "recall_5", "success_5", "unj_5"]} | {"IPrec"}
    subtopics = {"alpha_nDCG", "alpha_DCG", "ERR_IA", "nERR_IA", "P_IA", "StRecall", "NRBP", "AP_IA", "nNRBP"}
    assert passed_on - here - subtopics == {"Compat", "Accuracy"}


def at_ten(kind):
    needed = {"cutoff": 10, "recall": 0.1, "max_rel": 3}
    return kind(**{name: value for name, value in needed.items() if name in kind.SUPPORTED_PARAMS})


def test_reciprocal_ranks_to_a_cutoff_and_accuracy_follow_their_definitions(peers, adhoc):
    result = peers.scored(adhoc.run, adhoc.qrels, ["RR", "RR@3", "RR(rel=2)@3"])
    whole = result["RR"].where(result["RR"] >= 1 / 3, 0.0)
    assert 0 < (whole == 0).sum() < (result["RR"] > 0).sum()
    assert np.abs(result["RR@3"] - whole).max() <= 1e-12
    labels = adhoc.qrels.set_index(["qid", "docno"])["label"]
    run = vbterrier.frames.ranked(adhoc.run)
    run["label"] = labels.reindex(pd.MultiIndex.from_frame(run[["qid", "docno"]])).fillna(0).to_numpy()
    # Accuracy divides by the number of non-relevant documents above the last relevant one.
    mixed = {qid: (rows["label"] > 0).to_numpy() for qid, rows in run.groupby("qid")}
    mixed = {qid: relevant for qid, relevant in mixed.items() if not relevant[: relevant.sum()].all()}
    chosen = (frame[frame["qid"].isin(list(mixed))] for frame in (adhoc.run, adhoc.qrels))
    accuracy = peers.scored(*chosen, ["Accuracy"])["Accuracy"]
    for qid, relevant in mixed.items():
        if not relevant.any():
            assert qid not in accuracy
            continue
        above = np.cumsum(~relevant)[relevant]
        below = np.cumsum(~relevant)[-1]
        assert accuracy[qid] == pytest.approx(1 - above.sum() / (below * relevant.sum()), abs=1e-12)


# ERR and nDCG with exponential gains, which ir_measures leaves to gdeval.


def err(grades, top):
    left, total = 1.0, 0.0
    for rank, grade in enumerate(grades, start=1):
        stop = (2.0**grade - 1) / 2.0**top
        total += left * stop / rank
        left *= 1 - stop
    return total


def one_topic(labels, qid="1"):
    docnos = [f"d{place}" for place in range(len(labels))]
    qrels = pd.DataFrame({"qid": qid, "docno": docnos, "label": labels})
    return qrels, qrels[["qid", "docno"]].assign(score=np.arange(len(labels), 0, -1.0))


def test_grades_above_4_have_err_and_exponential_ndcg(shared_data, command):
    folder = shared_data / "cases" / "gdeval-grade-5"
    measures = ["ERR@10", "nDCG(dcg='exp-log2')@10"]
    with pytest.warns(
        vbterrier.errors.DegenerateWarning, match=r"ERR@10: qrels hold grade 5.*2\^5 instead of .*2\^4"
    ) as record:
        row = (
            vbterrier.score(folder / "r.run", folder / "q.txt", measures, inference=Inference(n_resamples=2))
            .means()
            .iloc[0]
        )
    assert sum("grade 5" in str(one.message) for one in record) == 1
    assert row.tolist() == [0.96923828125, 1.0]
    _, _, errors = command("score", folder / "r.run", "-q", folder / "q.txt", "-m", "ERR@10")
    assert "/tmp/" not in errors
    assert "format error" not in errors


@pytest.mark.parametrize("labels", [[3, 0, 1], [0, 0], [4, -1, 2], [6, 1, 0, 5], [1000, 3]])
@pytest.mark.parametrize("qid", ["1", "robust-301", "what is ERR?"])
def test_topics_are_any_text_and_grades_any_number(labels, qid):
    qrels, run = one_topic(labels, qid)
    values = (
        vbterrier.score({"x": run}, qrels, ["ERR@3", "ERR@1"], inference=Inference(n_resamples=2))
        .values["value"]
        .tolist()
    )
    grades, top = [max(label, 0) for label in labels], max(4, *labels)
    assert values == pytest.approx([err(grades[:k], top) for k in (3, 1)], abs=1e-15)


def test_topics_that_differ_before_a_hyphen_are_not_mixed():
    """gdeval removes ids of topics up to their last hyphen."""
    parts = [one_topic([2, 0], "2023-7"), one_topic([0, 2], "2024-7")]
    qrels, run = (pd.concat(part, ignore_index=True) for part in zip(*parts, strict=True))
    values = vbterrier.score({"x": run}, qrels, ["ERR@2"], inference=Inference(n_resamples=2)).values.set_index("qid")[
        "value"
    ]
    assert values.to_dict() == {"2023-7": pytest.approx(3 / 16), "2024-7": pytest.approx(3 / 32)}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl script")
def test_err_and_exponential_ndcg_are_gdevals_to_its_five_digits(peers, adhoc):
    placed = vbterrier.frames.ranked(adhoc.run)
    placed = placed.assign(score=-placed["rank"].astype(float), qid=placed["qid"].str[1:])
    qrels = adhoc.qrels.assign(qid=adhoc.qrels["qid"].str[1:])
    renamed = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    measures = [measure @ k for measure in (ir_measures.ERR, ir_measures.nDCG(dcg="exp-log2")) for k in (5, 20)]
    metrics = ir_measures.iter_calc(measures, qrels.rename(columns=renamed), placed.rename(columns=renamed))
    theirs = pd.DataFrame([(m.query_id, str(m.measure), m.value) for m in metrics]).pivot(index=0, columns=1)[2]
    result = peers.scored(placed, qrels, measures)[theirs.columns]
    assert (theirs > 0).all(axis=1).sum() > 1000
    assert peers.largest_difference(result, theirs.sort_index()) <= 0.501e-5


def test_a_recall_that_the_engine_would_round_is_refused():
    """pytrec_eval evaluates at two digits; beside IPrec@0.1, IPrec@0.104 was 0."""
    qrels, run = one_topic([1, 0, 1])
    for recall in (0.104, 1.5, -0.1):
        with pytest.raises(vbterrier.errors.ParameterError, match="recall from 0 to 1 with at most 2 digits"):
            vbterrier.score(
                {"x": run},
                qrels,
                [ir_measures.IPrec @ 0.1, ir_measures.IPrec @ recall],
                inference=Inference(n_resamples=2),
            )


def test_captions_name_the_engine_of_other_packages(peers, adhoc):
    from vbterrier.report.captions import measures_sentence
    from vbterrier.report.paper import table_caption

    scores = vbterrier.score(
        adhoc.run,
        adhoc.qrels,
        ["nDCG@10", "AP", "SetAP"],
        data=Data(on_topics="all"),
        inference=Inference(n_resamples=2),
    )
    assert re.search(
        r"Cutoff at rank 10; SetAP: computed by pytrec_eval-terrier \S+ \(trec_eval 9\)\.",
        " ".join(table_caption(scores)),
    )
    values = pd.concat([scores.values, scores.values.assign(name="other", value=0.5)])
    # Values of a frame may come from another program.
    assert "computed" not in " ".join(table_caption(vbterrier.compare(values)))
    assert measures_sentence("Means", ["ERR@10", "nDCG@10"])[1:] == ["Cutoff at rank 10."]
