"""How long pools take to link and entity runs to measure, next to plain pandas: pytest tests/bench --benchmark-only.

250 topics x 1,000 documents x 60 mentions (15 million; 12.3 million links): link_pool 4.6 s and 2.0 GB at its peak, of
which 1.1 GB are the frames given; the index of pairs .8 s; all ten measures at five cutoffs 1.0 s for the first run,
.08 s for each more; write_links 5.6 s (141 MB), read_links 11 s (4.6 GB). A tenth of it: .5 s and .4 GB; .07; .7, .01;
.4 (13 MB), 1.2 s.
"""

import numpy as np
import pandas as pd
import pytest

from vbterrier.entities.pool import link_pool
from vbterrier.frames.ranking import Run
from vbterrier.measures import ENTITY, NonRelCov, RelCov
from vbterrier.measures.base import evaluate
from vbterrier.measures.target import EvaluationTarget

N_TOPICS, DEPTH, N_MENTIONS, K = 25, 400, 60, 20


@pytest.fixture(scope="module")
def frames():
    """A pool, the tags of its documents, judgments and an entity run; entities as frequent as words are."""
    draw, n = np.random.default_rng(0), N_TOPICS * DEPTH
    docno = np.array([f"FBIS-{number:07d}" for number in range(n)])
    pool = pd.DataFrame({"qid": np.repeat([f"q{n}" for n in range(N_TOPICS)], DEPTH), "docno": docno})
    pool["score"] = np.tile(np.arange(DEPTH, 0, -1.0), N_TOPICS)
    entity = np.minimum(draw.pareto(0.6, n * N_MENTIONS) * 20, 99_999).astype(int)
    tags = pd.DataFrame({"docno": np.repeat(docno, N_MENTIONS), "entity_id": entity}).astype({"entity_id": str})
    qrels = pool[["qid", "docno"]].assign(label=(draw.random(n) < 0.05).astype(int))
    entities = [
        (qid, str(e), draw.random()) for qid in pool["qid"].unique() for e in draw.choice(500, 100, replace=False)
    ]
    return pool, tags, qrels, pd.DataFrame(entities, columns=["qid", "docno", "score"])


def with_pandas(pool, tags, qrels):
    merged = pool.merge(qrels, how="left").merge(tags.drop_duplicates(), on="docno")
    return merged.fillna({"label": -1})


def covered_with_pandas(links, run):
    first = run.sort_values(["qid", "score"], ascending=False).groupby("qid").head(K)
    hit = links.merge(first[["qid", "docno"]].rename(columns={"docno": "entity_id"}))
    every = links[["qid", "docno", "label"]].drop_duplicates()
    every["hit"] = every.set_index(["qid", "docno"]).index.isin(hit.set_index(["qid", "docno"]).index)
    return every.groupby(["qid", every["label"] > 0])["hit"].mean()


@pytest.fixture(scope="module")
def seconds():
    """What each way took, so that those that come later say how many times the first one's time they need."""
    return {}


def compared(benchmark, seconds, name, first, call):
    result = benchmark.pedantic(call, rounds=3, warmup_rounds=1)
    seconds[name] = benchmark.stats.stats.min
    benchmark.extra_info[f"times {first}"] = round(seconds[name] / seconds.get(first, np.nan), 2)
    return result


@pytest.mark.parametrize(("name", "link"), [("link_pool", link_pool), ("pandas merges", with_pandas)])
def test_linking_a_pool(benchmark, frames, seconds, name, link):
    result = compared(benchmark, seconds, name, "link_pool", lambda: link(*frames[:3]))
    assert len(result) >= N_TOPICS * DEPTH


def test_two_measures(benchmark, frames, seconds):
    pool, run = link_pool(*frames[:3]), Run(frames[3])
    target = EvaluationTarget.of_links(pool)
    _ = pool.pairs
    measures = [RelCov @ K, NonRelCov @ K]
    result = compared(benchmark, seconds, "coverage", "coverage", lambda: list(evaluate(measures, target, run)))
    assert len(result) == len(measures) * N_TOPICS


def test_two_measures_with_pandas(benchmark, frames, seconds):
    links = with_pandas(*frames[:3])
    result = compared(benchmark, seconds, "pandas", "coverage", lambda: covered_with_pandas(links, frames[3]))
    target = EvaluationTarget.of_links(link_pool(*frames[:3]))
    ours = {(qid, m.NAME == "RelCov"): v for qid, m, v in evaluate([RelCov @ K, NonRelCov @ K], target, Run(frames[3]))}
    assert result.to_dict() == pytest.approx(ours)


def test_all_measures_at_five_cutoffs(benchmark, frames, seconds):
    target, run = EvaluationTarget.of_links(link_pool(*frames[:3])), Run(frames[3])
    measures = [m(undefined="zero") for m in ENTITY]
    measures += [m(cutoff=k) for m in measures if "cutoff" in m.SUPPORTED_PARAMS for k in (5, 10, 20, 50, 100)]
    result = compared(benchmark, seconds, "all", "coverage", lambda: list(evaluate(measures, target, run)))
    assert len(result) == len(measures) * N_TOPICS
