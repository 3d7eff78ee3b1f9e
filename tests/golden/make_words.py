"""What the command line and the report say about the demo: ``python tests/golden/make_words.py [--write]``.

The terminal has 80 columns, and 200 for commands that end in ``# 200 columns``. Prints all texts; ``--write`` keeps
them in ``words.json``. Read the difference before you commit it: a wrong word is as wrong as a wrong number.
"""

import contextlib
import html
import io
import json
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

import vbterrier
from vbterrier.cli import main
from vbterrier.demo import copy_demo

FILE = Path(__file__).parent / "words.json"
RUNS, QRELS = "lexical.run dense.run words.run", "-q qrels.txt"
BOTH = "-m nDCG@10 -m ENDCG@10"
AMBIGUOUS = "--intents intents.tsv --tags tags.tsv -m ES@5 -m VB@5"
TRACK = f"track {RUNS} {QRELS} --draws 200 --groups groups.tsv --automatic llm=complete.txt --budget 3"
GATE = "gate dense.run -q qrels.txt -m nDCG@10"
COVERAGE = "coverage entities.run other.run --pool dense.run --tags tags.tsv -q qrels.txt --cutoff 1 --cutoff 3"
# Each is run in the folder of the demo and of the files below.
COMMANDS = [
    "demo",
    f"doctor {RUNS} holes.run {QRELS}",
    f"doctor dense.run {QRELS} -f markdown",
    *(f"score {RUNS} {QRELS} {BOTH} -f {style}" for style in ("table", "latex", "markdown")),
    f"score holes.run {QRELS} -m nDCG@10 --on-topics all -f markdown",
    f"score dense.run {QRELS} -m nDCG@10 --per-query -f markdown",
    f"score lexical.run dense.run {AMBIGUOUS} --replicas 50 --perturb dirichlet=20 --perturb confusion=0.1",
    f"score lexical.run dense.run {AMBIGUOUS} --pool collection -f markdown",
    *(f"compare {RUNS} {QRELS} {BOTH} -f {style}" for style in ("table", "latex", "markdown")),
    *(f"compare {RUNS} {QRELS} {BOTH} --baseline words --margin .1 -f {style}" for style in ("table", "markdown")),
    f"compare {RUNS} {QRELS} -m nDCG@10 --baseline words --baseline dense -f latex",
    f"compare lexical.run dense.run {QRELS} -m BNDCG@10 -m ENDCG@10",
    # Significant differences, in both directions.
    *(f"compare lexical.run dense.run {QRELS} -m nDCG@10 --baseline {of} -f table" for of in ("lexical", "dense")),
    *(f"report lexical.run dense.run {QRELS} -o page.html -m nDCG@10 --baseline {of}" for of in ("lexical", "dense")),
    f"compare lexical.run holes.run {QRELS} -m nDCG@10 -m P@5 --on-topics all --family all --test t --interval normal",
    f"compare copy.run lexical.run {QRELS} -m nDCG@10",
    *(f"table {RUNS} {QRELS} --name dense=ANCE -f {style}" for style in ("table", "latex")),
    *(f"rank {RUNS} {QRELS} --draws 200 --uncertainty {source}" for source in ("unjudged", "topics", "both")),
    f"rank {RUNS} {QRELS} --draws 200 --pairs -f markdown",
    f"{TRACK} -f table",
    f"{TRACK} -f markdown",
    *(f"{GATE} -b {of}" for of in ("lexical.run --margin .02", "lexical.run --margin .9 -b words.run --look 2")),
    f"{GATE} -b lexical.run --margin .01 --max-share 1 --level .6",
    f"{GATE} -b lexical.run --margin .05 --queries traffic.tsv -f markdown",
    f"{GATE} -b lexical.run --margin .05 -f junit",
    "gate copy.run -b lexical.run -q qrels.txt -m nDCG@10 --margin .9 --daily -f markdown",
    f"judge {RUNS} {QRELS} --budget 3",
    f"judge {RUNS} {QRELS} --budget 2 --difference lexical,dense -f markdown",
    f"audit {RUNS} {QRELS} --judge complete.txt --family lexical,words=old",
    "agreement qrels.txt complete.txt",
    "agreement qrels.txt complete.txt -f markdown",
    "powered predicted.csv labelled.csv --predicts ES@5=success",
    f"doctor dense.run {QRELS} --intents intents.tsv --tags tags.tsv",
    f"score {RUNS} {QRELS} -m nDCG@10 --per-query",
    f"rank {RUNS} {QRELS} --draws 200 --pairs",
    COVERAGE,
    f"{COVERAGE} -f latex",
    f"{COVERAGE} --per-query -f markdown",
    "link right.tsv wrong.tsv --gold gold.tsv",
    "link right.tsv wrong.tsv --gold gold.tsv -f markdown",
    "link right.tsv wrong.tsv --gold gold.tsv --pairs",
    "queries sample mentions.csv -n 3 --seed 1",
    "queries profile mentions.csv",
    "annotate check ann.csv bob.csv --topics topics.tsv --intents intents.tsv",
    "queries power --delta .05 -m nDCG@10",
    "queries power --delta .05 -m nDCG@10 --systems 5 --assurance .8 -f markdown",
    "intents topics.tsv --kb entities.tsv -o i.tsv",
    "tag documents.tsv --kb entities.tsv -o t.tsv --run dense.run --depth 5",
    f"report {RUNS} {QRELS} -o page.html --resamples 200",
    f"report {RUNS} holes.run {QRELS} -o page.html --resamples 200 --baseline words --on-topics all --name words=Words",
    f"report lexical.run dense.run {QRELS} -o page.html -m nDCG@10 -m BNDCG@10 -m ENDCG@10",
    f"report dense.run {QRELS} -o page.html -m nDCG@10 -m P@5 --title Mine",
    "report lexical.run dense.run --intents intents.tsv --tags tags.tsv -o page.html --resamples 200",
    "report copy.run lexical.run -q qrels.txt -o page.html -m nDCG@10",
    f"report lexical.run holes.run {QRELS} -o page.html -m nDCG@10 --on-topics common",
    "report entities.run other.run --links links.parquet -o page.html --resamples 200",
    # What is refused.
    "compare",
    "compare lexical.run dense.run",
    f"compare lexical.run {QRELS} --values v.csv",
    f"compare lexical.run dense.run {QRELS} --systems",
    f"score dense.run {QRELS} -m BNCG@10",
    "score dense.run -m nDCG@10",
    f"score dense.run {QRELS} -m nDCG@10 --perturb dirichlet",
    f"score dense.run {QRELS} -m nDCG@10 --replicas 5",
    f"score dense.run {QRELS} -m nDCG@10 --pool collection",
    "score dense.run -m ES@5 --intents intents.tsv --tags tags.tsv --resume there",
    "score dense.run -m ES@5 --intents intents.tsv --tags tags.tsv --labels complete.txt",
    f"score dense.run {QRELS} -m BNDCG@10 --labels complete.txt",
    f"score dense.run {QRELS} -m ENDCG@10 --model nowhere",
    "score dense.run -m ES@5 --intents intents.tsv --subtopics topics.tsv",
    *(f"score dense.run {AMBIGUOUS} --replicas 5 --perturb {of}" for of in ("dirichlt=2", "dirichlet=", "intents=3")),
    f"rank {RUNS} {QRELS} --baseline dense",
    f"rank {RUNS} {QRELS} --pairs --baseline dense --baseline words",
    f"track {RUNS} {QRELS} --automatic complete.txt",
    f"track {RUNS} -q a=qrels.txt -q a=qrels.txt",
    f"track {RUNS} -q a=qrels.txt -q b=qrels.txt",
    f"judge {RUNS} {QRELS} --budget 3 --difference lexical",
    f"audit {RUNS} {QRELS} --judge complete.txt --family lexical",
    f"audit {RUNS} {QRELS} --judge complete.txt --show everything",
    "coverage entities.run -q qrels.txt",
    "link right.tsv --gold gold.tsv --pairs",
    f"report {RUNS} {QRELS} -o page.html --name words",
    f"report {RUNS} {QRELS} -o page.html --name word=W",
    f"report {RUNS} {QRELS} -o page.html --name words=dense",
    "powered v.csv v.csv --predicts success",
    "kb entities.tsv -o x.kb --kind csv",
    "intents topics.tsv --kb entities.tsv -o i.tsv --linker best",
    "intents topics.tsv --kb entities.tsv -o i.tsv --unknown violated",
    "intents topics.tsv --kb entities.tsv -o i.tsv --parse --constraints need",
    "tag documents.tsv --kb entities.tsv -o t.tsv --depth 5",
    "tag documents.tsv --kb entities.tsv -o t.tsv --field body",
    "queries power",
    "queries power --delta .05",
]
# The main commands on a wide terminal, whose tables have columns that a narrow one hides.
WIDE = " # 200 columns"
COMMANDS += [
    f"{command}{WIDE}"
    for command in (
        "demo",
        f"doctor {RUNS} holes.run {QRELS}",
        f"score {RUNS} {QRELS} {BOTH} -f table",
        f"score lexical.run dense.run {AMBIGUOUS}",
        f"compare {RUNS} {QRELS} {BOTH} -f table",
        f"table {RUNS} {QRELS} -f table",
        f"rank {RUNS} {QRELS} --draws 200",
        TRACK,
        f"{GATE} -b lexical.run --margin .02",
        f"judge {RUNS} {QRELS} --budget 3",
        f"audit {RUNS} {QRELS} --judge complete.txt --family lexical,words=old",
        "agreement qrels.txt complete.txt",
        "powered predicted.csv labelled.csv --predicts ES@5=success",
        COVERAGE,
        "link right.tsv wrong.tsv --gold gold.tsv",
        "queries power --delta .05 -m nDCG@10",
    )
]


def files(folder):
    """The demo, and runs and tables that say more: topics without documents, a copied run, entity runs, answers."""
    copy_demo(folder)
    runs = {name: (folder / f"{name}.run").read_text().splitlines(keepends=True) for name in ("lexical", "dense")}
    (folder / "holes.run").write_text("".join(line for line in runs["dense"] if line.split()[0] > "q03"))
    (folder / "copy.run").write_text("".join(runs["lexical"]))
    rows = [line.split("\t") for line in (folder / "intents.tsv").read_text().splitlines()[1:]]
    for name, sign in (("entities", 1), ("other", -1)):
        lines = [f"{row[0]} Q0 {row[1]} 1 {sign * float(row[2])} t\n" for row in rows]
        (folder / f"{name}.run").write_text("".join(lines))
    (folder / "groups.tsv").write_text("name\tgroup\nlexical\tone\ndense\ttwo\nwords\tone\n")
    traffic = "".join(f"q{n:02}\t{n}\t{'head' if n > 6 else 'tail'}\n" for n in range(1, 13))
    (folder / "traffic.tsv").write_text(f"query\tweight\tsegment\n{traffic}")
    (folder / "v.csv").write_text("name,qid,measure,value\na,q1,AP,0.5\n")
    texts = {"predicted": ("ES@5", range(1, 13)), "labelled": ("success", range(1, 7))}
    for name, (measure, topics) in texts.items():
        rows = [f"{of},q{n},{measure},{(n * step) % 7 / 7:.3f}" for of, step in (("x", 3), ("y", 5)) for n in topics]
        (folder / f"{name}.csv").write_text("\n".join(["name,qid,measure,value", *rows, ""]))
    lines = [f"d{n},{'Mercury' if n % 3 else 'jaguar'},{'NIL' if n % 4 == 0 else f'e{n % 5}'}" for n in range(20)]
    (folder / "mentions.csv").write_text("\n".join(["docno,mention,entity_id", *lines, ""]))
    task = vbterrier.evaluate.annotate(folder / "topics.tsv", folder / "intents.tsv")
    for name, every in (("ann", 2), ("bob", 3)):
        labels = task.items.assign(label=[int(n % every == 0) for n in range(len(task.items))])
        labels.to_csv(folder / f"{name}.csv", index=False)
    pool, qrels = vbterrier.read_run(folder / "dense.run"), vbterrier.read_qrels(folder / "qrels.txt")
    links = vbterrier.entities.link_pool(pool, vbterrier.read_tags(folder / "tags.tsv"), qrels)
    vbterrier.entities.write_links(links, folder / "links.parquet")
    answers = {"gold": "ABN" * 8, "right": "ABN" * 7 + "ABA", "wrong": "ABA" * 8}
    for name, of in answers.items():
        lines = "".join(f"m{n:02}\t{'NIL' if one == 'N' else one}\n" for n, one in enumerate(of))
        (folder / f"{name}.tsv").write_text(lines)


def output_of(command):
    """The exit code, and the lines of standard output, standard error and the page, without empty lines."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    Path("page.html").unlink(missing_ok=True)
    sys.argv = ["vbterrier", *shlex.split(command, comments=True)]
    width = "200" if command.endswith(WIDE) else "80"
    columns, os.environ["COLUMNS"] = os.environ.get("COLUMNS", ""), width
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
        code = 0
    except SystemExit as error:
        code = error.code or 0
    finally:
        sys.argv = before
        os.environ["COLUMNS"] = columns
    page = shown(Path("page.html").read_text()) if Path("page.html").exists() else ""
    lines = f"{code}\n{out.getvalue()}\n{err.getvalue()}\n{page}".splitlines()
    # The size of a page depends on the versions that it names.
    return [re.sub(r"page.html: .* MB$", "page.html", line.rstrip()) for line in lines if line.strip()]


def shown(page):
    """The text of a page, without its time, and the versions of packages; titles of marks are text."""
    page = page.partition("<body>")[2].partition('<script type="application/json"')[0]
    page = re.sub(r"<div><dt>(Versions|Made)</dt>.*?</div>|<svg.*?</svg>| · \d{4}-[^<]* UTC", "", page, flags=re.DOTALL)
    page = re.sub(r'<[^>]*?title="([^"]*)"[^>]*>', r"[\1]", page)
    page = re.sub(r"</?(span|bdi|b)\b[^>]*>", "", page)
    return html.unescape(re.sub(r"<[^>]*>", "\n", page))


def texts():
    """The texts of all commands."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        files(Path(folder))
        os.chdir(folder)
        try:
            return {command: output_of(command) for command in COMMANDS}
        finally:
            os.chdir(before)


if __name__ == "__main__":
    result = texts()
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for command, lines in result.items():
        print("$", command, *lines, sep="\n")
