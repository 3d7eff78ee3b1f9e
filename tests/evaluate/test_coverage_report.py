"""The three-level coverage report, compared with the calls and loops of each level."""

import numpy as np
import pandas as pd
import pytest
from planted import planted_collection

from vbterrier.entities.pool import link_pool
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate import CoverageOptions
from vbterrier.evaluate.coverage import coverage_report
from vbterrier.evaluate.scores import score
from vbterrier.frames.ranges import score_bounds
from vbterrier.frames.ranking import Run
from vbterrier.measures.base import evaluate
from vbterrier.measures.entity import OER, BaitRate, NonRelCov, ObsCov, OERCorr, OracleCov, RelCov, SignalRate, TopBait
from vbterrier.measures.target import EvaluationTarget
from vbterrier.settings import Data, Inference
from vbterrier.stats.breakpoints import breakpoint_sweep
from vbterrier.stats.regression import coverage_strata, gain_regressions
from vbterrier.stats.topic_intervals import topics_interval
from vbterrier.stats.topic_statistics import disc_ratio

OPTIONS = {"cutoff": 5, "inference": Inference(n_resamples=100, seed=3)}


@pytest.fixture(scope="module")
def planted():
    return planted_collection(n_topics=24, n_documents=60, n_relevant=12, linker_recall=0.7, seed=5)


@pytest.fixture(scope="module")
def systems(planted):
    """The first stage, and a slightly better system."""
    labelled = planted.pool.merge(planted.qrels)
    noise = np.random.default_rng(1).random(len(labelled))
    return {"first": planted.pool, "better": labelled.assign(score=labelled["score"] + noise * labelled["label"])}


@pytest.fixture(scope="module")
def linked(planted):
    return link_pool(planted.pool, planted.tags, planted.qrels)


@pytest.fixture(scope="module")
def report(planted, systems, linked):
    return coverage_report(
        planted.runs,
        linked,
        qrels=planted.qrels,
        doc_runs=systems,
        baseline="first",
        **OPTIONS,
    )


def test_level_1_is_what_score_says(planted, systems, report):
    how = Inference(n_resamples=100, seed=3)
    expected = score(systems, planted.qrels, ["AP", "nDCG@20"], inference=how)
    pd.testing.assert_frame_equal(report.documents, expected.intervals)
    pd.testing.assert_frame_equal(report.document_values, expected.values)


def each(run, links, measure):
    """Values of a measure by topic, evaluated separately."""
    return np.array([value for _, _, value in evaluate([measure], EvaluationTarget(links), Run(run))])


def test_level_2_is_what_each_measure_says_by_itself(planted, linked, report):
    links = linked.to_frame()
    rows = report.entities.set_index(["name", "measure"])
    assert len(rows) == 4 * 9
    for name, run in planted.runs.items():
        kinds = (RelCov, NonRelCov, OER, SignalRate, BaitRate, OERCorr)
        alone = {str(kind @ 5): each(run, links, kind(undefined="skip") @ 5) for kind in kinds}
        for measure, result in (alone | {"TopBait": each(run, links, TopBait)}).items():
            bounds = {"OER@5": (-np.inf, np.inf), "OERCorr@5": (-1, 1)}.get(measure, (0, 1))
            row = rows.loc[(name, measure)]
            # The range of OER is unknown.
            ends = topics_interval(result, method="normal" if measure == "OER@5" else "unseen", bounds=bounds)
            assert row[["value", "low", "high"]].tolist() == pytest.approx([result.mean(), ends.low, ends.high])
            about = row[["level", "method", "n_qids", "n_resamples", "seed"]].tolist()
            assert about == [0.95, ends.method, len(result), 0, 3]
        coverages = alone["RelCov@5"], alone["NonRelCov@5"]
        ratio = disc_ratio(*coverages, n_resamples=100, seed=3)
        row = rows.loc[(name, "DiscRatio@5")]
        assert row[["value", "low", "high", "n_qids"]].tolist() == [ratio.value, ratio.low, ratio.high, 24]
        assert row["value"] == pytest.approx(coverages[0].mean() / coverages[1].mean())
    # Two topics are enough for an interval.
    run, pool = (frame[frame["qid"].isin(planted.pool["qid"].unique()[:2])] for frame in (run, planted.pool))
    row = coverage_report(run, link_pool(pool, planted.tags, planted.qrels), **OPTIONS).discrimination.iloc[0]
    assert row["n_qids"] == 2
    assert row[["low", "high"]].notna().all()


def test_level_3_is_strata_of_the_reference_run(report):
    wide = report.document_values.pivot(index="qid", columns=["name", "measure"], values="value")
    values = report.values.query("name == 'odds' and measure == 'RelCov@5'").set_index("qid")["value"]
    gain = {"AP - first": wide["better"]["AP"] - wide["first"]["AP"]}
    table = pd.DataFrame({"c": values, "AP": wide["better"]["AP"], **gain})
    expected = coverage_strata(table, "c", ["AP", "AP - first"])
    for measure in ("AP", "AP - first"):
        rows = report.strata[(report.strata["name"] == "better") & (report.strata["measure"] == measure)]
        fields = ["stratum", "coverage_low", "coverage_high", "value", "low", "high", "n_qids"]
        reference = expected.loc[expected["measure"] == measure, fields]
        assert rows[fields].to_numpy(dtype=float) == pytest.approx(reference.to_numpy(dtype=float))
    assert set(report.strata.query("name == 'first'")["measure"]) == {"AP", "nDCG@20"}
    assert report.strata["n_qids"].sum() == 24 * 6


def test_another_reference_makes_other_strata(planted, systems, linked, report):
    other = coverage_report(
        planted.runs,
        linked,
        qrels=planted.qrels,
        doc_runs=systems,
        **OPTIONS,
        options=CoverageOptions(reference="frequency"),
    )
    assert other.reference == "frequency"
    assert not other.strata.query("name == 'first'")["value"].equals(report.strata.query("name == 'first'")["value"])
    assert set(other.strata["measure"]) == {"AP", "nDCG@20"}


def test_links_in_any_form_say_the_same(planted, systems, linked, report):
    for links, more in ((linked.to_frame(), {}), (planted.tags, {"options": CoverageOptions(pool=planted.pool)})):
        result = coverage_report(
            planted.runs,
            links,
            qrels=planted.qrels,
            doc_runs=systems,
            baseline="first",
            **more,
            **OPTIONS,
        )
        for name in ("documents", "entities", "strata", "pool", "missing", "topics", "values", "document_values"):
            pd.testing.assert_frame_equal(getattr(report, name), getattr(result, name))
    with pytest.warns(DegenerateWarning, match="pool: ignored, since links are a linked pool"):
        coverage_report({"odds": planted.runs["odds"]}, linked, **OPTIONS, options=CoverageOptions(pool=planted.pool))


def test_what_the_pool_offers_and_lacks_is_stated(planted, linked, report):
    row, topics = report.pool.iloc[0], report.topics
    tagged = set(planted.tags["docno"])
    assert row["n_without_entities"] == sum(docno not in tagged for docno in planted.pool["docno"]) > 0
    assert (row["n_qids"], row["n_documents"], row["n_relevant"], row["n_unjudged"]) == (24, 1440, 288, 0)
    assert row["n_links"] == len(planted.tags.drop_duplicates())
    assert row["share_without_entities"] == row["n_without_entities"] / 1440
    for measure in (ObsCov, OracleCov @ 5):
        expected = each(planted.runs["odds"], linked.to_frame(), measure).tolist()
        assert topics[str(measure)].tolist() == pytest.approx(expected)
        assert row[str(measure)] == pytest.approx(np.mean(expected))


def small():
    """q1: relevant and other documents; q2: no relevant, one unjudged document; q3: relevant documents only."""
    qids = ["q1", "q1", "q1", "q2", "q2", "q3"]
    pool = pd.DataFrame({"qid": qids, "docno": list("abcade"), "score": [3.0, 2.0, 1.0, 2.0, 1.0, 1.0]})
    tags = pd.DataFrame({"docno": list("abbde"), "entity_id": list("ABABA")})
    qrels = pd.DataFrame({"qid": [*qids[:4], "q3"], "docno": list("abcae"), "label": [1, 0, 2, 0, 1]})
    run = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": list("ABB"), "score": [2.0, 1.0, 1.0]})
    return pool, tags, qrels, run


def test_undefined_topics_unjudged_documents_and_missing_lists_are_counted():
    pool, tags, qrels, run = small()
    with pytest.warns(DegenerateWarning, match="fewer than two topics have a value"):
        result = coverage_report(
            {"mine": run},
            tags,
            qrels=qrels,
            doc_runs={"doc": pool},
            data=Data(on_topics="all"),
            inference=Inference(n_resamples=10),
            options=CoverageOptions(pool=pool, n_strata=2),
        )
    rows = result.entities.set_index("measure")
    # RelCov: q1 1/2, q3 0 (nothing listed); NonRelCov: q1 1, q2 1/2. Both are defined in q1 alone.
    assert rows.loc["RelCov@20", ["value", "n_qids"]].tolist() == [0.25, 2]
    assert rows.loc["NonRelCov@20", ["value", "n_qids"]].tolist() == [0.75, 2]
    assert rows.loc["DiscRatio@20", ["value", "n_qids"]].tolist() == [0.5, 1]
    assert rows.loc[["DiscRatio@20", "OER@20"], ["low", "high"]].isna().all(axis=None)
    row = result.pool.iloc[0]
    assert row[["n_unjudged", "n_without_entities", "n_without_relevant", "n_without_other"]].tolist() == [1, 1, 1, 1]
    assert row[["share_unjudged", "share_without_entities"]].tolist() == pytest.approx([1 / 6, 1 / 6])
    assert result.missing.to_numpy().tolist() == [["mine", 3, 1]]
    # Coverage is undefined for q2.
    assert (result.strata["n_undefined"] == 1).all()
    assert result.strata["n_qids"].sum() == 2 * 2
    printed = " ".join(str(result).split())
    shown = ("n_documents 6", "n_links 6", "share_unjudged 0.1667", "n_without_relevant 1", "n_without_other 1")
    shown += ("Document systems", "By the coverage of mine", "alpha 0.5000 shrinkage 5.0000", "without any entity")
    assert [words for words in shown if words not in printed] == []


def test_topics_outside_the_pool_are_in_no_stratum(planted, systems, report):
    first = set(planted.topics["qid"][:6])
    pool = planted.pool[~planted.pool["qid"].isin(first)]
    with pytest.warns(DegenerateWarning, match="6 topics are not in links and are left out"):
        result = coverage_report(
            planted.runs["odds"],
            planted.tags,
            qrels=planted.qrels,
            doc_runs=systems,
            baseline="first",
            **OPTIONS,
            options=CoverageOptions(pool=pool),
        )
    pd.testing.assert_frame_equal(result.documents, report.documents)
    assert (result.strata["n_undefined"] == 6).all()
    gains = result.gains("better", "AP")
    assert len(gains) == 24
    assert set(gains.loc[gains["RelCov@5"].isna(), "qid"]) == first


def test_gains_stand_beside_coverage_for_regressions_and_breaks(report):
    table = report.gains("better", "AP", entities="chance")
    values = report.document_values.query("measure == 'AP'").pivot(index="qid", columns="name", values="value")
    assert list(table)[:6] == ["qid", "gain", "baseline", "n_relevant", "ObsCov", "OracleCov@5"]
    assert table["gain"].tolist() == (values["better"] - values["first"]).loc[table["qid"]].tolist()
    assert table["baseline"].tolist() == values["first"].loc[table["qid"]].tolist()
    coverage = report.values.query("name == 'chance' and measure == 'RelCov@5'").set_index("qid")["value"]
    assert table["RelCov@5"].tolist() == coverage.loc[table["qid"]].tolist()
    measures = ["RelCov@5", "NonRelCov@5", "ObsCov", "OracleCov@5"]
    result = gain_regressions(table, "gain", measures, controls=["baseline", "n_relevant"])
    assert result["p_adjusted"].notna().all()
    assert breakpoint_sweep(table, "gain", "ObsCov", model="step", n_permutations=19, n_resamples=5).n_qids == 24
    assert report.gains("first", "AP", baseline="better")["gain"].tolist() == (-table["gain"]).tolist()


def test_without_document_systems_the_entity_level_stands_alone(planted, linked, report):
    result = coverage_report(planted.runs, linked, **OPTIONS)
    pd.testing.assert_frame_equal(result.entities, report.entities)
    assert result.documents.empty
    assert result.strata.empty
    assert list(result.strata) == list(report.strata)
    assert "Entity runs" in str(result)
    assert "Document systems" not in str(result)


def test_parameters_of_evidence_reach_the_measures(planted, linked):
    result = coverage_report(
        planted.runs["odds"],
        linked,
        cutoff=5,
        inference=Inference(n_resamples=10),
        options=CoverageOptions(alpha=1.0, shrinkage=2.0, rel=1),
    )
    measure = OER(alpha=1.0, tau=2.0) @ 5
    value = each(planted.runs["odds"], linked.to_frame(), measure).mean()
    assert result.entities.set_index("measure").loc[str(measure), "value"] == pytest.approx(value)
    assert "alpha 1.0000 shrinkage 2.0000" in " ".join(str(result).split())
    interval = result.values.query("measure == 'RelCov@5'")["value"].to_numpy()
    ends = topics_interval(interval, method="unseen", bounds=(0.0, 1.0))
    assert result.entities.loc[0, ["low", "high"]].tolist() == [ends.low, ends.high]


def test_names_cannot_steer_a_terminal(planted, linked):
    result = coverage_report({"a\x1b[31m": planted.runs["odds"]}, linked, **OPTIONS)
    assert "\x1b" not in str(result)
    assert "\x1b" not in result.page()


@pytest.mark.parametrize(
    ("label", "measure", "kind"), [(0, "RelCov@5", "relevant"), (1, "NonRelCov@5", "non-relevant")]
)
@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_a_plot_of_undefined_coverage_is_refused_with_the_reason(planted, label, measure, kind):
    links = link_pool(planted.pool, planted.tags, planted.qrels.assign(label=label))
    judged = links.to_frame()
    judged = judged[judged["label"] >= 0]
    result = coverage_report(planted.runs["odds"], judged, **OPTIONS)
    reason = rf"^{measure} is undefined for all \d+ topics: their pools have no {kind} document \(label at least 1"
    with pytest.raises(InputError, match=reason):
        result.plot()
    # The other coverage is drawn.
    other = "NonRelCov@5" if label == 0 else "RelCov@5"
    assert result.plot("forest", measure=other).get_xlabel().startswith(other)


def test_entity_runs_with_integer_qids_are_those_with_their_digits():
    """Pools hold ids as text, whatever the frames hold of which they are made."""
    rows = [(qid, f"d{qid}.{d}", -d, d % 2) for qid in (1, 2, 10) for d in range(4)]
    pool = pd.DataFrame(rows, columns=["qid", "docno", "score", "label"])
    tags = pd.DataFrame({"docno": pool["docno"], "entity_id": ["A", "B", "C"] * 4})
    run = pd.DataFrame({"qid": [1, 2, 10] * 2, "docno": ["A"] * 3 + ["B"] * 3, "score": [2.0] * 3 + [1.0] * 3})
    links = link_pool(pool, tags, pool[["qid", "docno", "label"]])
    texts = run.assign(qid=run["qid"].astype(str))
    for call in (
        lambda entities: coverage_report(entities, links, cutoff=2, inference=Inference(n_resamples=20)).values,
        lambda entities: score({"run": entities}, links, ["RelCov@2"]).values,
    ):
        result = call(run)
        assert set(result["qid"]) == {"1", "2", "10"}
        pd.testing.assert_frame_equal(result, call(texts))


def test_forests_of_entity_runs_show_both_coverages(planted, linked):
    result = coverage_report(planted.runs, linked, **OPTIONS)
    texts = [text.get_text() for text in result.plot("forest").figure.findobj(lambda each: hasattr(each, "get_text"))]
    assert any("RelCov@5" in text for text in texts)
    assert any("NonRelCov@5" in text for text in texts)


def test_what_cannot_be_reported_is_refused(planted, systems, linked, report):
    run = planted.runs["odds"]
    for arguments, options, error, message in (
        ((run, linked), {"doc_runs": systems}, InputError, "give qrels"),
        ((run, planted.tags), {"qrels": planted.qrels}, InputError, r"found tags, which need CoverageOptions\(pool=\)"),
        ((run, link_pool(planted.pool, planted.tags)), {}, InputError, "no document of the pool is judged"),
        (({}, linked), {}, InputError, "found none"),
        (
            (planted.runs, linked),
            {"options": CoverageOptions(reference="ods")},
            ParameterError,
            "reference 'ods' is unknown.* mean odds",
        ),
        (
            (run, linked),
            {"qrels": planted.qrels, "doc_runs": systems, "baseline": "x"},
            ParameterError,
            "baseline 'x' is unknown",
        ),
        ((run, linked), {"baseline": "first"}, ParameterError, "there are no document systems"),
        ((run, linked), {"options": CoverageOptions(n_strata=1)}, ParameterError, "n_strata=1"),
    ):
        with pytest.raises(error, match=message):
            coverage_report(*arguments, **options)
    for arguments, options, message in (
        (("worse", "AP"), {}, "document system 'worse'"),
        (("better", "MAP"), {}, "measure 'MAP'"),
        (("better", "AP"), {"entities": "none"}, "entity run 'none'"),
    ):
        with pytest.raises(ParameterError, match=message):
            report.gains(*arguments, **options)
    with pytest.raises(ParameterError, match="gains need a baseline"):
        coverage_report(run, linked, qrels=planted.qrels, doc_runs=systems, inference=Inference(n_resamples=10)).gains(
            "better", "AP"
        )


def test_two_entities_are_too_few_to_correlate(planted, linked):
    for cutoff in (2, 3):
        result = coverage_report({"odds": planted.runs["odds"]}, linked, cutoff=cutoff).entities["measure"]
        assert (f"OERCorr@{cutoff}" in set(result)) == (cutoff > 2)


def test_overlap_is_of_the_relevant_documents_that_are_reached(planted, linked):
    result = coverage_report(
        {"topical": planted.runs["topical"]}, linked, cutoff=4, inference=Inference(n_resamples=20)
    )
    values = result.values.query("measure == 'Overlap@4'").set_index("qid")["value"]
    relevant = planted.qrels[planted.qrels["label"] > 0].groupby("qid")["docno"].agg(set)
    mentioned = planted.tags.groupby("docno")["entity_id"].agg(set)
    first = planted.runs["topical"].sort_values("score", ascending=False).groupby("qid").head(4)
    chosen = first.groupby("qid")["docno"].agg(set)
    for qid in values.index:
        counts = [len(mentioned.get(docno, set()) & chosen[qid]) for docno in relevant[qid]]
        assert values[qid] == pytest.approx(np.mean([count for count in counts if count]))
    assert values.mean() > 1
    # A number of entities, whose interval is not cut at 1.
    row = result.entities.set_index("measure").loc["Overlap@4"]
    assert 1 < row["low"] <= row["value"] <= row["high"] <= 4
    assert score_bounds("Overlap@4") == (0, 4)


def test_judgments_other_than_those_of_the_links_are_refused(planted, systems):
    links = link_pool(planted.pool, planted.tags, planted.qrels)
    other = planted.qrels.assign(label=(planted.qrels["label"] == 0).astype(int))
    message = r"qrels: other judgments than those of links for \d+ of \d+ documents: .* create the links with link_pool"
    with pytest.raises(InputError, match=message):
        coverage_report({}, links, qrels=other, doc_runs=systems)
