"""The command line from queries to VB-Scores, on the demo's files."""

import gzip
import io
from pathlib import Path

import pandas as pd
import pytest

import vbterrier
from vbterrier.demo import copy_demo


@pytest.fixture(autouse=True)
def demo(tmp_path, monkeypatch):
    copy_demo(tmp_path / "demo")
    monkeypatch.chdir(tmp_path)


KB = ("--kb", "demo/entities.tsv")
INTENTS = ("intents", "demo/topics.tsv", *KB, "-o", "x.tsv")
TAG = ("tag", "demo/documents.tsv", *KB, "-o", "x.tsv")
DENSE = ("score", "demo/dense.run", "-m", "ES@5")
BOUND = ("--intents", "demo/intents.tsv", "--tags", "demo/tags.tsv")


def test_intents_of_the_demo_s_queries(command):
    code, out, err = command("intents", "demo/topics.tsv", *KB, "-o", "intents.tsv")
    assert (code, err) == (0, "")
    assert out.startswith("intents.tsv: 34 candidate intents of 12 of 12 queries")
    intents = vbterrier.read_intents("intents.tsv")
    mercury = intents[intents["qid"] == "q01"].set_index("entity_id")["prob"]
    assert mercury.to_dict() == pytest.approx({"mercury-planet": 0.5, "mercury-element": 0.4, "mercury-god": 0.1})


def test_a_knowledge_base_built_once_gives_the_same(command):
    code, out, _ = command("kb", "demo/entities.tsv", "-o", "demo.kb", "--id-space", "demo")
    assert code == 0
    assert out == "demo.kb: 35 entities, 56 aliases, ids in 'demo'\n"
    command("intents", "demo/topics.tsv", "--kb", "demo.kb", "-o", "built.tsv")
    command("intents", "demo/topics.tsv", *KB, "-o", "file.tsv")
    columns = ["qid", "entity_id", "prob"]
    built, read = (vbterrier.read_intents(name)[columns] for name in ("built.tsv", "file.tsv"))
    pd.testing.assert_frame_equal(built, read)


def test_candidates_are_cut_and_flattened(command):
    command("intents", "demo/topics.tsv", *KB, "-o", "one.tsv", "--cutoff", 1)
    one = vbterrier.read_intents("one.tsv")
    assert len(one) == 12
    assert (one["prob"] == 1).all()
    command("intents", "demo/topics.tsv", *KB, "-o", "flat.tsv", "--prob", "uniform", "--threshold", 0.4)
    flat = vbterrier.read_intents("flat.tsv")
    # Three equal meanings are all below .4: the best is kept, never nothing.
    assert flat.groupby("qid")["prob"].sum().to_numpy() == pytest.approx(1.0)
    assert flat["qid"].nunique() == 12
    command("intents", "demo/topics.tsv", *KB, "-o", "hot.tsv", "--temperature", 1000)
    assert vbterrier.read_intents("hot.tsv").query("qid == 'q01'")["prob"].to_numpy() == pytest.approx(1 / 3, abs=1e-3)
    command("intents", "demo/topics.tsv", *KB, "-o", "most.tsv", "--mass", 0.85)
    mercury = vbterrier.read_intents("most.tsv").query("qid == 'q01'")
    # .5 and .4 are enough, without the .1 of the god.
    assert mercury["entity_id"].tolist() == ["mercury-planet", "mercury-element"]


def test_constraints_from_a_column_and_out_of_the_query(command, tmp_path):
    (tmp_path / "column.tsv").write_text("qid\tquery\tconstraints\nq1\tPython\tkind:animal\n")
    (tmp_path / "words.tsv").write_text("qid\tquery\nq1\tPython kind:animal\n")
    command("intents", "column.tsv", *KB, "-o", "a.tsv", "--constraints", "constraints")
    command("intents", "words.tsv", *KB, "-o", "b.tsv", "--parse")
    first, second = (vbterrier.read_intents(name).set_index("entity_id")["prob"] for name in ("a.tsv", "b.tsv"))
    assert first.to_dict() == second.to_dict()
    assert first["python-snake"] == pytest.approx(0.4 / (0.4 + 0.6 / 2.718281828459045))


def test_tags_of_documents_that_runs_show(command):
    dense = ("--run", "demo/dense.run", "--depth", 1)
    code, out, err = command("tag", "demo/documents.tsv", *KB, "-o", "tags.tsv.gz", *dense)
    assert code == 0
    assert "1 of 9 ambiguous mentions have tied best candidates, the first 'crane'" in err
    assert "; 1 tags (" in out
    tags = vbterrier.read_tags("tags.tsv.gz")
    header = b"docno\tentity_id\tweight\ttied\tn_abstained\n"
    assert gzip.decompress(Path("tags.tsv.gz").read_bytes()).startswith(header)
    firsts = vbterrier.frames.ranked(vbterrier.read_run("demo/dense.run")).query("rank == 0")["docno"]
    assert set(tags["docno"]) <= set(firsts)
    assert f"of {firsts.nunique()} documents" in out


def test_documents_of_each_system_of_a_run_are_tagged(command, tmp_path):
    rows = [("q01", f"{engine}{rank}", 10.0 * (engine == "a") - rank, engine) for engine in "ab" for rank in (1, 2)]
    rows.append(("q01", "a1", -3.0, "b"))
    pd.DataFrame(rows, columns=["qid", "docno", "score", "engine"]).to_csv("both.csv", index=False)
    (tmp_path / "texts.tsv").write_text(
        "docno\ttext\n" + "".join(f"{name}\tMercury\n" for name in ("a1", "a2", "b1", "b2"))
    )
    call = ("tag", "texts.tsv", *KB, "-o", "x.tsv")
    for column, systems in (("engine", ("--system", "engine")), ("tag", ())):
        Path("both.csv").write_text(Path("both.csv").read_text().replace("engine", column, 1))
        code, out, err = command(*call, "--run", "both.csv", "--depth", 1, *systems)
        assert code == 0, err
        assert "of 2 documents" in out
        assert set(vbterrier.read_tags("x.tsv")["docno"]) == {"a1", "b1"}
    assert "--system applies to runs: wanted --run too" in command(*call, "--system", "tag")[2]


def test_mentions_with_tied_candidates_are_left_out(command):
    dense = ("--run", "demo/dense.run", "--depth", 1)
    command("tag", "demo/documents.tsv", *KB, "-o", "guessed.tsv", *dense)
    code, _, err = command("tag", "demo/documents.tsv", *KB, "-o", "tags.tsv", *dense, "--on-ties", "drop")
    assert (code, err) == (0, "")
    guessed, kept = (vbterrier.read_tags(name) for name in ("guessed.tsv", "tags.tsv"))
    assert guessed["tied"].sum() == 1
    assert kept.loc[kept["weight"] > 0, "entity_id"].tolist() == guessed.loc[~guessed["tied"], "entity_id"].tolist()
    # The document of the mention left out has no tag, and still counts it.
    assert kept.loc[kept["weight"] == 0, ["entity_id", "n_abstained"]].to_numpy().tolist() == [["NIL", 1]]
    command("tag", "demo/documents.tsv", *KB, "-o", "sure.tsv", *dense, "--on-ties", "drop", "--min-margin", 0.95)
    assert (vbterrier.read_tags("sure.tsv")["weight"] > 0).sum() < (kept["weight"] > 0).sum()


def test_fields_and_the_heaviest_tags(command, tmp_path):
    (tmp_path / "texts.tsv").write_text("docno\ttitle\tbody\nd1\tMercury\tPython\n")
    command("tag", "texts.tsv", *KB, "-o", "body.tsv", "--field", "body")
    command("tag", "texts.tsv", *KB, "-o", "both.tsv", "--field", "title", "--field", "body")
    command("tag", "texts.tsv", *KB, "-o", "one.tsv", "--field", "title", "--field", "body", "--cutoff", 1)
    body, both, one = (vbterrier.read_tags(name)["entity_id"].tolist() for name in ("body.tsv", "both.tsv", "one.tsv"))
    assert set(body) < set(both)
    assert len(both) == 2
    assert len(one) == 1


def test_retrieved_documents_without_text_give_a_warning(command, tmp_path):
    (tmp_path / "more.run").write_text("q01 Q0 nowhere 1 1 x\n" + (tmp_path / "demo" / "dense.run").read_text())
    code, _, err = command("tag", "demo/documents.tsv", *KB, "-o", "tags.tsv", "--run", "more.run")
    assert code == 0
    assert "retrieved documents are missing and get no tags ('nowhere')" in err


def test_descriptions_decide_between_candidates(command, tmp_path):
    (tmp_path / "names.csv").write_text("id,label\nland,Jordan\nplayer,Jordan\n")
    (tmp_path / "texts.tsv").write_text("docno\ttext\nd1\tJordan played basketball\nd2\tJordan river desert\n")
    (tmp_path / "about.tsv").write_text("entity_id\ttext\nland\tAmman river desert\nplayer\tbasketball NBA\n")
    call = ("tag", "texts.tsv", "--kb", "names.csv", "-o", "x.tsv", "--descriptions", "about.tsv")
    assert command(*call, "--linker", "context")[0] == 0
    tags = vbterrier.read_tags("x.tsv")
    assert tags[["docno", "entity_id"]].to_numpy().tolist() == [["d1", "player"], ["d2", "land"]]
    code, _, err = command(*call)
    assert (code, "--descriptions applies to --linker context" in err) == (2, True)


def test_tags_are_kept_to_candidates_and_weighted(command):
    command("tag", "demo/documents.tsv", *KB, "-o", "all.tsv", "--weights", "score")
    command("intents", "demo/topics.tsv", *KB, "-o", "one.tsv", "--cutoff", 1)
    command("tag", "demo/documents.tsv", *KB, "-o", "closed.tsv", "--intents", "one.tsv", "--weights", "score")
    everything, closed = vbterrier.read_tags("all.tsv"), vbterrier.read_tags("closed.tsv")
    expected = set(vbterrier.read_intents("one.tsv")["entity_id"])
    assert set(closed["entity_id"]) <= expected < set(everything["entity_id"])
    assert everything["weight"].nunique() > 3


def test_scores_against_intents_and_tags_alone(command):
    arguments = (
        *DENSE, "demo/lexical.run", *BOUND, "-m", "VB(alpha=0.5)@5", "-m", "WeightedAlphaNDCG@5", "--replicas", 50,
        "--perturb", "dirichlet=20", "--perturb", "confusion=0.1", "--seed", 4,
    )  # fmt: skip
    code, _, err = command(*arguments, "--perturb", "drop-constraints=one")
    assert code == 1
    assert "violations" in err
    code, out, err = command(*arguments)
    assert code == 0
    # Errors that all mentions of an entity share move the scores of most replicas below the score.
    assert err == ""
    (caveat,) = (line for line in out.splitlines() if "aveat: " in line)
    assert "intervals of replicas exclude the score itself" in caveat
    assert "tagger_model of vbterrier.stats.fit_tagger" in caveat
    assert "95% replicas (percentile)" in out
    assert "50 replicas, seed 4" in out
    assert "oracle_ES" in out
    result = vbterrier.score(
        ["demo/lexical.run", "demo/dense.run"], measures="ES@5", intents="demo/intents.tsv", tags="demo/tags.tsv"
    )
    for mean in result.means()["ES@5"]:
        assert f"{mean:.4f}" in out


def test_repeated_documents_are_kept_once_where_asked_for(command, tmp_path):
    lines = (tmp_path / "demo" / "dense.run").read_text().splitlines(keepends=True)
    (tmp_path / "twice.run").write_text("".join([*lines, lines[0]]))
    arguments = ("score", "twice.run", *BOUND, "-m", "ES@5")
    code, _, err = command(*arguments)
    assert code == 1
    assert "is duplicated" in err
    code, out, err = command(*arguments, "--duplicates", "first")
    assert (code, err) == (0, "")
    assert "\nCaveat: Run 'twice': 1 repeated documents dropped" in out


def test_equal_calls_write_equal_files(command, tmp_path):
    for name in ("a.tsv", "b.tsv"):
        command("intents", "demo/topics.tsv", *KB, "-o", name)
    assert (tmp_path / "a.tsv").read_bytes() == (tmp_path / "b.tsv").read_bytes()
    assert set(vbterrier.read_intents("a.tsv")["source"]) == {
        f"queries, demo/entities.tsv; name; {how}" for how in ("prior", "equal scores")
    }


def test_the_source_of_probabilities_is_stated_for_each_query(command, tmp_path):
    (tmp_path / "people.csv").write_text(
        "id,label,clicks\nE1,Ann Smith,10\nE2,Bob Smith,30\nE3,Eva Lee,0\nE4,Al Lee,0\n"
    )
    (tmp_path / "queries.tsv").write_text("q1\tsmith\nq2\tbob smith\nq3\tnobody\nq4\tsmiht\nq5\tlee\n")
    (tmp_path / "more.tsv").write_text("q1\tE3\t1\nq2\tE3\t1\n")
    options = ("intents", "queries.tsv", "--kb", "people.csv", "-o", "found.tsv")
    assert command(*options)[0] == 0
    source = vbterrier.read_intents("found.tsv").groupby("qid")["source"].agg(set)
    part = "queries, people.csv; part; prior"
    assert source.map(list).explode().to_dict() == {
        "q1": part,
        "q2": "queries, people.csv; name",
        "q3": "queries, people.csv",
        "q4": "queries, people.csv; similar; prior",
        "q5": "queries, people.csv; part; equal scores",
    }
    assert command(*options, "--join", "more.tsv")[0] == 0
    joined = vbterrier.read_intents("found.tsv").set_index(["qid", "entity_id"])
    assert joined["source"]["q1"].to_dict() == {
        "E2": f"{part}; joined, mean", "E1": f"{part}; joined, mean", "E3": "more.tsv; joined, mean"
    }  # fmt: skip
    assert joined["prob"]["q2"].to_dict() == {"E2": 0.5, "E3": 0.5}


def test_entities_of_one_name_stay_two(command, tmp_path):
    (tmp_path / "twins.tsv").write_text("id\tlabel\ne1\tParis\ne2\tparis\n")
    (tmp_path / "paris.tsv").write_text("q1\tParis\n")
    command("intents", "paris.tsv", "--kb", "twins.tsv", "-o", "found.tsv", "--no-dedup")
    # Two entities of one knowledge base are different, even with equal names.
    assert len(vbterrier.read_intents("found.tsv")) == 2


def test_runs_that_lack_topics_are_scored_where_asked_for(command, tmp_path):
    lines = (tmp_path / "demo" / "dense.run").read_text().splitlines(keepends=True)
    (tmp_path / "part.run").write_text("".join(line for line in lines if not line.startswith("q01")))
    arguments = (*DENSE, "part.run", *BOUND, "-f", "csv")
    assert command(*arguments)[0] == 1
    for topics, n in (("all", 12), ("common", 11)):
        code, out, _ = command(*arguments, "--on-topics", topics)
        assert code == 0
        assert [line.split(",")[7] for line in out.splitlines()[1:]] == [str(n)] * 2


def test_scores_against_judgments_and_intents(command):
    code, out, _ = command(*DENSE, "--qrels", "demo/qrels.txt", *BOUND, "-m", "BNDCG@5", "-f", "csv")
    assert (code, "BNDCG@5" in out, "ES@5" in out) == (0, True, True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["intents", "none.tsv", *KB, "-o", "x.tsv"], 1, "none.tsv: no such file"),
        (["intents", "demo/topics.tsv", "--kb", "none.kb", "-o", "x.tsv"], 1, "none.kb: no such file"),
        ([*INTENTS, "--linker", "guess"], 2, "wanted one of dictionary"),
        ([*INTENTS, "--linker", "whole"], 1, "none of the 12 queries"),
        ([*INTENTS, "--unknown", "violated"], 2, "wanted --constraints or"),
        ([*INTENTS, "--constraints", "facts"], 1, "no column 'facts'"),
        ([*TAG, "--depth", 3], 2, "wanted --run too"),
        ([*INTENTS, "--parse", "--constraints", "need"], 2, "give one"),
        ([*TAG, "--field", "body"], 1, "no column 'body'"),
        (["kb", "demo/entities.tsv", "-o", "x.kb", "--kind", "guess"], 2, "--kind guess: wanted one of file"),
        ([*DENSE], 2, "nothing to score against"),
        ([*DENSE, "--intents", "demo/intents.tsv"], 1, "no column entity_id"),
        ([*DENSE, "-q", "demo/qrels.txt", "--replicas", 3], 2, "wanted --intents without --qrels"),
        ([*DENSE, *BOUND, "--perturb", "dirichlet"], 2, "wanted --replicas too"),
        *(
            ([*DENSE, *BOUND, "--replicas", 3, "--perturb", text], 2, message)
            for text, message in [
                ("dirichle=3", "Did you mean dirichlet"),
                ("dirichlet=-3", "concentration"),
                ("intents=3", "takes no value"),
                ("dirichlet=", "wanted a value after ="),
            ]
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_line(refused, tmp_path, arguments, code, message):
    refused(arguments, code, message, warns=True)
    assert not list(tmp_path.glob("x.*"))


def test_a_benchmark_is_made_on_the_command_line(command, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics.tsv").write_text("q1\tjordan\nq2\tjava\n")
    (tmp_path / "intents.tsv").write_text("qid\tentity_id\tprob\nq1\tathlete\t0.75\nq1\tcountry\t0.25\nq2\tisland\t1\n")
    inputs = ["--topics", "topics.tsv", "--intents", "intents.tsv"]
    code, out, _ = command("annotate", "write", *inputs, "--blind", "-o", "ann.tsv")
    assert (code, out) == (0, "ann.tsv: 5 rows of 2 queries; ann.instructions.txt: the instructions\n")
    rows = [line.split("\t") for line in (tmp_path / "ann.tsv").read_text().splitlines()]
    assert rows[0] == ["qid", "query", "entity_id", "label"]
    for name, meant in (("ann", {"athlete", "country", "island"}), ("bob", {"athlete", "NIL"})):
        lines = ["\t".join([*row[:3], str(int(row[2] in meant))]) for row in rows[1:]]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["\t".join(rows[0]), *lines]) + "\n")
    refused(["annotate", "write", *inputs, "-o", "ann.tsv"], 1, "ann.tsv: exists already, perhaps with labels")
    code, out, _ = command("annotate", "check", "ann.tsv", "bob.tsv", *inputs, "--resamples", 20)
    assert code == 0
    assert "Krippendorff's alpha" in out
    assert "a Brier score of " in " ".join(out.split())
    code, out, _ = command("annotate", "check", "ann.tsv", "bob.tsv", *inputs, "-f", "csv", "--resamples", 20)
    assert out.splitlines()[0].startswith("judges,statistic,value")
    pack = ["annotate", "pack", "ann.tsv", "bob.tsv", *inputs, "-o", "set", "--date", "2026-01-31"]
    code, out, _ = command(*pack, "--source", "queries=my log = x", "--title", "Mine", "--min-votes", 1)
    made = vbterrier.IntentSet(tmp_path / "set")
    assert (code, out) == (0, f"set: 1 intents of 1 queries, SHA-256 {made.digest}\n")
    assert made.datasheet().startswith("# Mine\n")
    assert "| queries | my log = x |" in made.datasheet()
    refused([*pack, "--source", "my log"], 2, "--source my log: wanted the origin of a part")
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "ann.tsv").write_text("")
    refused(["annotate", "check", "ann.tsv", "again/ann.tsv", *inputs], 2, "two sheets have one name")


def test_a_few_documents_are_annotated_on_the_command_line(command, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    qids = [f"q{n:02}" for n in range(30)]
    (tmp_path / "topics.tsv").write_text("".join(f"{qid}\tbank\n" for qid in qids))
    rows = [f"{qid}\t{one}\t0.5\t{one} bank" for qid in qids for one in ("river", "money")]
    (tmp_path / "intents.tsv").write_text("\n".join(["qid\tentity_id\tprob\tname", *rows, ""]))
    rows = [f"{qid}-{n}\ttext {n}" for qid in qids for n in range(4)]
    (tmp_path / "docs.tsv").write_text("\n".join(["docno\ttext", *rows, ""]))
    for name, order in (("one", (0, 1, 2, 3)), ("two", (3, 2, 1, 0))):
        lines = [f"{qid} Q0 {qid}-{n} 0 {-rank} x\n" for qid in qids for rank, n in enumerate(order)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    arguments = ["annotate", "documents", "one.run", "two.run", "--topics", "topics.tsv", "--intents", "intents.tsv"]
    texts = ["--documents", "docs.tsv", "--cutoff", 2]
    code, out, _ = command(*arguments, *texts, "-n", 80, "-o", "sheet.csv")
    assert (code, out.count("\n")) == (0, 1)
    assert "80 of 120 documents to annotate, of 20 topics (whole topics)" in out
    sheet = pd.read_csv(tmp_path / "sheet.csv", dtype=str, keep_default_na=False)
    is_river = sheet["docno"].str.endswith(("0", "1"))
    sheet.assign(annotation=is_river.map({True: "river", False: "2"})).to_csv(tmp_path / "done.csv", index=False)
    code, out, _ = command(*arguments, *texts, "--annotations", "done.csv", "-f", "csv", "--save-tags", "tags.tsv")
    table = pd.read_csv(io.StringIO(out))
    # Both runs show one meaning in all queries.
    assert table["value"].round(6).tolist() == [0.5, 0.5, 0.0, 0.0]
    assert (table["high"] - table["low"]).abs().max() < 1e-9
    assert len((tmp_path / "tags.tsv").read_text().splitlines()) > 80
    code, out, _ = command(*arguments, *texts, "--annotations", "done.csv", "--half-width", 0.1)
    assert "Intervals of ±0.1 take 0 more documents." in out
    code, out, _ = command(*arguments, *texts)
    assert "tags are mostly guesses: systems are not ordered (no annotations by people)" in " ".join(out.split())
    refused([*arguments, "-n", 10], 2, "-n: wanted --documents, the texts to annotate, and --output")
    refused([*arguments, "-o", "x.csv"], 2, "--output and --design apply to a draw: give -n")
