"""Every result has the same four verbs: ``to_frame``, ``plot``, ``page`` and ``save``."""

import ast
import html
import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from results import BESIDE, COMPLETE, DENSE, JUDGED, LEXICAL, MAKERS, MEANT, QRELS, RUNS, TAGGED, results

import vbterrier
from vbterrier.design.removal import Removal
from vbterrier.errors import FileError, ParameterError
from vbterrier.frames.notebook import cell
from vbterrier.frames.results import SUFFIXES
from vbterrier.intents.calibrate import Calibrate
from vbterrier.report.paper import save_table

PACKAGE = Path(vbterrier.__file__).parent
# The attribute of which a result's rows are.
ATTRIBUTES = {
    "score": "intervals",
    "compare": "pairs",
    "rank_systems": "systems",
    "leaderboard": "systems",
    "variance_shares": "shares",
    "analysis_of_variance": "sources",
    "diagnose": "runs",
    "audit_judge": "verdicts",
    "label_quality": "summary",
    "judge_next": "documents",
    "release_gate": "pairs",
    "read_rated_list": "labels",
    "evaluate_intents": "intervals",
    "evaluate_settings": "gaps",
    "evaluate_closed_open": "intervals",
    "coverage_report": "entities",
    "pareto_frontier": "runs",
    "calibration_error": "bins",
    "tag_quality": "documents",
    "linking_report": "intervals",
    "mention_report": "intervals",
    "supervision_report": "topics",
    "simulate": "estimates",
    "simulate_query_removal": "draws",
    "sample_queries": "queries",
    "entity_grid": "runs",
    "rerank_grid": "runs",
    "evaluate_frozen": "gaps",
    "fit_tagger": "entities",
    "annotate": "items",
    "collect": "labels",
    "annotate_documents": "items",
    "annotated_scores": "intervals",
}
# Columns of a call: measures, parameters of configurations, annotators.
OF_THE_CALL = {
    "pareto_frontier": {"RelCov@20", "NonRelCov@20"},
    "entity_grid": {"min_documents"},
    "rerank_grid": {"cutoff", "weight", "entity_weight", "link_weight", "confidence", "norm"},
    "collect": {"ann", "bob"},
}
C_FRAME = {"name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed"}


def rows(frame):
    """The rows of a frame as a set."""
    return set(frame.itertuples(index=False, name=None))


def of_unjudged_documents(result):
    cuts = [vbterrier.frames.ranked(vbterrier.read_run(path), 10) for path in RUNS.values()]
    pool = pd.concat(cuts)[["qid", "docno"]]
    judged = vbterrier.read_qrels(QRELS)[["qid", "docno"]]
    assert rows(result[["qid", "docno"]]) == rows(pool) - rows(judged)
    # The same model as joint distributions of one run.
    probabilities = 1 - results()["distribution"].probabilities[:, 0]
    unjudged = DENSE.groupby("qid").head(10)[["qid", "docno"]].merge(result, on=["qid", "docno"])
    assert sorted(unjudged["prob"]) == pytest.approx(sorted(probabilities))


def of_topics(actual, result):
    low, high = result.interval(0.9)
    for name, values in {
        "qid": result.topics,
        "mean": result.mean,
        "std": result.std,
        "low": low,
        "high": high,
    }.items():
        assert actual[name].tolist() == list(values)
    assert result.to_frame(0.5)["low"].tolist() == result.interval(0.5)[0].tolist()


def of_plan(actual, result):
    one = {name: getattr(result, name) for name in ("delta", "n_qids", "low", "high", "power", "level")}
    assert actual[list(one)].to_dict("records") == [one]
    assert actual["n_pilot"].tolist() == [12]


def of_breakpoint(actual, result):
    names = ("value", "low", "high", "level", "f_statistic", "p_value", "p_unsearched", "n_qids", "seed")
    assert actual[list(names)].to_dict("records") == [{name: getattr(result, name) for name in names}]


def of_topic_statistics(result, _):
    means = vbterrier.score(RUNS, QRELS, ["AP"]).means()["AP"]
    assert dict(zip(result["name"], result["value"], strict=True)) == pytest.approx(means.to_dict())


def of_links(result, _):
    expected = LEXICAL[["qid", "docno"]].merge(TAGGED[["docno", "entity_id"]], how="left")
    assert rows(result[["qid", "docno", "entity_id"]]) == rows(expected)
    labels = result.drop_duplicates(["qid", "docno"]).merge(JUDGED, on=["qid", "docno"], suffixes=("", "_of_qrels"))
    assert labels["label"].tolist() == labels["label_of_qrels"].clip(lower=0).tolist()


def one_row(**expected):
    def check(result, _):
        assert result.to_dict("records") == [pytest.approx({**result.iloc[0].to_dict(), **expected}, nan_ok=True)]

    return check


# Rows that are computed, compared with values from elsewhere: by hand, from the input, from other methods.
COMPUTED = {
    "bootstrap_distribution": of_topics,
    "distribution": of_topics,
    "fit": lambda result, _: of_unjudged_documents(result),
    "breakpoint_sweep": of_breakpoint,
    "queries_needed": of_plan,
    "link_pool": of_links,
    "TopicStatistics": of_topic_statistics,
    "IntentSet": lambda result, _: pd.testing.assert_frame_equal(result, MEANT, check_dtype=False, check_like=True),
    # Observed agreement 4/5, expected 12/25.
    "cohen_kappa": one_row(value=0.32 / 0.52, agreement=0.8, n_items=5),
    "disc_ratio": one_row(value=2.0 / 0.6, n_qids=3),
    # 13 of 16 decisions are right.
    "DecisionCounts": one_row(right=6, wrong=1, missed=1, recognised=7, taken=1, P=13 / 16, R=13 / 16, F1=13 / 16),
}


def shown_classes():
    """The names of all classes of the package that are results, and of those that others extend."""
    bases = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    result = {"Shown"}
    while more := {name for name, of in bases.items() if of & result} - result:
        result |= more
    return result - {"Shown"}, set().union(*(bases[name] for name in result if name in bases))


@pytest.mark.slow
def test_every_result_is_tested_here():
    classes, extended = shown_classes()
    made = {type(result).__name__ for result in results().values()}
    assert made <= classes
    # Base classes are tested by the classes that extend them.
    assert classes - made <= extended
    assert len(classes) > 35
    assert {*ATTRIBUTES, *COMPUTED} == set(MAKERS)


@pytest.mark.parametrize("name", MAKERS)
def test_to_frame_has_the_rows_that_the_result_is_about(name):
    result = results()[name]
    table = result.to_frame()
    assert len(table) > 0
    assert table.columns.is_unique
    assert all(isinstance(column, str) for column in table.columns)
    if name in ATTRIBUTES:
        pd.testing.assert_frame_equal(table, getattr(result, ATTRIBUTES[name]), check_exact=True)
    else:
        COMPUTED[name](table, result)


@pytest.mark.parametrize("name", MAKERS)
def test_columns_of_to_frame_are_documented(name):
    result = results()[name]
    text = " ".join(kind.__doc__ or "" for kind in type(result).__mro__ if kind.__module__.startswith("vbterrier"))
    text += type(result).to_frame.__doc__
    documented = (
        set(re.findall(r"[\w@]+", text)) | OF_THE_CALL.get(name, set()) | (C_FRAME if "C frame" in text else set())
    )
    assert [column for column in result.to_frame().columns if column not in documented] == []


def drawn_by(ax):
    """The numbers that the artists of a figure have as positions."""
    parts = [np.ravel(np.asarray(line.get_xydata(), dtype=float)) for line in ax.lines]
    for marks in ax.collections:
        parts.append(np.ravel(np.ma.filled(marks.get_offsets().astype(float), np.nan)))
        parts += [np.ravel(path.vertices) for path in marks.get_paths()]
        if marks.get_array() is not None:
            parts.append(np.ravel(np.ma.filled(np.ma.asarray(marks.get_array(), dtype=float), np.nan)))
    parts += [np.ravel(np.ma.filled(np.ma.asarray(image.get_array(), dtype=float), np.nan)) for image in ax.images]
    parts += [patch.get_path().vertices.ravel() for patch in ax.patches]
    parts += [np.array([bar.get_width(), bar.get_height()]) for bar in ax.patches if hasattr(bar, "get_width")]
    return np.concatenate(parts) if parts else np.zeros(0)


def numbers_of(result):
    """All fractions in the tables of a result, also as percentages, without those that scales have as marks."""
    frames = [result.to_frame(), *(panel.frame for panel in result._panels())]
    frames += [part for part in getattr(result, "__dict__", {}).values() if isinstance(part, pd.DataFrame)]
    values = np.concatenate([frame.select_dtypes("float").to_numpy().ravel() for frame in frames])
    if isinstance(result, Removal):
        # Drawn as differences from the mean of the draws of the model.
        means = result.summary().query("source == 'model'").set_index("measure")["mean"]
        values = np.append(values, [result.worst[name] - mean for name, mean in means.items()])
    values = np.unique(values[np.isfinite(values)])
    values = values[np.abs(values * 20 - np.round(values * 20)) > 1e-9]
    return np.concatenate([values, 100 * values])


@pytest.mark.parametrize("name", MAKERS)
def test_plot_draws_the_numbers_of_the_result(name):
    result = results()[name]
    if not result._figures():
        with pytest.raises(ParameterError, match=rf"{type(result).__name__} has no plots; docs/how-to/results\.md"):
            result.plot()
        return
    _, ax = plt.subplots(layout="constrained")
    drawn, numbers = (
        drawn_by(result.plot(ax=ax, **BESIDE.get((name, next(iter(result._figures()))), {}))),
        numbers_of(result),
    )
    plt.close(ax.figure)
    actual = [value for value in numbers if np.isclose(drawn, value, rtol=1e-9, atol=1e-12).any()]
    assert len(actual) >= 1


def test_plots_name_the_arguments_that_they_need_beside_the_result():
    with pytest.raises(ParameterError, match=r"'coverage_map' of IntentSet also needs run=; see help\(vbterrier.plots"):
        results()["IntentSet"].plot(cutoff=3)
    with pytest.raises(ParameterError, match="'gain_by_coverage' of Breakpoint also needs table="):
        results()["breakpoint_sweep"].plot()


@pytest.mark.parametrize("name", MAKERS)
def test_page_has_every_table_with_its_values(name):
    result = results()[name]
    page = result.page()
    assert page.lower().startswith("<!doctype html>")
    text = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)))
    for panel in result._panels():
        assert panel.title in text
        _, shown = panel.caption_and_table()
        for column in shown.columns[: panel.heads]:
            assert [value for value in shown[column].head(1000) if html.unescape(cell(value)) not in text] == []
    listed = {"documents" if one.docno else "queries" for one in result.answer().evidence}
    assert all(f"{kind} behind the verdict" in text for kind in listed)
    if not list(result._verdict()):
        assert html.unescape(cell(repr(result).partition("(")[2].removesuffix(")"))) in text


def as_text(column):
    return ["" if value is None or value != value else str(value) for value in column]  # noqa: PLR0124 - NaN


@pytest.mark.parametrize("name", MAKERS)
def test_saved_rows_are_those_of_to_frame_with_all_digits(name, tmp_path):
    result = results()[name]
    expected = result.to_frame()
    path = result.save(tmp_path / "rows.csv")
    assert path == tmp_path / "rows.csv"
    read = pd.read_csv(io.StringIO(path.read_text(encoding="utf-8")), dtype=str, keep_default_na=False)
    assert list(read) == list(expected)
    records = json.loads(result.save(tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert len(records) == len(expected)
    for column in expected:
        again = [record[column] for record in records]
        if not pd.api.types.is_numeric_dtype(expected[column]) or pd.api.types.is_bool_dtype(expected[column]):
            assert as_text(read[column]) == as_text(again) == as_text(expected[column])
        else:
            numbers = expected[column].astype(float)
            np.testing.assert_array_equal([float(text or "nan") for text in read[column]], numbers)
            finite = numbers.where(np.isfinite(numbers))
            np.testing.assert_array_equal(np.array(again, dtype=float), finite)


def undated(page):
    """A page without the minutes in which it was made, which two pages may not share."""
    text, n = re.subn(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", page)
    assert n > 0
    return text


@pytest.mark.parametrize("name", MAKERS)
def test_saved_pages_and_tables_are_those_of_the_result(name, tmp_path):
    result = results()[name]
    assert undated(result.save(tmp_path / "it.html").read_text(encoding="utf-8")) == undated(result.page())
    frame = result.to_frame()
    first = frame.iloc[0]
    texts = [value for value in first if isinstance(value, str) and value and len(value) < 20]
    digits = [float(value) for value in first if isinstance(value, float) and np.isfinite(value)]
    for suffix, rule in ((".md", "---"), (".tex", r"\toprule"), (".txt", "─")):
        table = result.save(tmp_path / f"it{suffix}").read_text(encoding="utf-8")
        assert rule in table
        plain = re.sub(r"\\ensuremath\{-\}|<!-- -->|\\(?=\W|_)", lambda match: "-" if "ens" in match[0] else "", table)
        assert not texts or any(text in plain for text in texts), suffix
        assert not digits or any(f"{value:.{n}f}" in plain for value in digits for n in (3, 4)), suffix


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    result = results()["score"]
    (tmp_path / "it.csv").write_text("before")
    result.save(str(tmp_path / "it.csv"))
    assert (tmp_path / "it.csv").read_text().startswith("name,measure,value")
    assert [path.name for path in tmp_path.iterdir()] == ["it.csv"]
    with pytest.raises(FileError, match="no"):
        result.save(tmp_path / "no" / "it.csv")
    for odd in ("it.xlsx", "it", "it.CSV"):
        with pytest.raises(
            ParameterError, match=re.escape(f"{odd}: wanted a name that ends in .html, .tex, .md, .csv")
        ):
            result.save(tmp_path / odd)
    assert [path.name for path in tmp_path.iterdir()] == ["it.csv"]
    assert set(SUFFIXES) == {".html", ".tex", ".md", ".csv", ".json", ".txt"}


@pytest.mark.parametrize("path", [None, 3, b"it.html", "", ["it.html"], "a\0.html", "\ud800.html"])
def test_what_is_no_path_is_refused_wherever_something_is_saved(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result, model = results()["score"], results()["fit"]
    temperature = Calibrate("prior")
    for save in (result.save, model.save, temperature.save, lambda path: save_table(result, path)):
        with pytest.raises(ParameterError, match=r"^path=.*: wanted (the|a) name"):
            save(path)
    with pytest.raises(ParameterError, match=r"^path=.*: wanted (the|a) name"):
        vbterrier.write_report({}, path=path)
    assert not list(tmp_path.iterdir())


def test_a_model_is_saved_in_a_folder_and_its_rows_in_a_file(tmp_path):
    model = results()["fit"]
    folder = model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(vbterrier.unjudged.EvidenceModel.load(folder).to_frame(), model.to_frame())
    assert pd.read_csv(model.save(tmp_path / "model.csv"))["docno"].tolist() == model.to_frame()["docno"].tolist()
    assert undated(model.save(tmp_path / "model.html").read_text(encoding="utf-8")) == undated(model.page())
    # No folder of that name is made instead.
    with pytest.raises(ParameterError, match=r"model2\.CSV: wanted a name that ends in"):
        model.save(tmp_path / "model2.CSV")
    assert not (tmp_path / "model2.CSV").exists()


def test_the_caption_of_a_result_without_a_table_for_papers_is_its_line(tmp_path):
    result = results()["audit_judge"]
    assert list(COMPLETE) == result.to_frame()["judge"].tolist()
    assert f"Table: {result!r}." in result.save(tmp_path / "audit.md").read_text(encoding="utf-8")
