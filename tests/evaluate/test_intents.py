"""VB-Scores with intervals from queries and systems."""

import json

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate.intents import evaluate_intents
from vbterrier.evaluate.replicas import Paraphrases, RerunPipeline
from vbterrier.report.paper import paper_table
from vbterrier.stats.perturbations import Dirichlet, DropCandidates, IntentBootstrap, TagConfusion
from vbterrier.stats.variants import Variants

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

    def __init__(self, known):
        super().__init__()
        self.known, self.seen = known, []

    def transform(self, inp):
        self.seen.append(inp)
        rows = [
            (topic.qid, entity, prob)
            for topic in inp.itertuples()
            for entity, prob in self.known.get(topic.query, {}).items()
        ]
        return pd.DataFrame(rows, columns=["qid", "entity_id", "prob"])


def evaluated(systems=None, topics=TOPICS, intents=INTENTS, tagger=TAGS, **options):
    options = {"measures": ["ES", "VB"], "cutoff": [10], **options}
    return evaluate_intents(SYSTEMS if systems is None else systems, topics, intents=intents, tagger=tagger, **options)


def test_both_case_studies_of_the_paper():
    found = evaluated()
    values = found.values.set_index(["name", "qid", "measure"])["value"]
    assert values["literal", "q1", "ES@10"] == pytest.approx(0.8)
    assert values["literal", "q1", "VB@10"] == pytest.approx(0.4)
    assert values["literal", "q2", "ES@10"] == pytest.approx(0.2)
    assert values["literal", "q2", "VB@10"] == pytest.approx(-0.2)
    assert values.loc["both"].tolist() == pytest.approx([1, 1, 1, 1])


def test_measures_are_computed_at_every_cutoff_unless_they_have_their_own():
    found = evaluated(measures=["ES", "VB(alpha=0.5)@2", "alpha_nDCG"], cutoff=[1, 3])
    assert list(found.means()) == ["ES@1", "ES@3", "VB(alpha=0.5)@2", "alpha_nDCG@1", "alpha_nDCG@3"]


def test_what_stands_beside_the_scores():
    found = evaluated(cutoff=[1, 2])
    assert found.missing["n_missing"].tolist() == [0, 0]
    first = found.covered.set_index(["name", "qid", "entity_id"]).sort_index()
    assert first.loc[("both", "q1", "C"), "first_rank"] == 2
    assert pd.isna(first.loc[("literal", "q1", "C"), "first_rank"])
    assert first.loc[("both", "q2"), "place"].to_dict() == {"S": 2, "P": 1}
    beside = found.tagging.set_index(["name", "cutoff"])
    # The best first document covers the more probable intent of each query; two documents cover all.
    assert beside["oracle_ES"].to_dict() == pytest.approx(
        {("literal", 1): 0.8, ("both", 1): 0.8, ("literal", 2): 1.0, ("both", 2): 1.0}
    )
    assert beside["ES"].to_dict() == pytest.approx(
        {("literal", 1): 0.5, ("both", 1): 0.5, ("literal", 2): 0.5, ("both", 2): 1.0}
    )
    assert (beside["tagged"] == 1).all()
    assert found.comparisons[["name_a", "name_b", "measure"]].to_numpy().tolist()[0] == ["literal", "both", "ES@1"]


def test_the_same_pipeline_in_a_plain_experiment():
    vbterrier.register_intents("case studies", INTENTS, replace=True)
    vbterrier.register_tags("case studies", TAGS, replace=True)
    measures = [measure(intents="case studies", tags="case studies") @ 10 for measure in (vbterrier.ES, vbterrier.VB)]
    table = pt.Experiment(SYSTEMS, TOPICS, INTENTS, measures).set_index("name")
    means = evaluated().means()
    assert table.loc[means.index].to_numpy() == pytest.approx(means.to_numpy())


def test_pipelines_are_run_for_the_topics_alone():
    class Retriever(pt.Transformer):
        def transform(self, inp):
            rows = LITERAL.merge(inp[["qid", "query"]], on="qid")
            return pt.model.add_ranks(rows)

    intents = Linked({"Jordan achievements": {"A": 0.8, "C": 0.2}, "Professor John Doe at MIT": {"S": 0.2, "P": 0.8}})
    found = evaluated({"pipeline": Retriever(), "frame": LITERAL}, intents=intents)
    assert len(intents.seen) == 1
    means = found.means()
    assert means.loc["pipeline"].tolist() == means.loc["frame"].tolist() == pytest.approx([0.5, 0.1])


def test_one_tagger_tags_the_first_documents_of_all_systems_once():
    read = []

    def tagger(text):
        read.append(text)
        return [text[0].upper()]

    texts = {name: run.assign(text=run["docno"]) for name, run in SYSTEMS.items()}
    found = evaluated(texts, tagger=tagger)
    assert sorted(read) == sorted(set(LITERAL["docno"]) | set(BOTH["docno"]))
    assert found.means().loc["both"].tolist() == [1, 1]
    deep = evaluated(texts, tagger=tagger, cutoff=[1])
    assert set(deep.tags["docno"]) == {"a1", "s1"}


def test_documents_that_are_entities():
    run = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["A", "P"], "score": [1.0, 1.0]})
    assert evaluated({"entities": run}, tagger="docno").means().loc["entities", "ES@10"] == pytest.approx(0.8)


def test_tags_that_come_with_the_results():
    tagged = {name: run.merge(TAGS, on="docno") for name, run in SYSTEMS.items()}
    pd.testing.assert_frame_equal(evaluated(tagged, tagger=None).means(), evaluated().means())


def test_results_tagged_in_different_ways_are_refused():
    tagged = {name: run.merge(TAGS, on="docno") for name, run in SYSTEMS.items()}
    tagged["both"] = tagged["both"].assign(entity_id="C")
    with pytest.raises(
        InputError, match=r"document 'a1' of query 'q1' has entity 'A' with weight 1 in 1 of the 2 systems"
    ):
        evaluated(tagged, tagger=None)
    named = {name: run.merge(TAGS, on="docno").assign(tagger=name) for name, run in SYSTEMS.items()}
    with pytest.raises(InputError, match="one tagger only"):
        evaluated(named, tagger=None)
    with pytest.raises(InputError, match="run 'literal' has no column entity_id; give a tagger"):
        evaluated(tagger=None)


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
        with pytest.raises(
            InputError, match=rf"run '{name}': no column 'text', which TagEntities.* reads; add pt.text"
        ):
            evaluated(texts | {name: SYSTEMS[name]}, tagger=tagger)
    with pytest.raises(InputError, match="several texts with different tags"):
        evaluated(texts | {"both": BOTH.assign(text="c")}, tagger=tagger)
    silent = texts | {"none": BOTH[:0]}
    with pytest.warns(DegenerateWarning, match="run 'none': empty"):
        found = evaluated(silent, tagger=tagger, on_topics="all", measures=["ES(nil='N')"], intents=NIL)
    assert found.means()["ES(nil='N')@10"].to_dict() == pytest.approx({"literal": 0.25, "both": 0.5, "none": 0.5})


def test_results_that_carry_tags_are_tagged_anew_by_a_tagger():
    carried = {
        name: run.assign(entity_id="C", weight=0.5, tagger=name, text=run["docno"]) for name, run in SYSTEMS.items()
    }
    found = evaluated(carried, tagger=lambda text: [text[0].upper()])
    pd.testing.assert_frame_equal(found.means(), evaluated().means())


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


def test_a_frame_may_have_a_column_called_intents():
    assert evaluated(intents=INTENTS.assign(intents="x")).means().equals(evaluated().means())


def test_frames_of_polars():
    polars = pytest.importorskip("polars")
    systems, topics, intents, tags = (
        {name: polars.from_pandas(run) for name, run in SYSTEMS.items()},
        *map(polars.from_pandas, (TOPICS, INTENTS, TAGS)),
    )
    found = evaluated(systems, topics, intents, tags, measures=["VB", "alpha_nDCG"], n_replicas=3)
    pd.testing.assert_frame_equal(found.per_query, evaluated(measures=["VB", "alpha_nDCG"], n_replicas=3).per_query)


def test_what_was_asked_is_checked_before_any_work():
    class Never(pt.Transformer):
        def transform(self, inp):
            raise AssertionError(inp)

    asked = {"systems": {"never": Never()}, "intents": Never()}
    for options in ({"baseline": "nevr"}, {"level": 95}, {"cutoff": [0]}, {"measures": ["ES(nil='N')", "ES"]}):
        with pytest.raises(ParameterError):
            evaluated(**asked, **options)


def test_queries_without_candidates_are_an_error_or_left_out():
    more = pd.concat([TOPICS, pd.DataFrame({"qid": ["q3"], "query": ["?"]})])
    with pytest.raises(InputError, match=r"1 of 3 queries have no candidate intents \('q3'\)"):
        evaluated(topics=more)
    with pytest.warns(DegenerateWarning, match="are left out"):
        found = evaluated(topics=more, undefined="skip")
    assert found.values["qid"].unique().tolist() == ["q1", "q2"]
    seen = []

    class Retriever(pt.Transformer):
        def transform(self, inp):
            seen.extend(inp["qid"])
            return LITERAL

    with pytest.warns(DegenerateWarning, match="are left out"):
        evaluated({"pipeline": Retriever()}, topics=more, undefined="skip")
    assert seen == ["q1", "q2"]


def test_systems_with_different_queries():
    half = {"literal": LITERAL, "half": BOTH[BOTH["qid"] == "q1"]}
    with pytest.raises(InputError, match="averages over different topics compare"):
        evaluated(half)
    assert evaluated(half, on_topics="all").means().loc["half", "ES@10"] == 0.5
    with pytest.warns(DegenerateWarning, match="at least two"):
        common = evaluated(half, on_topics="common", n_replicas=3)
    assert common.values["qid"].unique().tolist() == ["q1"]
    assert common.replicas.topics == ["q1"]


def test_replicas_around_the_scores():
    found = evaluated(n_replicas=400, perturb=[Dirichlet(30)], seed=3)
    of_replicas = found.intervals[found.intervals["method"].str.startswith("replicas")]
    assert (of_replicas["n_resamples"] == 400).all()
    assert found.intervals["method"].tolist()[:2] == ["topics (percentile)", "replicas (percentile)"]
    literal = found.per_query.set_index(["name", "qid", "measure"]).loc[("literal", "q1", "ES@10")]
    assert literal["value"] == pytest.approx(0.8)
    assert literal["low"] < 0.8 < literal["high"]
    # Beta(24, 6) has standard deviation .0718; its estimate from 400 draws is within 15 %.
    assert literal["std"] == pytest.approx(np.sqrt(0.8 * 0.2 / 31), rel=0.15)
    # A system that covers all intents scores 1 for any probabilities.
    both = found.replicas.of("both", found.replicas.statistics[0])
    assert both.min() == 1.0


def test_the_same_seed_gives_the_same_whatever_the_order_and_the_other_systems():
    options = {"n_replicas": 50, "perturb": [Dirichlet(5), TagConfusion(0.3)], "seed": 7, "cutoff": [1, 2]}
    whole = evaluated(**options)
    shuffled = evaluated(
        {"both": BOTH.sample(frac=1, random_state=1)},
        topics=TOPICS[::-1],
        intents=INTENTS.sample(frac=1, random_state=2),
        tagger=TAGS[::-1],
        **options,
    )
    keys = ["name", "qid", "measure"]
    expected = whole.per_query.query("name == 'both'").set_index(keys).sort_index()
    pd.testing.assert_frame_equal(shuffled.per_query.set_index(keys).sort_index(), expected)


def test_perturbations_of_tags_need_no_other_systems():
    options = {"n_replicas": 30, "perturb": [TagConfusion(0.5)], "cutoff": [1]}
    together = evaluated(**options).replicas
    alone = evaluated({"both": BOTH}, **options).replicas
    statistic = together.statistics[0]
    assert np.array_equal(together.of("both", statistic), alone.of("both", statistic))
    # Both systems have the same first documents, so that they score the same under the same noise.
    assert np.array_equal(together.of("both", statistic), together.of("literal", statistic))


def test_measures_of_others_have_no_replicas():
    found = evaluated(measures=["ES", "alpha_nDCG"], n_replicas=5)
    of_others = found.intervals[found.intervals["measure"] == "alpha_nDCG@10"]
    assert of_others["method"].unique().tolist() == ["topics (percentile)"]
    with pytest.raises(ParameterError, match="add ES or VB"):
        evaluated(measures=["alpha_nDCG"], n_replicas=5)


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
    topics = ONE.assign(paraphrases=[wordings])
    found = quiet(
        topics=topics, intents=Linked(JORDAN), n_replicas=300, perturb=[Paraphrases(order="turn")], measures=["ES"]
    )
    literal = found.replicas.of("literal", found.replicas.statistics[0])[:, 0]
    # The literal system covers A alone, whose probability the three wordings put at .8, 1 and 0.
    assert sorted(np.unique(literal.round(6)).tolist()) == [0.0, 0.8, 1.0]
    assert literal.mean() == pytest.approx(0.6)
    assert found.replicas.point.max() == pytest.approx(1.0)


def test_paraphrases_from_a_transformer():
    class Reworded(pt.Transformer):
        def transform(self, inp):
            return pd.concat([inp.assign(query=query) for query in list(JORDAN)[1:]])

    asked = {"intents": Linked(JORDAN), "topics": ONE, "n_replicas": 30, "measures": ["ES"]}
    by_stage = quiet(perturb=[Paraphrases(Reworded())], **asked)
    asked["topics"] = ONE.assign(words=[list(JORDAN)[1:]])
    by_column = quiet(perturb=[Paraphrases("words")], **asked)
    assert np.array_equal(by_stage.replicas.values, by_column.replicas.values)


@pytest.mark.filterwarnings("ignore:.* intervals of replicas exclude the score")
def test_a_stage_run_again_gets_a_seed_of_its_own_for_each_query_and_replica():
    class Sampled(pt.Transformer):
        def transform(self, inp):
            return pd.concat(
                [
                    pd.DataFrame({"qid": row.qid, "entity_id": ["A", "C"], "prob": [share, 1 - share]})
                    for row in inp.itertuples()
                    for share in [np.random.default_rng(getattr(row, "seed", 0)).random()]
                ]
            )

    again = quiet(topics=ONE, intents=Sampled(), n_replicas=20, perturb=[RerunPipeline()], measures=["ES"])
    scores = again.replicas.of("literal", again.replicas.statistics[0])[:, 0]
    assert len(np.unique(scores)) == 20
    twins = evaluated(
        topics=TOPICS, intents=Sampled(), tagger=TAGS.replace({"S": "A"}), n_replicas=5, perturb=RerunPipeline()
    )
    first, second = twins.replicas.of("literal", twins.replicas.statistics[0]).T
    assert not set(first) & set(second)
    prefix = quiet(topics=ONE, intents=Sampled(), n_replicas=5, perturb=[RerunPipeline()], measures=["ES"])
    assert np.array_equal(prefix.replicas.values[:, :, :, 0], again.replicas.values[:, :, :5, 0])


def test_candidates_made_anew_need_the_pipeline_that_makes_them():
    for perturbation in (Paraphrases(), RerunPipeline()):
        with pytest.raises(ParameterError, match="is not a pipeline"):
            evaluated(n_replicas=3, perturb=[perturbation])
    with pytest.raises(InputError, match="column 'paraphrases' contains 3; wanted a list of texts"):
        evaluated(
            ITS_SYSTEMS, topics=ONE.assign(paraphrases=3), intents=Linked(JORDAN), n_replicas=3, perturb=Paraphrases()
        )
    for options, message in (({"source": 3}, "a column of the topics"), ({"order": "all"}, "wanted one of 'random'")):
        with pytest.raises(ParameterError, match=message):
            Paraphrases(**options)
    with pytest.raises(ParameterError, match="wanted a transformer"):
        RerunPipeline("linker")
    itself = ONE.assign(paraphrases=[["Jordan achievements", " "]])
    with pytest.raises(InputError, match="no query has a paraphrase"):
        evaluated(ITS_SYSTEMS, topics=itself, intents=Linked(JORDAN), n_replicas=3, perturb=[Paraphrases()])


def test_paraphrases_of_unknown_queries_are_refused():
    class Renamed(pt.Transformer):
        def transform(self, inp):
            return inp.assign(qid=inp["qid"] + "-1")

    with pytest.raises(InputError, match="no topic has qid 'q1-1'; give each paraphrase the qid of its query"):
        evaluated(ITS_SYSTEMS, topics=ONE, intents=Linked(JORDAN), n_replicas=3, perturb=[Paraphrases(Renamed())])


def test_wordings_without_candidates_are_told():
    topics = ONE.assign(paraphrases="Jordan history | Jordan river")
    told = r"Paraphrases\(.*: no candidates for 1 of 2 runs of a query \('q1'\)"
    with pytest.warns(DegenerateWarning, match="at least two"), pytest.warns(DegenerateWarning, match=told):
        found = evaluated(
            ITS_SYSTEMS, topics, Linked(JORDAN), n_replicas=10, perturb=Paraphrases(order="turn"), measures=["ES"]
        )
    assert found.replicas.of("literal", found.replicas.statistics[0])[:, 0].tolist() == pytest.approx([0.8, 0] * 5)


def test_perturbations_follow_one_another():
    variant = pd.DataFrame({"qid": ["q1"], "entity_id": ["R"], "prob": [1.0]})
    found = evaluated(n_replicas=40, perturb=[Variants([INTENTS, variant]), DropCandidates(0.3), IntentBootstrap()])
    assert np.isfinite(found.replicas.values).all()
    assert found.intents.shape == (4, 3)


def test_intervals_of_other_kinds():
    for interval in ("percentile", "bca", "normal"):
        found = evaluated(n_replicas=60, interval=interval, measures=["ES"])
        own = found.intervals.query("name == 'literal'")
        assert len(own) == 2
        assert (own["low"] <= own["high"]).all()
        assert own["method"].iloc[0] == f"topics ({interval})"
        assert interval in own["method"].iloc[1]


def test_resampled_intents_have_accelerated_intervals():
    found = evaluated(n_replicas=60, perturb=[IntentBootstrap()], interval="bca", measures=["ES"])
    assert found.per_query["method"].unique().tolist() == ["intents (bca)"]
    assert found.intervals["method"].unique().tolist() == ["topics (bca)", "intents (bca)"]


def test_what_is_no_pipeline_of_intents_is_told_what_to_do():
    class Names:
        id_space = "own"

        def link(self, texts):
            raise AssertionError(texts)

    with pytest.raises(InputError, match=r"wanted a pipeline: CandidateIntents\(linker\)"):
        evaluated(intents=Names())
    with pytest.raises(InputError, match=r"CandidateIntents\(retriever\), or retriever >> Calibrate"):
        evaluated(intents=pt.Transformer.from_df(LITERAL.merge(TOPICS, on="qid")))


def test_nil_is_served_by_showing_nothing():
    intents = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["A", "NIL", "S"], "prob": [0.7, 0.3, 1.0]})
    silent = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["other", "s1"], "score": [1.0, 1.0]})
    found = evaluated({"silent": silent}, intents=intents, measures=["ES(nil='NIL')"], n_replicas=3)
    assert found.values["value"].tolist() == pytest.approx([0.3, 1.0])
    assert found.tagging["oracle_ES"].tolist() == pytest.approx([0.85])
    with pytest.raises(ParameterError, match="share one nil="):
        evaluated({"silent": silent}, intents=intents, measures=["ES(nil='NIL')", "ES"])
    assert found.intervals["measure"].unique().tolist() == ["ES(nil='NIL')@10"]
    assert found.per_query["measure"].unique().tolist() == ["ES(nil='NIL')@10"]


@pytest.mark.parametrize("own", ["tags='x'", "intents='x'", "normalise=True", "rel=2", "undefined='zero'"])
def test_measures_share_the_intents_and_tags_of_the_call(own):
    with pytest.raises(ParameterError, match=rf"drop {own.partition('=')[0]}=, or use vbterrier.score"):
        evaluated(measures=[f"ES({own})"])


def test_unperturbed_replicas_are_the_scores_whatever_the_measure():
    intents = pd.DataFrame({"qid": "q1", "entity_id": [*"ACR", "NIL"], "prob": [0.25, 0.25, 0.25, 0.25]})
    tags = pd.DataFrame({"docno": [*"abcde"], "entity_id": [*"AACRA"], "weight": [0.5, 1, 0.75, 1, 0.25]})
    run = pd.DataFrame({"qid": "q1", "docno": [*"xabcz"], "score": [5.0, 4, 3, 2, 1]})
    more = pd.DataFrame({"qid": "q2", "entity_id": [*"AC"], "prob": 0.5})
    runs = {"a": pd.concat([run, run.assign(qid="q2")]), "b": pd.concat([run[:1], run[2:3].assign(qid="q2")])}
    nil = "nil='NIL'"
    measures = [f"ES({nil})", f"VB({nil},clip=True)", f"ES({nil},gain='dcg')", f"VB({nil},monotone=True)",
                f"VB({nil},gain='dcg',variance='intent')", f"TopIntent({nil})", f"VarPenalty({nil})"]  # fmt: skip
    found = evaluated(
        runs,
        intents=pd.concat([intents, more]),
        tagger=tags,
        measures=measures,
        cutoff=[1, 2, 4],
        n_replicas=2,
        perturb=[],
    )
    keys = ["name", "qid", "measure"]
    scores = found.values.set_index(keys)["value"]
    replicated = found.per_query.set_index(keys)
    assert len(replicated) == len(scores)
    for column in ("value", "mean"):
        assert replicated[column].to_numpy() == pytest.approx(scores.loc[replicated.index].to_numpy())
    beside = found.tagging.set_index(["name", "cutoff"])
    assert beside["tagged"].to_dict() == {
        ("a", 1): 0, ("b", 1): 0.5, ("a", 2): 0.5, ("b", 2): 0.5, ("a", 4): 0.75, ("b", 4): 0.5
    }  # fmt: skip
    # At cutoff 1: one entity or NIL for q1, one of two for q2.
    assert beside.loc[("a", 1), "oracle_ES"] == pytest.approx((0.25 + 0.5) / 2)
    assert found.covered["place"].unique().tolist() == [1]
    first = found.covered.set_index(["name", "qid", "entity_id"])["first_rank"]
    assert first["a", "q1", "C"] == 4
    shallow = evaluated({"a": runs["a"]}, intents=pd.concat([intents, more]), tagger=tags, cutoff=[3], measures=["ES"])
    assert shallow.covered["first_rank"].isna().tolist() == [False, True, True, True, False, True]


def test_level_and_seed_reach_every_interval():
    options = {"n_replicas": 200, "cutoff": [1, 2], "measures": ["ES"]}
    narrow, wide = (evaluated(level=level, **options) for level in (0.5, 0.99))
    for name in ("intervals", "per_query", "comparisons"):
        first, second = getattr(narrow, name), getattr(wide, name)
        if name != "comparisons":
            assert set(first["level"]) == {0.5}
        inside = second["low"].le(first["low"]) & first["high"].le(second["high"])
        assert inside.all()
        assert ((second["high"] - second["low"]) > (first["high"] - first["low"])).any()
    for kind in ("topics", "replicas"):
        first, second = (found.intervals[found.intervals["method"].str.startswith(kind)] for found in (narrow, wide))
        assert ((second["high"] - second["low"]).to_numpy() > (first["high"] - first["low"]).to_numpy()).any()


def test_the_seed_reaches_the_comparisons():
    rng = np.random.default_rng(4)
    qids = [f"q{number}" for number in range(15)]
    topics = pd.DataFrame({"qid": qids, "query": "x"})
    intents = pd.DataFrame({"qid": np.repeat(qids, 2), "entity_id": list("AC") * 15, "prob": 0.5})
    intents["prob"] = np.stack([share := rng.random(15), 1 - share], axis=1).ravel()
    runs = {
        name: pd.DataFrame({"qid": qids, "docno": rng.choice(["a1", "c1"], 15), "score": 1.0}) for name in ("a", "b")
    }
    first, second = (evaluated(runs, topics, intents, seed=seed, measures=["ES"]).comparisons for seed in (1, 2))
    assert (first["low"] != second["low"]).all()


def test_the_oracle_may_serve_nil():
    intents = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["A", "NIL", "S"], "prob": [0.2, 0.8, 1.0]})
    found = evaluated({"literal": LITERAL}, intents=intents, measures=["ES(nil='NIL')"])
    assert found.tagging["oracle_ES"].tolist() == pytest.approx([0.9])


def test_precision_and_recall_of_the_tags():
    gold = pd.DataFrame({"docno": ["a1", "c1"], "entity_id": ["A", "X"]})
    quality = evaluated(gold=gold).quality
    assert quality is not None
    assert evaluated().quality is None


def test_topics_and_systems_from_files(tmp_path):
    vbterrier.write_run(BOTH, tmp_path / "both.run")
    vbterrier.write_intents(INTENTS, tmp_path / "intents.tsv")
    vbterrier.write_tags(TAGS, tmp_path / "tags.tsv")
    (tmp_path / "topics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TOPICS.to_dict("records")))
    found = evaluated(
        [tmp_path / "both.run"],
        tmp_path / "topics.jsonl",
        intents=tmp_path / "intents.tsv",
        tagger=tmp_path / "tags.tsv",
    )
    assert found.means().to_dict("index") == {"both": {"ES@10": 1.0, "VB@10": 1.0}}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cutoff": []}, ParameterError, "at least one cutoff"),
        ({"cutoff": [0]}, ParameterError, "whole numbers of at least 1"),
        ({"cutoff": [True]}, ParameterError, "whole numbers of at least 1"),
        ({"cutoff": "10"}, ParameterError, "whole numbers of at least 1"),
        ({"level": 95}, ParameterError, "level=95"),
        ({"seed": True}, ParameterError, "seed=True"),
        ({"topics": TOPICS.assign(qid=["q1", None])}, InputError, "topics column 'qid': row 1 has no id"),
        ({"measures": []}, ParameterError, "no measures"),
        ({"undefined": "zero"}, ParameterError, "wanted 'raise' or 'skip'"),
        ({"n_replicas": -1}, ParameterError, "n_replicas"),
        ({"baseline": "litteral"}, ParameterError, "Did you mean literal"),
        ({"topics": TOPICS.assign(qid="q1")}, InputError, "query 'q1' is duplicated"),
        ({"topics": TOPICS[["qid"]]}, InputError, "missing query"),
        ({"topics": TOPICS[:0]}, InputError, "no rows"),
        ({"topics": TOPICS.assign(qid=["x", "y"])}, InputError, "none of the 2 queries"),
        ({"systems": {}}, InputError, "no systems"),
        ({"on_topics": "some"}, ParameterError, "on_topics='some': wanted one of 'same'"),
        ({"interval": "BCa"}, ParameterError, "interval='BCa': wanted one of 'percentile'"),
        ({"interval": "studentised", "n_replicas": 5}, ParameterError, "interval='studentised': wanted one of"),
    ],
)
def test_options_that_do_not_exist(options, error, message):
    with pytest.raises(error, match=message):
        evaluated(**options)


def test_replicas_that_only_add_errors_are_not_intervals_of_the_score():
    with pytest.warns(
        DegenerateWarning, match=r"4 of 4 intervals of replicas exclude the score itself \(both, ES@5: 1"
    ):
        found = evaluated(
            {"both": SYSTEMS["both"]}, cutoff=[5, 10], n_replicas=60, perturb=[TagConfusion(0.9, lost=1.0)]
        )
    assert (found.intervals.loc[found.intervals["method"].str.startswith("replicas"), "high"] < 1).all()
    for style, mark in (("table", "‡"), ("markdown", "‡"), ("latex", r"\textsuperscript{\textdaggerdbl{}}")):
        text = paper_table(found, style)
        assert mark in text
        assert "excludes the score: the perturbations add errors" in text
    plain = evaluated(cutoff=[10], n_replicas=60, perturb=[Dirichlet(20)])
    assert "‡" not in paper_table(plain, "table")
