"""VB-Scores with intervals from queries and systems."""

import json
import warnings

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate.intents import IntentOptions, evaluate_intents
from vbterrier.evaluate.replicas import Paraphrases, RerunPipeline
from vbterrier.evaluate.sensitivity import intent_sensitivity
from vbterrier.report.paper import paper_table
from vbterrier.report.tables import footing
from vbterrier.settings import Data, Execution, Inference
from vbterrier.stats.perturbations import Dirichlet, IntentBootstrap, TagConfusion

TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["Jordan achievements", "Professor John Doe at MIT"]})
INTENTS = pd.DataFrame({"qid": ["q1", "q1", "q2", "q2"], "entity_id": list("ACSP"), "prob": [0.8, 0.2, 0.2, 0.8]})
TAGS = pd.DataFrame({"docno": ["a1", "a2", "c1", "s1", "p1"], "entity_id": list("AACSP")})
LITERAL = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["a1", "a2", "s1"], "score": [2.0, 1.0, 1.0]})
NIL = pd.concat(
    [INTENTS.assign(prob=INTENTS["prob"] / 2), pd.DataFrame({"qid": ["q1", "q2"], "entity_id": "N", "prob": 0.5})]
)
BOTH = pd.DataFrame({"qid": ["q1", "q1", "q2", "q2"], "docno": ["a1", "c1", "s1", "p1"], "score": [2.0, 1.0, 2.0, 1.0]})
SYSTEMS = {"literal": LITERAL, "both": BOTH}


class Linked(pt.Transformer):
    """A pipeline from topics to intents, from a mapping of query to candidates."""

    def __init__(self, intents):
        super().__init__()
        self.intents, self.seen = intents, []

    def transform(self, inp):
        self.seen.append(inp)
        results = [(topic.qid, self.intents.get(topic.query, {})) for topic in inp.itertuples()]
        rows = [(qid, *pair) for qid, candidates in results for pair in candidates.items()]
        return pd.DataFrame(rows, columns=["qid", "entity_id", "prob"])


def evaluated(
    systems=None,
    topics=TOPICS,
    intents=INTENTS,
    tagger=TAGS,
    *,
    measures=("ES", "VB"),
    data=Data(),
    inference=Inference(),
    execution=Execution(),
    **options,
):
    return evaluate_intents(
        SYSTEMS if systems is None else systems,
        topics,
        measures,
        intents=intents,
        tagger=tagger,
        options=IntentOptions(**{"cutoff": [10], **options}),
        data=data,
        inference=inference,
        execution=execution,
    )


def test_both_case_studies_of_the_paper():
    result = evaluated()
    table = result.values.pivot(index=["name", "qid"], columns="measure", values="value")
    assert table.loc["literal"].to_numpy().ravel() == pytest.approx([0.8, 0.4, 0.2, -0.2])
    assert table.loc["both"].to_numpy() == pytest.approx(1)


def test_measures_are_computed_at_every_cutoff_unless_they_have_their_own():
    equal = INTENTS.assign(prob=0.5)
    result = evaluated(intents=equal, measures=["ES", "VB(alpha=0.5)@2", "alpha_nDCG"], cutoff=[1, 3])
    assert list(result.means()) == ["ES@1", "ES@3", "VB(alpha=0.5)@2", "alpha_nDCG@1", "alpha_nDCG@3"]


def test_missing_tags_coverage_and_oracles_accompany_the_scores():
    result = evaluated(cutoff=[1, 2])
    assert result.missing["n_missing"].tolist() == [0, 0]
    first = result.covered.set_index(["name", "qid", "entity_id"]).sort_index()
    assert first.loc[("both", "q1", "C"), "first_rank"] == 2
    assert pd.isna(first.loc[("literal", "q1", "C"), "first_rank"])
    assert first.loc[("both", "q2"), "place"].to_dict() == {"S": 2, "P": 1}
    beside = result.tagging.set_index(["name", "cutoff"])
    assert beside.index.tolist() == [("literal", 1), ("both", 1), ("literal", 2), ("both", 2)]
    # The best first document covers the more probable intent of each query; two documents cover all.
    assert beside["oracle_ES"].tolist() == pytest.approx([0.8, 0.8, 1.0, 1.0])
    assert beside["ES"].tolist() == pytest.approx([0.5, 0.5, 0.5, 1.0])
    assert (beside["tagged"] == 1).all()
    assert result.comparisons[["name_a", "name_b", "measure"]].to_numpy().tolist()[0] == ["literal", "both", "ES@1"]


def test_tags_by_tie_are_counted_beside_the_scores_and_in_comparisons():
    # Of the first two documents of each query: a1, c1 and s1, p1.
    tags = TAGS.assign(tied=[1, 0, 0, 1, 0], n_abstained=[0, 0, 1, 0, 0])
    with pytest.warns(DegenerateWarning) as told:
        result = evaluated(tagger=tags, cutoff=[1, 2])
    remedy = "; tag with priors, or leave tied mentions out with TagOptions(on_ties='drop')"
    of_tags = "of the tags are decided by a tie and are guesses"
    messages = [
        f"run 'literal': 67% {of_tags}{remedy}",
        f"run 'both': 50% {of_tags}; 20% of the mentions have no tag because of a tie or none fits{remedy}",
    ]
    assert list(dict.fromkeys(str(each.message) for each in told)) == messages
    beside = result.tagging.set_index(["name", "cutoff"])
    assert beside["tied"].to_dict() == pytest.approx(
        {("literal", 1): 1.0, ("both", 1): 1.0, ("literal", 2): 2 / 3, ("both", 2): 0.5}
    )
    assert beside["abstained"].to_dict() == pytest.approx(
        {("literal", 1): 0.0, ("both", 1): 0.0, ("literal", 2): 0.0, ("both", 2): 0.2}
    )
    assert list(evaluated(cutoff=[1]).tagging) == ["name", "cutoff", "tagged", "ES", "oracle_ES"]
    with pytest.warns(DegenerateWarning, match=of_tags):
        vbterrier.compare(SYSTEMS, measures=["ES@2"], intents=INTENTS, tags=tags, inference=Inference(test="t"))
    # Tags in runs carry their ties, too.
    tagged = {name: vbterrier.TagEntities(tags).transform(run) for name, run in SYSTEMS.items()}
    with pytest.warns(DegenerateWarning, match=of_tags):
        again = evaluated(tagged, tagger=None, cutoff=[1, 2])
    pd.testing.assert_frame_equal(again.tagging, result.tagging)
    few = tags.assign(tied=0)
    evaluated(tagger=few, cutoff=[2])


def test_the_same_pipeline_in_a_plain_experiment():
    vbterrier.register_intents("case studies", INTENTS, replace=True)
    vbterrier.register_tags("case studies", TAGS, replace=True)
    measures = [measure(intents="case studies", tags="case studies") @ 10 for measure in (vbterrier.ES, vbterrier.VB)]
    table = pt.Experiment(SYSTEMS, TOPICS, INTENTS, measures).set_index("name")
    means = evaluated().means()
    # Experiments of PyTerrier order measures by their hashes.
    result = table.loc[means.index, list(map(str, measures))]
    assert result.to_numpy() == pytest.approx(means.to_numpy())


def test_pipelines_are_run_for_the_topics_alone():
    retriever = pt.apply.generic(lambda inp: pt.model.add_ranks(LITERAL.merge(inp[["qid", "query"]], on="qid")))
    intents = Linked({"Jordan achievements": {"A": 0.8, "C": 0.2}, "Professor John Doe at MIT": {"S": 0.2, "P": 0.8}})
    result = evaluated({"pipeline": retriever, "frame": LITERAL}, intents=intents)
    assert len(intents.seen) == 1
    means = result.means()
    assert means.loc["pipeline"].tolist() == means.loc["frame"].tolist() == pytest.approx([0.5, 0.1])


def test_one_tagger_tags_the_first_documents_of_all_systems_once():
    read = []

    def tagger(text):
        read.append(text)
        return [text[0].upper()]

    # Tags that results carry are ignored.
    texts = {
        name: run.assign(text=run["docno"], entity_id="C", weight=0.5, tagger=name) for name, run in SYSTEMS.items()
    }
    result = evaluated(texts, tagger=tagger)
    assert sorted(read) == sorted(set(LITERAL["docno"]) | set(BOTH["docno"]))
    pd.testing.assert_frame_equal(result.means(), evaluated().means())
    deep = evaluated(texts, tagger=tagger, cutoff=[1])
    assert set(deep.tags["docno"]) == {"a1", "s1"}


def test_documents_that_are_entities():
    run = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["A", "P"], "score": [1.0, 1.0]})
    assert evaluated({"entities": run}, tagger="docno").means().loc["entities", "ES@10"] == pytest.approx(0.8)


def test_tags_that_come_with_the_results_are_of_one_tagger():
    tagged = {name: run.merge(TAGS, on="docno") for name, run in SYSTEMS.items()}
    pd.testing.assert_frame_equal(evaluated(tagged, tagger=None).means(), evaluated().means())
    named = {name: run.assign(tagger=name) for name, run in tagged.items()}
    tagged["both"] = tagged["both"].assign(entity_id="C")
    for systems, message in (
        (tagged, r"document 'a1' of query 'q1' has entity 'A' with weight 1 in 1 of the 2 systems"),
        (named, "one tagger only"),
    ):
        with pytest.raises(InputError, match=message):
            evaluated(systems, tagger=None)


def test_tags_of_results_agree_in_their_weights_and_may_repeat():
    lists = LITERAL.assign(entity_id=[["A", "A"], ["A"], ["S"]])
    assert evaluated({"literal": lists}, tagger=None).means().loc["literal", "ES@10"] == 0.5
    half = LITERAL.assign(entity_id=list("AAS"), weight=0.5)
    assert evaluated({"half": half}, tagger=None).means().loc["half", "ES@10"] == 0.25
    whole = BOTH.assign(entity_id=list("ACSP"))
    with pytest.raises(InputError, match=r"'a1' of query 'q1' has entity 'A' with weight 0.5 in 1 of the 2"):
        evaluated({"half": half, "whole": whole}, tagger=None)
    # Systems without a column of weights have weight 1.
    ones = evaluated({"literal": LITERAL.assign(entity_id=list("AAS"), weight=1.0), "both": whole}, tagger=None)
    assert ones.means()["ES@10"].tolist() == [0.5, 1.0]


def test_tags_behind_the_deepest_cutoff_are_not_looked_at():
    tagged = {name: run.merge(TAGS, on="docno") for name, run in SYSTEMS.items()}
    tagged["both"] = tagged["both"].assign(entity_id=["A", "C", "S", "P"])
    tagged["both"].loc[len(tagged["both"])] = ["q1", "a2", 0.5, "C"]
    assert evaluated(tagged, tagger=None, cutoff=[1]).tags["docno"].tolist() == ["a1", "s1"]
    with pytest.raises(InputError, match="'a2' of query 'q1' has entity 'A'"):
        evaluated(tagged, tagger=None, cutoff=[3])


def test_a_tagger_reads_the_text_of_every_system():
    def tagger(text):
        return [text[0].upper()]

    texts = {name: run.assign(text=run["docno"]) for name, run in SYSTEMS.items()}
    for name in texts:
        message = rf"run '{name}': no column 'text', which TagEntities.* reads; add pt.text"
        with pytest.raises(InputError, match=message):
            evaluated(texts | {name: SYSTEMS[name]}, tagger=tagger)
    with pytest.raises(InputError, match="several texts with different tags"):
        evaluated(texts | {"both": BOTH.assign(text="c")}, tagger=tagger)
    silent = texts | {"none": BOTH[:0]}
    with pytest.warns(DegenerateWarning, match="run 'none': empty"):
        result = evaluated(silent, tagger=tagger, data=Data(on_topics="all"), measures=["ES(nil='N')"], intents=NIL)
    assert result.means()["ES(nil='N')@10"].to_dict() == pytest.approx({"literal": 0.25, "both": 0.5, "none": 0.5})


def test_runs_and_topics_that_hardly_meet():
    # Only the queries of the topics are evaluated.
    one = quiet(topics=ONE, cutoff=[1], measures=["ES"])
    assert one.values["qid"].tolist() == one.covered["qid"].unique().tolist() * 2 == ["q1", "q1"]
    with pytest.raises(InputError, match="no topic in common: run 'literal' has 'xq1', 'xq2'; topics has 'q1', 'q2'"):
        evaluated({"literal": LITERAL.assign(qid="x" + LITERAL["qid"])})
    more = pd.concat([LITERAL, LITERAL.assign(qid="x" + LITERAL["qid"])])
    with pytest.warns(DegenerateWarning, match="run 'literal': 2 topics are not in topics and are left out"):
        assert evaluated({"literal": more}).means().loc["literal", "ES@10"] == 0.5


def test_integers_and_text_never_meet():
    numbers = {"q1": 1, "q2": 2}
    topics, intents, run = (frame.assign(qid=frame["qid"].map(numbers)) for frame in (TOPICS, INTENTS, LITERAL))
    assert evaluated({"run": run}, topics, intents).values["qid"].unique().tolist() == ["1", "2"]
    with pytest.raises(InputError, match="topics column 'qid' holds integers, intents column 'qid' holds text"):
        evaluated({"run": run}, topics, intents.astype({"qid": str}))
    with pytest.raises(InputError, match="topics column 'qid' holds integers, run 'run' column 'qid' holds text"):
        evaluated({"run": run.astype({"qid": str})}, topics, intents)


def test_polars_frames_are_evaluated_as_pandas_frames():
    polars, options = pytest.importorskip("polars"), {"measures": ["VB", "WeightedAlphaNDCG"], "n_replicas": 3}
    systems = {name: polars.from_pandas(run) for name, run in SYSTEMS.items()}
    # A column may be called intents.
    result = evaluated(systems, *map(polars.from_pandas, (TOPICS, INTENTS.assign(intents="x"), TAGS)), **options)
    pd.testing.assert_frame_equal(result.per_query, evaluated(**options).per_query)


def test_queries_without_candidates_are_an_error_or_left_out():
    more = pd.concat([TOPICS, pd.DataFrame({"qid": ["q3"], "query": ["?"]})])
    with pytest.raises(InputError, match=r"1 of 3 queries have no candidate intents \('q3'\)"):
        evaluated(topics=more)
    with pytest.warns(DegenerateWarning, match="are left out"):
        result = evaluated(topics=more, undefined="skip")
    assert result.values["qid"].unique().tolist() == ["q1", "q2"]
    seen = []
    retriever = pt.apply.generic(lambda inp: seen.extend(inp["qid"]) or LITERAL)
    with pytest.warns(DegenerateWarning, match="are left out"):
        evaluated({"pipeline": retriever}, topics=more, undefined="skip")
    assert seen == ["q1", "q2"]


def test_systems_with_different_queries():
    half = {"literal": LITERAL, "half": BOTH[BOTH["qid"] == "q1"]}
    with pytest.raises(InputError, match="means over different topics are not comparable"):
        evaluated(half)
    assert evaluated(half, data=Data(on_topics="all")).means().loc["half", "ES@10"] == 0.5
    with pytest.warns(DegenerateWarning, match="at least two"):
        common = evaluated(half, data=Data(on_topics="common"), n_replicas=3)
    assert common.values["qid"].unique().tolist() == ["q1"]
    assert common.replicas.topics == ["q1"]


def test_replicas_around_the_scores():
    result = evaluated(n_replicas=400, perturb=[Dirichlet(30)], inference=Inference(seed=3))
    of_replicas = result.intervals[result.intervals["method"].str.startswith("replicas")]
    assert (of_replicas["n_resamples"] == 400).all()
    assert result.intervals["method"].tolist()[:2] == ["topics (unseen)", "replicas (percentile)"]
    literal = result.per_query.set_index(["name", "qid", "measure"]).loc[("literal", "q1", "ES@10")]
    assert literal["value"] == pytest.approx(0.8)
    assert literal["low"] < 0.8 < literal["high"]
    # Beta(24, 6) has standard deviation .0718; its estimate from 400 draws is within 15 %.
    assert literal["std"] == pytest.approx(np.sqrt(0.8 * 0.2 / 31), rel=0.15)
    # A system that covers all intents scores 1 for any probabilities.
    both = result.replicas.of("both", result.replicas.statistics[0])
    assert both.min() == 1.0


def test_the_same_seed_gives_the_same_whatever_the_order_and_the_other_systems():
    options = {
        "n_replicas": 50,
        "perturb": [Dirichlet(5), TagConfusion(0.3)],
        "inference": Inference(seed=7),
        "cutoff": [1, 2],
    }
    whole, both = evaluated(**options), {"both": BOTH.sample(frac=1, random_state=1)}
    shuffled = evaluated(both, TOPICS[::-1], INTENTS.sample(frac=1, random_state=2), TAGS[::-1], **options)
    keys = ["name", "qid", "measure"]
    expected = whole.per_query.query("name == 'both'").set_index(keys).sort_index()
    pd.testing.assert_frame_equal(shuffled.per_query.set_index(keys).sort_index(), expected)
    # Both systems have the same first documents, so that they score the same under the same noise.
    both, literal = (whole.replicas.of(name, whole.replicas.statistics[0]) for name in ("both", "literal"))
    assert np.array_equal(both, literal)


def test_measures_of_others_have_no_replicas():
    for measure, intents in (("alpha_nDCG", INTENTS.assign(prob=0.5)), ("WeightedAlphaNDCG", INTENTS)):
        result = evaluated(intents=intents, measures=["ES", measure], n_replicas=5)
        of_others = result.intervals[result.intervals["measure"] == f"{measure}@10"]
        assert of_others["method"].unique().tolist() == ["topics (unseen)"]
        with pytest.raises(ParameterError, match="add ES or VB"):
            evaluated(intents=intents, measures=[measure], n_replicas=5)


JORDAN = {
    "Jordan achievements": {"A": 0.8, "C": 0.2},
    "Michael Jordan titles": {"A": 1.0},
    "Jordan history": {"C": 0.5, "R": 0.5},
}
ONE = TOPICS[:1]
ITS_SYSTEMS = {name: run[run["qid"] == "q1"] for name, run in SYSTEMS.items()}


def quiet(**kwargs):
    """A single query has no interval, of which the call warns."""
    with pytest.warns(DegenerateWarning, match="at least two"):
        return evaluated(ITS_SYSTEMS, **kwargs)


@pytest.mark.parametrize(
    "wordings", [["Michael Jordan titles", "Jordan history"], "Michael Jordan titles | Jordan history"]
)
def test_paraphrases_from_a_column(wordings):
    options = {"n_replicas": 300, "perturb": [Paraphrases(order="turn")], "measures": ["ES"]}
    result = quiet(topics=ONE.assign(paraphrases=[wordings]), intents=Linked(JORDAN), **options)
    literal = result.replicas.of("literal", result.replicas.statistics[0])[:, 0]
    # The literal system covers A alone, whose probability the three wordings put at .8, 1 and 0.
    assert sorted(np.unique(literal.round(6)).tolist()) == [0.0, 0.8, 1.0]
    assert literal.mean() == pytest.approx(0.6)
    assert result.replicas.point.max() == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore:.* intervals of replicas exclude the score")
def test_a_stage_run_again_gets_a_seed_of_its_own_for_each_query_and_replica():
    def drawn(inp):
        shares = [np.random.default_rng(getattr(row, "seed", 0)).random() for row in inp.itertuples()]
        first = inp[["qid"]].assign(entity_id="A", prob=shares)
        return pd.concat([first, first.assign(entity_id="C", prob=1 - first["prob"])])

    options = {"intents": pt.apply.generic(drawn), "perturb": [RerunPipeline()], "measures": ["ES"]}
    again = quiet(topics=ONE, n_replicas=20, **options)
    scores = again.replicas.of("literal", again.replicas.statistics[0])[:, 0]
    assert len(np.unique(scores)) == 20
    twins = evaluated(tagger=TAGS.replace({"S": "A"}), n_replicas=5, **options)
    first, second = twins.replicas.of("literal", twins.replicas.statistics[0]).T
    assert not set(first) & set(second)
    prefix = quiet(topics=ONE, n_replicas=5, **options)
    assert np.array_equal(prefix.replicas.values[:, :, :, 0], again.replicas.values[:, :, :5, 0])


def test_candidates_made_anew_need_the_pipeline_that_makes_them():
    renamed = Paraphrases(pt.apply.generic(lambda inp: inp.assign(qid=inp["qid"] + "-1")))
    for topics, perturb, message in (
        (ONE.assign(paraphrases=3), Paraphrases(), "column 'paraphrases' contains 3; wanted a list of texts"),
        (ONE.assign(paraphrases=[["Jordan achievements", " "]]), [Paraphrases()], "no query has a paraphrase"),
        (ONE, [renamed], "no topic has qid 'q1-1'; give each paraphrase the qid of its query"),
    ):
        with pytest.raises(InputError, match=message):
            evaluated(ITS_SYSTEMS, topics, Linked(JORDAN), n_replicas=3, perturb=perturb)


def test_wordings_without_candidates_are_told():
    topics = ONE.assign(paraphrases="Jordan history | Jordan river")
    told = r"Paraphrases\(.*: no candidates for 1 of 2 runs of a query \('q1'\)"
    options = {"n_replicas": 10, "perturb": Paraphrases(order="turn"), "measures": ["ES"]}
    with pytest.warns(DegenerateWarning, match="at least two"), pytest.warns(DegenerateWarning, match=told):
        result = evaluated(ITS_SYSTEMS, topics, Linked(JORDAN), **options)
    assert result.replicas.of("literal", result.replicas.statistics[0])[:, 0].tolist() == pytest.approx([0.8, 0] * 5)


def test_intervals_of_other_kinds():
    for interval in ("percentile", "bca", "normal"):
        rows = evaluated(n_replicas=60, inference=Inference(interval=interval), measures=["ES"]).intervals.query(
            "name == 'literal'"
        )
        assert (rows["low"] <= rows["high"]).all()
        of_topics, of_replicas = rows["method"]
        assert of_topics == f"topics ({interval})"
        assert of_replicas.startswith(f"replicas ({interval}")
    result = evaluated(n_replicas=60, perturb=[IntentBootstrap()], inference=Inference(interval="bca"), measures=["ES"])
    assert result.per_query["method"].unique().tolist() == ["intents (bca)"]
    assert set(result.intervals["method"]) == {"topics (bca)", "topics (bounded)", "intents (bca)"}
    unequal = result.intervals.query("name == 'literal'")
    assert unequal["method"].tolist() == ["topics (bca)", "intents (bca)"]


def test_what_is_no_pipeline_of_intents_is_told_what_to_do():
    class Names:
        id_space = "own"

        def link(self, texts):
            raise AssertionError(texts)

    with pytest.raises(InputError, match=r"wanted a pipeline: CandidateIntents\(linker\)"):
        evaluated(intents=Names())


def test_nil_is_served_by_showing_nothing():
    intents = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["A", "NIL", "S"], "prob": [0.7, 0.3, 1.0]})
    silent = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["other", "s1"], "score": [1.0, 1.0]})
    result = evaluated({"silent": silent}, intents=intents, measures=["ES(nil='NIL')"], n_replicas=3)
    assert result.values["value"].tolist() == pytest.approx([0.3, 1.0])
    assert result.tagging["oracle_ES"].tolist() == pytest.approx([0.85])
    for frame in (result.intervals, result.per_query):
        assert frame["measure"].unique().tolist() == ["ES(nil='NIL')@10"]
    with pytest.raises(ParameterError, match="share one nil="):
        evaluated({"silent": silent}, intents=intents, measures=["ES(nil='NIL')", "ES"])
    # The best ranking may show nothing, too.
    likely = intents.assign(prob=[0.2, 0.8, 1.0])
    result = evaluated({"literal": LITERAL}, intents=likely, measures=["ES(nil='NIL')"])
    assert result.tagging["oracle_ES"].tolist() == pytest.approx([0.9])


def test_unperturbed_replicas_are_the_scores_whatever_the_measure():
    intents = pd.DataFrame({"qid": "q1", "entity_id": [*"ACR", "NIL"], "prob": [0.25, 0.25, 0.25, 0.25]})
    tags = pd.DataFrame({"docno": [*"abcde"], "entity_id": [*"AACRA"], "weight": [0.5, 1, 0.75, 1, 0.25]})
    run = pd.DataFrame({"qid": "q1", "docno": [*"xabcz"], "score": [5.0, 4, 3, 2, 1]})
    more = pd.DataFrame({"qid": "q2", "entity_id": [*"AC"], "prob": 0.5})
    runs = {"a": pd.concat([run, run.assign(qid="q2")]), "b": pd.concat([run[:1], run[2:3].assign(qid="q2")])}
    nil = "nil='NIL'"
    measures = [f"ES({nil})", f"VB({nil},clip=True)", f"ES({nil},gain='dcg')", f"VB({nil},monotone=True)",
                f"VB({nil},gain='dcg',variance='intent')", f"TopIntent({nil})", f"VarPenalty({nil})"]  # fmt: skip
    data = {"intents": pd.concat([intents, more]), "tagger": tags}
    result = evaluated(runs, **data, measures=measures, cutoff=[1, 2, 4], n_replicas=2, perturb=[])
    keys = ["name", "qid", "measure"]
    scores = result.values.set_index(keys)["value"]
    replicated = result.per_query.set_index(keys)
    assert len(replicated) == len(scores)
    for column in ("value", "mean"):
        assert replicated[column].to_numpy() == pytest.approx(scores.loc[replicated.index].to_numpy())
    beside = result.tagging.set_index(["name", "cutoff"])
    assert beside["tagged"].unstack().to_dict("list") == {1: [0, 0.5], 2: [0.5, 0.5], 4: [0.75, 0.5]}
    # At cutoff 1: one entity or NIL for q1, one of two for q2.
    assert beside.loc[("a", 1), "oracle_ES"] == pytest.approx((0.25 + 0.5) / 2)
    assert result.covered["place"].unique().tolist() == [1]
    first = result.covered.set_index(["name", "qid", "entity_id"])["first_rank"]
    assert first["a", "q1", "C"] == 4
    shallow = evaluated({"a": runs["a"]}, **data, cutoff=[3], measures=["ES"])
    assert shallow.covered["first_rank"].isna().tolist() == [False, True, True, True, False, True]


def test_level_and_seed_reach_every_interval():
    options = {"n_replicas": 200, "cutoff": [1, 2], "measures": ["ES"]}
    narrow, wide = (evaluated(inference=Inference(level=level), **options) for level in (0.5, 0.99))
    parts = [(narrow.per_query, wide.per_query), (narrow.comparisons, wide.comparisons)]
    for kind in ("topics", "replicas"):
        parts += [[result.intervals[result.intervals["method"].str.startswith(kind)] for result in (narrow, wide)]]
    for first, second in parts:
        assert set(first.get("level", [0.5])) == {0.5}
        assert (second["low"].le(first["low"]) & first["high"].le(second["high"])).all()
        assert ((second["high"] - second["low"]) > (first["high"] - first["low"])).any()


def test_comparisons_by_moderated_t_need_no_seed():
    rng = np.random.default_rng(4)
    qids = [f"q{number}" for number in range(15)]
    topics = pd.DataFrame({"qid": qids, "query": "x"})
    intents = pd.DataFrame({"qid": np.repeat(qids, 2), "entity_id": list("AC") * 15, "prob": 0.5})
    intents["prob"] = np.stack([share := rng.random(15), 1 - share], axis=1).ravel()
    runs = {
        name: pd.DataFrame({"qid": qids, "docno": rng.choice(["a1", "c1"], 15), "score": 1.0}) for name in ("a", "b")
    }
    first, second = (
        evaluated(runs, topics, intents, inference=Inference(seed=seed), measures=["ES"]).comparisons for seed in (1, 2)
    )
    assert first["test"].tolist() == ["moderated paired t"]
    pd.testing.assert_frame_equal(first.drop(columns="seed"), second.drop(columns="seed"), check_exact=True)


def test_topics_and_systems_from_files(tmp_path):
    vbterrier.frames.write_run(BOTH, tmp_path / "both.run")
    vbterrier.frames.write_intents(INTENTS, tmp_path / "intents.tsv")
    vbterrier.frames.write_tags(TAGS, tmp_path / "tags.tsv")
    (tmp_path / "topics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TOPICS.to_dict("records")))
    files = [tmp_path / name for name in ("topics.jsonl", "intents.tsv", "tags.tsv")]
    result = evaluated([tmp_path / "both.run"], *files)
    assert result.means().to_dict("index") == {"both": {"ES@10": 1.0, "VB@10": 1.0}}


def test_replicas_that_only_add_errors_are_not_intervals_of_the_score():
    message = r"4 of 4 intervals of replicas exclude the score itself \(both, ES@5: 1"
    with pytest.warns(DegenerateWarning, match=message):
        result = evaluated({"both": BOTH}, cutoff=[5, 10], n_replicas=60, perturb=[TagConfusion(0.9, lost=1.0)])
    assert (result.intervals.loc[result.intervals["method"].str.startswith("replicas"), "high"] < 1).all()
    for style, mark in (("table", "‡"), ("markdown", "‡"), ("latex", r"\textsuperscript{\textdaggerdbl{}}")):
        text = paper_table(result, style)
        assert mark in text
        assert "excludes the score: the perturbations add errors" in text
    assert "‡" not in paper_table(evaluated(n_replicas=60, perturb=[Dirichlet(20)]), "table")


# Sensitivity to settings of the intents


@pytest.fixture(scope="module")
def sensitive():
    """Intents with NIL and violations, tags and runs of several queries."""
    rng = np.random.default_rng(5)
    rows = [(f"q{q}", f"e{e}" if e else "NIL", int(rng.integers(0, 3)) * (e > 0)) for q in range(6) for e in range(5)]
    intents = pd.DataFrame(rows, columns=["qid", "entity_id", "delta"]).astype({"delta": float})
    intents["base"] = rng.gamma(1.0, size=len(intents))
    intents["prob"] = intents["base"] * np.exp(-intents["delta"])
    intents["prob"] /= intents.groupby("qid")["prob"].transform("sum")
    tags = pd.DataFrame({"docno": [f"d{d}" for d in range(12)], "entity_id": [f"e{1 + d % 4}" for d in range(12)]})
    runs = {
        name: pd.DataFrame(
            [(f"q{q}", f"d{d}", -float(r)) for q in range(6) for r, d in enumerate(rng.permutation(12)[:3])],
            columns=["qid", "docno", "score"],
        )
        for name in ("one", "two")
    }
    return intents.sample(frac=1, random_state=1).reset_index(drop=True), tags, runs


def by_stages(intents, parameter, setting):
    """The same intents by the stages of this package, and by a loop over queries for weights and temperatures."""
    if parameter in ("threshold", "n_intents", "mass"):
        options = {"cutoff": int(setting)} if parameter == "n_intents" else {parameter: setting}
        return vbterrier.Truncate(**options)(intents.drop(columns="delta"))
    t, w = (setting, 1.0) if parameter == "temperature" else (1.0, setting)
    parts = []
    for _, group in intents.groupby("qid"):
        nil = group["entity_id"] == "NIL"
        weights = (group["prob"] * np.exp(group["delta"])) ** (1 / t) * np.exp(-w * group["delta"])
        rest = 1 - group.loc[nil, "prob"].sum()
        shares = rest * weights / weights[~nil].sum()
        parts.append(group.assign(prob=np.where(nil, group["prob"], shares)))
    return pd.concat(parts).drop(columns="delta")


@pytest.mark.slow
def test_sensitivity_is_that_of_scoring_under_each_setting(sensitive):
    intents, tags, runs = sensitive
    measures = ["ES@3", "VB(alpha=0.5)@2", "VB(variance='intent')@3", "TopIntent@3"]
    table = intent_sensitivity(runs, intents, tags=tags, measures=measures, n_intents=[1, 2])
    scores_of_setting = vbterrier.score(
        runs, measures=measures, intents=intents, tags=tags, inference=Inference(n_resamples=2)
    ).values
    scores_of_setting = scores_of_setting.set_index(["name", "measure", "qid"])["value"]
    start = scores_of_setting.groupby(["name", "measure"]).mean()
    n_settings = {"mass": 5, "n_intents": 3, "temperature": 5, "threshold": 5, "weight": 5}
    assert (table.groupby("parameter").size() / 8).to_dict() == n_settings
    for (parameter, setting), rows in table.groupby(["parameter", "setting"]):
        changed = by_stages(intents, parameter, setting)
        scores = vbterrier.score(
            runs, measures=measures, intents=changed, tags=tags, inference=Inference(n_resamples=2)
        )
        reference_values = scores.values.set_index(["name", "measure", "qid"])["value"]
        expected = scores.means()
        for row in rows.itertuples():
            assert row.value == pytest.approx(expected.loc[row.name, row.measure])
            changes = (reference_values - scores_of_setting).loc[row.name, row.measure]
            assert row.largest_change == pytest.approx(changes.abs().max(), abs=1e-9)
            assert row.change == pytest.approx(row.value - start[row.name, row.measure], abs=1e-9)
            before = np.sign(round(start["one", row.measure] - start["two", row.measure], 9))
            after = np.sign(expected.loc["one", row.measure] - expected.loc["two", row.measure])
            assert row.n_swaps == int(before != after)
    reference = table[table["reference"]]
    assert (reference[["change", "largest_change", "distance", "n_swaps"]] == 0).all(axis=None)
    bounded = table["measure"].isin(["ES@3", "VB(alpha=0.5)@2"])
    assert table["bound"].notna().tolist() == bounded.tolist()
    assert (table["change"].abs() <= table["bound"] + 1e-9)[bounded].all()
    assert (table["distance"] > 0).sum() > 50


def test_sensitivity_refuses_what_it_cannot_vary(sensitive):
    intents, tags, runs = sensitive
    plain = intents.drop(columns="delta")
    assert "weight" not in set(intent_sensitivity(runs, plain, tags=tags)["parameter"])
    none = {"temperature": [], "threshold": [], "n_intents": [], "mass": []}
    for options, error, message in (
        ({"weight": [2.0]}, InputError, "no column 'delta', which weight= multiplies"),
        ({"temperature": [0.0]}, ParameterError, "temperature"),
        ({"mass": [1.5]}, ParameterError, "mass"),
        ({"measures": ["nDCG@10"]}, ParameterError, r"found 'nDCG@10', wanted measures over intents"),
        ({"measures": ["ES(similarities='x')@10"]}, ParameterError, "similarities= have no replicas"),
        (none, ParameterError, "no settings"),
    ):
        with pytest.raises(error, match=message):
            intent_sensitivity(runs, plain, tags=tags, **options)


RANKED = {
    "Jordan achievements": ["a1", "a2"],
    "Michael Jordan titles": ["a1", "c1"],
    "Jordan history": ["c1", "r1"],
    "Professor John Doe at MIT": ["s1"],
    "John Doe": ["p1", "s1"],
}
MEANT = JORDAN | {"Professor John Doe at MIT": {"S": 0.2, "P": 0.8}, "John Doe": {"S": 0.5, "P": 0.5}}
WORDED = TOPICS.assign(paraphrases=[["Michael Jordan titles", "Jordan history"], "John Doe"])
DOCS = pd.concat([TAGS, pd.DataFrame({"docno": ["r1"], "entity_id": ["R"]})])


class Searched(pt.Transformer):
    """A retriever that counts the wordings it is asked for."""

    def __init__(self, depth=2):
        super().__init__()
        self.depth, self.seen = depth, []

    def transform(self, inp):
        self.seen += inp["query"].tolist()
        results = [(topic.qid, enumerate(RANKED[topic.query][: self.depth])) for topic in inp.itertuples()]
        rows = [(qid, docno, -rank) for qid, ranked in results for rank, docno in ranked]
        return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def reworded(systems, **options):
    options = {"n_replicas": 12, "perturb": [Paraphrases(order="turn")], "cutoff": [1, 2], **options}
    return evaluated(systems, WORDED, Linked(MEANT), DOCS, **options)


def test_pipelines_are_run_once_for_each_wording_and_each_replica_uses_the_ranking_of_its_own():
    system = Searched()
    result = reworded({"pipeline": system})
    assert sorted(system.seen) == sorted(MEANT)
    wordings = [["Jordan achievements", "Michael Jordan titles", "Jordan history"], list(MEANT)[3:]]
    measures = list(map(str, result.replicas.statistics))
    for column, texts in enumerate(wordings):
        for at, text in enumerate(texts):
            topic = pd.DataFrame({"qid": ["q"], "query": [text]})
            with pytest.warns(DegenerateWarning, match="at least two"):
                alone = vbterrier.score(Searched()(topic), measures=measures, intents=Linked(MEANT)(topic), tags=DOCS)
            expected = alone.means().loc["run", measures].to_numpy()
            assert np.abs(result.replicas.values[0, :, at :: len(texts), column].T - expected).max() < 1e-12
    assert result.replicas.point[0, 0].tolist() == pytest.approx([0.8, 0.2])
    assert set(result.per_query["lists"]) == {"run again"}
    replicated = result.intervals["method"].str.startswith("replicas")
    assert result.intervals.loc[replicated, "lists"].unique().tolist() == ["run again"]
    assert result.intervals.loc[~replicated, "lists"].isna().all()
    for style in ("table", "markdown", "latex"):
        assert "rankings of all systems: run again" in paper_table(result, style)
    assert "rankings run again" in result._repr_html_()


def test_given_lists_stay_fixed_and_the_table_says_so():
    candidates = Searched()(TOPICS)
    fixed = reworded({"list": candidates})
    assert set(fixed.per_query["lists"]) == {"fixed"}
    assert "rankings of all systems: fixed" in paper_table(fixed, "markdown")
    with pytest.warns(DegenerateWarning, match=r"run again for each wording \('pipeline'\) with lists that stay fixed"):
        both = reworded({"list": candidates, "pipeline": Searched()})
    assert "rankings fixed: list, run again: pipeline" in paper_table(both, "table")
    rows = both.per_query.query("name == 'list'").reset_index(drop=True)
    pd.testing.assert_frame_equal(rows, fixed.per_query)
    # "Jordan history" retrieves other documents, which only the pipeline can show.
    of = {name: both.replicas.of(name, both.replicas.statistics[1])[:, 0] for name in ("list", "pipeline")}
    assert of["list"][2] == 0 < of["pipeline"][2] == 1
    plain = evaluated({"pipeline": Searched()}, n_replicas=3)
    assert set(plain.per_query["lists"]) == {"fixed"}


def test_a_ranking_that_no_wording_changes_scores_as_a_fixed_one():
    queries = TOPICS.set_index("qid")["query"]
    unmoved = pt.apply.generic(lambda inp: Searched()(inp.assign(query=inp["qid"].map(queries))))
    options = {
        "perturb": [Paraphrases(), Dirichlet(20), TagConfusion(0.4)],
        "n_replicas": 50,
        "inference": Inference(seed=4),
    }
    again, fixed = reworded({"x": unmoved}, **options), reworded({"x": Searched()(TOPICS)}, **options)
    assert np.array_equal(again.replicas.values, fixed.replicas.values)


@pytest.mark.filterwarnings("ignore:.* intervals of replicas exclude the score")
@pytest.mark.slow
def test_processes_and_order_change_nothing():
    options = {
        "perturb": [Paraphrases(), Dirichlet(5), TagConfusion(0.2)],
        "n_replicas": 20,
        "inference": Inference(seed=2),
    }

    def searched(depth):
        # A local function is sent as it is; workers cannot import modules of tests.
        def search(inp):
            frame = inp[["qid"]].assign(docno=[RANKED[query][:depth] for query in inp["query"]]).explode("docno")
            return frame.assign(score=-frame.groupby("qid").cumcount())

        return pt.apply.generic(search)

    systems = {"two": searched(2), "one": searched(1)}
    one, two = (reworded(systems, execution=Execution(n_jobs=n), **options) for n in (1, 2))
    assert np.array_equal(one.replicas.values, two.replicas.values)
    turned = reworded(dict(reversed(systems.items())), **options)
    assert np.array_equal(turned.replicas.values, one.replicas.values[::-1])

    class Locked(Searched):
        def __reduce__(self):
            raise TypeError("cannot pickle 'java' object")

    with pytest.raises(ParameterError, match=r"system 'x' cannot be sent to another process \(cannot pickle 'java'"):
        reworded({"x": Locked()}, execution=Execution(n_jobs=2))


def test_intents_that_are_given_hold_for_all_wordings():
    options = {"n_replicas": 6, "perturb": [Paraphrases(order="turn")], "measures": ["ES"]}
    result = evaluated({"x": Searched()}, WORDED, INTENTS, DOCS, **options)
    scores = result.replicas.of("x", result.replicas.statistics[0])
    # A and C of the first query, P and S of the second, by what each wording retrieves.
    assert scores.T.tolist() == [pytest.approx([0.8, 1.0, 0.2] * 2), pytest.approx([0.2, 1.0] * 3)]


def test_wordings_without_results_are_told_and_two_rewordings_are_refused():
    class Picky(Searched):
        def transform(self, inp):
            return super().transform(inp[inp["query"] != "Jordan history"])

    with pytest.warns(DegenerateWarning, match=r"run 'x': nothing retrieved for 1 of 3 wordings of queries \('q1'\)"):
        result = reworded({"x": Picky()}, measures=["ES"], cutoff=[2])
    assert result.replicas.of("x", result.replicas.statistics[0])[:3, 0].tolist() == pytest.approx([0.8, 1, 0])
    with pytest.raises(ParameterError, match="both replace the candidates"):
        reworded({"x": Searched()}, perturb=[Paraphrases(), RerunPipeline()])


def test_relaxed_queries_are_searched_without_their_constraints():
    scores = {"doe at:MIT": {"S": 1.0}, "doe": {"S": 0.2, "P": 0.8}}
    topics = pd.DataFrame({"qid": ["q2"], "query": ["doe at:MIT"]})
    docs = {"doe at:MIT": ["s1"], "doe": ["p1", "s1"]}

    def exact(inp):
        rows = [(row.qid, docno, -n) for row in inp.itertuples() for n, docno in enumerate(docs[row.query])]
        return pd.DataFrame(rows, columns=["qid", "docno", "score"])

    options = {"perturb": Paraphrases(vbterrier.intents.RelaxedQueries(), order="turn"), "n_replicas": 4, "cutoff": [1]}
    with pytest.warns(DegenerateWarning, match="at least two"):
        result = evaluated({"x": pt.apply.generic(exact)}, topics, Linked(scores), TAGS, **options)
    by = {str(statistic): result.replicas.of("x", statistic)[:, 0].tolist() for statistic in result.replicas.statistics}
    assert by["ES@1"] == pytest.approx([1, 0.8] * 2)
    assert by["VB@1"] == pytest.approx([1, 0.4] * 2)


# Ding 2025, Table 1: ES, VB_0.5 and VB_1 as printed. The number of projects is not printed; 915 is the smallest one for
# which numbers of served projects give all 24 values to the last digit.
TABLE_1 = {
    "Group 1": (0.169, -0.018, -0.206),
    "Group 2": (0.425, 0.178, -0.069),
    "Group 3": (0.004, -0.029, -0.062),
    "Group 4": (0.074, -0.057, -0.188),
    "Group 5": (0.723, 0.500, 0.276),
    "Group 6": (0.025, -0.053, -0.131),
    "Group 7": (0.003, -0.025, -0.054),
    "Group 8": (0.046, -0.059, -0.163),
}
N_PROJECTS = 915
SERVED = dict(zip(TABLE_1, (155, 389, 4, 68, 662, 23, 3, 42), strict=True))


def projects():
    """One query and one intent for each project, and groups that link some of them to a publication of their own."""
    qids = [f"p{n:03d}" for n in range(N_PROJECTS)]
    topics = pd.DataFrame({"qid": qids, "query": "title"})
    intents = pd.DataFrame({"qid": qids, "entity_id": [f"project {qid}" for qid in qids], "prob": 1.0})
    tags = pd.DataFrame({"docno": [f"d-{qid}" for qid in qids], "entity_id": intents["entity_id"]})
    rng = np.random.default_rng(0)
    groups = {}
    for name, n in SERVED.items():
        table = pd.DataFrame({"qid": qids, "docno": "unrelated", "score": 1.0})
        served = rng.choice(N_PROJECTS, n, replace=False)
        groups[name] = pd.concat([table, table.iloc[served].assign(docno=tags["docno"].iloc[served], score=0.5)])
    return groups, topics, intents, tags


@pytest.mark.slow
def test_table_1_of_the_paper_is_a_pooled_evaluation():
    groups, topics, intents, tags = projects()
    options = {"measures": ["ES", "VB(alpha=0)", "VB(alpha=0.5)", "VB"], "inference": Inference(n_resamples=500)}
    pooled = evaluated(groups, topics, intents, tags, pool="collection", **options)
    table = pooled.means().round(3)
    assert list(table) == ["ES@10", "VB(alpha=0.0)@10", "VB(alpha=0.5)@10", "VB@10"]
    for group, (success, half, whole) in TABLE_1.items():
        assert table.loc[group].tolist() == pytest.approx([success, success, half, whole])
    # By query there is no penalty: each project has one intent.
    alone = evaluated(groups, topics, intents, tags, **options).means()
    assert np.ptp(alone.to_numpy(), axis=1).max() < 1e-12
    assert alone["VB@10"].round(3).tolist() == [success for success, _, _ in TABLE_1.values()]
    # Figure 3 without its text on groups 1 and 2, whose intervals lie below 0 for any number of projects that fits.
    ends = pooled.intervals[pooled.intervals["measure"] == "VB@10"].set_index("name")[["low", "high"]]
    assert ends.index[ends["low"] > 0].tolist() == ["Group 5"]
    assert (ends.loc[["Group 1", "Group 2"], "high"] < 0).all()


@pytest.mark.slow
def test_both_case_studies_pooled():
    result = evaluated(pool="collection", measures=["ES", "VB(alpha=0.5)", "VB", "VarPenalty", "TopIntent"])
    # Success .8 and .2: one half over both, where the penalty is largest.
    assert result.means().loc["literal"].tolist() == pytest.approx([0.5, 0.25, 0.0, 0.5, 0.5])
    assert result.means().loc["both"].tolist() == pytest.approx([1, 1, 1, 0, 1])
    by_query = result.values.query("name == 'literal' and measure == 'VB@10'")["value"]
    assert by_query.tolist() == pytest.approx([0.4, -0.2])
    assert result.pool == "collection"
    assert result.intervals["n_qids"].unique().tolist() == [2]
    assert result.comparisons["diff"].tolist() == pytest.approx([-0.5, -0.75, -1.0, 0.5, -0.5])
    message = "ooled: scores of the joint intents of all topics", "Pooled scores, of the joint"
    for style, words in (("table", message[0]), ("markdown", message[1]), ("latex", message[1])):
        assert words in paper_table(result, style)
        assert words not in paper_table(evaluated(), style)
    assert "Scores of the joint intents of all queries" in result._repr_html_()


def joint(frame, column):
    return frame.assign(**{column: frame["qid"] + " " + frame[column], "qid": "all"})


@pytest.mark.parametrize("gain", ["binary", "dcg"])
def test_pooled_queries_are_one_query_with_all_their_intents(gain):
    measures = [f"ES(gain='{gain}')", f"VB(gain='{gain}')", f"VB(gain='{gain}',variance='intent')"]
    pooled = evaluated(pool="collection", measures=measures, cutoff=[1])
    # At cutoff 1 the first documents of all queries, side by side in one ranking without discounts.
    tags = TAGS.merge(pd.DataFrame({"qid": ["q1", "q2"]}), how="cross")
    tags = joint(joint(tags, "docno").assign(qid=tags["qid"]), "entity_id")
    intents = joint(INTENTS, "entity_id").assign(prob=INTENTS["prob"] / 2)
    first = {name: joint(run.groupby("qid").head(1), "docno").assign(score=[2, 1]) for name, run in SYSTEMS.items()}
    joined = ["ES@2", "VB@2", "VB(variance='intent')@2"]
    with pytest.warns(DegenerateWarning, match="at least two"):
        whole = vbterrier.score(first, measures=joined, intents=intents, tags=tags)
    assert pooled.means().to_numpy() == pytest.approx(whole.means().to_numpy())


@pytest.mark.filterwarnings("ignore:.* intervals of replicas exclude the score")
def test_pooled_replicas_are_pooled_one_by_one():
    options = {"n_replicas": 30, "perturb": [Dirichlet(8), TagConfusion(0.2)], "measures": ["ES", "VB", "VarPenalty"]}
    pooled, alone = (evaluated({"literal": LITERAL}, pool=pool, **options) for pool in ("collection", "query"))
    pd.testing.assert_frame_equal(pooled.per_query, alone.per_query)
    success = alone.replicas.of("literal", alone.replicas.statistics[0]).mean(axis=1)
    penalty = np.sqrt(success * (1 - success))
    replicated = pooled.intervals[pooled.intervals["method"] == "replicas (percentile)"].set_index("measure")
    for measure, scores in (("ES@10", success), ("VB@10", success - penalty), ("VarPenalty@10", penalty)):
        expected = [scores.mean(), *np.quantile(scores, [0.025, 0.975])]
        assert replicated.loc[measure, ["mean", "low", "high"]].tolist() == pytest.approx(expected)
    assert replicated["value"].tolist() == pytest.approx([0.5, 0.0, 0.5])
    assert replicated["n_qids"].tolist() == [2, 2, 2]


def test_unperturbed_pooled_replicas_are_the_pooled_scores():
    half = TAGS.assign(weight=[1, 0.5, 0.5, 0.75, 1])
    measures = ["ES", "VB(variance='intent')", "VB(gain='dcg',alpha=0.5)", "VarPenalty(variance='intent')", "TopIntent"]
    options = {"pool": "collection", "n_replicas": 2, "perturb": [], "inference": Inference(interval="normal")}
    result = evaluated(tagger=half, measures=measures, cutoff=[1, 2], **options)
    kinds = result.intervals["method"].str.partition(" ")[0]
    keys = ["name", "measure"]
    topics, replicas = (result.intervals[kinds == kind].set_index(keys) for kind in ("topics", "replicas"))
    for column in ("value", "mean"):
        assert replicas[column].to_numpy() == pytest.approx(topics.loc[replicas.index, "value"].to_numpy())
    spread = topics["value"].unstack()
    assert (spread["VarPenalty(variance='intent')@1"] > 0).all()


def test_intents_of_several_ids_count_as_a_whole_or_in_part():
    intents = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["p1", "p2", "p3"], "prob": [0.8, 0.2, 1.0]})
    intents["parts"] = [["A", "C"], ["C"], ["P", "X"]]
    tags = pd.concat([TAGS, pd.DataFrame({"docno": ["a2"], "entity_id": ["C"]})])
    results = {parts: evaluated(intents=intents, tagger=tags, parts=parts, cutoff=[1, 2]) for parts in ("all", "part")}
    # The second document of the literal system has both ids of p1, and that of p2; P alone is half of p3.
    values = {parts: one.values.set_index(["name", "qid", "measure"])["value"] for parts, one in results.items()}
    assert values["all"]["literal"][["q1"]].tolist() == pytest.approx([0, 1, 0, 1])
    assert values["part"]["literal"]["q1"].tolist() == pytest.approx([0.4, 1, 0.4 - 0.24**0.5, 1])
    assert values["all"]["both"]["q2"].tolist() == [0, 0, 0, 0]
    assert values["part"]["both"]["q2", "ES(parts='part')@2"] == 0.5
    assert set(results["all"].tags["entity_id"]) == {"p1", "p2"}
    with pytest.raises(ParameterError, match="parts='any': wanted one of"):
        evaluated(intents=intents, tagger=tags, parts="any")
    worded = TOPICS.assign(paraphrases="Jordan history")
    more = pd.DataFrame({"qid": ["q1"], "entity_id": ["p9"], "prob": [1.0], "parts": [["A"]]})

    def candidates(inp):
        return intents[intents["qid"].isin(inp["qid"])] if "Jordan achievements" in set(inp["query"]) else more

    for parts in ("all", "together", "split"):
        options = {"cutoff": [1], "n_replicas": 4, "perturb": Paraphrases(order="turn"), "parts": parts}
        with pytest.warns(DegenerateWarning, match="no candidates for 1 of 2 runs"):
            replicated = evaluated({"literal": LITERAL}, worded, pt.apply.generic(candidates), tags, **options).replicas
        # One of the two parts of p1, which has a probability of 0.8, is found.
        first = 0.4 if parts == "split" else 0
        assert replicated.of("literal", replicated.statistics[0])[:, 0].tolist() == pytest.approx([first, 1, first, 1])


# Scores under gold tags, from a model of the tagger.


def modelled(n=40):
    """Queries with two meanings, the second of which the tagger takes for the first; half the documents labelled."""
    number = np.repeat(np.arange(n), 2)
    intents = pd.DataFrame({"qid": [f"t{one}" for one in number], "entity_id": "", "prob": [0.7, 0.3] * n})
    intents["entity_id"] = [f"E{one}{which}" for one, which in zip(number, "AB" * n, strict=True)]
    run = pd.DataFrame({"qid": intents["qid"], "docno": [f"d{row}" for row in range(2 * n)], "score": [2.0, 1.0] * n})
    gold = pd.DataFrame({"docno": run["docno"], "entity_id": intents["entity_id"]})
    tags = gold.assign(entity_id=[f"E{one}A" for one in number])
    topics = pd.DataFrame({"qid": intents["qid"].unique(), "query": "name"})
    sample = gold[np.random.default_rng(1).random(2 * n) < 0.5]
    with_model = {"topics": topics, "intents": intents, "tagger": tags, "gold": sample, "cutoff": [2]}
    return {"a": run}, with_model | {"tagger_model": vbterrier.stats.fit_tagger(tags, sample, intents=intents)}


def of_gold(result):
    rows = result.intervals[result.intervals["method"] == "gold tags (tagger model)"]
    return rows.set_index("measure")[["value", "low", "high", "mean"]].astype(float)


@pytest.mark.slow
def test_a_tagger_model_gives_an_interval_of_the_score_under_gold_tags():
    systems, options = modelled()
    result = of_gold(evaluated(systems, n_replicas=200, perturb=[Dirichlet(20)], **options))
    assert result["value"].to_dict() == pytest.approx({"ES@2": 0.7, "VB@2": 0.7 - 0.21**0.5})
    # Under gold tags, both meanings of every name are covered.
    assert (result["high"] > 0.97).all()
    assert (result["low"] > result["value"]).all()
    assert result.loc["ES@2", "mean"] > 0.9
    again = {key: one.sample(frac=1, random_state=1) if hasattr(one, "sample") else one for key, one in options.items()}
    shuffled = of_gold(evaluated({"b": systems["a"], "a": systems["a"][::-1]}, n_replicas=200, perturb=[], **again))
    assert shuffled.iloc[2:].to_numpy().tolist() == result.to_numpy().tolist()
    assert "gold tags (tagger model): over gold tags of all documents for these topics (1000 replicas" in footing(
        evaluated(systems, **options)
    )


@pytest.mark.slow
def test_ids_may_be_integers():
    systems, options = modelled()
    number = {name: frame.assign(docno=frame["docno"].str[1:].astype(int)) for name, frame in systems.items()}
    tags, sample = (
        options[name].assign(docno=options[name]["docno"].str[1:].astype(int)) for name in ("tagger", "gold")
    )
    model = vbterrier.stats.fit_tagger(tags, sample, intents=options["intents"])
    changed = {**options, "tagger": tags, "gold": sample, "tagger_model": model}
    pd.testing.assert_frame_equal(of_gold(evaluated(number, **changed)), of_gold(evaluated(systems, **options)))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tagger": pd.DataFrame({"docno": ["d2"], "entity_id": ["E0A"]})}, InputError, "has other tags than those"),
        ({"measures": ["ES", "VB(gain='dcg')"]}, ParameterError, r"gains without NIL; evaluate \"VB\(gain='dcg'"),
        ({"measures": ["ES(nil='E0A')"]}, ParameterError, "binary gains without NIL"),
        ({"measures": ["WeightedERRIA"]}, ParameterError, "tagger_model=: no measure over intents"),
    ],
)
def test_options_that_a_tagger_model_cannot_estimate_are_refused(change, error, message):
    systems, options = modelled()
    with pytest.raises(error, match=message):
        evaluated(systems, **{**options, **change})


@pytest.mark.slow
def test_noise_on_noisy_tags_is_noticed_with_its_remedy():
    systems, options = modelled()
    model, noise = options.pop("tagger_model"), [TagConfusion(0.01)]
    for settings, remedy in (({}, "fit_tagger"), ({"tagger_model": model}, "see the interval of the tagger model")):
        with pytest.warns(DegenerateWarning, match=f"to tags that have errors already .*{remedy}"):
            evaluated(systems, n_replicas=60, perturb=noise, **options, **settings)
        with pytest.warns(DegenerateWarning, match=f"exclude the score itself.*{remedy}"):
            evaluated(systems, n_replicas=60, perturb=[TagConfusion(0.9, lost=1.0)], **options, **settings)
    # Other perturbations add no errors to tags; neither is wrong what gold tags confirm.
    evaluated(systems, n_replicas=60, perturb=[Dirichlet(20)], **options)
    assert evaluated(n_replicas=60, perturb=[TagConfusion(0.05)], gold=TAGS).quality.micro.f1 == 1


@pytest.mark.filterwarnings("ignore:an interval over topics needs at least two topics")
def test_intents_of_several_ids_are_refused_by_what_reads_single_ids(tmp_path):
    intents = pd.DataFrame({"qid": ["q1"], "entity_id": ["p1"], "prob": [1.0], "parts": [["A"]]})
    run = pd.DataFrame({"qid": ["q1"], "docno": ["a1"], "score": [1.0]})
    with pytest.raises(InputError, match="intents: are several ids at once"):
        vbterrier.evaluate.intent_sensitivity({"x": run}, intents, tags=TAGS, measures=["ES@5"])
    topics = pd.DataFrame({"qid": ["q1"], "query": ["x"]})
    with pytest.raises(ParameterError, match="nil= needs the tags of single ids"):
        evaluated({"x": run}, topics, intents, TAGS, measures=["ES(nil='NIL')"])
    run.to_csv(tmp_path / "run.csv", index=False)
    whole = evaluated({"x": run}, topics, intents, TAGS, execution=Execution(n_jobs=1)).values
    pd.testing.assert_frame_equal(
        evaluated({"x": tmp_path / "run.csv"}, topics, intents, TAGS, execution=Execution(n_jobs=2)).values, whole
    )


def test_ties_of_a_file_are_those_of_the_frame(tmp_path):
    tags = TAGS.assign(tied=[True, False, False, True, False], n_abstained=[0, 0, 1, 0, 0])
    tables = [
        tags,
        tags.assign(tied=tags["tied"].map(str)),
        tags.assign(tied=tags["tied"].map({True: "1", False: "0"})),
    ]
    for place, (form, separator) in enumerate([("csv", ","), ("tsv", "\t")]):
        tags.astype({"tied": int}).to_csv(tmp_path / f"tags.{form}", sep=separator, index=False)
        tables.append(vbterrier.read_tags(tmp_path / f"tags.{form}"))
        assert tables[-1]["tied"].tolist() == tags["tied"].tolist(), place
    tags.to_parquet(tmp_path / "tags.parquet")
    tables += [tmp_path / "tags.parquet", str(tmp_path / "tags.csv")]
    tagging = []
    for table in tables:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateWarning)
            tagging.append(evaluated(tagger=table, cutoff=[1, 2]).tagging)
    assert (tagging[0]["ES_best"] > tagging[0]["ES_worst"]).any()
    for other in tagging[1:]:
        pd.testing.assert_frame_equal(other, tagging[0])


def test_abstentions_count_documents_without_tags():
    # Of the first two documents of each query, two have three abstentions and no tag.
    frame = pd.DataFrame({"docno": ["a1", "s1", "c1", "p1"], "entity_id": [["A"], ["A"], [], []]})
    run = pd.concat([frame.assign(qid=qid) for qid in INTENTS["qid"].unique()], ignore_index=True)
    run = run.assign(score=-np.arange(len(run), dtype=float), weight=[[1.0] * len(one) for one in run["entity_id"]])
    run = run.assign(
        tagger="mine", tied=[[False] * len(one) for one in run["entity_id"]], n_abstained=[0, 1, 2, 1] * (len(run) // 4)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        tagging = evaluated({"run": run}, tagger=None, cutoff=[2, 4]).tagging
    assert tagging["abstained"].tolist() == pytest.approx([1 / 3, 4 / 6])
