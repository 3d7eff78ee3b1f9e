"""Experiment: each argument of pt.Experiment gives what pt.Experiment gives, and the stated differences are those."""

import importlib
import inspect
import pickle
import subprocess
import sys
import time
import timeit
import warnings
from itertools import product
from math import isnan
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, RR, Bpref, IPrec, Judged, NumRet, P, Rprec, SetF, Success, alpha_nDCG, nDCG
from night import at_night

import vbterrier
from vbterrier import BNDCG, ES, VB, Experiment, Unjudged
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.answer import Answer
from vbterrier.measures import RelCov
from vbterrier.settings import Inference

MEASURES = [nDCG @ 10, AP, BNDCG(prior="pool") @ 10, P @ 5, RR, Unjudged @ 10]


@pytest.fixture(scope="module")
def demo():
    return pt.get_dataset("vb:demo")


@pytest.fixture(scope="module")
def topics(demo):
    return demo.get_topics()


@pytest.fixture(scope="module")
def qrels(demo):
    return demo.get_qrels()


@pytest.fixture(scope="module")
def frames(demo):
    return {name: demo.get_results(name) for name in ("lexical", "words", "dense")}


@pytest.fixture(scope="module")
def pipelines(demo, frames, tmp_path_factory):
    """Pipelines with every operator, on an index of PISA where there is one."""
    first = {name: pt.Transformer.from_df(frame) for name, frame in frames.items()}
    if sys.platform == "linux":
        pisa = pytest.importorskip("pyterrier_pisa")
        index = pisa.PisaIndex(str(tmp_path_factory.mktemp("pisa") / "demo"), text_field="text")
        index.index(demo.get_corpus_iter())
        # The engines break ties in different orders.
        distinct = pt.apply.doc_score(lambda row: row["score"] - float(row["docno"].removeprefix("d")) / 10_000)
        first["lexical"] = index.bm25(num_results=15) >> distinct
    lexical, words, dense = first["lexical"], first["words"], first["dense"]
    number = pt.apply.doc_score(lambda row: float(row["docno"].removeprefix("d")))
    return {
        "lexical": lexical,
        "dense": dense,
        "lexical % 5": lexical % 5,
        "lexical + dense": lexical + dense,
        "lexical >> number": lexical >> number,
        "(words | dense) >> number": (words | dense) >> number,
    }


@pytest.fixture(scope="module")
def pair(frames):
    return [frames["lexical"], pt.Transformer.from_df(frames["dense"])]


NAMES = ["lexical", "dense"]


def ran(experiment, *arguments, **options):
    """The result of an experiment, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return experiment(*arguments, **options), [str(one.message) for one in caught]


def both(*arguments, **options):
    """Our result and that of pt.Experiment."""
    return ran(Experiment, *arguments, **options)[0], ran(pt.Experiment, *arguments, **options)[0]


def same(ours, theirs):
    """Tables are equal; pt.Experiment orders measures by the hash seed of the process, and adds topics in any order."""
    assert sorted(ours.columns) == sorted(theirs.columns)
    theirs = theirs[list(ours.columns)]
    if "measure" in ours.columns:
        keys = ["name", "qid", "measure"]
        assert ours[keys[:2]].drop_duplicates().to_numpy().tolist() == (
            theirs[keys[:2]].drop_duplicates().to_numpy().tolist()
        )
        ours, theirs = (table.sort_values(keys, ignore_index=True) for table in (ours, theirs))
    pd.testing.assert_frame_equal(ours, theirs, rtol=1e-15, atol=0)


def parameters(function):
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]


def test_arguments_are_those_of_the_installed_pyterrier():
    assert parameters(Experiment) == parameters(pt.Experiment)
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_jobs'"):
        Experiment([], None, None, [], n_jobs=2)


@pytest.mark.slow
def test_pyterrier_is_not_imported_with_the_package():
    code = "import sys, vbterrier; vbterrier.Experiment; sys.exit('pyterrier' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Values and systems.


def test_pipelines_of_every_operator_have_the_values_of_pyterrier(pipelines, topics, qrels):
    ours, theirs = both(pipelines, topics, qrels, MEASURES, validate="ignore")
    same(ours, theirs)
    assert list(ours.columns) == ["name", *map(str, MEASURES)]
    assert list(ours["name"]) == list(pipelines)
    assert ours["nDCG@10"].nunique() == len(pipelines)


@pytest.mark.parametrize(
    "measures",
    [
        ["map", "ndcg_cut_10", "P_5", "recip_rank"],
        ["official"],
        ["ndcg_cut.5,10", "map", AP],
        [RR @ 10, Bpref, Rprec, IPrec @ 0.1, SetF, Success @ 1, Judged @ 10, NumRet],
        [nDCG(judged_only=True) @ 10, P(rel=2) @ 5, AP(rel=2), RR(rel=2) @ 10],
        [BNDCG(prior="pool", stat="hi") @ 10, BNDCG(prior="run") @ 5, vbterrier.BRBP(prior="pool") @ 10],
        [vbterrier.BAP(prior="pool") @ 10, vbterrier.NDCGBound(side="upper", max_grade=2) @ 10, Unjudged],
    ],
    ids=str,
)
def test_measures_have_the_values_of_pyterrier(measures, pair, topics, qrels):
    ours, theirs = both(pair, topics, qrels, measures, names=NAMES)
    # pt.Experiment averages these counts, and ir_measures, trec_eval and this package sum them.
    counts = [column for column in theirs.columns if column in ("NumRet(rel=1)", "NumRel(rel=1)")]
    same(ours.drop(columns=counts), theirs.drop(columns=counts))
    n_topics = qrels["qid"].nunique()
    assert all((ours[column] == (theirs[column] * n_topics).round()).all() for column in counts)


def test_measures_of_intents_have_the_values_of_pyterrier(frames, topics, demo):
    intents = vbterrier.read_intents(vbterrier.demo.demo_folder() / "intents.tsv")
    systems = {name: frames[name].assign(entity_id=intents["entity_id"].iloc[0]) for name in ("lexical", "dense")}
    ours, theirs = both(systems, topics, intents, [ES @ 10, VB(alpha=0.5) @ 5])
    same(ours, theirs)
    assert (ours["ES@10"] > 0).all()


def test_diversity_measures_have_the_values_of_pyterrier(frames, topics, qrels):
    pytest.importorskip("pyndeval")
    subtopics = qrels.assign(iteration=qrels["docno"].map(lambda docno: str(1 + sum(map(ord, docno)) % 3)))
    ours, theirs = both(frames, topics, subtopics, [alpha_nDCG @ 10, ES @ 10, VB @ 10])
    same(ours, theirs)


def linked_pool():
    """Links of two topics: in the second, no document is relevant, so RelCov has no value there."""
    rows = [("q1", "d1", "Paris", 1), ("q1", "d2", "Texas", 0), ("q2", "d1", "Paris", 0), ("q2", "d2", "Texas", 0)]
    links = pd.DataFrame(rows, columns=["qid", "docno", "entity_id", "label"])
    return links.assign(rank=0, weight=1.0)


def entity_runs():
    both = pd.DataFrame({"qid": ["q1", "q2"], "docno": "Paris", "score": 1.0})
    return {"paris": both, "texas": both.assign(docno="Texas")}


def test_coverage_has_the_values_of_pyterrier():
    links = linked_pool()
    defined = links[links["qid"] == "q1"]
    topics = pd.DataFrame({"qid": ["q1"], "query": ["a"]})
    ours, theirs = both(entity_runs(), topics, defined, [RelCov @ 5, vbterrier.NonRelCov @ 5])
    same(ours, theirs)
    assert ours["RelCov@5"].tolist() == [1.0, 0.0]


def test_topics_without_a_value_are_left_out_of_means_and_counted():
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["a", "b"]})
    arguments = (entity_runs(), topics, linked_pool(), [RelCov @ 5, vbterrier.NonRelCov @ 5])
    with pytest.warns(DegenerateWarning, match=r"undefined .of 2 topics.: .*RelCov@5 of 'paris': 1; .*texas"):
        table = Experiment(*arguments)
    assert table.to_numpy().tolist() == [["paris", 1.0, 0.25], ["texas", 0.0, 0.75]]
    assert table.attrs["n_undefined"] == {"paris": {"RelCov@5": 1}, "texas": {"RelCov@5": 1}}
    perquery = Experiment(*arguments, perquery=True)
    assert isnan(perquery.set_index(["name", "qid", "measure"])["value"]["paris", "q2", "RelCov@5"])
    assert perquery["value"].isna().sum() == 2


def test_tests_use_the_topics_where_both_systems_have_a_value():
    values = {f"q{n}": value for n, value in enumerate([0.1, 0.9, 0.4, 0.8])}
    links = pd.concat([linked_pool()[lambda rows: rows["qid"] == "q1"].assign(qid=qid) for qid in values])
    links.loc[(links["qid"] == "q3"), "label"] = 0
    runs = {
        "a": pd.DataFrame({"qid": [*values], "docno": ["Paris", "Texas", "Paris", "Paris"], "score": 1.0}),
        "b": pd.DataFrame({"qid": [*values], "docno": ["Texas", "Texas", "Paris", "Texas"], "score": 1.0}),
    }
    topics = pd.DataFrame({"qid": [*values], "query": "a"})
    seen = []

    def test(a, b):
        seen.append((a.tolist(), b.tolist()))
        return 0.0, 0.25

    with pytest.warns(DegenerateWarning, match="undefined"):
        table = Experiment(runs, topics, links, [RelCov @ 5], baseline="a", test=test)
    assert seen == [([0.0, 0.0, 1.0], [1.0, 0.0, 1.0])]
    assert table.iloc[1, 2:].tolist() == [0, 1, 0.25]


def test_text_is_accepted_for_measures(pair, topics, qrels):
    texts = ["nDCG@10", "BNDCG(prior='pool')@10", "map", "AP(rel=2)", "Unjudged@10", "P"]
    ours = Experiment(pair, topics, qrels, texts, names=NAMES)
    family = [f"P@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)]
    assert list(ours.columns) == ["name", *texts[:-1], *family]
    objects = [nDCG @ 10, BNDCG(prior="pool") @ 10, "map", AP(rel=2), Unjudged @ 10, "P"]
    same(ours, ran(pt.Experiment, pair, topics, qrels, objects, names=NAMES)[0].rename(columns={"AP": "map"}))
    same(Experiment(pair, topics, qrels, "nDCG@10", names=NAMES), ours[["name", "nDCG@10"]])


def test_files_frames_and_pipelines_are_systems_of_one_call(frames, pipelines, topics, qrels, tmp_path):
    path = tmp_path / "words.run.gz"
    # Files of runs have scores without ties.
    words = frames["words"].assign(score=-frames["words"]["rank"].astype(float))
    vbterrier.frames.write_run(words, path)
    systems = [pipelines["lexical % 5"], frames["dense"], path, str(path)]
    ours = Experiment(systems, topics, qrels, MEASURES, names=["a", "b", "c", "d"], validate="ignore")
    frames_alone = [pipelines["lexical % 5"](topics), frames["dense"], words, words]
    same(ours, ran(pt.Experiment, frames_alone, topics, qrels, MEASURES, names=["a", "b", "c", "d"])[0])
    assert Experiment([path], topics, qrels, ["map"])["name"].tolist() == ["words"]


class Counting(pt.Transformer):
    """A pipeline that counts its calls, and the topics of each."""

    def __init__(self, frame, pause=0.0, clock=None):
        self.frame, self.calls, self.pause, self.clock = frame, [], pause, clock

    def transform(self, inp):
        self.calls.append(inp["qid"].nunique())
        if self.clock:
            self.clock.now += self.pause
        return self.frame[self.frame["qid"].isin(inp["qid"])].reset_index(drop=True)


def test_every_system_is_run_once_and_before_anything_is_scored(frames, topics, qrels, monkeypatch):
    systems = {name: Counting(frame) for name, frame in frames.items()}
    module = sys.modules["vbterrier.evaluate.experiment"]
    score, seen = module.score, []

    def scored(runs, *arguments, **options):
        seen.append((list(runs), [system.calls for system in systems.values()]))
        return score(runs, *arguments, **options)

    monkeypatch.setattr(module, "score", scored)
    Experiment(systems, topics, qrels, MEASURES, perquery="both", validate="ignore")
    assert seen == [(list(frames), [[12]] * 3)]


# Topics and batches.


@pytest.fixture(scope="module")
def in_one_batch(pipelines, topics, qrels):
    return Experiment(pipelines, topics, qrels, MEASURES, validate="ignore")


@pytest.mark.parametrize(
    ("batch_size", "plan"),
    [(1, "tree"), (5, "linear"), (5, "tree"), (100, "linear"), at_night(1, "linear"), at_night(100, "tree")],
)
@pytest.mark.slow
def test_batches_have_no_effect_on_values(batch_size, plan, pipelines, topics, qrels, in_one_batch):
    arguments = (pipelines, topics, qrels, MEASURES)
    ours = Experiment(*arguments, batch_size=batch_size, plan=plan, validate="ignore")
    same(ours, in_one_batch)
    if batch_size == 5:
        # Evaluated by the batch in pt.Experiment, where these measures have the same values.
        same(ours, ran(pt.Experiment, *arguments, batch_size=5, plan=plan, verbose=False, validate="ignore")[0])


def test_pipelines_get_batches_of_whole_topics_in_their_order(frames, topics, qrels):
    system = Counting(frames["lexical"])
    Experiment([system], topics, qrels, ["map"], batch_size=5, validate="ignore")
    assert system.calls == [5, 5, 2]
    reranker = Counting(frames["lexical"])
    retrieved = frames["dense"].merge(topics, on="qid").sample(frac=1.0, random_state=0)
    same(*both([reranker], retrieved, qrels, ["map"], batch_size=5, names=["a"], validate="ignore"))
    assert reranker.calls == [5, 5, 2] * 2


def test_a_batch_without_results_is_no_error_if_others_have_some(frames, topics, qrels):
    some = frames["lexical"][frames["lexical"]["qid"] != topics["qid"].iloc[0]]
    arguments = ([pt.Transformer.from_df(some)], topics, qrels, ["map"])
    same(Experiment(*arguments, names=["a"], batch_size=1), Experiment(*arguments, names=["a"]))
    with pytest.raises(ValueError, match="no results received in batch"):
        pt.Experiment(*arguments, names=["a"], batch_size=1)


FILTERS = [
    dict(filter_by_qrels=by_qrels, filter_by_topics=by_topics, perquery=perquery)
    for by_qrels in (False, True)
    for by_topics in (False, True)
    for perquery in (False, True)
]


@pytest.mark.parametrize("options", FILTERS, ids=str)
@pytest.mark.parametrize("kind", ["frames", "pipelines"])
def test_topics_of_one_side_are_treated_as_in_pyterrier(options, kind, frames, topics, qrels):
    # Two topics without judgments, three judged topics that are not asked for, one without results in a system.
    queries, judged = topics.iloc[3:], qrels[~qrels["qid"].isin(topics["qid"].iloc[[4, 8]])]
    runs = {**frames, "words": frames["words"][frames["words"]["qid"] != topics["qid"].iloc[6]]}
    systems = runs if kind == "frames" else {name: pt.Transformer.from_df(run) for name, run in runs.items()}
    arguments = (systems, queries, judged, MEASURES)
    (ours, our_warnings), (theirs, their_warnings) = (
        ran(call, *arguments, **options) for call in (Experiment, pt.Experiment)
    )
    same(ours, theirs)
    backfilled = [text for text in their_warnings if "not found in qrels" in text]
    counted = [text for text in our_warnings if "2 topics are not in qrels and are left out of means" in text]
    assert len(counted) == (not options["filter_by_qrels"])
    assert bool(backfilled) == any("their values are NaN" in text for text in counted)
    assert bool(backfilled) == (options["perquery"] and not options["filter_by_qrels"])


def test_means_beside_values_of_topics_leave_out_topics_that_are_not_judged(frames, topics, qrels):
    judged = qrels[~qrels["qid"].isin(topics["qid"].iloc[[4, 8]])]
    message = r"topics: 2 topics are not in qrels and are left out of means \(.*\); their values are NaN$"
    with pytest.warns(DegenerateWarning, match=message):
        averages, perquery = Experiment(frames, topics, judged, MEASURES, perquery="both")
    same(averages, ran(pt.Experiment, frames, topics, judged, MEASURES)[0])
    # pt.Experiment warns that these NaN "should not contribute to averages", and averages them.
    theirs = ran(pt.Experiment, frames, topics, judged, MEASURES, perquery="both")[0]
    same(perquery, theirs.perquery)
    assert theirs.averages["AP"].isna().all()


@pytest.mark.parametrize("options", [{}, {"filter_by_topics": False, "filter_by_qrels": True}], ids=str)
def test_topics_and_qrels_without_a_common_topic_are_refused(options, frames, topics, qrels):
    others = topics.assign(qid="x" + topics["qid"])
    with pytest.raises(ValueError, match="no overlap"):
        pt.Experiment(frames, others, qrels, ["map"], **options)
    with pytest.raises(InputError, match=r"no topic in common: topics have 'xq01', .* qrels have 'q01'"):
        Experiment(frames, others, qrels, ["map"], **options)


def test_whole_numbers_as_ids_of_results_meet_ids_that_are_text(topics, qrels, frames):
    def numbered(frame):
        return frame.assign(qid=frame["qid"].str.removeprefix("q").astype(int))

    run, judged, queries = (numbered(frame) for frame in (frames["lexical"], qrels, topics))
    texts = [frame.assign(qid=frame["qid"].astype(str)) for frame in (queries, judged)]
    # pt.Experiment changes the frames of systems.
    same(*both({"a": run.copy()}, *texts, MEASURES))
    table = Experiment({"a": run}, queries, judged, MEASURES)
    same(table, Experiment({"a": frames["lexical"]}, topics, qrels, MEASURES))
    with pytest.raises(InputError, match=r"topics column 'qid' holds integers, qrels column 'qid' holds text"):
        Experiment({"a": run}, queries, texts[1], ["map"])


def test_paths_of_topics_and_qrels(frames, topics, qrels, tmp_path):
    vbterrier.frames.write_qrels(qrels, tmp_path / "qrels.txt")
    (tmp_path / "topics.tsv").write_text(topics.to_csv(sep="\t", index=False, header=False))
    sgml = "".join(f"<top>\n<num> Number: {qid}\n<title> {query}\n</top>\n" for qid, query in topics.to_numpy())
    (tmp_path / "topics.sgml").write_text(sgml)
    xml = "".join(
        f'<topic number="{qid}"><query>{query.replace("&", "and")}</query></topic>' for qid, query in topics.to_numpy()
    )
    (tmp_path / "topics.xml").write_text(f"<topics>{xml}</topics>")
    expected = Experiment(frames, topics, qrels, MEASURES)
    for name in ("topics.tsv", "topics.sgml", "topics.xml"):
        system = Counting(frames["lexical"])
        table = Experiment(
            {**frames, "lexical": system}, str(tmp_path / name), tmp_path / "qrels.txt", MEASURES, validate="ignore"
        )
        same(table, expected)
        assert system.calls == [12]
    theirs = ran(pt.Experiment, frames, str(tmp_path / "topics.sgml"), str(tmp_path / "qrels.txt"), MEASURES)[0]
    same(expected, theirs)


# Tables.


def difference(a, b):
    return 0, abs(a.mean() - b.mean())


CORRECTIONS = [None, "bonferroni", "holm", "hs", "fdr_bh"]


@pytest.mark.parametrize(
    ("test", "correction"), [*product(["t"], CORRECTIONS), ("wilcoxon", None), (difference, "bonferroni")]
)
def test_tests_with_a_baseline(test, correction, frames, topics, qrels):
    options = dict(baseline=1, test=test, correction=correction, correction_alpha=0.2)
    # Corrections are by measure, and statsmodels collects garbage in each. Unjudged has undefined p-values.
    measures = MEASURES if correction is None and test == "t" else [MEASURES[0], MEASURES[-1]]
    # Exact p-values of ties go through all 4,096 signs of 12 topics.
    measures = MEASURES[:1] if test == "wilcoxon" else measures
    ours, theirs = both(frames, topics, qrels, [*measures, "mrt"], **options)
    names = list(map(str, measures))
    parts = [" +", " -", " p-value", *([" reject", " p-value corrected"] if correction else [])]
    assert list(ours.columns) == ["name", *names, "mrt", *(name + part for name in names for part in parts)]
    # Where the values of two systems are equal, p is NaN, and statsmodels rejects it or not by chance.
    undefined = [name for name in names if ours[f"{name} p-value"].drop(index=1).isna().any()]
    assert undefined == (["Unjudged@10"] if test == "t" else [])
    odd = ["mrt", *(name + part for name in undefined for part in parts[3:])]
    same(ours.drop(columns=odd), theirs.drop(columns=odd))


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "hs", "fdr_bh"])
def test_undefined_p_values_count_as_tests_and_are_not_rejected(correction, frames, topics, qrels):
    systems = {"a": frames["lexical"], "b": frames["dense"], "c": frames["lexical"]}
    ours, theirs = both(systems, topics, qrels, ["map"], baseline="a", correction=correction, correction_alpha=0.5)
    corrected, p_value = ours["map p-value corrected"], ours["map p-value"]
    assert np.isnan([corrected[2], p_value[2]]).all()
    assert ours["map reject"].tolist() == [False, True, False]
    # Of two tests.
    assert corrected[1] == pytest.approx(1 - (1 - p_value[1]) ** 2 if correction == "hs" else 2 * p_value[1])
    if correction == "bonferroni":
        assert corrected[1] == theirs["map p-value corrected"][1]


def test_a_baseline_by_name(frames, topics, qrels):
    same(*both(frames, topics, qrels, ["map"], baseline="words"))
    by_place = Experiment(list(frames.values()), topics, qrels, ["map"], names=list(frames), baseline=1)
    same(by_place, Experiment(list(frames.values()), topics, qrels, ["map"], names=list(frames), baseline="words"))
    for wrong in ("word", 3, -1):
        with pytest.raises(ParameterError, match="baseline="):
            Experiment(frames, topics, qrels, ["map"], baseline=wrong)
        with pytest.raises((ValueError, AssertionError)):
            pt.Experiment(frames, topics, qrels, ["map"], baseline=wrong)


@pytest.mark.parametrize("places", [0, 2, 4, {"AP": 1, "nDCG@10": 3, "mrt": 0}], ids=str)
def test_rounded_tables_are_those_of_pyterrier(places, frames, topics, qrels):
    ours, theirs = both(frames, topics, qrels, [*MEASURES, "mrt"], round=places, baseline=0)
    same(ours, theirs)
    if not isinstance(places, dict):
        same(*both(frames, topics, qrels, MEASURES, round=places, perquery=True))
        for one, other in zip(*both(frames, topics, qrels, MEASURES, round=places, perquery="both"), strict=True):
            same(one, other)


@pytest.mark.parametrize("highlight", ["bold", "color", "colour"])
@pytest.mark.parametrize("baseline", [None, 0, 2])
def test_highlighted_tables_are_those_of_pyterrier(highlight, baseline, pair, frames, topics, qrels):
    systems = [*pair, frames["lexical"]]
    options = dict(names=["a", "b", "c"], highlight=highlight, baseline=baseline)
    ours, theirs = both(systems, topics, qrels, ["map", "mrt"], **options)
    for styler in (ours, theirs):
        styler.set_uuid("table")
        styler.data["mrt"] = 0.5
    assert ours.to_html() == theirs.to_html()
    assert ("bold" if highlight == "bold" else "lightgreen") in ours.to_html()


def test_highlighting_marks_the_shortest_time(frames, topics, qrels, clock):
    systems = [Counting(frames["lexical"], pause, clock) for pause in (2, 1)]
    table = Experiment(systems, topics, qrels, ["map", "mrt"], names=["a", "b"], highlight="bold", validate="ignore")
    table._compute()
    assert table.ctx[1, 2] == [("font-weight", "bold")]
    assert not table.ctx.get((0, 2))


def test_values_per_query_are_those_of_pyterrier(pipelines, topics, qrels):
    arguments = (pipelines, topics, qrels, MEASURES)
    ours, theirs = both(*arguments, perquery=True, validate="ignore")
    same(ours, theirs)
    assert list(ours["measure"][:6]) == list(map(str, MEASURES))
    pair, pair_theirs = both(*arguments, perquery="both", validate="ignore")
    assert pair._fields == pair_theirs._fields == ("averages", "perquery")
    same(pair.averages, pair_theirs.averages)
    same(pair.perquery, ours)
    assert pair._repr_html_().count("<table") == 2
    # It is a V frame.
    of_two = ours[ours["name"].isin(["lexical", "dense"])]
    assert vbterrier.compare(of_two, measures="AP", inference=Inference(n_resamples=10)).pairs["n_qids"].tolist() == [
        12
    ]


@pytest.mark.parametrize("perquery", [False, True, "both"])
def test_results_as_dictionaries_are_those_of_pyterrier(perquery, pair, topics, qrels):
    options = dict(names=NAMES, perquery=perquery, dataframe=False, round=1)
    ours, theirs = both(pair, topics, qrels, MEASURES, **options)
    assert ours == theirs
    parts = ours if perquery == "both" else (ours,)
    assert {
        type(value) for part in parts for values_of_topics in part.values() for value in values_of_topics.values()
    } <= {float, dict}


def test_the_mean_response_time_of_dictionaries(pair, topics, qrels):
    table = Experiment(pair, topics, qrels, ["mrt", "map"], names=NAMES, dataframe=False)
    assert table["lexical"]["mrt"] == 0.0
    assert table["dense"]["mrt"] > 0.0
    assert list(table["dense"]) == ["map", "mrt"]


@pytest.fixture
def clock(monkeypatch):
    """A clock that only pipelines move: ours, and those of pt.Experiment."""
    made = SimpleNamespace(now=0.0)
    tree = importlib.import_module("pyterrier._evaluation._exec_tree")
    for module, name in ((time, "perf_counter"), (timeit, "default_timer"), (tree, "timer")):
        monkeypatch.setattr(module, name, lambda: made.now)
    return made


@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"plan": "tree"}, {"precompute_prefix": True}], ids=str)
@pytest.mark.filterwarnings("ignore:precompute_prefix")
def test_mean_response_times_are_those_of_pyterrier(options, frames, topics, qrels, clock):
    first, second = (Counting(frames["lexical"], pause, clock) for pause in (60, 30))
    systems = {"a": first, "b": first >> second, "c": frames["dense"]}
    if "precompute_prefix" in options:
        del systems["c"]
    arguments = (systems, topics.iloc[2:], qrels, ["map", "mrt"])
    ours, theirs = both(*arguments, verbose=False, validate="ignore", **options)
    same(ours, theirs)
    # Ten topics, in four batches or at once; pt.Experiment adds the whole time of a prefix.
    n_batches, of_prefix = (4 if "batch_size" in options else 1), (1 if "precompute_prefix" in options else 10)
    expected = [1000 * n_batches * 60 / of_prefix, 1000 * n_batches * (60 / of_prefix + 30 / 10), 0.0]
    assert ours["mrt"].tolist() == pytest.approx(expected[: len(systems)])
    perquery = Experiment(*arguments, perquery="both", validate="ignore", **options)
    assert list(perquery.averages.columns) == ["name", "map"]


# Plans.


def test_a_tree_runs_equal_first_stages_once(frames, topics, qrels):
    first, second, third = (Counting(frames["lexical"]) for _ in range(3))
    systems = {"a": first, "b": first >> second, "c": first >> second >> third, "d": first, "e": frames["dense"]}
    arguments = (systems, topics, qrels, MEASURES)
    ours = Experiment(*arguments, plan="tree", batch_size=6, validate="ignore")
    assert [len(stage.calls) for stage in (first, second, third)] == [2, 2, 2]
    same(ours, Experiment(*arguments, validate="ignore"))
    assert [len(stage.calls) for stage in (first, second, third)] == [2 + 4, 2 + 2, 2 + 1]
    del systems["d"]
    theirs = ran(pt.Experiment, *arguments, plan="tree", verbose=False, validate="ignore")[0]
    same(ours.drop(index=3).reset_index(drop=True), theirs)


def test_a_prefix_of_all_systems_is_run_once(frames, topics, qrels):
    first, second = (Counting(frames["lexical"]) for _ in range(2))
    systems = {"a": first, "b": first >> second, "c": (first >> second) % 3}
    ours = Experiment(systems, topics, qrels, MEASURES, precompute_prefix=True, validate="ignore")
    assert [len(first.calls), len(second.calls)] == [1, 2]
    same(ours, ran(pt.Experiment, systems, topics, qrels, MEASURES, precompute_prefix=True, validate="ignore")[0])
    with pytest.warns(DegenerateWarning, match="precompute_prefix: the 2 systems have no first stage in common"):
        Experiment(
            {"a": first, "b": frames["dense"]}, topics, qrels, ["map"], precompute_prefix=True, validate="ignore"
        )


def test_progress_is_shown_where_it_is_asked_for(pair, topics, qrels, capsys):
    for verbose in ("auto", False):
        Experiment(pair, topics, qrels, ["map"], names=NAMES, verbose=verbose)
        assert capsys.readouterr().err == ""
    Experiment(pair, topics, qrels, ["map"], names=NAMES, verbose=True)
    assert "vbterrier.Experiment: 100%" in capsys.readouterr().err


# Validation.


class Unknown(pt.Transformer):
    def transform(self, inp):
        if not len(inp):
            raise RuntimeError("no topics")
        return pd.DataFrame({"qid": inp["qid"], "docno": "d001", "score": 1.0})


def test_pipelines_that_do_not_fit_are_reported_as_in_pyterrier(pair, topics, qrels):
    no_score = pair[1] >> pt.apply.generic(
        lambda frame: frame.drop(columns=["score", "rank"]), required_columns=["score"]
    )
    wrong = pair[1] >> pt.apply.generic(lambda frame: frame, required_columns=["text"])
    for systems, policy, is_error in (
        ({"a": wrong}, "error", True),
        ({"a": pair[0].drop(columns="score")}, "error", True),
        ({"a": Unknown()}, "error", False),
    ):
        for experiment in (Experiment, pt.Experiment):
            if is_error:
                with pytest.raises(ValueError, match=r"'a'|#0"):
                    experiment(systems, topics, qrels, ["map"], validate=policy)
            else:
                experiment(systems, topics, qrels, ["map"], validate=policy)
    with pytest.warns(
        DegenerateWarning, match="systems whose columns PyTerrier cannot find out: 'a'.*validate='ignore'"
    ):
        Experiment({"a": Unknown()}, topics, qrels, ["map"])
    with pytest.warns(DegenerateWarning, match="may not be evaluated: 'a'"), pytest.raises(InputError, match="score"):
        Experiment({"a": no_score}, topics, qrels, ["map"])
    # Plain pipelines and frames give no warning.
    Experiment({"a": pair[0], "b": pair[1]}, topics, qrels, ["map"])


# Files.


def saved(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("batch_size", [None, 5])
def test_results_and_tables_are_saved_as_in_pyterrier(batch_size, frames, topics, qrels, tmp_path):
    systems = {
        "a": pt.Transformer.from_df(frames["lexical"]),
        "b b": pt.Transformer.from_df(frames["dense"]),
        "c": frames["words"],
    }
    folders = [tmp_path / name for name in ("ours", "theirs")]
    results = []
    for folder, experiment in zip(folders, (Experiment, pt.Experiment), strict=True):
        folder.mkdir()
        results.append(
            ran(experiment, systems, topics, qrels, MEASURES, save_dir=str(folder), batch_size=batch_size, round=3)[0]
        )
    assert (
        sorted(saved(folders[0]))
        == sorted(saved(folders[1]))
        == ["a.res.gz", "aggregated.csv", "b b.res.gz", "perquery.csv"]
    )
    for name in ("a", "b b"):
        ours, theirs = (pt.io.read_results(str(folder / f"{name}.res.gz")) for folder in folders)
        pd.testing.assert_frame_equal(ours, theirs)
    for name in ("aggregated.csv", "perquery.csv"):
        same(*(pd.read_csv(folder / name) for folder in folders))


def test_saved_results_are_reused_replaced_or_refused(frames, topics, qrels, tmp_path):
    system, other = Counting(frames["lexical"]), Counting(frames["dense"])
    options = dict(save_dir=tmp_path, validate="ignore")
    first = Experiment({"a": system}, topics, qrels, MEASURES, **options)
    reused = Experiment({"a": other}, topics, qrels, MEASURES, **options, save_mode="reuse")
    assert other.calls == []
    same(first, reused)
    for experiment in (Experiment, pt.Experiment):
        with pytest.raises(ValueError, match="exists"):
            experiment(
                {"a": other}, topics, qrels, MEASURES, save_dir=str(tmp_path), save_mode="error", validate="ignore"
            )
    assert other.calls == []
    with pytest.warns(DegenerateWarning, match="exists already: ask for save_mode='reuse'"):
        replaced = Experiment({"a": other}, topics, qrels, MEASURES, **options)
    again = Experiment({"a": system}, topics, qrels, MEASURES, **options, save_mode="reuse")
    same(again, replaced)
    Experiment({"a": system}, topics, qrels, MEASURES, **options, save_mode="overwrite", batch_size=3)
    same(Experiment({"a": other}, topics, qrels, MEASURES, **options, save_mode="reuse"), first)
    with pytest.raises(ParameterError, match="save_mode='append'"):
        Experiment({"a": other}, topics, qrels, MEASURES, **options, save_mode="append")


def test_results_that_trec_files_lose_are_saved_in_other_formats(frames, topics, qrels, tmp_path):
    intents = vbterrier.read_intents(vbterrier.demo.demo_folder() / "intents.tsv")
    tagged = frames["lexical"].assign(entity_id=[["x", intents["entity_id"].iloc[0]]] * len(frames["lexical"]))
    arguments = ({"a": pt.Transformer.from_df(tagged)}, topics, intents, [ES @ 10])
    for file_format in (pickle, (pd.read_pickle, pd.DataFrame.to_pickle)):
        options = dict(save_dir=str(tmp_path), save_format=file_format, save_mode="reuse", validate="ignore")
        ours = Experiment(*arguments, **options)
        same(Experiment({"a": Counting(tagged[:0])}, *arguments[1:], **options), ours)
        same(ours, ran(pt.Experiment, *arguments, **options)[0])
    assert sorted(path.name for path in tmp_path.glob("a.*")) == ["a.custom", "a.mod"]
    with pytest.raises(ParameterError, match=r"save_format='trek'.*Did you mean trec"):
        Experiment(*arguments, save_dir=tmp_path, save_format="trek", validate="ignore")
    unranked = pt.Transformer.from_df(frames["lexical"]) >> pt.apply.generic(lambda frame: frame.drop(columns="rank"))
    with pytest.raises(InputError, match="without the column 'rank'"):
        Experiment({"b": unranked}, topics, qrels, ["map"], save_dir=tmp_path, validate="ignore")
    assert not (tmp_path / "b.res.gz").exists()


def test_tables_of_a_folder_keep_the_rows_of_other_systems(frames, topics, qrels, tmp_path):
    results = []
    for experiment in (Experiment, pt.Experiment):
        folder = tmp_path / experiment.__module__.partition(".")[0]
        folder.mkdir()
        for name in ("NA", "007", "NA"):
            ran(experiment, {name: frames["lexical"]}, topics, qrels, ["map"], save_dir=str(folder))
        results.append(folder)
    ours = pd.read_csv(results[0] / "aggregated.csv", dtype=str, keep_default_na=False)
    # pt.Experiment reads 007 as 7 and NA as missing, and repeats their rows.
    assert ours["name"].tolist() == ["NA", "007"]
    assert pd.read_csv(results[0] / "perquery.csv", dtype=str, keep_default_na=False)[
        "name"
    ].value_counts().to_dict() == {
        "NA": 12,
        "007": 12,
    }
    with pytest.warns(DegenerateWarning, match="its columns and those of this experiment differ"):
        Experiment({"b": frames["dense"]}, topics, qrels, ["P_5"], save_dir=results[0])


# Systems that cannot be evaluated.


def test_pipelines_without_results_are_refused(frames, topics, qrels):
    empty = pt.Transformer.from_df(frames["lexical"][:0])
    for options in ({}, {"batch_size": 2}, {"plan": "tree"}):
        with pytest.raises(InputError, match="run 'a': the pipeline returned no results for 12 topics"):
            Experiment({"a": empty}, topics, qrels, ["map"], **options)
        with pytest.raises(ValueError, match="no results"):
            pt.Experiment({"a": empty}, topics, qrels, ["map"], verbose=False, **options)


def test_ties_have_the_order_of_trec_eval_in_all_measures(topics, qrels):
    tied = qrels.assign(score=1.0)[["qid", "docno", "score"]]
    with pytest.warns(DegenerateWarning, match="tied"):
        ours = Experiment({"a": tied}, topics, qrels, [RR, RR @ 1000, "map"])
    theirs = ran(pt.Experiment, {"a": tied}, topics, qrels, [RR, RR @ 1000, "map"])[0]
    assert ours["RR"][0] == ours["RR@1000"][0] == theirs["RR"][0]
    # The engine of RR@k breaks ties in ascending order of docno.
    assert theirs["RR@1000"][0] != theirs["RR"][0]


def test_equal_names_keep_their_rows_and_are_refused_where_they_identify_systems(frames, topics, qrels, tmp_path):
    systems = [frames["lexical"], frames["dense"], frames["words"]]
    ours, theirs = both(systems, topics, qrels, ["map"], names=["a", "b", "a"], baseline=2)
    same(ours, theirs)
    assert Experiment(systems, topics, qrels, ["map"], names=["a", "b", "a"], perquery=True, dataframe=False)[2]
    for options in ({"perquery": True}, {"perquery": "both"}, {"dataframe": False}, {"save_dir": tmp_path}):
        with pytest.raises(
            InputError, match=f"names: 2 systems are called 'a', and {next(iter(options))}.*give names="
        ):
            Experiment(systems, topics, qrels, ["map"], names=["a", "b", "a"], **options)
    with pytest.raises(ParameterError, match="2 systems have this name"):
        Experiment(systems, topics, qrels, ["map"], names=["a", "b", "a"], baseline="a")


def test_frames_without_a_name_are_called_by_their_text_as_in_pyterrier(frames, topics, qrels):
    same(*both(list(frames.values()), topics, qrels, ["map"]))


def test_inputs_are_not_changed(frames, pair, topics, qrels):
    inputs = [frames["lexical"].astype({"score": "float32"}), topics, qrels]
    copies = [frame.copy() for frame in inputs]
    Experiment([inputs[0], pair[1]], topics, qrels, MEASURES, names=NAMES, perquery="both", filter_by_qrels=True)
    for frame, copy in zip(inputs, copies, strict=True):
        pd.testing.assert_frame_equal(frame, copy)


# Measures that fit a model to all runs.


def test_estimates_use_all_runs_of_the_experiment(frames, topics, qrels, tmp_path):
    systems = {**frames, "dense": pt.Transformer.from_df(frames["dense"])}
    expected = vbterrier.score(frames, qrels, ["ENDCG@10", "nDCG@10"], inference=Inference(n_resamples=2))
    digest = expected.model.digest
    options = dict(validate="ignore", save_dir=tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        averages, perquery = Experiment(systems, topics, qrels, ["ENDCG@10", "nDCG@10"], perquery="both", **options)
    pd.testing.assert_frame_equal(averages.set_index("name"), expected.means(), check_names=False, check_exact=True)
    keys = ["name", "qid", "measure"]
    ours, theirs = (table.sort_values(keys, ignore_index=True) for table in (perquery, expected.values))
    pd.testing.assert_frame_equal(ours, theirs[list(ours.columns)], check_exact=True)
    assert set(perquery.loc[perquery["measure"] == "ENDCG@10", "model"]) == {digest}
    assert averages.attrs["notes"] == list(expected.notes)
    assert digest in averages.attrs["notes"][0]
    # The note about the fully judged system is a warning, too.
    assert len(expected.notes) == 2
    messages = {str(one.message) for one in caught}
    assert set(expected.notes) & messages == set(expected.notes[1:])
    # The caption and the files name the model, and batches do not change it.
    options |= {"save_mode": "overwrite", "batch_size": 5}
    styled = ran(Experiment, systems, topics, qrels, ["ENDCG@10"], highlight="bold", **options)[0]
    assert digest in styled.caption
    saved_means = pd.read_csv(tmp_path / "aggregated.csv")
    assert saved_means.set_index("name")["model"].to_dict() == dict.fromkeys(systems, digest)
    assert saved_means["ENDCG@10"].tolist() == pytest.approx(averages["ENDCG@10"].tolist(), rel=1e-15)
    # Values by another model are not comparable with those of the folder.
    others = {"a": frames["lexical"], "b": frames["dense"]}
    with pytest.raises(InputError, match=f"has values by the models '{digest}'.* not comparable: use another save_dir"):
        ran(Experiment, others, topics, qrels, ["ENDCG@10"], save_dir=tmp_path)


def test_an_estimate_by_a_named_model(frames, topics, qrels):
    model = vbterrier.unjudged.fit(frames, qrels, cutoff=10).register("experiment")
    together = ran(Experiment, frames, topics, qrels, ["ENDCG@10"])[0]
    alone = Experiment({"words": frames["words"]}, topics, qrels, ["ENDCG(model='experiment')@10"])
    assert alone.iloc[0, 1] == together.set_index("name").loc["words", "ENDCG@10"]
    assert model.digest in alone.attrs["notes"][0]
    assert list(alone.columns) == ["name", "ENDCG(model='experiment')@10"]


@pytest.mark.parametrize("correction", ["holm", "bonferroni"])
@pytest.mark.slow
def test_condensed_lists_and_their_replacement_are_tested_alike_in_both_experiments(frames, topics, qrels, correction):
    names = ["words", "lexical", "dense"]
    systems = [frames[name] for name in names]
    measures = [nDCG @ 10, nDCG(judged_only=True) @ 10, BNDCG @ 10]
    options = {"names": names, "baseline": 0, "correction": correction}
    ours, theirs = both(systems, topics, qrels, measures, **options)
    text = Experiment(systems, topics, qrels, list(map(str, measures)), **options)
    assert ours["name"].tolist() == theirs["name"].tolist() == names
    pd.testing.assert_frame_equal(text, ours)
    for measure in map(str, measures):
        columns = [f"{measure}{column}" for column in ("", " +", " -", " p-value", " reject", " p-value corrected")]
        expected = theirs[columns].astype(float)
        pd.testing.assert_frame_equal(ours[columns].astype(float), expected, rtol=1e-9)
        # A p-value for each system but the baseline.
        assert expected[f"{measure} p-value corrected"].notna().tolist() == [False, True, True]
    values = ours.set_index("name")
    # A third of the documents of dense is not judged: nDCG is too low, the condensed list too high.
    assert values.loc["dense", "nDCG@10"] < values.loc["dense", "BNDCG@10"] < values.loc["dense", str(measures[1])]
    assert values.loc["lexical", "nDCG@10"] == pytest.approx(values.loc["lexical", "BNDCG@10"], abs=1e-9)


# The answer of a table.

TWO = pd.DataFrame({"qid": ["1", "1", "2", "2", "3", "3"], "docno": ["a", "b"] * 3})
JUDGED, ASKED = TWO.assign(label=[1, 0] * 3), pd.DataFrame({"qid": ["1", "2", "3"], "query": "words"})
GOOD, BAD, HALF = (
    TWO.assign(score=scores).loc[rows]
    for scores, rows in (([2.0, 1.0] * 3, slice(None)), ([1.0, 2.0] * 3, slice(None)), ([2.0, 1.0] * 3, [0, 1, 2, 3]))
)


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_tables_have_the_answer_of_their_means_and_stay_data_frames():
    runs, topics, qrels = {"bad": BAD, "good": GOOD}, ASKED, JUDGED
    table = Experiment(runs, topics, qrels, ["P@1"])
    answer = table.answer()
    # The intervals are those of score.
    assert answer.verdict == vbterrier.score(runs, qrels, ["P@1"]).answer().verdict
    assert answer.verdict.startswith("By P@1, good scores 1.000 (")
    assert " and bad 0.000 (0.000 to 0.708) over 3 topics." in answer.verdict
    assert answer.made_by == "vbterrier.Experiment(retr_systems, topics, qrels, ['P@1'])"
    assert answer.next == (
        "vbterrier.compare(vbterrier.Experiment(retr_systems, topics, qrels, ['P@1'], perquery=True))"
    )
    compared = eval(answer.next, {"vbterrier": vbterrier, "retr_systems": runs, "topics": topics, "qrels": qrels})
    assert compared.pairs["n_qids"].tolist() == [3]
    assert isinstance(table, pd.DataFrame)
    copied = table.round(2)
    assert type(copied) is pd.DataFrame
    assert Answer.of(copied.attrs["answer"]) == answer
    assert pickle.loads(pickle.dumps(table)).answer() == answer
    page = table._repr_html_()
    assert page.index("good scores 1.000") < page.index("<table")
    both = Experiment(runs, topics, qrels, ["P@1"], perquery="both")
    styled = Experiment(runs, topics, qrels, ["P@1"], perquery="both", highlight="bold")
    for pair in (both, styled):
        assert (pair._repr_html_().count("good scores 1.000"), pair._repr_html_().count("<table")) == (1, 2)
    with pd.option_context("display.notebook_repr_html", False):
        assert table._repr_html_() is both._repr_html_() is None
    assert both.averages.answer().verdict == both.perquery.answer().verdict == answer.verdict
    assert Experiment({"good": GOOD}, topics, qrels, ["P@1"]).answer().next == ""


@pytest.mark.parametrize(
    ("runs", "options", "verdict", "caveats"),
    [
        ([GOOD, BAD], {}, "system 1 differs significantly from system 0 by P@1: -1.000 (p = 0).", []),
        (
            {"good": GOOD, "bad": BAD, "same": GOOD},
            {},
            "1 of 2 systems differs significantly from good by P@1 at the level 0.05; that of bad: -1.000 (p = 0).",
            ["2 p-values are not corrected for their number; correction='holm' does so."],
        ),
        (
            {"good": GOOD, "same": GOOD, "too": GOOD},
            {"correction": "holm"},
            (
                "0 of 2 systems differ significantly from good by P@1 at the level 0.05; the largest difference is "
                "that of same: +0.000 (p is undefined, holm)."
            ),
            [],
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_verdict_of_a_table_with_a_baseline_is_that_of_its_tests(runs, options, verdict, caveats):
    answer = Experiment(runs, ASKED, JUDGED, ["P@1"], baseline=0, **options).answer()
    assert answer.verdict == verdict
    assert "over 3 topics" in answer.reason
    assert [one.text for one in answer.caveats if one.about == "Tests"] == caveats
    assert "baseline" not in answer.next


def test_warnings_of_an_experiment_are_caveats_with_remedies_that_it_takes():
    topics = pd.concat([ASKED, ASKED.head(1).assign(qid="9")], ignore_index=True)
    with pytest.warns(DegenerateWarning, match="1 topic is not in qrels"):
        answer = Experiment([GOOD], topics, JUDGED, ["P@1"]).answer()
    assert [one.line() for one in answer.caveats] == ["topics: 1 topic is not in qrels and is left out of means ('9')."]
    table = pd.concat([GOOD.assign(model="A"), HALF.iloc[:2].assign(model="B", docno=["x", "y"])], ignore_index=True)
    with pytest.raises(InputError, match=r"give system='model' if it names the system of a row, and system='none' if"):
        Experiment([table], ASKED, JUDGED, ["P@1"])
    with pytest.warns(DegenerateWarning, match="none of its documents is judged"):
        means = Experiment([table], ASKED, JUDGED, ["P@1"], system="model")
    assert means["name"].tolist() == ["A", "B"]
