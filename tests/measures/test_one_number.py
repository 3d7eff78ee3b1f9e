"""One name, one number: measure, run and judgments of a topic determine its value in every host, batch and company."""

import contextlib
import io
import json
import tempfile
from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from one_topic import RENAMED

import vbterrier
from vbterrier.cli import app
from vbterrier.entities import link_pool
from vbterrier.measures import ENTITY, LINKING, MEASURES
from vbterrier.measures.intents import CandidateMeasure
from vbterrier.measures.unjudged import Bootstrapped, Estimated
from vbterrier.settings import Execution, Inference

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
STATS = ("mean", "mode", "std", "lo", "q25")
K = 7


def collection(n_topics=9, n_documents=40, depth=25, seed=7):
    """Runs of which the first is judged in its first ranks, judgments of grades that some topics lack, and links."""
    rng = np.random.default_rng(seed)
    rows, judged, tags = [], [], []
    for number in range(n_topics):
        qid, top = f"q{number}", 1 + number % 3
        worth = rng.normal(size=n_documents)
        grade = np.clip(np.floor(worth + 1), 0, top).astype(int)
        order = np.argsort(-(worth + 0.5 * rng.normal(size=n_documents)))
        chosen = {f"d{i}" for i in rng.choice(n_documents, 18, replace=False)} | {f"d{i}" for i in order[:K]}
        judged += [(qid, f"{1 + i % 2}", f"d{i}", int(grade[i])) for i in range(n_documents) if f"d{i}" in chosen]
        rows += [("judged", qid, f"d{i}", float(-rank)) for rank, i in enumerate(order[:depth])]
        for name, noise in (("near", 1.0), ("far", 4.0)):
            score = worth + noise * rng.normal(size=n_documents)
            rows += [(name, qid, f"d{i}", float(score[i])) for i in rng.choice(n_documents, depth, replace=False)]
        tags += [(qid, f"d{i}", f"E{e}") for i in range(n_documents) for e in {i % 5, int(rng.integers(8))}]
    runs = pd.DataFrame(rows, columns=["name", "qid", "docno", "score"])
    runs = {name: part.drop(columns="name").reset_index(drop=True) for name, part in runs.groupby("name")}
    return (
        runs,
        pd.DataFrame(judged, columns=["qid", "iteration", "docno", "label"]),
        pd.DataFrame(tags, columns=["qid", "docno", "entity_id"]),
    )


RUNS, DIVERSITY, TAGS = collection()
QRELS = DIVERSITY.drop(columns="iteration")
TOPICS = list(QRELS["qid"].unique())
LINKS = link_pool(RUNS["near"], TAGS, QRELS).to_frame()
ENTITIES = {
    name: pd.DataFrame(
        [(qid, f"E{e}", float((e * step + at) % 8)) for at, qid in enumerate(TOPICS) for e in range(8)],
        columns=["qid", "docno", "score"],
    )
    for name, step in (("one", 3), ("two", 5))
}
OWN = {"BP": {}, "NDCGBound": {"max_grade": 3}}


def registered():
    """Every measure that evaluates topics, with all statistics of measures of unjudged documents."""
    for measure in MEASURES:
        if measure in LINKING:
            continue
        declared = measure.SUPPORTED_PARAMS
        params = {"cutoff": K} if "cutoff" in declared else {}
        if isinstance(measure, Estimated):
            params["model"] = "one number"
        params |= {"undefined": "zero"} if "undefined" in declared else {}
        params |= OWN.get(measure.NAME, {})
        for stat in STATS if isinstance(measure, (Bootstrapped, Estimated)) else [None]:
            yield measure(**params, **({} if stat is None else {"stat": stat}))


EVERY = list(registered())
JUDGED = [
    one
    for one in EVERY
    if isinstance(one, (Bootstrapped, Estimated)) or one.NAME in ("NDCGBound", "Unjudged", "MarcoRR")
]
GROUPS = {
    "judgments": (JUDGED, RUNS, QRELS),
    "intents": ([one for one in EVERY if isinstance(one, CandidateMeasure)], RUNS, DIVERSITY),
    "entities": ([one for one in EVERY if type(one) in map(type, ENTITY)], ENTITIES, LINKS),
}


def of_topics(frame, topics):
    return frame[frame["qid"].isin(topics)].reset_index(drop=True)


# Every host: the value of each run, topic and measure.


def by_topic(values):
    rows = values[["name", "qid", "measure", "value"]].itertuples(index=False)
    return {(name, qid, measure): value for name, qid, measure, value in rows}


def in_score(measures, runs, qrels):
    return by_topic(vbterrier.score(runs, qrels, measures, inference=Inference(n_resamples=2)).values)


def alone(measures, runs, qrels):
    parts = [in_score(measures, {name: run}, qrels) for name, run in runs.items()]
    return {key: value for part in parts for key, value in part.items()}


def topic_by_topic(measures, runs, qrels):
    results = {}
    for topic in reversed(qrels["qid"].unique()):
        part = {name: of_topics(run, [topic]) for name, run in runs.items()}
        results |= in_score(measures, part, of_topics(qrels, [topic]))
    return results


def in_ir_measures(measures, runs, qrels):
    results = {}
    for name, run in runs.items():
        mixed = run.sample(frac=1, random_state=1).rename(columns=RENAMED)
        metrics = ir_measures.iter_calc(measures, qrels.rename(columns=RENAMED), mixed)
        results |= {(name, metric.query_id, str(metric.measure)): metric.value for metric in metrics}
    return results


def in_experiment(batch_size):
    def values(measures, runs, qrels):
        topics = pd.DataFrame({"qid": qrels["qid"].unique(), "query": "words"})
        systems = [pt.Transformer.from_df(run.assign(rank=0, query="words")) for run in runs.values()]
        options = {"batch_size": batch_size, "perquery": True, "names": list(runs)}
        return by_topic(pt.Experiment(systems, topics, qrels, measures, **options))

    return values


def in_our_experiment(**options):
    def values(measures, runs, qrels):
        topics = pd.DataFrame({"qid": qrels["qid"].unique(), "query": "words"})
        systems = {one: pt.Transformer.from_df(run) for one, run in runs.items()}
        return by_topic(vbterrier.Experiment(systems, topics, qrels, measures, perquery=True, **options))

    return values


def in_trectools(measures, runs, qrels):
    results = {}
    for name, run in runs.items():
        values = vbterrier.VBTrecEval.from_frames(run, qrels).results(measures).data.assign(name=name)
        results |= by_topic(values[values["query"] != "all"].rename(columns={"query": "qid", "metric": "measure"}))
    return results


def in_chunks(measures, runs, qrels):
    with tempfile.TemporaryDirectory() as folder:
        paths = {system: str(Path(folder) / f"{system}.run") for system in runs}
        for system, run in runs.items():
            vbterrier.frames.write_run(run, paths[system])
        values = vbterrier.score(
            paths, qrels, measures, inference=Inference(n_resamples=2), execution=Execution(memory="64 MiB")
        ).values
    return by_topic(values)


def on_the_command_line(measures, runs, qrels):
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{system}.run") for system in runs]
        for path, run in zip(paths, runs.values(), strict=True):
            vbterrier.frames.write_run(run, path)
        vbterrier.frames.write_qrels(qrels, f"{folder}/qrels.txt")
        options = [word for measure in measures for word in ("-m", str(measure))]
        words = [*paths, "-q", f"{folder}/qrels.txt", *options, "--per-query", "--format", "json"]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            app(["score", *words], standalone_mode=False)
    return by_topic(pd.DataFrame(json.loads(out.getvalue())).astype({"qid": str}))


HOSTS = {
    "score, files in chunks": in_chunks,
    "command line": on_the_command_line,
    "score, one run": alone,
    "score, topic by topic": topic_by_topic,
    "ir_measures": in_ir_measures,
    "pt.Experiment": in_experiment(None),
    "pt.Experiment, batches of 1": in_experiment(1),
    "pt.Experiment, batches of 4": in_experiment(4),
    "vbterrier.Experiment": in_our_experiment(),
    "vbterrier.Experiment, batches of 4": in_our_experiment(batch_size=4, plan="tree"),
    "TrecTools": in_trectools,
}


@pytest.fixture(scope="module", autouse=True)
def model():
    return vbterrier.unjudged.fit(RUNS, QRELS, cutoff=K).register("one number")


# The command line reads the links of a pool from other files, with `coverage`.
PAIRS = [(host, group) for host in HOSTS for group in GROUPS if (host, group) != ("command line", "entities")]


@pytest.fixture(scope="module")
def expected(model):
    return {group: in_score(*arguments) for group, arguments in GROUPS.items()}


@pytest.mark.parametrize(("host", "group"), PAIRS)
def test_value_of_a_topic_is_the_same_in_every_host_batch_and_company(host, group, expected):
    measures, runs, qrels = GROUPS[group]
    assert len(expected[group]) == len(runs) * len(measures) * qrels["qid"].nunique()
    result = HOSTS[host](measures, runs, qrels)
    odd = {key: (value, result.get(key)) for key, value in expected[group].items() if result.get(key) != value}
    assert not odd, f"{len(odd)} of {len(expected[group])}: {dict(list(odd.items())[:5])}"


def test_all_registered_measures_are_compared_or_refused():
    compared = {measure.NAME for measures, *_ in GROUPS.values() for measure in measures}
    assert compared | {measure.NAME for measure in LINKING} == {measure.NAME for measure in MEASURES}


@pytest.mark.parametrize("dcg", ["log2", "exp-log2"])
def test_a_fully_judged_ranking_has_its_ndcg_to_the_last_digit(dcg):
    plain = ir_measures.nDCG(dcg=dcg) @ K
    run = {"judged": RUNS["judged"]}
    expected = in_ir_measures([plain], run, QRELS) if dcg == "log2" else None
    measures = [vbterrier.BNDCG(stat=stat, dcg=dcg) @ K for stat in ("mean", "median", "lo", "hi", "mode")]
    for measure in measures:
        result = in_score([measure, "nDCG@7"], run, QRELS)
        if expected is not None:
            assert {qid: result["judged", qid, str(measure)] for qid in TOPICS} == {
                qid: expected["judged", qid, str(plain)] for qid in TOPICS
            }
    assert set(in_score([vbterrier.BNDCG(stat="std", dcg=dcg) @ K], run, QRELS).values()) == {0.0}
