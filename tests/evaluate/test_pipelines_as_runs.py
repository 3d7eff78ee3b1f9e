"""score, compare, fit and the report take pipelines as runs: each is run once on the topics."""

import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier.errors import InputError, ParameterError
from vbterrier.evaluate.inputs import named_runs
from vbterrier.settings import Data, Execution, Inference

pytestmark = pytest.mark.filterwarnings("ignore:.*have no relevant:vbterrier.errors.DegenerateWarning")
MEASURES = ["nDCG@10", "BNDCG(prior='pool')@10"]


class Counting(pt.Transformer):
    """A pipeline that counts its calls."""

    def __init__(self, frame):
        self.frame, self.calls = frame, 0

    def transform(self, inp):
        self.calls += 1
        return self.frame[self.frame["qid"].isin(inp["qid"])].reset_index(drop=True)

    def __repr__(self):
        return "Counting()"


@pytest.fixture(scope="module")
def demo():
    return pt.get_dataset("vb:demo")


@pytest.fixture(scope="module")
def topics(demo):
    return demo.get_topics()


@pytest.fixture(scope="module")
def qrels(demo):
    return demo.get_qrels()


@pytest.fixture(scope="module")
def frames(demo):
    return {name: demo.get_results(name) for name in ("lexical", "dense")}


@pytest.fixture
def mixed(frames, tmp_path):
    """A pipeline, a frame, and the path of a run."""
    path = tmp_path / "words.run"
    vbterrier.frames.write_run(frames["lexical"].assign(score=lambda run: -run["rank"].astype(float)), path)
    return {"pipeline": Counting(frames["dense"]), "frame": frames["lexical"], "path": path}


@pytest.fixture
def plain(mixed, frames):
    return {**mixed, "pipeline": frames["dense"]}


def test_score_runs_each_pipeline_once(mixed, plain, topics, qrels):
    result = vbterrier.score(mixed, qrels, MEASURES, data=Data(topics=topics), inference=Inference(n_resamples=10))
    expected = vbterrier.score(plain, qrels, MEASURES, inference=Inference(n_resamples=10))
    pd.testing.assert_frame_equal(result.values, expected.values)
    pd.testing.assert_frame_equal(result.intervals, expected.intervals)
    assert mixed["pipeline"].calls == 1


@pytest.mark.parametrize("options", [{"execution": Execution(n_jobs=2)}, {"execution": Execution(memory="1 GiB")}])
def test_score_in_processes_and_chunks_takes_pipelines(mixed, plain, topics, qrels, options):
    result = vbterrier.score(
        mixed, qrels, MEASURES, data=Data(topics=topics), inference=Inference(n_resamples=10), **options
    )
    pd.testing.assert_frame_equal(
        result.values, vbterrier.score(plain, qrels, MEASURES, inference=Inference(n_resamples=10)).values
    )
    assert mixed["pipeline"].calls == 1


def test_topics_may_be_a_path_and_unnamed_pipelines_are_called_by_their_text(frames, topics, qrels, tmp_path):
    path = tmp_path / "topics.tsv"
    path.write_text(topics.to_csv(sep="\t", index=False, header=False))
    pipeline = Counting(frames["dense"])
    for runs in ([pipeline], pipeline):
        averages = vbterrier.score(
            runs, qrels, MEASURES, data=Data(topics=path), inference=Inference(n_resamples=2)
        ).means()
        assert averages.index.tolist() == ["Counting()"]
    expected = vbterrier.score(frames["dense"], qrels, MEASURES, inference=Inference(n_resamples=2)).means()
    assert averages.to_numpy().tolist() == expected.to_numpy().tolist()


def test_rerankers_get_all_rows_of_their_topics(frames, topics, qrels):
    retrieved = frames["lexical"].merge(topics, on="qid")
    first = pt.apply.generic(lambda frame: frame, required_columns=["docno"])
    result = vbterrier.score(
        {"a": first}, qrels, MEASURES, data=Data(topics=retrieved), inference=Inference(n_resamples=2)
    )
    assert result.means().loc["a"].tolist() == (
        vbterrier.score({"a": frames["lexical"]}, qrels, MEASURES, inference=Inference(n_resamples=2))
        .means()
        .loc["a"]
        .tolist()
    )


@pytest.mark.filterwarnings("ignore:.*which score as empty rankings:vbterrier.errors.DegenerateWarning")
def test_topics_that_the_pipelines_do_not_get_score_as_empty_rankings(frames, topics, qrels):
    pipeline = Counting(frames["dense"])
    result = vbterrier.score(
        {"a": pipeline}, qrels, MEASURES, data=Data(topics=topics[:5]), inference=Inference(n_resamples=10)
    )
    assert result.missing.to_numpy().tolist() == [["a", 12, 7]]
    with pytest.raises(InputError, match="run 'a' has 5 of the 12 topics"):
        vbterrier.score({"a": pipeline, "b": frames["dense"]}, qrels, MEASURES, data=Data(topics=topics[:5]))


def test_compare_runs_each_pipeline_once(mixed, plain, topics, qrels):
    few = Inference(n_resamples=50)
    comparison = vbterrier.compare(mixed, qrels, "nDCG@10", data=Data(topics=topics), inference=few)
    expected = vbterrier.compare(plain, qrels, "nDCG@10", inference=few)
    pd.testing.assert_frame_equal(comparison.pairs, expected.pairs)
    pd.testing.assert_frame_equal(comparison.systems, expected.systems)
    assert mixed["pipeline"].calls == 1


def test_compare_takes_the_topics_of_each_collection(mixed, plain, frames, topics, qrels):
    both = {"one": topics, "two": topics}
    judged = {"one": qrels, "two": qrels}
    runs = {"one": mixed, "two": {**mixed, "pipeline": Counting(frames["dense"])}}
    comparison = vbterrier.compare(runs, judged, "nDCG@10", data=Data(topics=both), inference=Inference(n_resamples=50))
    expected = vbterrier.compare({"one": plain, "two": plain}, judged, "nDCG@10", inference=Inference(n_resamples=50))
    pd.testing.assert_frame_equal(comparison.pairs, expected.pairs)
    for wrong in (topics, {"one": topics}):
        with pytest.raises(InputError, match=r"topics: .*wanted .*'one', 'two'"):
            vbterrier.compare(runs, judged, "nDCG@10", data=Data(topics=wrong))


def test_compare_checks_everything_else_before_it_runs_pipelines(mixed, topics, qrels):
    for options in (
        {"baseline": "none"},
        {"inference": Inference(test="t", correction="max-t")},
        {"measures": ["nDGC@10"]},
    ):
        with pytest.raises((InputError, ParameterError)):
            vbterrier.compare(mixed, **{"qrels": qrels, "measures": "nDCG@10", "data": Data(topics=topics)} | options)
    values = vbterrier.score({"a": mixed["frame"]}, qrels, MEASURES, inference=Inference(n_resamples=2))
    with pytest.raises(ParameterError, match="topics: found scores, not runs"):
        vbterrier.compare(values, data=Data(topics=topics))
    assert mixed["pipeline"].calls == 0


def test_fit_runs_each_pipeline_once(mixed, plain, topics, qrels):
    result = vbterrier.unjudged.fit(mixed, qrels, topics=topics)
    assert result.digest == vbterrier.unjudged.fit(plain, qrels).digest
    assert mixed["pipeline"].calls == 1


def test_the_report_runs_each_pipeline_once(mixed, plain, topics, qrels, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    data = Data(topics=topics)
    # The page says the call that made it, with the name of its file but not its folder.
    for name, runs in (("a", mixed), ("b", plain)):
        (tmp_path / name).mkdir()
        vbterrier.write_report(runs, qrels, ["nDCG@10"], path=tmp_path / name / "page.html", data=data)
    assert (tmp_path / "a" / "page.html").read_bytes() == (tmp_path / "b" / "page.html").read_bytes()
    assert mixed["pipeline"].calls == 1
    with pytest.raises((InputError, ParameterError)):
        vbterrier.write_report(mixed, qrels, ["nDGC@10"], path=tmp_path / "c.html", data=data)
    assert mixed["pipeline"].calls == 1


CALLS = {
    "score": lambda runs, qrels, _: vbterrier.score(runs, qrels, MEASURES),
    "compare": lambda runs, qrels, _: vbterrier.compare(runs, qrels, "nDCG@10"),
    "fit": lambda runs, qrels, _: vbterrier.unjudged.fit(runs, qrels),
    "report": lambda runs, qrels, path: vbterrier.write_report(runs, qrels, ["nDCG@10"], path=path / "a.html"),
    "rank_systems": lambda runs, qrels, _: vbterrier.rank_systems(runs, qrels, "BNDCG@10"),
    "judge_next": lambda runs, qrels, _: vbterrier.judge_next(runs, qrels, budget=5),
    "variance_shares": lambda runs, qrels, _: vbterrier.evaluate.variance_shares(runs, qrels, "nDCG@10"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_pipeline_without_topics_is_an_error_with_the_remedy(call, mixed, qrels, tmp_path):
    message = r"run 'pipeline': found the pipeline Counting\(\), which needs queries: give .*'pipeline': pipeline\("
    with pytest.raises(InputError, match=message):
        CALLS[call](mixed, qrels, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda topics: topics.drop(columns="qid"), "topics: wanted columns qid"),
        (lambda topics: topics[:0], "topics: no rows"),
        (lambda topics: pd.concat([topics, topics[:1]]), "topics: query 'q01' is duplicated"),
        (lambda _: 5, "topics: wanted a data frame"),
        (lambda _: "no-file.tsv", "no-file.tsv"),
    ],
)
def test_topics_that_cannot_be_used_are_refused(change, message, mixed, topics, qrels):
    with pytest.raises(InputError, match=message):
        vbterrier.score(mixed, qrels, MEASURES, data=Data(topics=change(topics)))
    assert mixed["pipeline"].calls == 0


def test_equal_names_are_refused_before_anything_is_run(frames, topics):
    pipeline = Counting(frames["dense"])
    with pytest.raises(InputError, match="two systems are called 'Counting"):
        named_runs([pipeline, pipeline], topics)
    assert pipeline.calls == 0
    # Frames in a list have no name.
    with pytest.raises(InputError, match="found a DataFrame in a list; name frames"):
        named_runs([pipeline, frames["dense"]], topics)
