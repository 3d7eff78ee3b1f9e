import warnings

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from vbterrier.entities.pool import LinkedPool, link_pool
from vbterrier.entities.rankers.consensus import ConsensusEntities
from vbterrier.entities.rankers.hybrid import OERFilter
from vbterrier.errors import DegenerateWarning, InputError


@pytest.fixture
def data(collection):
    return collection(1)


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


def by_loop(links, alpha, tau, rel):
    """Equations 6 to 9, pair by pair."""
    found = {}
    for qid, rows in links.groupby("qid"):
        relevant = rows["label"] >= rel
        sizes = [rows[mask]["docno"].nunique() for mask in (relevant, ~relevant)]
        for entity in rows["entity_id"].dropna().unique():
            df = [rows[mask & (rows["entity_id"] == entity)]["docno"].nunique() for mask in (relevant, ~relevant)]
            p = [(count + alpha) / (size + 2 * alpha) for count, size in zip(df, sizes, strict=True)]
            odds = np.log(p[0] / (1 - p[0])) - np.log(p[1] / (1 - p[1]))
            found[qid, entity] = (1 - np.exp(-sum(df) / tau)) * odds
    return found


@pytest.mark.parametrize("threshold", [-0.3, 0, 0.2, 0.5])
@pytest.mark.parametrize(("alpha", "tau", "rel"), [(0.5, 5.0, 1), (0.1, 2.0, 2)])
def test_what_is_kept(pool, entity_run, threshold, alpha, tau, rel):
    oer = by_loop(pool.frame(), alpha, tau, rel)
    rows = entity_run[
        [oer.get(pair, 0) >= threshold for pair in zip(entity_run["qid"], entity_run["docno"], strict=True)]
    ]
    expected = rows.sort_values(["qid", "score"], ascending=[True, False], kind="stable", ignore_index=True)
    found = made(pool, threshold=threshold, alpha=alpha, shrinkage=tau, rel=rel)(entity_run)
    assert 0 < len(found) < len(entity_run)
    assert_frame_equal(found.drop(columns="rank"), expected.drop(columns="rank"))
    assert found["rank"].tolist() == found.groupby("qid").cumcount().tolist()
    # An entity of no document tells nothing: OER 0.
    assert ("nobody" in set(found["docno"])) == (threshold <= 0)


def test_it_says_that_it_is_a_diagnostic(pool, entity_run):
    with pytest.warns(DegenerateWarning, match="as a diagnostic, not as a system") as said:
        stage = OERFilter(pool, threshold=0.5)
    assert len(said) == 1
    stage(entity_run)
    assert repr(stage) == "OERFilter(diagnostic, reads judgments: 4 topics, threshold=0.5)"
    assert "diagnostic only" in OERFilter.__doc__


def test_topics_without_contrast_are_reported(pool, entity_run):
    frame = pool.frame()
    frame.loc[frame["qid"] == "q1", "label"] = 0
    stage = made(LinkedPool.from_frame(frame), threshold=-99)
    with pytest.warns(DegenerateWarning, match=r"1 topics have no relevant or no non-relevant documents.*'q1'"):
        found = stage(entity_run)
    assert set(found["qid"]) == {"q0", "q2", "q3"}
    with pytest.warns(DegenerateWarning, match=r"none of its"), pytest.warns(DegenerateWarning, match=r"'other'"):
        assert len(stage(entity_run.head(2).assign(qid="other"))) == 0


def test_links_without_judgments_are_refused(data):
    with pytest.raises(InputError, match="no document of the links is judged"):
        OERFilter(link_pool(data["run"], data["tags"]))


def test_equal_stages(data, pool):
    again = link_pool(data["run"], data["tags"], data["qrels"])
    assert made(pool) == made(again)
    assert hash(made(pool)) == hash(made(again))
    assert made(pool) != made(pool, threshold=1)
    other = data["qrels"].assign(label=1)
    assert made(pool) != made(link_pool(data["run"], data["tags"], other))
