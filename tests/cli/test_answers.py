"""The answer of every command: verdict first, --quiet, --json, and next steps that run as printed."""

import json
import shlex
import shutil
import sys
from itertools import product

import numpy as np
import pytest

import vbterrier
from vbterrier.cli import _group
from vbterrier.cli.commands import EXAMPLES
from vbterrier.demo import FILES, copy_demo
from vbterrier.report.tables import PAPERS, escape_for_style

RUNS = "lexical.run dense.run"
COMMANDS = {
    "score": f"score {RUNS} -q qrels.txt -m nDCG@10 -m ENDCG@10",
    "score of intents": f"score {RUNS} --intents intents.tsv --tags tags.tsv -m ES@5",
    "compare": f"compare {RUNS} words.run -q qrels.txt -m nDCG@10",
    "table": f"table {RUNS} -q qrels.txt -m nDCG@10",
    "rank": f"rank {RUNS} -q qrels.txt --draws 50",
    "track": f"track {RUNS} -q qrels.txt --draws 50",
    "gate": "gate dense.run -b lexical.run -q qrels.txt --margin .02 -m nDCG@10",
    "audit": f"audit {RUNS} -q qrels.txt --judge llm=complete.txt --budget 5",
    "judge": f"judge {RUNS} -q qrels.txt -n 3",
    "judge, whole topics": f"judge {RUNS} -q qrels.txt --labels llm=complete.txt --complete 2",
    "agreement": "agreement human=qrels.txt llm=complete.txt",
    "doctor": f"doctor {RUNS} -q qrels.txt",
    "report": f"report {RUNS} -q qrels.txt -o made.html --resamples 50",
    "link": "link gold.tsv other.tsv --gold gold.tsv",
    "coverage": "coverage entities.run --pool dense.run --tags tags.tsv -q qrels.txt --cutoff 1 --cutoff 2",
    "demo": "demo",
    "powered": "powered predicted.tsv labelled.tsv --predicts ES@5=success",
    "powered, a difference": "powered predicted.tsv labelled.tsv --predicts ES@5=success --baseline a",
    "queries sample": "queries sample mentions.tsv -n 5",
    "queries sample, written": "queries sample mentions.tsv -n 5 -o drawn.tsv",
    "queries traffic": "queries traffic traffic.tsv -n 5",
    "queries profile": "queries profile mentions.tsv",
    "queries power": "queries power predicted.tsv --delta .05 --simulations 500",
    "queries power, sizes": "queries power predicted.tsv -n 20 -n 40 --simulations 500",
    "queries power, gate": "queries power -m nDCG@10 --margin .2 --simulations 50",
    "queries power, no pilot": "queries power -m nDCG@10 --delta .05 --simulations 500",
    "annotate check": "annotate check ann.csv bob.csv --topics topics.tsv --intents intents.tsv",
    "annotate documents": f"annotate documents {RUNS} --topics topics.tsv --intents intents.tsv --tags tags.tsv",
}
# The sentences with which these begin.
VERDICTS = {
    "powered": "By success, from labels of 30 queries and ES@5 of 60 queries, b scores ",
    "powered, a difference": "By success, from labels of 30 queries and ES@5 of 60 queries, b - a is ",
    "queries sample": "5 of 33 queries are drawn (random-document, without replacement, seed 0).",
    "queries traffic": "5 queries to rate: ",
    "queries profile": "Of 33 draws, 18.2% (95% interval 8.6% to 34.4%) are NIL and ",
    "queries power": "Detecting a difference of 0.05 in ES@5 between ",
    "queries power, sizes": "20 queries detect a difference of ",
    "queries power, gate": "Passing `vbterrier gate` with the margin 0.2 in nDCG@10 with probability 0.8 takes ",
    "queries power, no pilot": "Detecting a difference of 0.05 in nDCG@10 with power 0.8 takes ",
    "annotate check": "Cohen's kappa of ann, bob is 1.000 ",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("demo")
    copy_demo(where)
    (where / "gold.tsv").write_text("".join(f"q{i}\tE{i % 3}\n" for i in range(12)))
    (where / "other.tsv").write_text("".join(f"q{i}\tE{i % 2}\n" for i in range(12)))
    rows = [line.split("\t") for line in (where / "intents.tsv").read_text().splitlines()[1:]]
    (where / "entities.run").write_text("".join(f"{qid} Q0 {entity} 1 {prob} e\n" for qid, entity, prob, *_ in rows))
    draws = np.random.default_rng(0).random((2, 60))
    scores = [
        f"{name}\tq{i}\tES@5\t{value:.3f}" for name, row in zip("ab", draws, strict=True) for i, value in enumerate(row)
    ]
    head = "name\tqid\tmeasure\tvalue"
    (where / "predicted.tsv").write_text("\n".join([head, *scores]))
    labels = [
        f"{name}\tq{i}\tsuccess\t{int(draws[place][i] > 0.4)}" for place, name in enumerate("ab") for i in range(30)
    ]
    (where / "labelled.tsv").write_text("\n".join([head, *labels]))
    mentions = [f"d{i % 7}\tm {i % 5}\t{'NIL' if i % 5 == 4 else f'Q{i % 3}'}" for i in range(33)]
    (where / "mentions.tsv").write_text("\n".join(["docno\tmention\tentity_id", *mentions]))
    (where / "traffic.tsv").write_text("query\tweight\n" + "".join(f"q{i}\t{100 / (i + 1):.2f}\n" for i in range(40)))
    task = vbterrier.evaluate.annotate(where / "topics.tsv", where / "intents.tsv")
    best = task.items["prob"] == task.items.groupby("qid")["prob"].transform("max")
    first = best & ~task.items[best].duplicated("qid").reindex(task.items.index, fill_value=False)
    for name in ("ann", "bob"):
        task.items.assign(label=first.astype(int))[["qid", "query", "entity_id", "prob", "label"]].to_csv(
            where / f"{name}.csv", index=False
        )
    return where


@pytest.fixture
def run(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    return lambda text: command(*shlex.split(text))


# Commands with one form, whatever the format.
WITHOUT_FORMATS = {"report", "demo", "queries sample, written"}


@pytest.mark.parametrize(
    ("name", "style"),
    # The gate has no LaTeX.
    sorted({*product(COMMANDS.keys() - WITHOUT_FORMATS, PAPERS)} - {("gate", "latex")}),
)
def test_papers_have_the_verdict_and_the_serious_caveats(run, name, style):
    _, record, _ = run(f"{COMMANDS[name]} --json")
    answer = json.loads(record)
    _, out, _ = run(f"{COMMANDS[name]} -f {style}")
    serious = [caveat["text"] for caveat in answer["caveats"] if caveat["serious"]]
    texts = [escape_for_style(text.rstrip("."), style) for text in (answer["verdict"], *serious)]
    assert [text for text in texts if text not in out] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_verdict_is_first_alone_with_quiet_and_whole_with_json(run, name):
    code, out, _ = run(COMMANDS[name])
    quiet, verdict, _ = run(f"{COMMANDS[name]} --quiet")
    whole, record, _ = run(f"{COMMANDS[name]} --json")
    assert code == quiet == whole
    assert out.startswith(verdict.rstrip("\n"))
    answer = json.loads(record)
    assert answer["schema"] == "vbterrier.answer/1"
    assert " ".join(verdict.split()).endswith(" ".join(answer["verdict"].split()))
    assert answer["made_by"].split()[:2] == ["vbterrier", COMMANDS[name].split()[0]]
    assert all(out.count(caveat["text"][:30]) <= 1 for caveat in answer["caveats"])
    assert answer["verdict"].startswith(VERDICTS.get(name, ""))


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.slow
def test_the_next_step_and_the_command_run_as_printed(run, name):
    code, record, _ = run(f"{COMMANDS[name]} --json")
    answer = json.loads(record)
    assert run(answer["made_by"].removeprefix("vbterrier "))[0] == code
    if answer["next"]:
        shutil.rmtree("demo", ignore_errors=True)
        step, _, err = run(answer["next"].removeprefix("vbterrier "))
        assert step in (0, code), err


def test_decisions_differ_without_colour(run):
    unknown = run("gate dense.run -b lexical.run -q qrels.txt --margin .02 -m nDCG@10 --quiet")[1]
    passed = run("gate lexical.run -b same=lexical.run -q complete.txt --margin .5 -m nDCG@10 --max-share 1")[1]
    assert (unknown[:11], passed[:7]) == ("? UNKNOWN: ", "✓ PASS:")


def test_score_and_compare_have_default_measures(run):
    _, out, _ = run(f"score {RUNS} -q qrels.txt -f csv")
    assert {line.split(",")[1] for line in out.splitlines()[1:]} == {"ENDCG@10", "nDCG@10", "Unjudged@10"}
    _, out, _ = run("score dense.run -q qrels.txt -f csv")
    assert {line.split(",")[1] for line in out.splitlines()[1:]} == {"ENDCG@10", "BNDCG@10", "nDCG@10", "Unjudged@10"}
    _, out, _ = run(f"compare {RUNS} -q qrels.txt -f csv")
    assert {line.split(",")[2] for line in out.splitlines()[1:]} == {"ENDCG@10", "nDCG@10"}


def test_quiet_and_json_exclude_each_other(refused, folder, monkeypatch):
    monkeypatch.chdir(folder)
    refused(["demo", "--quiet", "--json"], 2, "--quiet and --json: wanted one of them")


@pytest.mark.slow
def test_warnings_that_the_answer_has_are_not_repeated(run):
    gate = COMMANDS["gate"]
    _, out, err = run(gate)
    assert (out.count("treats unjudged"), err) == (1, "")
    # Nothing is lost in other formats.
    for style in ("--quiet", "-f json"):
        assert run(f"{gate} {style}")[2].count("treats unjudged") == 1


@pytest.mark.slow
def test_unjudged_documents_of_one_system_withhold_the_decision(run, folder):
    # By complete judgments dense is better; by these, a third of its documents are unjudged.
    gate = "gate dense.run -b lexical.run --margin .02 -m nDCG@10 --max-share 1 --level .51"
    code, out, _ = run(f"{gate} -q qrels.txt")
    assert code == 3
    text = " ".join(out.split())
    assert "32% of the documents of dense and 0% of those of lexical are unjudged" in text
    assert "its FAIL may be due to that" in text
    assert text.startswith(
        "? UNKNOWN: unjudged documents leave open whether dense is at most 0.02 worse than lexical by"
    )
    assert "If unjudged documents are non-relevant, this does not hold with 51% confidence: the mean loss" in text
    for style, where in (("junit", "out.xml"), ("json", "out.json"), ("markdown", "out.md")):
        run(f"{gate} -q qrels.txt -o {where}")
        text = " ".join((folder / where).read_text(encoding="utf-8").split())
        assert "may be due to that" in text, style
    assert run(f"{gate} -q complete.txt")[0] == 0


@pytest.mark.slow
def test_the_demo_writes_over_a_demo_of_its_own(run, folder):
    shutil.rmtree(folder / "again", ignore_errors=True)
    assert run("demo --save again")[0] == 0
    assert run("demo --save again")[0] == 0
    assert {path.name for path in (folder / "again").iterdir()} == set(FILES)
    (folder / "again" / "qrels.txt").write_text("mine")
    code, _, err = run("demo --save again")
    assert code == 1
    assert "'qrels.txt' already, with other contents" in err
    assert (folder / "again" / "qrels.txt").read_text() == "mine"


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_of_a_command_ends_with_an_example_that_it_takes(command, name):
    code, out, _ = command(*name.split(), "--help")
    assert code == 0
    assert out.endswith(f"\nExample: {EXAMPLES[name]}\n")
    assert "\nOutput:\n" in out
    called = _group()
    for word in name.split():
        called = called.commands[word]
    words = shlex.split(EXAMPLES[name])[1 + len(name.split()) :]
    assert called.make_context(name, words).params


def test_names_are_those_of_baselines_captions_and_next_steps(run):
    for baseline in ("BM25", "lexical"):
        code, out, _ = run(f"table {RUNS} -q qrels.txt -m nDCG@10 --name lexical=BM25 --baseline {baseline}")
        assert (code, "* differs significantly from BM25 " in out) == (0, True)
        assert "lexical" not in out.partition("Next: ")[0]
        assert run(out.partition("Next: vbterrier ")[2])[1].startswith("By nDCG@10, dense scores lower than BM25")
    assert run(f"table {RUNS} -q qrels.txt --name lexica=BM25")[2] == (
        "vbterrier: error: --name: no system 'lexica', found 'lexical', 'dense'. Did you mean lexical?\n"
    )


def test_every_command_has_an_example():
    def names(group, before=""):
        for name, each in group.commands.items():
            yield from names(each, f"{name} ") if hasattr(each, "commands") else [before + name]

    assert set(EXAMPLES) == set(names(_group()))


def test_completed_values_are_the_legal_ones(monkeypatch):
    from vbterrier.cli.preparation import CONVERSIONS, LINKERS
    from vbterrier.design import planning, sampling
    from vbterrier.evaluate import ranking, track
    from vbterrier.evaluate.pooling import POOLS
    from vbterrier.evaluate.release_scores import COVARIATES
    from vbterrier.frames.contracts import CONTRADICTIONS, NEGATIVE
    from vbterrier.frames.ranking import DUPLICATES
    from vbterrier.intents import candidates, joins
    from vbterrier.linking.mentions import MATCHES
    from vbterrier.report import system_tables
    from vbterrier.report.comparison import GATE_FORMATS
    from vbterrier.report.tables import FORMATS
    from vbterrier.stats import powered_means
    from vbterrier.stats.noninferiority import GUARANTEES

    legal = {"negative": NEGATIVE, "contradictions": CONTRADICTIONS, "duplicates": DUPLICATES, "format": FORMATS}
    legal |= {"pool": POOLS}
    of_command = {"score": legal, "queries power": {"test": planning.TESTS}}
    of_command |= {"intents": {"prob": candidates.PROBS, "join-method": joins.METHODS}}
    of_command["queries sample"] = {"method": sampling.METHODS}
    of_command |= {"rank": {"uncertainty": ranking.UNCERTAINTY}, "powered": {"target": powered_means.TARGETS}}
    of_command["track"] = {"uncertainty": track.SOURCES, "show": [part for part in system_tables.PARTS if part]}
    of_command["gate"] = {"guarantee": GUARANTEES, "covariate": COVARIATES, "format": GATE_FORMATS}
    of_command |= {"link": {"match": MATCHES}, "tag": {"linker": LINKERS}, "convert": {"kind": CONVERSIONS}}
    monkeypatch.setenv("_VBTERRIER_COMPLETE", "complete_bash")
    for command, options in of_command.items():
        called = _group()
        for word in command.split():
            called = called.commands[word]
        context = called.make_context(command, [], resilient_parsing=True)
        for name, values in options.items():
            (option,) = (each for each in called.params if f"--{name}" in each.opts)
            assert [item.value for item in option.shell_complete(context, "")] == list(values), name


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("score --interval p", ["percentile", "poisson"]),
        ("compare --test ra", ["randomisation"]),
        ("table -f l", ["latex"]),
        ("score -m END", ["ENDCG"]),
        ("score --perturb drop", ["drop-constraints", "drop-candidates"]),
        ("intents --join-method a", ["append"]),
        ("audit --show c", ["comparison", "calibration"]),
        ("tr", ["track"]),
    ],
)
def test_a_shell_completes_values(monkeypatch, capsys, words, values):
    text = f"vbterrier {words}"
    for name, value in {"_VBTERRIER_COMPLETE": "complete_bash", "COMP_WORDS": text}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COMP_CWORD", str(len(text.split()) - 1))
    monkeypatch.setattr(sys, "argv", ["vbterrier"])
    with pytest.raises(SystemExit) as ended:
        _group()(prog_name="vbterrier")
    assert (ended.value.code, capsys.readouterr().out.split()) == (0, values)


def test_a_table_keeps_the_order_of_runs_and_takes_one(run):
    _, out, _ = run("table words.run dense.run lexical.run -q qrels.txt -m nDCG@10 -f csv")
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == ["words", "dense", "lexical"]
    code, out, _ = run("table dense.run -q qrels.txt -m nDCG@10 --name dense=Dense -f csv")
    assert (code, out.splitlines()[1].split(",")[0]) == (0, "Dense")
    assert run("table dense.run -q qrels.txt --baseline dense")[0] == 2


def test_a_latex_table_keeps_the_order_of_runs(run):
    _, out, _ = run("table words.run dense.run lexical.run -q qrels.txt -m nDCG@10 -m P@5 -f latex")
    rows = [line.split(" & ")[0] for line in out.splitlines() if line.endswith(r"\\") and "&" in line]
    assert rows[1:] == ["words", "dense", "lexical"]


def test_unjudged_documents_are_a_serious_caveat_of_measures_that_count_them(run):
    message = "0.0% (lexical) to 31.7% (dense) of the first 10 documents are unjudged, and nDCG@10 treats them as "
    message += "non-relevant, which favours lexical; prefer ENDCG@10."
    for command in ("score", "compare", "table"):
        _, record, _ = run(f"{command} {RUNS} -q qrels.txt -m nDCG@10 -m ENDCG@10 --json")
        caveats = [one for one in json.loads(record)["caveats"] if one["about"] == "Unjudged documents"]
        assert [(one["text"], one["serious"]) for one in caveats] == [(message, True)]
    # Neither a measure that draws their grades nor complete judgments are concerned.
    for rest in ("-q qrels.txt -m BNDCG@10", "-q complete.txt -m nDCG@10"):
        _, record, _ = run(f"score {RUNS} {rest} --json")
        assert "Unjudged documents" not in [one["about"] for one in json.loads(record)["caveats"]]


def test_the_verdict_of_each_number_of_entities_is_shown(run):
    _, out, _ = run(COMMANDS["coverage"])
    first, second = " ".join(out.split()).split(" DiscRatio@")[1:3]
    assert (first[0], second[0]) == ("1", "2")


def test_a_run_with_the_name_of_a_measure_is_a_run(run, folder):
    shutil.copy(folder / "dense.run", folder / "P@5")
    assert run("score P@5 -q qrels.txt -m nDCG@10")[0] == 0
    (folder / "P@5").unlink()


def test_a_measure_among_the_runs_is_named(refused, folder, monkeypatch):
    monkeypatch.chdir(folder)
    refused(["score", "dense.run", "-q", "qrels.txt", "-m", "nDCG@10", "AP"], 2, "add it as -m AP")
    refused(["score", "dense.run", "-q", "qrels.txt", "-m", "nDCG@10", "none.run"], 1, "none.run: no such file")


@pytest.mark.slow
def test_the_first_lines_of_a_decision_fit_the_terminal_with_its_mark(run, monkeypatch):
    for columns in range(60, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        _, out, _ = run(f"{COMMANDS['gate']} --quiet")
        assert max(map(len, out.splitlines())) <= columns


def test_the_gate_lists_some_documents_and_counts_the_others(run):
    command = "gate dense.run -q qrels.txt -m nDCG@10 -b lexical.run --margin .01 --max-share 1 --level .6"
    _, out, _ = run(command)
    assert "15 more documents: --judge FILE writes all." in out
    # All rankings have the same baseline, which needs no column.
    assert " qid   new - baseline   grades, new" in out
    _, out, _ = run(f"{command} -f markdown")
    assert out.count("beyond the cutoff of lexical") == 20


def test_the_name_of_the_process_is_not_in_commands_to_run(run, monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "vbterrier")
    _, record, _ = run(f"{COMMANDS['judge']} --json")
    assert json.loads(record)["made_by"].startswith("vbterrier judge lexical.run")
