"""``vbterrier convert``: what is written is read back by the same commands, with the same values."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import vbterrier
from vbterrier.entities import link_pool
from vbterrier.errors import InputError
from vbterrier.frames import read_answers, read_mentions, read_rated_list

QRELS = "q1 0 d1 2\nq1 0 d2 0\nq+2 0 d3 1\n"
RUN = "q1 Q0 d2 1 2.5 x\nq1 Q0 d1 2 1.5 x\nq+2 Q0 d3 1 0.5 x\n"
EXPECTED = [["q1", "d1", 2], ["q1", "d2", 0], ["q+2", "d3", 1]]


@pytest.fixture(autouse=True)
def files(write_files):
    return write_files({"qrels.txt": QRELS, "mine.run": RUN, "gold.tab": "d1\t0\t4\tdbr:Paris\nd1\t9\t12\tNIL\n"})


def converted(command, source, kind, to, *options):
    code, out, err = command("convert", source, "-o", f"out.{to}", "--kind", kind, "--to", to, *options)
    assert (code, err) == (0, "")
    assert out.startswith(f"out.{to}: ")
    return f"out.{to}"


@pytest.mark.parametrize("kind", ["qrels", "labels"])
@pytest.mark.parametrize("to", ["trec", "beir", "quepid", "rank_eval", "workbench"])
def test_ratings_are_read_back(command, kind, to):
    path = converted(command, "qrels.txt", kind, to, *(["--index", "shop"] if to == "rank_eval" else []))
    assert read_rated_list(path).labels[["qid", "docno", "label"]].to_numpy().tolist() == EXPECTED
    if to == "rank_eval":
        assert json.loads(Path(path).read_text(encoding="utf-8"))["requests"][0]["ratings"][0]["_index"] == "shop"


@pytest.mark.parametrize("to", ["trec", "beir", "quepid"])
def test_runs_are_read_back(command, to):
    run = vbterrier.read_run(converted(command, "mine.run", "run", to))
    assert run[["qid", "docno"]].to_numpy().tolist() == [["q1", "d2"], ["q1", "d1"], ["q+2", "d3"]]


def test_documents_to_rate_have_empty_ratings(command):
    path = converted(command, "mine.run", "pool", "quepid")
    assert Path(path).read_text(encoding="utf-8").splitlines() == ["query,docid,rating", "q1,d2,", "q1,d1,", "q+2,d3,"]
    Path("next.csv").write_text("qid,docno\nq1,d9\n", encoding="utf-8")
    lines = Path(converted(command, "next.csv", "pool", "beir")).read_text(encoding="utf-8").splitlines()
    assert lines == ["query-id\tcorpus-id\tscore", "q1\td9\t"]


SYSTEMS = "qid,docno,score,tag\nq1,d1,2,A\nq1,d2,1,B\n"


def test_conversions_merge_no_systems(command, refused):
    Path("two.csv").write_text(SYSTEMS, encoding="utf-8")
    options = ["convert", "two.csv", "-o", "out.run", "--kind", "run", "--to", "trec"]
    refused(options, 1, "two.csv: column 'tag' has 2 values ('A', 'B')")
    refused([*options, "--system", "tag"], 1, "two.csv: holds 2 systems ('A', 'B'), wanted one")
    assert not Path("out.run").exists()
    path = converted(command, "two.csv", "run", "trec", "--system", "none")
    assert vbterrier.read_run(path)["docno"].tolist() == ["d1", "d2"]
    Path("two.csv").write_text(f"{SYSTEMS}q1,d1,1,B\n", encoding="utf-8")
    refused(options, 1, "two.csv: holds 2 systems ('A', 'B'), wanted one")
    refused(
        ["convert", "qrels.txt", "-o", "out.txt", "--kind", "qrels", "--to", "trec", "--system", "none"],
        2,
        "--kind run",
    )


def test_tables_are_scored_in_parts_once_they_are_converted(command):
    rows = "".join(f"t{i % 99},x{i},{-i}\n" for i in range(130_000))
    Path("mine.csv").write_text(f"qid,docno,score\nq1,d2,2.5\nq1,d1,1.5\nq+2,d3,0.5\n{rows}", encoding="utf-8")
    score = ["-q", "qrels.txt", "-m", "nDCG@10", "-f", "csv"]
    _, whole, _ = command("score", "mine.csv", *score)
    code, _, err = command("score", "mine.csv", *score, "--memory", "64 MiB")
    assert code == 1
    assert "`vbterrier convert FILE -o NEW --kind run --to trec`" in err
    converted(command, "mine.csv", "run", "trec")
    Path("out.trec").rename("mine.run")
    assert command("score", "mine.run", *score, "--memory", "64 MiB")[:2] == (0, whole)


def test_one_of_contradicting_judgments_is_written(command):
    Path("twice.txt").write_text("q1 0 d1 2\nq1 0 d1 1\n", encoding="utf-8")
    code, _, err = command(
        "convert", "twice.txt", "-o", "o.txt", "--kind", "qrels", "--to", "trec", "--contradictions", "max"
    )
    assert code == 0
    assert "the max label counts" in err
    assert vbterrier.read_qrels("o.txt")["label"].tolist() == [2]


def test_fractions_are_counted_in_steps(command):
    Path("ratings.csv").write_text("query,docid,rating\nq1,d1,0.75\nq1,d2,0\n", encoding="utf-8")
    path = converted(command, "ratings.csv", "qrels", "trec", "--unit", ".25")
    assert vbterrier.read_qrels(path)["label"].tolist() == [3, 0]
    path = converted(command, "ratings.csv", "labels", "quepid")
    assert Path(path).read_text(encoding="utf-8").splitlines()[1:] == ["q1,d1,0.75", "q1,d2,0"]


def test_subtopics_become_the_highest_label(command):
    Path("web.txt").write_text("1 1 d1 0\n1 2 d1 2\n", encoding="utf-8")
    assert read_rated_list(converted(command, "web.txt", "qrels", "quepid")).labels["label"].tolist() == [2]
    assert vbterrier.read_qrels(converted(command, "web.txt", "qrels", "trec"))["iteration"].tolist() == ["1", "2"]


def test_links_get_ids_of_one_space(command):
    Path("same.tsv").write_text("entity_id\ttarget\nParis\tQ90\n", encoding="utf-8")
    options = ["--ids", "wikidata", "--mapping", "same.tsv"]
    answers = read_answers(converted(command, "gold.tab", "links", "answers", *options))
    assert answers[["qid", "entity_id"]].to_numpy().tolist() == [["d1:0-5", "Q90"], ["d1:9-13", "NIL"]]
    options = ["--kind", "links", "--to", "tags", "--ids", "dbpedia", "-o", "tags.tsv"]
    code, _, err = command("convert", "gold.tab", *options)
    assert (code, err) == (0, "vbterrier: warning: gold.tab: 1 mention without an entity gives no tags\n")
    tags = vbterrier.read_tags("tags.tsv")
    assert tags.to_numpy().tolist() == [["d1", "Paris", 1.0]]
    Path("rel.json").write_text('{"d1": [[0, 5, "Paris", "Paris", 0.9, 0.9, "LOC"]]}', encoding="utf-8")
    mentions = read_mentions(converted(command, "rel.json", "links", "mentions"))
    assert mentions.to_numpy().tolist() == [["d1", "Paris", "Paris"]]
    table = pd.read_csv(converted(command, "rel.json", "links", "table"), sep="\t")
    assert table[["start", "end", "score"]].to_numpy().tolist() == [[0, 5, 0.9]]


def test_the_command_that_a_refused_join_advises_converts_its_files(command):
    """A join of two id spaces names the command, which reads plain tables, too."""
    run = pd.DataFrame({"qid": ["1", "1"], "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    tags = "d1\tdbr:Paris\t0.5\nd1\tdbr:Paris\t0.9\nd2\twd:Q586\t0.8\nd2\t<NIL>\t1\n"
    Path("IN").write_text(tags, encoding="utf-8")
    Path("TABLE").write_text("entity_id\ttarget\nParis\tQ90\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        link_pool(run, vbterrier.read_tags("IN"))
    advised = re.search("`vbterrier (.*?)`", str(refused.value))[1].replace("--ids dbpedia", "--ids wikidata")
    code, _, err = command(*advised.split())
    assert (code, err) == (0, "")
    assert vbterrier.read_tags("OUT").to_numpy().tolist() == [["d1", "Q90", 0.9], ["d2", "Q586", 0.8]]
    Path("IN").write_text("q1\tdbr:Paris\nq2\t--NME--\n", encoding="utf-8")
    assert command(*advised.replace("--to tags", "--to answers").split())[0] == 0
    assert read_answers("OUT")[["qid", "entity_id"]].to_numpy().tolist() == [["q1", "Q90"], ["q2", "NIL"]]
    Path("IN").write_text('{"d1": [[0, 5, "Paris", "Paris", 0.9, 0.9, "LOC"]]}', encoding="utf-8")
    assert command(*advised.split())[0] == 0
    assert vbterrier.read_tags("OUT").to_numpy().tolist() == [["d1", "Q90", 0.9]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["qrels.txt", "--kind", "judgments", "--to", "trec"], "wanted one of"),
        (["mine.run", "--kind", "run", "--to", "workbench"], "wanted one of"),
        (["mine.run", "--kind", "run", "--to", "trec", "--ids", "wikidata"], "apply to --kind links"),
        (["mine.run", "--kind", "run", "--to", "trec", "--unit", ".5"], "apply to --kind qrels"),
        (["gold.tab", "--kind", "links", "--to", "answers", "--ids", "wikidata"], "is of dbpedia, wanted wikidata"),
        (["qrels.txt", "--kind", "links", "--to", "answers"], "not recognised as linked mentions"),
        (["qrels.txt", "--kind", "links", "--to", "mentions"], "not recognised as linked mentions"),
        (["gold.tab", "--kind", "links", "--to", "table", "--mapping", "x.tsv"], "wanted --ids, too"),
    ],
)
def test_bad_input_is_one_line(command, arguments, message):
    code, out, err = command("convert", *arguments, "-o", "out")
    assert (code != 0, out) == (True, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not Path("out").exists()
