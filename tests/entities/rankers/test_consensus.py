import math
from collections import defaultdict

import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import P
from pandas.testing import assert_frame_equal

from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.consensus import ConsensusEntities
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.frames.ranking import ranked

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


def test_links_that_are_none():
    with pytest.raises(InputError, match="links: wanted a data frame, found dict"):
        ConsensusEntities({})
    with pytest.raises(InputError, match="links: wanted columns docno, entity_id; missing entity_id"):
        ConsensusEntities(pd.DataFrame({"docno": ["d1"]}))
    with pytest.raises(pt.validate.InputValidationError):
        ConsensusEntities(pd.DataFrame({"docno": ["d1"], "entity_id": ["e"]}))(pd.DataFrame({"qid": ["q1"]}))
