"""TREC Web, diversity task: intents are subtopics, all equally likely, and what documents are about is in the qrels."""

from types import SimpleNamespace

import ir_measures
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import ERR_IA, StRecall, alpha_nDCG
from night import at_night

import vbterrier
from vbterrier import ES, VB
from vbterrier.evaluate.doctor import diagnose
from vbterrier.settings import Data, Inference

pytestmark = pytest.mark.slow

# An independent computation, to the four decimals that it printed, over all subtopics.
PUBLISHED = {"alpha_nDCG@10": 0.3654, "ERR_IA@10": 0.2879, "StRecall@10": 0.6110, "ES@10": 0.5893, "VB@10": 0.2676}
# Measured here and confirmed by plain loops below; four decimals.
DSSA_2011 = {"ES@10": 0.7190, "VB(alpha=0.0)@10": 0.7190, "VB(alpha=0.5)@10": 0.6107, "VB@10": 0.5024}
COLUMNS = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}


def collection(folder, year, textbook):
    qrels = vbterrier.read_qrels(folder / f"qrels.{year}.diversity.gz")
    rows = [
        (topic["qid"], str(subtopic["number"]), 1 / len(topic["subtopics"]))
        for topic in textbook.json_lines(folder / "topics.jsonl")
        if topic["year"] == year
        for subtopic in topic["subtopics"]
    ]
    covering = qrels[qrels["label"] >= 1].rename(columns={"iteration": "entity_id"})
    return SimpleNamespace(
        qrels=qrels,
        intents=pd.DataFrame(rows, columns=["qid", "entity_id", "prob"]),
        tags=covering[["qid", "docno", "entity_id"]],
        runs={
            path.name.removesuffix(f".{year}.run.gz"): vbterrier.read_run(path)
            for path in sorted((folder / "runs").glob(f"*.{year}.run.gz"))
        },
    )


@pytest.fixture(scope="module", params=[2011, at_night(2012)])
def web(request, shared_data, textbook):
    return collection(shared_data / "trec_web_diversity", request.param, textbook)


@pytest.fixture(scope="module")
def web_2012(shared_data, textbook):
    return collection(shared_data / "trec_web_diversity", 2012, textbook)


def test_published_numbers_of_2012(web_2012):
    run = web_2012.runs["indri-rm-cata-filtered"]
    scores = vbterrier.score({"indri": run}, web_2012.qrels, list(PUBLISHED))
    assert scores.means().loc["indri"].round(4).to_dict() == PUBLISHED
    assert set(scores.intervals["n_qids"]) == {50}


def test_success_and_penalty_of_2011(shared_data, textbook):
    web = collection(shared_data / "trec_web_diversity", 2011, textbook)
    scores = vbterrier.score({"dssa": web.runs["dssa-indri"]}, web.qrels, list(DSSA_2011))
    assert scores.means().loc["dssa"].round(4).to_dict() == DSSA_2011


def test_every_run_agrees_with_plain_loops(web, textbook):
    cutoffs, alphas = (1, 5, 10, 20), (0.0, 0.5, 1.0)
    measures = [ES @ k for k in cutoffs] + [VB(alpha=alpha) @ k for k in cutoffs for alpha in alphas]
    diversity, some = ["alpha_nDCG@10", "ERR_IA@10", "StRecall@10"], list(web.runs.items())[-2:]
    values = [
        vbterrier.score(web.runs, web.qrels, measures, inference=Inference(n_resamples=10)).values,
        # Two runs of 2012 are enough for what others compute: each call reads the judgments anew.
        vbterrier.score(dict(some), web.qrels, diversity, inference=Inference(n_resamples=10)).values,
    ]
    expected = [
        textbook.expected(web.runs, web.intents, web.tags, cutoffs, alphas),
        textbook.expected_diversity(dict(some), web.tags, web.intents["qid"].unique(), 10),
    ]
    textbook.assert_values(pd.concat(values), pd.concat(expected))


@pytest.mark.parametrize(("year", "n_intents", "n_without"), [(2011, 168, 4), (2012, 195, 8)])
def test_subtopics_without_a_relevant_document_count_for_success_alone(
    shared_data, textbook, year, n_intents, n_without
):
    web = collection(shared_data / "trec_web_diversity", year, textbook)
    keys = ["qid", "entity_id"]
    named = web.qrels.rename(columns={"iteration": "entity_id"})[keys].drop_duplicates()
    assert sorted(map(tuple, named.to_numpy())) == sorted(map(tuple, web.intents[keys].to_numpy()))
    covered = web.tags[keys].drop_duplicates()
    assert (len(named), len(named) - len(covered)) == (n_intents, n_without)
    # For equally likely intents that is the whole difference: ES = StRecall · (covered subtopics / subtopics).
    share = covered.groupby("qid").size() / named.groupby("qid").size()
    run = web.runs["dssa-indri"]
    values = vbterrier.score(
        {"dssa": run}, web.qrels, ["ES@10", "StRecall@10"], inference=Inference(n_resamples=10)
    ).values
    table = values.pivot(index="qid", columns="measure", values="value")
    assert table["ES@10"].to_dict() == pytest.approx((table["StRecall@10"] * share).to_dict(), abs=1e-12)
    assert table["ES@10"].mean() < table["StRecall@10"].mean()


def test_named_intents_and_tags_give_what_qrels_give(web_2012):
    vbterrier.register_intents("test web 2012", web_2012.intents, replace=True)
    vbterrier.register_tags("test web 2012", web_2012.tags, replace=True)
    named = [measure(intents="test web 2012", tags="test web 2012") @ 10 for measure in (ES, VB)]
    run = web_2012.runs["dssa-indri"].rename(columns=COLUMNS)
    by_name = ir_measures.calc_aggregate(named, web_2012.intents.rename(columns=COLUMNS), run)
    by_qrels = ir_measures.calc_aggregate([ES @ 10, VB @ 10], web_2012.qrels.rename(columns=COLUMNS), run)
    for measure in (ES, VB):
        expected = by_qrels[measure @ 10]
        assert by_name[measure(intents="test web 2012", tags="test web 2012") @ 10] == pytest.approx(
            expected, abs=1e-15
        )


def test_a_run_may_win_by_failing_more_often(web_2012):
    """VB is not monotone in ES: a topic with ES = .2 scores less than one that fails."""
    runs = {name: web_2012.runs[name] for name in ("indri-ql-catb-filtered", "dssa-indri")}
    means = vbterrier.score(
        runs, web_2012.qrels, ["ES@10", "VB@10", "VB(monotone=True)@10"], inference=Inference(n_resamples=10)
    ).means()
    gap = means.loc["indri-ql-catb-filtered"] - means.loc["dssa-indri"]
    assert gap["ES@10"] > 0
    assert gap["VB@10"] < 0
    assert gap["VB(monotone=True)@10"] > 0


@pytest.mark.nightly
def test_the_order_of_rows_changes_no_number_in_an_experiment(web_2012):
    topics = pd.DataFrame({"qid": web_2012.intents["qid"].unique(), "query": "text is not available"})
    run = web_2012.runs["indri-rm-cata-filtered"]
    mixed = run.sample(frac=1, random_state=1).reset_index(drop=True)
    measures = [alpha_nDCG @ 10, ERR_IA @ 10, StRecall @ 10, ES @ 10, VB @ 10]
    # Transformer.from_df would put the rows of each query together.
    system, again = (pt.apply.generic(lambda _, run=run: run) for run in (mixed, mixed.copy()))
    systems = [system, again >> vbterrier.intents.SortByRank()]
    table = pt.Experiment(systems, topics, web_2012.qrels, measures, names=["mixed", "sorted"]).set_index("name")
    assert table.loc["sorted"].astype(float).round(4).to_dict() == PUBLISHED
    # Measures of this package read mixed rows; those of ir_measures lose all but a query's last block of rows.
    assert (table.loc["mixed", ["ES@10", "VB@10"]] == table.loc["sorted", ["ES@10", "VB@10"]]).all()
    lost = table.loc["sorted", list(PUBLISHED)[:3]] - table.loc["mixed", list(PUBLISHED)[:3]]
    assert (lost.astype(float) > 0.15).all()
    scores = vbterrier.score({"mixed": mixed}, web_2012.qrels, measures, inference=Inference(n_resamples=2))
    assert scores.means().loc["mixed"].round(4).to_dict() == PUBLISHED


def as_in_2009(qrels):
    """Qrels of that form: relevant documents by subtopic, all other documents once, with the iteration 0."""
    relevant = qrels[qrels["label"] > 0]
    others = qrels.drop_duplicates(["qid", "docno"]).merge(relevant[["qid", "docno"]], how="left", indicator=True)
    others = others[others["_merge"] == "left_only"].drop_duplicates(["qid", "docno"])
    return pd.concat([relevant, others.assign(iteration="0", label=0)[list(qrels.columns)]], ignore_index=True)


@pytest.mark.nightly
@pytest.mark.parametrize(("year", "n_gaps", "n_topics", "n_without"), [(2011, 2, 4, 4), (2012, 4, 8, 8)])
def test_subtopics_without_a_row_count_if_the_topic_file_is_given(
    shared_data, textbook, tmp_path, year, n_gaps, n_topics, n_without
):
    """A run of each year against its own judgments without the rows that only non-relevant documents gave."""
    web, path = collection(shared_data / "trec_web_diversity", year, textbook), tmp_path / "topics.xml"
    named = '<subtopic number="' + web.intents["entity_id"] + '"/>'
    topics = [f'<topic number="{qid}">{"".join(group)}</topic>' for qid, group in named.groupby(web.intents["qid"])]
    path.write_text(f"<webtrack>{''.join(topics)}</webtrack>")
    qrels, runs = as_in_2009(web.qrels), {"dssa": web.runs["dssa-indri"]}
    measures = ["ES@10", "VB@10", "StRecall@10", "alpha_nDCG@10", "ERR_IA@10"]
    expected = vbterrier.score(runs, web.qrels, measures, inference=Inference(n_resamples=10)).means()
    with pytest.warns(vbterrier.errors.DegenerateWarning, match=f"numbers of {n_gaps} of 50 topics have gaps"):
        without = vbterrier.score(runs, qrels, measures, inference=Inference(n_resamples=10)).means()
    assert (without["ES@10"] > expected["ES@10"]).all()
    averages = vbterrier.score(
        runs, qrels, measures, data=Data(subtopics=path), inference=Inference(n_resamples=10)
    ).means()
    pd.testing.assert_frame_equal(averages, expected, check_exact=False, atol=1e-12)
    named = ir_measures.calc_aggregate(
        [VB(intents=str(path)) @ 10], qrels.rename(columns=COLUMNS), runs["dssa"].rename(columns=COLUMNS)
    )
    assert list(named.values()) == pytest.approx([expected["VB@10"].item()], abs=1e-12)
    notes = [" ".join(diagnose(runs, qrels, subtopics=value).notes) for value in (None, path)]
    assert f"numbers of {n_gaps} of 50 topics have gaps" in notes[0]
    assert f"{n_topics} of 50 topics have subtopics without a judged document" in notes[1]
    values = diagnose(runs, qrels, subtopics=path).qrels.set_index("what")["value"]
    assert values["subtopics"] == f"{len(web.intents)}, {n_without} without a judged document"


@pytest.mark.parametrize("reading", ["split", "together"])
def test_pairs_of_subtopics_are_covered_by_the_documents_that_a_loop_finds(web, reading):
    pairs = web.intents.assign(place=web.intents.groupby("qid").cumcount() // 2)
    pairs = pairs.groupby(["qid", "place"], sort=False).agg(prob=("prob", "sum"), parts=("entity_id", list))
    pairs = pairs.reset_index().assign(entity_id=lambda frame: "pair " + frame["place"].astype(str))
    subtopics = {(row.qid, row.docno, row.entity_id) for row in web.tags.itertuples()}
    measures = [ES(parts=reading) @ k for k in (1, 5, 10, 100)]
    result = vbterrier.score(web.runs, intents=pairs.drop(columns="place"), tags=web.tags, measures=measures)
    value = result.values.set_index(["name", "measure", "qid"])["value"]
    for name, run in web.runs.items():
        ordered = run.sort_values(["score", "docno"], ascending=False).groupby("qid")["docno"].apply(list)
        for k in (1, 5, 10, 100):
            for qid, intents in pairs.groupby("qid"):
                shares = [
                    [any((qid, docno, part) in subtopics for docno in ordered.get(qid, [])[:k]) for part in parts]
                    for parts in intents["parts"]
                ]
                gains = [all(one) if reading == "together" else sum(one) / len(one) for one in shares]
                expected = sum(prob * gain for prob, gain in zip(intents["prob"], gains, strict=True))
                assert value[name, f"ES(parts={reading!r})@{k}", qid] == pytest.approx(expected, abs=1e-12)
    if reading == "split":
        plain = vbterrier.score(web.runs, intents=web.intents, tags=web.tags, measures=["ES@10"]).means()["ES@10"]
        # Subtopics are equally likely, so that the parts of a pair have their probabilities.
        assert (result.means()["ES(parts='split')@10"] - plain).abs().max() < 1e-12
