"""What all commands share: tables written to files, and messages that name options."""

import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import typer
from night import at_night

import vbterrier
from vbterrier.cli import app
from vbterrier.cli.output import in_options

FILES = ("lexical.run", "dense.run", "--qrels", "qrels.txt")


@pytest.mark.parametrize(
    "options",
    [
        ("score", *FILES, "-m", "nDCG@10", "--resamples", "20"),
        ("compare", *FILES, "-m", "nDCG@10", "--resamples", "200"),
        ("rank", *FILES, "--draws", "10"),
    ],
)
def test_tables_go_to_files_in_the_format_of_their_name(in_demo, tmp_path, options):
    code, out, _ = in_demo(*options, "-o", tmp_path / "table.tex")
    assert code == 0
    # The terminal has the answer, and no table.
    verdict = in_demo(*options, "--quiet")[1].strip()
    assert out.startswith(f"{verdict}\n")
    assert "table.tex" in out
    assert "────" not in out
    assert (tmp_path / "table.tex").read_text().rstrip("\n") == in_demo(*options, "-f", "latex")[1].rstrip("\n")
    assert in_demo(*options, "-o", tmp_path / "table.csv")[0] == 0
    assert len(pd.read_csv(tmp_path / "table.csv")) >= 1
    assert "over 12 topics: " in (tmp_path / "table.caption.txt").read_text()


def test_two_formats_or_an_unknown_one_are_refused_before_any_work(refused, tmp_path):
    options = ("score", "missing.run", "--qrels", "missing.txt", "-m", "nDCG@10")
    refused([*options, "-f", "csv", "-o", tmp_path / "table.tex"], 2, "asks for latex; leave one of them out")
    refused([*options, "-o", tmp_path / "table.docx"], 2, "wanted a name that ends in .tex")


def test_systems_of_a_comparison_are_chosen_for_csv_files_too(in_demo, tmp_path):
    options = ("compare", *FILES, "-m", "nDCG@10", "--resamples", "200", "--systems")
    assert in_demo(*options, "-o", tmp_path / "systems.csv")[0] == 0
    assert pd.read_csv(tmp_path / "systems.csv")["name"].tolist() == ["lexical", "dense"]
    assert (tmp_path / "systems.caption.txt").read_text().startswith("Means over 12 topics")
    assert in_demo(*options, "-o", tmp_path / "systems.tex")[0] == 2


# Messages of the library.

MESSAGES = {
    "memory='little': wanted a number": "--memory='little': wanted a number",
    "which memory= is there to avoid; leave out memory= and resume=": (
        "which --memory is there to avoid; leave out --memory and --resume"
    ),
    "n_jobs=2 and client=: wanted one": "--jobs=2 and --dask: wanted one",
    "ask for on_topics='common' (only those)": "ask for --on-topics='common' (only those)",
    "BAP(seed=1,topics='x'): give prior='pool', or horizon=None": (
        "BAP(seed=1,topics='x'): give prior='pool', or horizon=None"
    ),
    "BAP(seed=1): wanted prior=": "BAP(seed=1): wanted prior=",
    "give Data(labels=) or Inference(seed=2), or TagOptions(on_ties='drop')": (
        "give --labels or --seed=2, or TagOptions(on_ties='drop')"
    ),
    "run 'memory=a': topic 'x'": "run 'memory=a': topic 'x'",
}


@pytest.mark.parametrize(("message", "expected"), MESSAGES.items())
def test_parameters_are_named_as_options(message, expected):
    assert in_options(message, typer.main.get_command(app), ["score", "a.run", "--on-topics", "all"]) == expected


def test_options_are_those_of_the_command_that_was_called():
    command = typer.main.get_command(app)
    assert in_options("n_jobs=2", command, ["doctor", "a.run"]) == "n_jobs=2"
    assert in_options("guardrails['RR@10']=2: too much", command, ["gate"]) == "--guardrail RR@10=2: too much"
    assert in_options("guardrails['RR@10']=2", command, ["score"]) == "guardrails['RR@10']=2"
    assert in_options("seed=-1:", command, ["queries", "sample", "--seed", "-1"]) == "--seed=-1:"
    assert in_options("seed=-1:", command, ["nonsense"]) == "seed=-1:"
    assert in_options("seed=-1:", command, []) == "seed=-1:"


FORMATTED = {
    "score": ("-m", "nDCG@10", "--resamples", "20"),
    "compare": ("-m", "nDCG@10", "--resamples", "200"),
    "rank": ("--draws", "50"),
    "track": ("--draws", "50"),
    "doctor": (),
}


@pytest.mark.parametrize(
    ("name", "style"),
    [
        (name, style) if style == "table" or name == "compare" else at_night(name, style)
        for name in FORMATTED
        for style in ("table", "latex")
    ],
)
def test_digits_are_those_of_all_numbers_of_a_table(in_demo, name, style):
    def decimals(*more):
        code, out, err = in_demo(name, *FILES, *FORMATTED[name], "-f", style, *more)
        assert code == 0, err
        # Sentences have decimals of their own: those of the answer, and comments in LaTeX.
        lines = [line for line in out.splitlines() if (line[:1] == " " if style == "table" else line[:1] != "%")]
        table = "\n".join(lines)
        # p-values of compare, which have a star here, keep their decimals.
        return {len(result) for result in re.findall(r"(?<![\w.])\d\.(\d+)(?![\d*.{])", table)}

    default, seven = decimals() & {3, 4}, decimals("--digits", "7")
    assert 7 in seven
    assert not default & seven
    assert not default & decimals("--digits", "0")


def test_digits_and_limits_end_with_the_command(in_demo):
    options = ("score", *FILES, "-m", "nDCG@10", "--resamples", "20")
    before = in_demo(*options)
    assert in_demo(*options, "--digits", "1", "--max-bytes", "1 GB")[1] != before[1]
    assert in_demo(*options, "--max-bytes", "9")[0] == 1
    assert in_demo(*options) == before
    # csv has all digits.
    assert in_demo(*options, "--digits", "1", "-f", "csv") == in_demo(*options, "-f", "csv")


@pytest.mark.parametrize(
    ("size", "code", "words"),
    [
        ("1000", 1, "lexical.run: holds more than 1,000 bytes when unpacked; --max-bytes sets the limit"),
        ("1.5k", 1, "lexical.run: holds more than 1,500 bytes"),
        ("much", 2, "--max-bytes='much': wanted a number of bytes of at least 1,"),
    ],
)
def test_the_size_of_files_is_limited(in_demo, size, code, words):
    result, out, err = in_demo("doctor", *FILES, "--max-bytes", size)
    assert (result, out) == (code, "")
    assert words in err
    assert err.count("\n") == 1


def test_knowledge_bases_and_links_are_limited_too(in_demo):
    code, _, err = in_demo("intents", "topics.tsv", "--kb", "entities.tsv", "-o", "i.tsv", "--max-bytes", "1200")
    assert code == 1
    assert "entities.tsv: has more than 1,200 bytes when decompressed; --max-bytes sets the limit" in err


REFUSED = {
    "track": (("--budget", "-1"), ("--quota", "-1"), ("--pool-cutoff", "0"), ("--draws", "1"), ("--level", "1")),
    "gate": (
        ("--max-share", "0"),
        ("--large-loss", "2"),
        ("--look", "0"),
        ("--level", "0.5"),
        ("--margin", "-1"),
        ("--budget", "-1"),
    ),
    "compare": (("--margin", "0"), ("--level", "0"), ("--resamples", "1"), ("--seed", "-1"), ("--digits", "16")),
    "score": (("--replicas", "-1"), ("--jobs", "0"), ("--digits", "-1"), ("--memory", "1")),
    "audit": (("--margin", "2"), ("--cutoff", "0"), ("--budget", "0")),
    "judge": (("--budget", "0"), ("--look", "0"), ("--level", "1")),
    "rank": (("--draws", "0"),),
}
NEEDED = {
    "gate": ("dense.run", "-b", "lexical.run", "-q", "qrels.txt", "--margin", ".05"),
    "compare": (*FILES, "-m", "nDCG@10"),
    "score": (*FILES, "-m", "nDCG@10"),
    "audit": (*FILES, "--judge", "complete.txt"),
    "judge": (*FILES, "--budget", "2"),
}


@pytest.mark.parametrize(("name", "more"), [(name, more) for name, every in REFUSED.items() for more in every])
def test_a_number_out_of_range_is_refused_with_its_option_and_its_limit(in_demo, name, more):
    code, out, err = in_demo(name, *NEEDED.get(name, FILES), *more)
    assert (code, out) == (1 if name == "gate" else 2, "")
    assert err.count("\n") == 1
    assert more[0] in err
    limit = r"(at least|at most|above|below|between|equal to|more than|less than) -?[\d,.]+"
    assert re.search(limit, err), err


def test_errors_name_options(write_files, refused):
    line = "q1 Q0 d1 1 2.0 tag\n"
    write_files({"a.run": line + line.replace("q1", "q2"), "b.run": line, "qrels": "q1 0 d1 1\nq2 0 d1 1\n"})
    message = "ask for --on-topics common (only those that all runs have) or --on-topics all"
    refused(["score", "a.run", "b.run", "-q", "qrels", "-m", "nDCG@10"], 1, message)


@pytest.mark.slow
def test_completion_is_shown_and_completes(tmp_path):
    script = Path(sys.executable).with_name("vbterrier")
    home = {**os.environ, "HOME": str(tmp_path), "SHELL": "/bin/bash"}

    def output_of(*arguments, **more):
        # Typer shows the completion of the shell that started it: tests may have been started by none.
        from_bash = ["bash", "-c", '"$0" "$@"; exit $?', script, *arguments]
        done = subprocess.run(from_bash, env=home | more, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "_VBTERRIER_COMPLETE=complete_bash" in output_of("--show-completion")
    environment = {"_VBTERRIER_COMPLETE": "complete_bash", "COMP_WORDS": "vbterrier sc", "COMP_CWORD": "1"}
    assert output_of(**environment).split() == ["score"]


@pytest.mark.parametrize(
    ("arguments", "completes"),
    [(["--help"], None), (["score", "--help"], None), ([], "vbterrier sc"), (["--version"], None)],
)
def test_help_and_completion_import_neither_numpy_nor_pandas(arguments, completes, tmp_path):
    (tmp_path / "vbterrier").write_text("from vbterrier.cli import main\nmain()\n")
    words = {"_VBTERRIER_COMPLETE": "complete_bash", "COMP_WORDS": completes, "COMP_CWORD": "1"} if completes else {}
    root = str(Path(vbterrier.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(tmp_path / "vbterrier"), *arguments],
        env={**os.environ, **words, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "score" in done.stdout or "vbterrier 0" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "vbterrier.cli" in imported
    assert imported.isdisjoint({"numpy", "pandas", "pyarrow", "ir_measures", "rich.console"})


@pytest.mark.slow
def test_scoring_imports_neither_statistics_nor_matplotlib_nor_pyterrier(tmp_path):
    qrels, run = tmp_path / "qrels.txt", tmp_path / "mine.run"
    qrels.write_text("q1 0 a 1\nq2 0 a 1\nq2 0 b 0\n")
    run.write_text("q1 Q0 a 1 2.0 mine\nq2 Q0 b 1 2.0 mine\nq2 Q0 a 2 1.0 mine\n")
    arguments = ["score", str(run), "-q", str(qrels), "-m", "nDCG@10"]
    script = "import sys; from vbterrier.cli import _group; _group()(sys.argv[1:], standalone_mode=False)"
    script += "; print(*sorted({name for name in sys.modules if name.count('.') < 2}), file=sys.stderr)"
    root = str(Path(vbterrier.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "0.8155" in done.stdout
    imported = set(done.stderr.split())
    assert {"pandas", "vbterrier"} <= imported
    assert imported.isdisjoint(
        {
            "scipy",
            "statsmodels",
            "matplotlib",
            "pyterrier",
            "dask",
            "distributed",
            "sklearn",
            "lightgbm",
            "torch",
        }
    )


def test_commands_leave_the_collection_of_garbage_as_it_was(command):
    before = gc.isenabled()
    try:
        for is_enabled in (True, False):
            (gc.enable if is_enabled else gc.disable)()
            command("doctor", "nowhere.run", "--qrels", "nowhere.txt")
            assert gc.isenabled() is is_enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_the_help_shows_whole_summaries_of_commands(command):
    _, out, _ = command("--help")
    assert "Report agreement" not in out
    shown = " ".join(out.split())
    assert "score Score runs with intervals, against qrels, against candidate intents and tags, or both. rank" in shown
