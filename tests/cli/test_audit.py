"""``vbterrier audit``, ``agreement`` and ``powered``: tables, formats, errors."""

import json
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from night import at_night

import vbterrier
from vbterrier.evaluate import audit_judge, topics_to_judge
from vbterrier.frames import read_labels
from vbterrier.settings import Inference
from vbterrier.stats import cohen_kappa, judge_agreement, prediction_powered

RUNS = ["a.run", "b.run"]


@pytest.fixture(autouse=True)
def files(write_files):
    rng = np.random.default_rng(0)
    pool = pd.DataFrame([(f"q{i}", f"d{j}") for i in range(20) for j in range(30)], columns=["qid", "docno"])
    label = rng.integers(0, 2, len(pool))
    folder = write_files({})
    for name in ("a", "b"):
        vbterrier.frames.write_run(pool.assign(score=label + rng.random(len(pool)), rank=0), folder / f"{name}.run")
    vbterrier.frames.write_qrels(pool.assign(label=label).sample(frac=0.8, random_state=1), folder / "human.txt")
    for name in ("one", "two"):
        other = np.where(rng.random(len(pool)) < 0.2, 1 - label, label)
        vbterrier.frames.write_qrels(pool.assign(label=other), folder / f"{name}.txt")
    return folder


@pytest.fixture(scope="module")
def of_two_judges():
    """Return the audit of both judges of the working folder, which has the same files in every test."""
    return cache(
        lambda: audit_judge(RUNS, "human.txt", labels=["one.txt", "two.txt"], budget=40, families={"a": "llm"})
    )


AUDIT = ["audit", *RUNS, "--qrels", "human.txt", "--judge", "one.txt", "--budget", "40"]


@pytest.mark.slow
def test_an_audit_begins_with_its_verdicts_and_names_its_tables(command, of_two_judges):
    code, out, err = command(*AUDIT, "--judge", "two.txt", "--family", "a=llm")
    result = of_two_judges()
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == out.splitlines()[:2] == result.answer().head().splitlines()
    assert lines[0].startswith(
        "The order of systems by one is UNKNOWN: 0 of 20 topics are judged completely; a verdict needs 10"
    )
    heads = " ".join(lines[:2])
    for judge in ("one", "two"):
        assert f"The order of systems by {judge} is " in heads
        assert f"The level of scores by {judge} is " in heads
    # All systems by all estimates in one table, and the numbers of the verdicts in another.
    assert "complete topics" in out
    assert "judge alone: one" in out
    assert f"{result.comparison['corrected'][0]:.4f}" in out
    for name, table in result.tables().items():
        assert (len(table) > 0) == (name != "without_humans")
        assert (
            len(table) == 0 or name in ("verdicts", "comparison") or f" {name}" in out.partition("Details: --show")[2]
        )


@pytest.mark.parametrize("table", ["systems", at_night("bias"), at_night("needed")])
@pytest.mark.slow
def test_one_table_is_shown_as_json(command, table):
    code, out, _ = command(*AUDIT, "--show", table, "-f", "json", "--baseline", "a")
    result = audit_judge(RUNS, "human.txt", labels=["one.txt"], budget=40, baseline="a").tables()[table]
    assert code == 0
    assert [list(row) for row in json.loads(out)] == [list(result.columns)] * len(result)
    assert [row[result.columns[0]] for row in json.loads(out)] == result.iloc[:, 0].tolist()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--family", "llm"], 2, "--family llm: wanted runs and their family"),
        (["--family", "a=llm", "--family", "b,c="], 2, "--family b,c=: wanted runs and their family"),
        (["--show", "all"], 2, "--show='all'"),
        (["--scale", "0"], 2, "--scale 0: wanted the smallest and the largest rating"),
        (["--scale", "-1,0"], 1, "is 1, wanted a whole number from -1 to 0"),
        (["--judge", "none.txt"], 1, "none.txt"),
    ],
)
def test_bad_usage_is_one_line(refused, options, code, message):
    refused([*AUDIT, *options], code, message)


def test_agreement_is_that_of_the_documents_that_all_labelled(command):
    code, out, _ = command("agreement", "human.txt", "one.txt", "-f", "json")
    frames = [read_labels(name).set_index(["qid", "docno"])["label"] for name in ("human.txt", "one.txt")]
    both = pd.concat(frames, axis=1, keys=["human", "one"]).dropna()
    assert code == 0
    values = [row["value"] for row in json.loads(out)]
    assert values == pytest.approx(judge_agreement(both)["value"].tolist())
    assert values[0] == pytest.approx(cohen_kappa(both["human"], both["one"]).value)
    assert json.loads(out)[0]["n_items"] == len(both) == 480


def test_powered_means_are_those_of_python(command, refused, files):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"name": "a", "qid": [f"q{i}" for i in range(60)], "measure": "ES@5", "value": rng.random(60)})
    labelled = frame.sample(30, random_state=0).assign(measure="success", value=lambda table: table["value"].round())
    frame.to_csv(files / "scores.csv", index=False)
    labelled.to_csv(files / "labels.csv", index=False)
    options = ["--predicts", "ES@5=success", "--weight", 1, "-f", "json"]
    code, out, _ = command("powered", "scores.csv", "labels.csv", *options)
    expected = prediction_powered(frame, labelled, lam=1.0)
    assert code == 0
    for column in ("value", "low", "high", "predicted"):
        assert json.loads(out)[0][column] == pytest.approx(expected[column].item())
    malformed = ["powered", "scores.csv", "labels.csv", "--predicts", "ES@5=success", "--predicts", "VB@5="]
    refused(malformed, 2, "--predicts VB@5=: wanted a score and its label")


@pytest.mark.slow
def test_an_audit_is_written_as_a_table_and_as_a_page_that_loads_nothing(command, files):
    code, _, err = command(*AUDIT, "--html", "audit.html", "-o", "audit.csv")
    page = (files / "audit.html").read_text()
    assert (code, err) == (0, "")
    estimates = ["humans alone", "corrected", "judge alone"]
    assert pd.read_csv(files / "audit.csv")["estimate"].unique().tolist() == estimates
    assert "<h1>Judge audit</h1>" in page
    assert page.count("<tr>") > 40
    assert "left out" not in page
    for title in ("Systems", "Differences a - b", "Calibration", "Bias of the judge", "Judge next"):
        assert f"<caption>{title}" in page
    assert "default-src 'none'" in page
    assert 'content="light dark"' in page
    # The script of the package alone.
    assert page.count("<script") == 1
    assert "script-src 'sha256-" in page
    assert not re.search(r"\bsrc=|url\(|@import", page)


def test_the_calibration_is_drawn_below_its_table(of_two_judges):
    result = of_two_judges()
    page, bins = result.page(), result.calibration
    _, _, drawn = page.partition("<caption>Calibration")[2].partition("</table>")
    drawn = drawn.partition("</section>")[0]
    circles = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"', drawn)
    assert drawn.count("<svg") == bins["method"].nunique() == 2
    assert f'aria-label="one: {(bins["method"] == "one").sum()} bins, n = 480"' in drawn
    ordered = bins.sort_values(["method", "predicted"], kind="stable")
    assert [float(x) for x, _, _ in circles] == pytest.approx((40 + 200 * ordered["predicted"]).tolist(), abs=0.06)
    assert [float(y) for _, y, _ in circles] == pytest.approx((224 - 200 * ordered["observed"]).tolist(), abs=0.06)
    radius = np.array([float(r) for _, _, r in circles])
    expected = np.maximum(8 * np.sqrt(ordered["n"] / ordered["n"].max()), 1.5)
    assert radius == pytest.approx(expected.to_numpy(), abs=0.06)


@pytest.mark.slow
def test_labels_may_be_named(command, refused, files):
    (files / "other").mkdir()
    (files / "two.txt").rename(files / "other" / "one.txt")
    (files / "one.txt").rename(files / "x=1.txt")
    named = ["one=x=1.txt", "two=other/one.txt"]
    code, out, _ = command("agreement", "human.txt", "x=1.txt", "other/one.txt", "-f", "json")
    assert (code, json.loads(out)[0]["n_items"]) == (0, 480)
    labels = ["--labels", named[0], "--labels", named[1]]
    assert command("score", *RUNS, "-q", "human.txt", "-m", "ENDCG@10", *labels)[0] == 0
    code, out, _ = command(*AUDIT[:5], *(word for name in named for word in ("--judge", name)), "-f", "json")
    systems = json.loads(out)
    assert [row["judge"] for row in systems if row["estimate"] == "judge alone"] == ["one", "one", "two", "two"]
    refused(["agreement", named[0], "human.txt"], 2, "LABELS human.txt: wanted NAME=PATH, as LABELS mine=human.txt")
    refused(["agreement", named[0], "one=human.txt"], 2, "LABELS: a name is repeated; found one, one")


@pytest.mark.slow
def test_fractional_judgments_are_counted_in_steps(command, write_files, files):
    text = (files / "human.txt").read_text(encoding="utf-8")
    write_files({"quarter.txt": "".join(f"{line[:-1]}{int(line[-1]) / 4}\n" for line in text.splitlines())})
    expected = command(*AUDIT, "--show", "systems", "--format", "csv")
    result = command("audit", *RUNS, "-q", "quarter.txt", "--unit", ".25", *AUDIT[5:], "--show", "systems", "-f", "csv")
    assert result == expected
    assert expected[0] == 0


@pytest.mark.slow
def test_judge_lists_topics_that_complete_an_audit(command, refused, files):
    arguments = ["judge", *RUNS, "-q", "human.txt", "--complete", "10", "--labels", "one.txt"]
    code, out, _ = command(*arguments, "-f", "json", "--seed", "3")
    plan = pd.DataFrame(json.loads(out))
    expected = topics_to_judge(RUNS, "human.txt", labels=["one.txt"], n_topics=10, inference=Inference(seed=3))
    assert code == 0
    assert plan["qid"].nunique() == 10
    assert (
        plan[["qid", "docno", "reason"]].to_numpy().tolist() == expected[["qid", "docno", "reason"]].to_numpy().tolist()
    )
    code, out, _ = command(*arguments, "-o", "plan.tsv", "--seed", "3")
    assert (code, out) == (0, f"Judging {len(plan)} documents of 10 topics makes 10 topics complete.\n\nplan.tsv\n")
    truth = vbterrier.read_qrels("human.txt")
    rows = pd.read_csv(files / "plan.tsv", sep="\t", dtype=str).assign(label=0)
    both = pd.concat([truth[["qid", "docno", "label"]], rows[["qid", "docno", "label"]]])
    vbterrier.frames.write_qrels(both, files / "more.txt")
    code, out, _ = command("audit", *RUNS, "-q", "more.txt", "-j", "one.txt", "--show", "verdicts", "-f", "json")
    row = json.loads(out)[0]
    assert (code, row["n_complete"], row["n_topics"]) == (0, 10, 20)
    assert row["order"] in ("TRUSTED", "NOT TRUSTED", "UNKNOWN")
    assert " by 10 complete topics of 20" in row["order_reason"]
    cut, _, _ = command("judge", *RUNS, "-q", "human.txt", "--complete", "1", "--labels", "one.txt", "-m", "ENDCG@3")
    assert cut == 0
    refused(["judge", *RUNS, "-q", "human.txt"], 2, "wanted either --budget, a number of documents, or --complete")
    refused([*arguments, "--budget", "3"], 2, "wanted either --budget")
    refused([*arguments, "--look", "2"], 2, "--complete judges whole topics: leave out")
    refused(arguments[:7], 2, "--complete: wanted --labels")
