import warnings
from collections import defaultdict

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from pandas.testing import assert_frame_equal

from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.consensus import ConsensusEntities, PersonalisedPageRank
from vbterrier.entities.rankers.hybrid import HybridEntities, OERFilter
from vbterrier.entities.stage import selected_entities
from vbterrier.errors import DegenerateWarning
from vbterrier.frames.linked_pool import LinkedPool


@pytest.fixture
def data(collection):
    return collection(1)


@pytest.fixture
def rankers(data):
    pool = link_pool(data["run"], data["tags"])
    return [ConsensusEntities(pool, cutoff=5), PersonalisedPageRank(pool), ConsensusEntities(pool, support="rho") % 3]


def by_loop(rankers, weights, topics, share):
    """Each ranker's ranking of each topic in turn."""
    total = defaultdict(float)
    for ranker, weight in zip(rankers, weights, strict=True):
        for qid, ranking in ranker(topics).groupby("qid"):
            for row in ranking.itertuples():
                total[qid, row.docno] += weight * share(row, ranking["score"])
    return dict(total)


@pytest.mark.parametrize("weights", [None, [0.5, 2, 0], (1, 1, 1)])
@pytest.mark.parametrize(
    ("parameters", "share"),
    [
        ({}, lambda row, _: 1 / (61 + row.rank)),
        ({"k": 0}, lambda row, _: 1 / (1 + row.rank)),
        (
            {"fusion": "linear"},
            lambda row, scores: (row.score - scores.min()) / np.ptp(scores) if np.ptp(scores) else 1.0,
        ),
        ({"fusion": "linear", "norm": "none"}, lambda row, _: row.score),
    ],
)
def test_scores_are_those_of_the_formula(data, rankers, scores_of, weights, parameters, share):
    result = HybridEntities(rankers, weights=weights, **parameters)(data["topics"])
    assert scores_of(result) == pytest.approx(by_loop(rankers, weights or [1, 1, 1], data["topics"], share))
    assert result["rank"].tolist() == result.groupby("qid").cumcount().tolist()
    assert (result.groupby("qid")["score"].diff().dropna() <= 0).all()
    assert result.columns.tolist() == ["qid", "query", "docno", "score", "rank"]


def test_operators_of_pyterrier_sum_as_well_but_lose_queries(data, rankers, scores_of):
    one, two = rankers[0], rankers[2]
    summed = (0.5 * one + 2 * two)(data["topics"])
    result = HybridEntities([one, two], weights=[0.5, 2], fusion="linear", norm="none")(data["topics"])
    assert scores_of(result) == pytest.approx(scores_of(summed))
    assert result["query"].notna().all()
    assert summed["query"].isna().any()


def test_equal_scores_are_all_the_best(data):
    equal = pd.DataFrame({"qid": ["q0", "q0", "q1"], "docno": ["E1", "E2", "E3"], "score": [5.0, 5.0, -1.0]})
    result = HybridEntities([pt.Transformer.from_df(equal)], fusion="linear", weights=[2])(data["topics"])
    assert result[["docno", "score"]].values.tolist() == [["E2", 2.0], ["E1", 2.0], ["E3", 2.0]]


@pytest.fixture
def pool(data):
    return link_pool(data["run"], data["tags"], data["qrels"])


@pytest.fixture
def entity_run(data, pool):
    run = ConsensusEntities(pool, min_documents=1)(data["topics"])
    return pd.concat([run, run[run["rank"] == 0].assign(docno="nobody", score=0.0)], ignore_index=True)


def made(*arguments, **parameters):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "OERFilter reads the judgments", DegenerateWarning)
        return OERFilter(*arguments, **parameters)


@pytest.mark.parametrize("threshold", [-0.3, 0, 0.2, 0.5])
@pytest.mark.parametrize(("alpha", "tau", "rel"), [(0.5, 5.0, 1), (0.1, 2.0, 2)])
def test_entities_above_the_threshold_are_kept(pool, entity_run, threshold, alpha, tau, rel):
    rows = selected_entities(entity_run, pool, cutoff=99, alpha=alpha, shrinkage=tau, rel=rel)
    rows = rows[(rows["oer"] >= threshold) & (rows["entity_id"] != "nobody")]
    rows = rows.rename(columns={"entity_id": "docno"})[["qid", "docno", "score"]]
    expected = rows.sort_values(["qid", "score"], ascending=[True, False], kind="stable", ignore_index=True)
    result = made(pool, threshold=threshold, alpha=alpha, shrinkage=tau, rel=rel)(entity_run)
    assert 0 < len(result) < len(entity_run)
    assert_frame_equal(result[["qid", "docno", "score"]], expected, check_dtype=False)
    assert result["rank"].tolist() == result.groupby("qid").cumcount().tolist()
    # An entity that no document mentions has no OER, whatever the threshold.
    assert "nobody" not in set(result["docno"])


def test_topics_without_contrast_are_reported(pool, entity_run):
    frame = pool.to_frame()
    frame.loc[frame["qid"] == "q1", "label"] = 0
    stage = made(LinkedPool.from_frame(frame), threshold=-99)
    with pytest.warns(DegenerateWarning, match=r"1 topic has no relevant or no non-relevant documents.*'q1'"):
        result = stage(entity_run)
    assert set(result["qid"]) == {"q0", "q2", "q3"}
    with pytest.warns(DegenerateWarning, match=r"none of its"), pytest.warns(DegenerateWarning, match=r"'other'"):
        assert len(stage(entity_run.head(2).assign(qid="other"))) == 0


def test_judgments_are_needed_and_reading_them_is_reported(data, pool):
    with pytest.warns(DegenerateWarning, match="as a diagnostic, not as a system"):
        OERFilter(pool)
