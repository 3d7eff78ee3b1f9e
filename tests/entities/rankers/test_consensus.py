import json
import math
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import P
from pandas.testing import assert_frame_equal

from vbterrier.entities.coverage import Selection
from vbterrier.entities.pool import LinkedPool, link_pool
from vbterrier.entities.rankers.consensus import ConsensusEntities
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.files.reading import read_run
from vbterrier.frames.ranking import ranked
from vbterrier.kernels.coverage import coverage
from vbterrier.linking.corpora import read_spans

SUPPORT = ["rank", "rho", "rho+rank"]


def by_loop(run, tags, support, *, least=2, depth=None):
    """Equation 11, document by document."""
    expected = {}
    for qid, documents in ranked(run, depth).groupby("qid"):
        total, df = defaultdict(float), defaultdict(int)
        for docno, rank in zip(documents["docno"], documents["rank"], strict=True):
            for entity, mentions in tags[tags["docno"] == docno].groupby("entity_id"):
                df[entity] += 1
                weight = mentions["weight"].max() if "rho" in support else 1.0
                total[entity] += weight / math.log2(rank + 2) if "rank" in support else weight
        for entity, count in df.items():
            if count >= least:
                expected[qid, entity] = total[entity] * (math.log((len(documents) + 1) / (count + 1)) + 1)
    return expected


@pytest.mark.parametrize("support", SUPPORT)
@pytest.mark.parametrize(("least", "depth"), [(2, None), (1, 5), (3, 100)])
def test_scores_are_those_of_the_equation(collection, scores_of, support, least, depth):
    data = collection(1)
    expected = by_loop(data["run"], data["tags"], support, least=least, depth=depth)
    stage = {"support": support, "min_documents": least, "pool_cutoff": depth}
    for links in (data["tags"], link_pool(data["run"], data["tags"]), link_pool(data["run"], data["tags"]).frame()):
        found = ConsensusEntities(links, **stage)(data["run"])
        assert scores_of(found) == pytest.approx(expected)
        assert_frame_equal(found, ranked(found)[found.columns.tolist()], check_dtype=False)


def test_by_hand():
    # Paris in both documents: (1/log2(2) + 1/log2(3)) (ln(3/3) + 1); Rome in one is dropped.
    run = pd.DataFrame({"qid": "q1", "docno": ["d2", "d1"], "score": [1.0, 2.0]})
    tags = pd.DataFrame(
        {
            "docno": ["d1", "d2", "d2", "d2"],
            "entity_id": ["Paris", "Paris", "Paris", "Rome"],
            "weight": [0.5, 0.2, 0.3, 1],
        }
    )
    for support, expected in [("rank", 1 + 1 / math.log2(3)), ("rho", 0.8), ("rho+rank", 0.5 + 0.3 / math.log2(3))]:
        found = ConsensusEntities(tags, support=support)(run)
        assert found.columns.tolist() == ["qid", "docno", "score", "rank"]
        assert found["docno"].tolist() == ["Paris"]
        assert found["score"].tolist() == pytest.approx([expected])


def test_neither_order_nor_batches_change_anything(collection):
    data = collection(2)
    pool = link_pool(data["run"], data["tags"])
    for links in (pool, data["tags"]):
        stage = ConsensusEntities(links, support="rho+rank")
        whole = stage(data["run"])
        mixed = stage(data["run"].sample(frac=1, random_state=3)).sort_values(["qid", "rank"], ignore_index=True)
        assert_frame_equal(mixed, whole, check_exact=True)
        parts = [stage(each) for _, each in data["run"].groupby("qid")]
        assert_frame_equal(pd.concat(parts, ignore_index=True), whole, check_exact=True)
    shuffled = LinkedPool.from_frame(pool.frame().sample(frac=1, random_state=4))
    again = ConsensusEntities(shuffled, support="rho+rank")(data["topics"])
    assert_frame_equal(again, ConsensusEntities(pool, support="rho+rank")(data["topics"]), check_exact=True)


def test_top_cuts_and_ties_fall_as_in_trec_eval(collection):
    run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    tags = pd.DataFrame([(d, e) for d in ("d1", "d2") for e in ("A", "C", "B")], columns=["docno", "entity_id"])
    assert ConsensusEntities(tags)(run)["docno"].tolist() == ["C", "B", "A"]
    assert ConsensusEntities(tags, cutoff=2)(run)["docno"].tolist() == ["C", "B"]
    # What only double precision tells apart is a tie.
    barely = tags.assign(weight=tags["entity_id"].map({"A": 0.5 + 1e-12, "B": 0.5, "C": 0.5}))
    assert ConsensusEntities(barely, support="rho")(run)["docno"].tolist() == ["C", "B", "A"]
    data = collection(3)
    whole = ConsensusEntities(data["tags"])(data["run"])
    cut = ConsensusEntities(data["tags"], cutoff=3)(data["run"])
    assert_frame_equal(cut, whole[whole["rank"] < 3].reset_index(drop=True))


def test_queries_stay_and_input_is_not_changed(collection):
    data = collection(4)
    before = data["run"].copy(deep=True)
    found = ConsensusEntities(data["tags"])(data["run"])
    assert_frame_equal(data["run"], before)
    assert found.columns.tolist() == ["qid", "query", "docno", "score", "rank"]
    assert (found["query"] == "query of " + found["qid"]).all()


@pytest.mark.parametrize("shape", ["pool", "tags"])
def test_nothing_gives_nothing(collection, shape):
    data = collection(5)
    stage = ConsensusEntities(link_pool(data["run"], data["tags"]) if shape == "pool" else data["tags"])
    found = stage(data["run"].iloc[:0])
    assert len(found) == 0
    assert found.columns.tolist() == ["qid", "query", "docno", "score", "rank"]
    assert stage(found).columns.tolist() == found.columns.tolist()


def test_topics_and_documents_without_entities_are_told_of(collection):
    data = collection(6)
    pool = link_pool(data["run"], data["tags"])
    with pytest.warns(DegenerateWarning, match="1 topics are not in links.*'new'"):
        found = ConsensusEntities(pool)(pd.DataFrame({"qid": ["new", "q1"], "query": "?"}))
    assert set(found["qid"]) == {"q1"}
    unknown = pd.DataFrame({"qid": ["new"], "docno": ["x"], "score": [1.0]})
    with pytest.warns(DegenerateWarning, match="none of its 1 documents has an entity"):
        assert len(ConsensusEntities(data["tags"])(unknown)) == 0
    with pytest.raises(InputError, match="never match"):
        ConsensusEntities(data["tags"])(unknown.assign(docno=[7]))


def test_pyterrier_inspects_and_evaluates_it(collection):
    data = collection(7)
    pool = link_pool(data["run"], data["tags"])
    fixed, linked = ConsensusEntities(pool), ConsensusEntities(data["tags"])
    assert pt.inspect.transformer_inputs(fixed) == [["qid"]]
    assert pt.inspect.transformer_inputs(linked) == [["qid", "docno", "score"]]
    expected = ["qid", "query", "docno", "score", "rank"]
    assert pt.inspect.transformer_outputs(linked, ["qid", "query", "docno", "score", "rank"]) == expected
    qrels = pd.DataFrame({"qid": data["topics"]["qid"], "docno": "E1", "label": 1})
    systems = [fixed, pt.Transformer.from_df(data["run"]) >> linked, fixed % 3]
    at_once = pt.Experiment(systems, data["topics"], qrels, [P @ 3], perquery=True)
    in_batches = pt.Experiment(systems, data["topics"], qrels, [P @ 3], perquery=True, batch_size=1)
    values = at_once.groupby("name")["value"].apply(lambda column: sorted(column.tolist())).tolist()
    assert values[0] == values[1] == values[2]
    assert sum(values[0]) > 0
    assert_frame_equal(at_once, in_batches)


def test_stages_are_what_their_parameters_are(collection):
    data = collection(8)
    pool, again = (link_pool(data["run"], data["tags"]) for _ in range(2))
    assert ConsensusEntities(pool) == ConsensusEntities(again) == ConsensusEntities(pool.frame())
    assert hash(ConsensusEntities(pool)) == hash(ConsensusEntities(again))
    assert ConsensusEntities(pool) != ConsensusEntities(pool, support="rho")
    assert ConsensusEntities(pool) != ConsensusEntities(link_pool(data["run"], data["tags"], cutoff=3))
    assert ConsensusEntities(data["tags"]) == ConsensusEntities(data["tags"].copy())
    assert ConsensusEntities(data["tags"]) != ConsensusEntities(data["tags"].iloc[1:])
    assert (
        repr(ConsensusEntities(pool, support="rho", cutoff=20))
        == "ConsensusEntities(4 topics, support='rho', cutoff=20)"
    )
    stage = ConsensusEntities(data["tags"])
    expected = stage(data["run"])
    data["tags"]["entity_id"] = "changed"
    assert_frame_equal(stage(data["run"]), expected)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"support": "rang"}, "support='rang'.*Did you mean rank"),
        ({"min_documents": 0}, "min_documents=0: wanted a whole number of at least 1"),
        ({"pool_cutoff": 1.5}, "pool_cutoff=1.5"),
        ({"cutoff": True}, "cutoff=True"),
    ],
)
def test_illegal_parameters(collection, parameters, message):
    with pytest.raises(ParameterError, match=message):
        ConsensusEntities(collection(9)["tags"], **parameters)


def test_links_that_are_none():
    with pytest.raises(InputError, match="links: wanted a data frame, found dict"):
        ConsensusEntities({})
    with pytest.raises(InputError, match="links: wanted columns docno, entity_id; missing entity_id"):
        ConsensusEntities(pd.DataFrame({"docno": ["d1"]}))
    with pytest.raises(pt.validate.InputValidationError):
        ConsensusEntities(pd.DataFrame({"docno": ["d1"], "entity_id": ["e"]}))(pd.DataFrame({"qid": ["q1"]}))


@pytest.fixture(scope="module")
def ambiguous(shared_data):
    """Ambiguous names: bm25's documents, those of the dominant intent relevant, and gold and WAT's links."""
    folder = shared_data / "aida_ambiguous_labels"
    topics = [json.loads(line) for line in (folder / "topics.jsonl").read_text().splitlines()]
    dominant = {topic["qid"]: max(topic["intents"], key=lambda intent: intent["p"])["intent"] for topic in topics}
    rows = [line.split() for line in (folder / "qrels.intents.txt").read_text().splitlines()]
    return SimpleNamespace(
        run=read_run(folder / "runs" / "bm25.run.gz"),
        qrels=pd.DataFrame([(qid, docno, 1) for qid, intent, docno, _ in rows if intent == dominant[qid]]).set_axis(
            ["qid", "docno", "label"], axis=1
        ),
        tags={name: read_spans(folder / f"links.{name}.jsonl.gz", nil="drop") for name in ("gold", "wat")},
    )


@pytest.mark.parametrize(
    ("linker", "ranks", "relevant", "other", "ratio"),
    # Of tied documents trec_eval's order is not that of the file, by which others have computed.
    [("gold", "file", 0.939, 0.726, 1.29), ("gold", "ours", 0.939, 0.723, 1.30), ("wat", "ours", 0.929, 0.790, 1.18)],
)
def test_coverage_of_ambiguous_names(ambiguous, linker, ranks, relevant, other, ratio):
    run = ambiguous.run.assign(score=-ambiguous.run["rank"].astype(float)) if ranks == "file" else ambiguous.run
    pool = link_pool(run, ambiguous.tags[linker], ambiguous.qrels, cutoff=100)
    found = Selection(pool, ConsensusEntities(pool, support="rank", cutoff=20)(run), 20)
    covered = [
        coverage(found.first, chosen, pool.topic, len(pool.topics), np.array([20]))[:, 0]
        for chosen in (pool.relevant(), ~pool.relevant())
    ]
    both = ~np.isnan(covered).any(axis=0)
    means = [each[both].mean() for each in covered]
    assert both.sum() == 184
    assert means == pytest.approx([relevant, other], abs=0.0006)
    assert means[0] / means[1] == pytest.approx(ratio, abs=0.006)


@pytest.mark.parametrize("support", SUPPORT)
def test_published_links_of_ambiguous_names(ambiguous, support, scores_of):
    run = ambiguous.run[ambiguous.run["qid"].isin(ambiguous.run["qid"].unique()[:3])]
    tags = ambiguous.tags["wat"].assign(weight=1.0)
    tags = tags[tags["docno"].isin(run["docno"])]
    assert scores_of(ConsensusEntities(tags, support=support)(run)) == pytest.approx(by_loop(run, tags, support))
