"""``vbterrier gate``: exit codes, formats, the documents to judge next; repeated baselines of other commands."""

import json
import xml.etree.ElementTree as ET

import pandas as pd
import pytest

from vbterrier.evaluate import release_gate
from vbterrier.settings import Data

N = 80
EVIL = "<b>|*\x1b[31m&"


def run_of(ranking):
    return "".join(f"q{i} Q0 {docno} {rank} {-rank} t\n" for i in range(N) for rank, docno in enumerate(ranking, 1))


QRELS = "".join(f"q{i} 0 a 1\nq{i} 0 b 0\n" for i in range(N))
GATE = ["gate", "new.run", "--qrels", "qrels.txt", "--margin", "0.1", "-m", "nDCG@2"]


@pytest.fixture(autouse=True)
def files(write_files):
    runs = {"new.run": run_of("ab"), "old.run": run_of("ab"), "bad.run": run_of("ba"), "holes.run": run_of("xa")}
    return write_files({**runs, "qrels.txt": QRELS, "few.txt": QRELS[: len("q0 0 a 1\n") * 2 * 5]})


def test_exit_codes_are_those_of_the_decision(command):
    code, out, err = command(*GATE, "--baseline", "old.run")
    assert (code, err) == (0, "")
    how = "mean difference +0.0000 (-0.0368 to +0.0451), 80 queries."
    assert out.splitlines()[0] == f"✓ PASS: new is at most 0.1 worse than old by nDCG@2: {how}"
    code, out, _ = command(*GATE, "--baseline", "old.run", "--baseline", "bad.run")
    assert code == 0
    assert "corrected for 2 baselines" in out
    code, out, _ = command("gate", "bad.run", *GATE[2:], "--baseline", "old.run")
    assert (code, out[:7]) == (2, "✗ FAIL:")
    # A sentence about another decision does not begin with its name.
    assert "PASS" not in out
    code, out, _ = command("gate", "new.run", "-b", "old.run", "-q", "few.txt", "--margin", "0.1", "-m", "nDCG@2")
    assert code == 3
    assert out.startswith("? UNKNOWN: 5 queries do not show whether new is at most 0.1 worse than old by nDCG@2: ")
    assert "More queries are needed: about 59 such as these would give PASS or FAIL with probability 0.8 (now 5)" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--baseline", "none.run"], "no such file"),
        ([], "Missing option"),
        (["--baseline", "old.run", "--margin", "-1"], "--margin=-1.0: wanted a number of at least 0"),
        (["--baseline", "old.run", "--margin", "2"], "--margin=2: means of nDCG@2 differ by at most 1; wanted less"),
        (["--baseline", "old.run", "--format", "latex"], "--format latex: wanted one of table, markdown, json, junit"),
        (["--baseline", "old.run", "-o", "out.csv"], "wanted a name that ends in .xml, .md, .json, .txt"),
        (["--baseline", "old.run", "--unknown"], "No such option"),
        (["--baseline", "old.run", "--daily", "--covariate", "labels"], "--covariate='labels' and --daily: wanted one"),
        (["--baseline", "old.run", "--guardrail", "nDCG@2=.1"], "--guardrail: wanted measures other than that"),
    ],
)
def test_errors_of_usage_are_no_failed_release(refused, arguments, words):
    refused([*GATE, *arguments], 1, words)


def test_other_commands_keep_the_code_of_invalid_usage(refused):
    refused(["score", "new.run"], 2, "nothing to score against: wanted --qrels")


@pytest.mark.parametrize("name", ["track", "judge", "audit"])
def test_commands_without_weights_name_those_with(refused, name):
    words = "No such option: --queries. --queries is an option of score, rank, compare, gate, queries power."
    refused([name, "new.run", "--queries", "w.csv"], 2, words)


def test_json_has_all_columns(command, files):
    code, out, _ = command(*GATE, "--baseline", "old.run", "-f", "json")
    decision = release_gate("new.run", "qrels.txt", "nDCG@2", baseline="old.run", margin=0.1)
    document = json.loads(out)
    assert (document["decision"], document["exit_code"], code) == ("PASS", 0, 0)
    assert document["pairs"][0]["low"] == decision.pairs.loc[0, "low"]
    assert set(document["pairs"][0]) == set(decision.pairs.columns)


def test_files_are_written_in_the_format_of_their_names(command, files):
    code, out, _ = command("gate", "holes.run", *GATE[2:-1], "ENDCG@2", "-b", "old.run", "-o", "out.xml", "-n", 3)
    root = ET.parse(files / "out.xml").getroot()
    suite = root.find("testsuite")
    assert out.count("\n") == 1
    expected = {"tests": "1", "failures": str(int(code == 2)), "skipped": str(int(code == 3)), "errors": "0"}
    assert {name: suite.get(name) for name in expected} == expected
    assert suite.find("testcase").get("name") == "holes is at most 0.1 below old by ENDCG@2"
    command(*GATE, "-b", "old.run", "-o", "out.md")
    assert (files / "out.md").read_text().startswith("## ✓ PASS: new is at most 0.1 worse than old by nDCG@2")


def test_a_failed_baseline_is_a_failed_test(command, files):
    assert command("gate", "bad.run", *GATE[2:], "-b", "old.run", "-o", "out.xml")[0] == 2
    case = ET.parse(files / "out.xml").getroot().find("testsuite/testcase")
    assert case.find("failure").get("message").startswith("FAIL: -0.")


def test_names_of_input_are_escaped(command, files):
    for name in ("new", "old"):
        (files / f"{EVIL} {name}.run").write_text((files / f"{name}.run").read_text())
    arguments = ["gate", f"{EVIL} new.run", "-b", f"{EVIL} old.run", *GATE[2:]]
    assert command(*arguments, "-o", "out.xml")[0] == 0
    case = ET.parse(files / "out.xml").getroot().find("testsuite/testcase")
    assert case.get("name") == r"<b>|*\x1b[31m& new is at most 0.1 below <b>|*\x1b[31m& old by nDCG@2"
    _, out, _ = command(*arguments, "-f", "markdown")
    assert r"## ✓ PASS: &lt;b>\|\*\\x1b\[31m&amp; new is at most 0.1 worse than " in out
    assert "\x1b" not in out


def test_documents_to_judge_are_written_in_the_form_of_the_ratings(command, files):
    rows = "".join(f'"query, {i}",a,1\n"query, {i}",b,0\n' for i in range(60))
    (files / "ratings.csv").write_text(f"query,docid,rating\n{rows}")
    for name, ranking in (("fresh", "xa"), ("stale", "ab")):
        hits = "".join(f'"query, {i}",{docno},{rank}\n' for i in range(60) for rank, docno in enumerate(ranking, 1))
        (files / f"{name}.csv").write_text(f"Query Text,Doc ID,Doc Position\n{hits}")
    traffic = "".join(f'"query, {i}",{min(i, 2)},{"odd" if i % 2 else "even"}\n' for i in range(60))
    (files / "traffic.csv").write_text(f"query,weight,segment\n{traffic}")
    arguments = [
        "gate",
        "fresh.csv",
        "-b",
        "stale.csv",
        "-q",
        "ratings.csv",
        "--margin",
        0.3,
        "-m",
        "ENDCG@2",
        "-n",
        4,
        "--max-share",
        1,
    ]
    code, out, err = command(*arguments, "--judge", "next.csv", "--queries", "traffic.csv")
    # The caveat of weights is not repeated in standard error.
    assert (code, err) == (3, "")
    lines = (files / "next.csv").read_text().splitlines()
    assert lines[0] == "query,docid,rating"
    assert len(lines) == 5
    assert all(line.endswith(",x,") for line in lines[1:])
    assert "1 query of weight 0 ('query, 0')" in out
    first = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert [word for word in first if word in {"even", "odd"}] == ["even", "odd"]


def test_repeated_baselines_of_compare_are_one_family(command):
    runs = ["new.run", "old.run", "bad.run"]
    code, out, _ = command("compare", *runs, "-q", "qrels.txt", "-m", "P@1", "--baseline", "old", "--baseline", "new")
    assert code == 0
    assert "By P@1, against old (1.000, 80 topics): bad scores lower." in out
    assert "By P@1, against new (1.000, 80 topics): bad scores lower." in out
    assert "Bonferroni correction over 2 tests" in out
    assert "* differs significantly from old or new" in out


@pytest.mark.parametrize(("name", "more"), [("report", ["-o", "r.html"]), ("rank", ["--pairs"])])
def test_other_repeated_baselines_are_refused(refused, name, more):
    arguments = [name, "new.run", "bad.run", "-q", "qrels.txt", *more, "--baseline", "new", "--baseline", "bad"]
    refused(arguments, 2, "--baseline is given 2 times; wanted one")


def test_a_pull_request_calls_nobody_and_links_nothing(command, files):
    evil = ["@octocat", "https://evil.example", "#23"]
    ratings = "".join(f"{evil[i % 3]} {i},a,1\n{evil[i % 3]} {i},b,0\n" for i in range(12))
    (files / "ratings.csv").write_text(f"query,docid,rating\n{ratings}")
    for name, ranking in (("new", ["=cmd", "a"]), ("old", ["a", "b"])):
        rows = [f"{evil[i % 3]} {i},{docno},{rank}\n" for i in range(12) for rank, docno in enumerate(ranking, 1)]
        (files / f"{name}.csv").write_text("query,docid,position\n" + "".join(rows))
    options = ["-q", "ratings.csv", "--margin", "0.5", "-m", "ENDCG@2", "-f", "markdown", "--judge", "next.csv"]
    options += ["--max-share", "1"]
    code, out, _ = command("gate", "new.csv", "-b", "old.csv", *options)
    assert code == 3
    for sign in ("@octocat", "https:", " #23"):
        assert sign not in out
    assert "@<!-- -->octocat 0" in out
    lines = (files / "next.csv").read_text().splitlines()
    assert lines[0] == "query,docid,rating"
    assert {line.split(",")[1] for line in lines[1:]} == {"'=cmd"}
    assert {line[0] for line in lines[1:]} == {"'", "h", "#"}


def test_runs_of_one_file_name_are_told_apart_by_names(command, refused, files):
    for folder in ("a", "b"):
        (files / folder).mkdir()
        (files / folder / "run.csv").write_text("query,docid,position\n" + "q0,a,1\nq1,b,1\n")
    few = ["-q", "few.txt", "--margin", "0.1", "-m", "nDCG@2"]
    code, out, _ = command("gate", "new=a/run.csv", "-b", "old=b/run.csv", *few)
    assert (code, "whether new is at most 0.1 worse than old" in out.splitlines()[0]) == (3, True)
    # A named file and an unnamed one, and a file whose name has the sign.
    (files / "x=y.csv").write_text((files / "a/run.csv").read_text())
    code, out, _ = command("gate", "x=y.csv", "-b", "mine=a/run.csv", "-b", "b/run.csv", *few)
    assert "x=y - mine" in out
    assert "x=y - run" in out
    refused(
        ["gate", "a/run.csv", "-b", "b/run.csv", *few], 1, "two systems are called 'run'; name one, as new=a/run.csv"
    )
    refused(
        ["gate", "new=a/run.csv", "-b", "a/run.csv", "-b", "b/run.csv", *few],
        1,
        "name one, as --baseline mine=b/run.csv",
    )


@pytest.mark.parametrize(("new", "decision"), [("new.run", "PASS"), ("bad.run", "FAIL")])
def test_the_list_to_judge_is_always_written(command, files, new, decision):
    (files / "next.tsv").write_text("of yesterday")
    _, out, _ = command("gate", new, "-b", "old.run", *GATE[2:], "--judge", "next.tsv")
    assert out[2:].startswith(decision)
    assert (files / "next.tsv").read_text() == "qid\tdocno\treason\n"
    (files / "ratings.csv").write_text("query,docid,rating\n" + "".join(f"q{i},a,1\nq{i},b,0\n" for i in range(N)))
    command("gate", new, "-b", "old.run", "-q", "ratings.csv", *GATE[4:], "--judge", "next.csv")
    assert (files / "next.csv").read_text() == "query,docid,rating\n"


def test_a_build_server_sees_the_reason(command, files):
    command("gate", "new.run", "-b", "old.run", "-q", "few.txt", *GATE[4:], "-o", "out.xml")
    case = ET.parse(files / "out.xml").getroot().find("testsuite/testcase")
    assert "more queries are needed: about 59" in case.find("skipped").get("message")


def test_fractional_ratings_are_counted_in_steps(command, write_files):
    write_files({"fractions.txt": QRELS.replace(" 1\n", " 0.75\n"), "odd.txt": QRELS.replace(" 1\n", " 0.7\n")})
    gate = ["gate", "bad.run", "-b", "old.run", "--margin", "0.1", "-m", "nDCG@2", "--unit", ".25"]
    code, out, _ = command(*gate, "-q", "fractions.txt", "--scale", "0,1")
    whole, same, _ = command("gate", "bad.run", *GATE[2:], "-b", "old.run")
    # The table of rankings has the grades.
    assert (code, out.partition("Queries that lose")[0]) == (whole, same.partition("Queries that lose")[0])
    code, _, err = command(*gate, "-q", "odd.txt")
    assert code == 1
    assert "is 0.7, wanted a multiple of 0.25" in err
    code, _, err = command(*gate, "-q", "fractions.txt", "--scale", "1,2")
    assert "wanted a multiple of 0.25 from 1 to 2" in err
    code, _, err = command(*gate[:6], "-m", "P@2", "--unit", ".25", "-q", "fractions.txt")
    assert "is not proportional to ratings" in err
    frame = pd.DataFrame([line.split() for line in QRELS.splitlines()], columns=["qid", "iteration", "docno", "label"])
    frame = frame.drop(columns="iteration").astype({"label": float})
    results = [
        release_gate("bad.run", table, "nDCG@2", baseline="old.run", margin=0.1, data=Data(unit=unit)).decision
        for table, unit in ((frame, 1.0), (frame.assign(label=frame["label"] / 4), 0.25))
    ]
    assert results == ["FAIL", "FAIL"]
