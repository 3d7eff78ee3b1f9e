"""``vbterrier coverage``: tables, formats, errors."""

import csv
import io
import json

import pandas as pd
import pytest
from planted import planted_collection

from vbterrier import read_qrels, read_run, read_tags
from vbterrier.entities.pool import link_pool, write_links
from vbterrier.evaluate.coverage import coverage_report
from vbterrier.frames import write_qrels, write_run, write_tags
from vbterrier.settings import Inference

FILES = ["--pool", "pool.run", "--tags", "tags.tsv", "--qrels", "qrels.txt"]
RUNS = ["odds.run", "b[x].run"]
TITLES = ["RelCov", "NonRelCov", "DiscRatio", "OER", "SignalRate", "BaitRate", "TopBait", "OERCorr"]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The working folder, with the files of a planted collection with unjudged documents."""
    monkeypatch.chdir(tmp_path)
    planted = planted_collection(n_topics=4, n_documents=60, n_relevant=12, linker_recall=0.6)
    write_run(planted.pool, "pool.run")
    write_tags(planted.tags, "tags.tsv")
    # The last topic has no relevant document, and one run lists nothing for it.
    judged = planted.qrels.iloc[::2].copy()
    judged.loc[judged["qid"] == "q004", "label"] = 0
    write_qrels(judged, "qrels.txt")
    write_run(planted.runs["odds"], "odds.run")
    write_run(planted.runs["chance"].query("qid != 'q004'"), "b[x].run")
    return planted


@pytest.fixture
def report(made):
    """Results of the library on the same files."""
    pool = link_pool(read_run("pool.run"), read_tags("tags.tsv"), read_qrels("qrels.txt"))
    return lambda **options: coverage_report([*RUNS], pool, **options)


def rows_of(out):
    """The lines of the table and its notes, between the verdict and the caveats."""
    of_answer = ("Serious caveat: ", "Caveat: ", "Next: ")
    lines = [line for line in out.splitlines() if line.strip() and not line.startswith(of_answer)]
    return lines[next(place for place, line in enumerate(lines) if line.split()[0] == "run") :]


@pytest.mark.slow
def test_a_table_for_people(command, report):
    code, out, err = command("coverage", *RUNS, *FILES, "--cutoff", "20", "--cutoff", "3", "--cutoff", "20")
    assert (code, err) == (0, "")
    lines = rows_of(out)
    titles = f"run k {' '.join(TITLES[:3])} 95% of DiscRatio {' '.join(TITLES[3:])} ObsCov OracleCov topics"
    assert lines[0].split() == titles.split()
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["odds", "3"], ["odds", "20"], ["b[x]", "3"], ["b[x]", "20"],
    ]  # fmt: skip
    for line, name, k in zip(lines[2:6], ("odds", "odds", "b[x]", "b[x]"), (3, 20, 3, 20), strict=True):
        page = report(cutoff=k)
        value = page.entities.set_index(["name", "measure"]).loc[name]
        offers = page.topics[list(page.offers)].mean()
        ratio = value.loc[f"DiscRatio@{k}"]
        expected = [
            *(f"{value.loc[f'{measure}@{k}', 'value']:.3f}" for measure in TITLES[:3]),
            f"{ratio['low']:.3f}", "to", f"{ratio['high']:.3f}",
            *(f"{value.loc[f'{measure}@{k}', 'value']:.3f}" for measure in TITLES[3:6]),
            f"{value.loc['TopBait', 'value']:.3f}", f"{value.loc[f'OERCorr@{k}', 'value']:.3f}",
            f"{offers['ObsCov']:.3f}", f"{offers[f'OracleCov@{k}']:.3f}", "3",
        ]  # fmt: skip
        assert line.split()[2:] == expected


@pytest.mark.slow
def test_what_is_left_out_and_assumed_is_said(command, made):
    options = ["--alpha", "1", "--shrinkage", "2", "--resamples", "50", "--seed", "7"]
    _, out, _ = command("coverage", *RUNS, *FILES, *options)
    lines = out.partition("pool: ")[2].partition("\n\n")[0].splitlines()
    linked = made.pool["docno"].isin(made.tags["docno"])
    judged = made.qrels.iloc[::2]
    assert lines[0] == (
        f"4 topics, 240 documents, {judged.loc[judged['qid'] != 'q004', 'label'].sum()} relevant "
        "(label 1 and above), 50.0% unjudged "
        f"(treated as non-relevant), {1 - linked.mean():.1%} without entities"
    )
    assert lines[1] == (
        "left out if measures are undefined: 1 topic without relevant documents in the pool, "
        "0 without non-relevant ones"
    )
    assert "over the 3 topics that have both; topics (percentile), ratio of means: 50 resamples, seed 7;" in lines[2]
    assert "OER: alpha 1, shrinkage 2" in lines[2]
    assert lines[3:] == ["b[x]: no entities for 1 topic, scored as empty lists"]


@pytest.mark.slow
def test_a_file_of_links_says_the_same(command, made):
    pool = link_pool(read_run("pool.run"), read_tags("tags.tsv"), read_qrels("qrels.txt"))
    write_links(pool, "links.parquet")

    def shown(*arguments):
        # The next step repeats the words of the command.
        code, out, err = command("coverage", *RUNS, *arguments)
        return code, out.partition("Next: ")[0], err

    expected = shown(*FILES)
    assert shown("--links", "links.parquet") == expected
    # Given qrels replace the judgments of the file; so do documents beyond the depth.
    write_links(link_pool(read_run("pool.run"), read_tags("tags.tsv")), "bare.parquet")
    assert shown("--links", "bare.parquet", "--qrels", "qrels.txt") == expected
    code, _, err = command("coverage", *RUNS, "--links", "bare.parquet")
    assert (code, "no document of the pool is judged" in err) == (1, True)
    shallow = shown(*FILES, "--depth", "20")
    assert shallow != expected
    assert shown("--links", "links.parquet", "--depth", "20") == shallow


def test_csv_and_json_hold_the_frame_itself(command, report):
    options = ["--cutoff", "5", "--rel", "1", "--level", "0.8", "--resamples", "100"]
    page = report(cutoff=5, inference=Inference(level=0.8, n_resamples=100))
    _, out, _ = command("coverage", *RUNS, *FILES, *options, "--format", "json")
    frame = pd.DataFrame(json.loads(out))
    rows = frame[~frame["measure"].isin(page.offers)].reset_index(drop=True)
    by_name = [page.entities[page.entities["name"] == name] for name in ("odds", "b[x]")]
    expected = pd.concat(by_name, ignore_index=True)
    pd.testing.assert_frame_equal(rows[expected.columns], expected, check_dtype=False)
    for measure in page.offers:
        offered = frame[frame["measure"] == measure]
        assert offered["value"].tolist() == [page.pool[measure].iloc[0]] * 2
        assert offered["n_qids"].tolist() == [3, 3]
    assert set(frame["n_without_relevant"]) == {1}
    assert set(frame["share_unjudged"]) == {0.5}
    assert frame.groupby("name")["n_missing"].first().to_dict() == {"b[x]": 1, "odds": 0}
    _, out, _ = command("coverage", *RUNS, *FILES, *options, "--format", "csv")
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(out)), frame, check_dtype=False)


def test_a_row_for_each_topic(command, report):
    page = report(cutoff=5)
    code, out, _ = command("coverage", *RUNS, *FILES, "--cutoff", "5", "--per-query", "--format", "csv")
    assert code == 0
    rows = {(row["name"], row["qid"], row["measure"]): float(row["value"]) for row in csv.DictReader(io.StringIO(out))}
    expected = page.values.set_index(["name", "qid", "measure"])["value"].to_dict()
    for measure in page.offers:
        defined = page.topics.set_index("qid")[measure].dropna()
        expected |= {(name, qid, measure): value for name in ("odds", "b[x]") for qid, value in defined.items()}
    assert rows == pytest.approx(expected)
    _, out, _ = command("coverage", *RUNS, *FILES, "--cutoff", "5", "--per-query")
    lines = rows_of(out)
    assert lines[0].split()[:3] == ["run", "qid", "RelCov@5"]
    assert [line.split()[:2] for line in lines[2:]] == [
        [name, qid] for name in ("odds", "b[x]") for qid in ("q001", "q002", "q003", "q004")
    ]


@pytest.mark.parametrize("style", ["latex", "markdown"])
def test_papers_get_a_table_with_a_caption(command, made, style):
    code, out, _ = command("coverage", *RUNS, *FILES, "--format", style)
    assert code == 0
    words = ("means over topics of the first k entities, k = 20.", "pool: 4 topics", "odds")
    assert all(phrase in out for phrase in words)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 2, "wanted --pool, --tags and --qrels, or --links"),
        ([*FILES, "--links", "links.parquet"], 2, "--links holds a pool and its entities"),
        ([*FILES, "--cutoff", "0"], 2, "cutoff=0: wanted a whole number of at least 1"),
        (["--links", "nothing.parquet"], 1, "nothing.parquet"),
    ],
)
def test_errors_are_one_line(refused, made, options, code, message):
    refused(["coverage", *RUNS, *options], code, message)
