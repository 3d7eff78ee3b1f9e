"""Intents that are several ids at once: one document with all of them, a share, or several documents together."""

import contextlib
import io
import json
import warnings

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from one_topic import RENAMED

import vbterrier
from vbterrier import ES, VB, TopIntent, evaluate_intents
from vbterrier.cli import app
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate import IntentOptions
from vbterrier.intents import split_parts
from vbterrier.measures import DSharpNDCG, IRec, WeightedERRIA

READINGS = ("all", "part", "split", "together")
CUTOFFS = (1, 2, 3, 5)


def by_hand(run, intents, tags, reading, k):
    """The probability and coverage of each intent of each query by its first k documents, by loops."""
    results = {}
    for qid in dict.fromkeys(intents["qid"]):
        first = run[run["qid"] == qid].sort_values("score", ascending=False)["docno"][:k]
        rows = tags[tags["qid"] == qid] if "qid" in tags.columns else tags
        weight = {}
        for row in rows.itertuples():
            weight[row.docno, row.entity_id] = max(row.weight, weight.get((row.docno, row.entity_id), 0.0))
        covered = []
        for intent in intents[intents["qid"] == qid].itertuples():
            table = [[weight.get((docno, part), 0.0) for docno in first] for part in intent.parts]
            if reading in ("all", "part"):
                one = [
                    min(column) if reading == "all" else sum(column) / len(column)
                    for column in zip(*table, strict=True)
                ]
                covered.append((intent.prob, max(one, default=0.0)))
                continue
            reached = [max(row, default=0.0) for row in table]
            if reading == "together":
                covered.append((intent.prob, min(reached)))
            else:
                covered += [(intent.prob / len(reached), one) for one in reached]
        results[qid] = covered
    return results


def collection(seed=3, n_queries=6, of_queries=False):
    """Random intents of one to three parts, shared between intents, tags with weights, and two runs."""
    rng = np.random.default_rng(seed)
    rows, tags, runs = [], [], {"a": [], "b": []}
    for number in range(n_queries):
        qid = f"q{number}"
        prob = rng.dirichlet(np.ones(3))
        rows += [
            (qid, f"w{i}", prob[i], [f"e{j}" for j in rng.choice(5, 1 + int(rng.integers(3)), replace=False)])
            for i in range(3)
        ]
        docs = [f"{qid}d{d}" for d in range(8)]
        for docno in docs:
            entities = rng.choice(5, 2, replace=False)
            tags += [(docno, f"e{part}", float(rng.choice([0.25, 0.5, 1.0]))) for part in entities]
        for name in runs:
            runs[name] += [(qid, docno, float(score)) for docno, score in zip(docs, rng.permutation(8), strict=True)]
    tags = pd.DataFrame(tags, columns=["docno", "entity_id", "weight"])
    if of_queries:
        tags["qid"] = tags["docno"].str[:2]
    return (
        {name: pd.DataFrame(run, columns=["qid", "docno", "score"]) for name, run in runs.items()},
        pd.DataFrame(rows, columns=["qid", "entity_id", "prob", "parts"]),
        tags,
    )


@pytest.mark.parametrize("of_queries", [False, True])
@pytest.mark.parametrize("reading", READINGS)
def test_coverage_of_parts_is_that_of_plain_loops(reading, of_queries):
    runs, intents, tags = collection(of_queries=of_queries)
    measures = [measure(parts=reading) @ k for measure in (ES, VB, VB(variance="intent")) for k in CUTOFFS]
    values = vbterrier.score(runs, intents=intents, tags=tags, measures=measures).values
    values = values.set_index(["name", "measure", "qid"])["value"]
    for name, run in runs.items():
        for k in CUTOFFS:
            for qid, covered in by_hand(run, intents, tags, reading, k).items():
                success = sum(prob * gain for prob, gain in covered)
                spread = sum(prob * (gain - success) ** 2 for prob, gain in covered)
                one, two, three = (
                    values[name, str(m(parts=reading) @ k), qid] for m in (ES, VB, VB(variance="intent"))
                )
                assert one == pytest.approx(success, abs=1e-12)
                assert two == pytest.approx(success - (success * (1 - success)) ** 0.5, abs=1e-7)
                if reading != "split":
                    assert three == pytest.approx(success - spread**0.5, abs=1e-7)
    # Readings over several documents are ordered, and none is below that of a single document.
    if reading == "together":
        other = vbterrier.score(runs, intents=intents, tags=tags, measures=[ES(parts="all") @ 3, ES(parts="split") @ 3])
        least, most = (other.values.query("measure == @name")["value"].to_numpy() for name in map(str, other.means()))
        rows = [
            values[row.name_, "ES(parts='together')@3", row.qid]
            for row in other.values.rename(columns={"name": "name_"}).query("measure == 'ES@3'").itertuples()
        ]
        assert (least <= np.array(rows) + 1e-12).all()
        assert (np.array(rows) <= most + 1e-12).all()
        assert (least < np.array(rows) - 1e-6).any()


@pytest.mark.filterwarnings("ignore:tags. no rows", "ignore:an interval over topics")
def test_two_documents_complete_an_intent_at_the_rank_of_the_second():
    intents = pd.DataFrame({"qid": "q", "entity_id": ["paper", "other"], "prob": [0.75, 0.25]})
    intents["parts"] = ["Smith | CPS | wages", "CPS|Jones"]
    run = pd.DataFrame({"qid": "q", "docno": ["d1", "d2", "d3", "d4"], "score": [4.0, 3.0, 2.0, 1.0]})
    tags = pd.DataFrame({"docno": ["d1", "d2", "d2", "d4"], "entity_id": ["Smith", "CPS", "Smith", "wages"]})
    expected = {
        "all": [0, 0, 0, 0],
        "part": [0.25, 0.5 + 0.125, 0.625, 0.625],
        "split": [0.25, 0.5 + 0.125, 0.625, 0.875],
        "together": [0, 0, 0, 0.75],
    }
    for reading, reference in expected.items():
        measures = [ES(parts=reading) @ k for k in (1, 2, 3, 4)]
        row = vbterrier.score(run, intents=intents, tags=tags, measures=measures).means().iloc[0]
        assert row.tolist() == pytest.approx(reference), reading
    together = [TopIntent(parts="together") @ 4, IRec(parts="together") @ 4, IRec(parts="split") @ 4]
    row = vbterrier.score(run, intents=intents, tags=tags, measures=together).means().iloc[0]
    # Three of four distinct parts are found.
    assert row.tolist() == pytest.approx([1.0, 0.5, 0.75])
    # Tags of the run alone.
    of_run = run.assign(entity_id=[["Smith"], ["CPS", "Smith"], [], ["wages"]])
    row = vbterrier.score(of_run, intents=intents, measures=[ES(parts=one) @ 4 for one in READINGS]).means().iloc[0]
    assert row.tolist() == pytest.approx([row[3] for row in expected.values()])


def by_qid(values):
    return {str(qid): value for qid, value in values}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.filterwarnings("ignore:.*of the first .* documents of .* topics are judged")
@pytest.mark.slow
def test_parts_have_one_number_by_every_path(reading, tmp_path):
    runs, intents, tags = collection(of_queries=False)
    run, measure = runs["a"], VB(parts=reading) @ 3
    expected = by_qid(
        vbterrier.score(run, intents=intents, tags=tags, measures=[measure]).values[["qid", "value"]].values
    )
    vbterrier.register_intents("parts of tests", intents)
    vbterrier.register_tags("parts of tests", tags)
    bound = VB(parts=reading, intents="parts of tests", tags="parts of tests") @ 3
    qrels = pd.DataFrame({"qid": intents["qid"].unique(), "docno": "x", "label": 1})
    result = ir_measures.iter_calc([bound], qrels.rename(columns=RENAMED), run.rename(columns=RENAMED))
    assert by_qid((one.query_id, one.value) for one in result) == expected
    topics = pd.DataFrame({"qid": intents["qid"].unique(), "query": "x"})
    table = pt.Experiment([run], topics, qrels, [bound], names=["a"], perquery=True)
    assert by_qid(table[["qid", "value"]].values) == expected
    # Intents in the place of qrels.
    experiment = vbterrier.Experiment(
        [run], topics, intents, [VB(parts=reading, tags="parts of tests") @ 3], perquery=True
    )
    assert by_qid(experiment[["qid", "value"]].values) == expected
    options = IntentOptions(cutoff=3, parts=reading)
    whole = evaluate_intents({"a": run}, topics, intents=intents, tagger=tags, measures=["VB"], options=options)
    evaluation = evaluate_intents({"a": run}, topics, intents=intents, tagger=tags, measures=[measure])
    for one in (whole, evaluation):
        assert by_qid(one.values[["qid", "value"]].values) == pytest.approx(expected)
        assert set(one.values["measure"]) == {str(measure)}
    run.to_csv(tmp_path / "a.csv", index=False)
    intents.assign(parts=intents["parts"].map("|".join)).to_csv(tmp_path / "intents.tsv", sep="\t", index=False)
    tags.to_csv(tmp_path / "tags.tsv", sep="\t", index=False)
    files = [str(tmp_path / "a.csv"), "--intents", str(tmp_path / "intents.tsv"), "--tags", str(tmp_path / "tags.tsv")]
    for words in (["-m", "VB@3", "--parts", reading], ["-m", str(measure)]):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            app(["score", *files, *words, "--per-query", "--format", "json"], standalone_mode=False)
        rows = [row for row in json.loads(out.getvalue()) if row.get("qid")]
        assert by_qid((row["qid"], row["value"]) for row in rows) == pytest.approx(expected)
    pooled = [
        vbterrier.score(run, intents=intents, tags=tags, measures=[measure], pool="collection").means(),
        evaluate_intents(
            {"run": run},
            topics,
            intents=intents,
            tagger=tags,
            measures=["VB"],
            options=IntentOptions(cutoff=3, parts=reading, pool="collection", n_replicas=2, perturb=[]),
        ),
    ]
    replicas = pooled[1].intervals.query("method == 'replicas (percentile)'")
    assert pooled[0].iloc[0, 0] == pytest.approx(pooled[1].means().iloc[0, 0])
    assert replicas["value"].tolist() == pytest.approx([pooled[0].iloc[0, 0]])


def test_parts_that_a_measure_cannot_read_are_refused():
    runs, intents, tags = collection()
    with pytest.raises(ParameterError, match="parts='together': wanted one of 'all', 'part', 'split'"):
        WeightedERRIA(parts="together")
    with pytest.raises(ParameterError, match="parts='together': wanted one of"):
        DSharpNDCG(parts="together")
    options = {"intents": intents, "tags": tags}
    with pytest.raises(ParameterError, match="gain='dcg' counts documents that cover an intent alone"):
        vbterrier.score(runs, **options, measures=[ES(parts="together", gain="dcg") @ 3])
    with pytest.raises(InputError, match="which diversity measures of other packages do not read"):
        vbterrier.score(runs, intents=intents.assign(prob=1 / 3), tags=tags, measures=["alpha_nDCG@3"])
    with pytest.raises(ParameterError, match="must share one parts="):
        vbterrier.score(runs, **options, measures=[ES(parts="together") @ 3, ES @ 3], pool="collection")
    with pytest.raises(InputError, match=r"are several ids at once .*parts='together'"):
        vbterrier.intents.oracle_success(intents, tags, 3)


def test_split_parts_do_not_hide_repeated_intents_and_probabilities_below_0():
    intents = pd.DataFrame({"qid": "q1", "entity_id": ["p1", "p2"], "prob": [1.2, -0.2], "parts": [["x"], ["x"]]})
    with pytest.raises(InputError, match=r"row 1 \(candidate 'p2' of query 'q1'\) has probability -0.2"):
        split_parts(intents)
    twice = pd.concat([intents.assign(prob=0.5)] * 2)
    with pytest.raises(InputError, match=r"candidate 'p\d' of query 'q1' is in rows \d and \d; keep one"):
        split_parts(twice)
    with pytest.raises(InputError, match=r"candidate 'p\d' of query 'q1' is in rows \d and \d; keep one"):
        vbterrier.score(
            collection()[0], intents=twice, tags=collection()[2], measures=[ES(parts="split", normalise=True) @ 3]
        )
    # A sum other than 1 stays, for normalise=True.
    halves = split_parts(intents.assign(prob=[0.25, 0.25], parts=[["x", "y"], ["x"]]))
    assert halves.values.tolist() == [["q1", "x", 0.375], ["q1", "y", 0.125]]
    assert split_parts(intents[:0]).columns.tolist() == ["qid", "entity_id", "prob"]


def test_split_parts_are_intents_of_any_measure():
    runs, intents, tags = collection()
    single = split_parts(intents)
    assert single.groupby("qid")["prob"].sum().tolist() == pytest.approx([1.0] * 6)
    for measure in (WeightedERRIA @ 3, DSharpNDCG @ 3, ES(gain="dcg") @ 3):
        split = measure(parts="split")
        whole = vbterrier.score(runs, intents=intents, tags=tags, measures=[split]).values["value"]
        parts = vbterrier.score(runs, intents=single, tags=tags, measures=[measure]).values["value"]
        assert whole.tolist() == parts.tolist()


def test_entities_of_parts_in_another_id_space_are_noticed():
    runs, intents, tags = collection()
    with pytest.warns(DegenerateWarning, match="no entity of tags is among the intents"):
        vbterrier.score(
            runs,
            intents=intents,
            tags=tags.assign(entity_id="wiki/" + tags["entity_id"]),
            measures=[ES(parts="together") @ 3],
        )


def test_an_evaluation_of_parts_together_has_bounds_and_first_ranks():
    runs, intents, tags = collection()
    topics = pd.DataFrame({"qid": intents["qid"].unique(), "query": "x"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        evaluation = evaluate_intents(
            runs,
            topics,
            intents=intents,
            tagger=tags.assign(weight=1.0),
            measures=["ES"],
            options=IntentOptions(cutoff=3, parts="together", n_replicas=40),
        )
    tagging = evaluation.tagging
    assert (tagging["ES"] <= tagging["oracle_ES"]).all()
    for row in evaluation.covered.itertuples():
        one = intents[(intents["qid"] == row.qid) & (intents["entity_id"] == row.entity_id)]
        ranks = [
            k for k in (1, 2, 3) if by_hand(runs[row.name], one, tags.assign(weight=1.0), "together", k)[row.qid][0][1]
        ]
        assert (None if pd.isna(row.first_rank) else row.first_rank) == (ranks[0] if ranks else None)
    replicas = evaluation.intervals[evaluation.intervals["method"].str.startswith("replicas")]
    assert (replicas["low"] < replicas["high"]).all()
    noise = IntentOptions(cutoff=3, parts="together", n_replicas=4, perturb=[vbterrier.stats.TagConfusion(0.1)])
    with pytest.raises(ParameterError, match=r"TagConfusion.* changes tags of single documents"):
        evaluate_intents(runs, topics, intents=intents, tagger=tags, measures=["ES"], options=noise)
