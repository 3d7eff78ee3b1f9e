"""Tables for papers compile: all of them in one document, with malicious names."""

import itertools
import os
import re
import shutil
import subprocess
from dataclasses import replace

import pandas as pd
import pytest
from planted import planted_collection

from vbterrier import compare, coverage_report, evaluate_intents, rank_systems, score
from vbterrier.entities.pool import link_pool
from vbterrier.evaluate import audit_judge, leaderboard
from vbterrier.evaluate.doctor import diagnose
from vbterrier.evaluate.intents import IntentOptions
from vbterrier.linking.quality import linking_report
from vbterrier.report import latex
from vbterrier.report.paper import paper_table
from vbterrier.report.system_tables import doctor_report
from vbterrier.settings import Inference
from vbterrier.stats import judge_agreement

# Results of few topics and resamples.
pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
# Commands, comments, arguments, ends of tables, accents, other scripts, marks without a letter, TeX's ligatures.
HOSTILE = (
    r"\input{/etc/passwd} & % $x$ # _ { } \\ ~ ^",
    r"}\end{tabular}\end{table}\newpage",
    "[2pt] *",
    "Zoë's Łódź naïve ﬁ 漢字 🐕 \u0301 α≤β",
    "a--b---c ``q'' \"quoted\" ?` !` <<x>> |y| @",
    "nul\x00esc\x1b[31m\nline",
    "n_" * 150,
    "مرحبا שלום Ωμέγα \u202egnp.exe",
    " ",
)
DOCUMENT = r"""\documentclass{article}
\usepackage{booktabs,longtable}
\begin{document}
\listoftables
%s
\end{document}
"""
TOPICS = [f"q{at}" for at in range(12)]


@pytest.fixture(scope="module")
def pdflatex():
    result = shutil.which("pdflatex")
    if result is None:
        assert not os.environ.get("CI"), "CI needs pdflatex and booktabs: texlive-latex-base, texlive-latex-recommended"
        pytest.skip("no pdflatex")
    return result


def compiled(pdflatex, folder, *tables, document=DOCUMENT):
    """The log of the second run, in which references are resolved."""
    (folder / "tables.tex").write_text(document % "\n\n".join(tables), encoding="utf-8")
    # TeX may not read or run files that a hostile name contains.
    options = ["-interaction=nonstopmode", "-no-shell-escape", "tables.tex"]
    for _ in range(2):
        done = subprocess.run([pdflatex, *options], cwd=folder, capture_output=True, check=False)
    log = (folder / "tables.log").read_text(encoding="latin-1")
    assert done.returncode == 0, "\n".join(re.findall(r"(?m)^!.*\n.*\n.*", log)) or log[-2000:]
    return log


def runs(*names):
    frame = pd.DataFrame(itertools.product(TOPICS, range(5)), columns=["qid", "at"])
    docnos = {name: [f"d{(at + shift) % 7}" for at in frame["at"]] for shift, name in enumerate(names)}
    return {name: frame[["qid"]].assign(docno=of, score=7.0 - frame["at"]) for name, of in docnos.items()}


QRELS = pd.DataFrame([(f"q{n}", f"d{at}", (n + at) % 3) for n in range(12) for at in range(4)])
QRELS.columns = ["qid", "docno", "label"]
FEW = Inference(n_resamples=30)


def tables(*names):
    """Tables of each kind."""
    systems = runs(*names)
    scores = score(systems, QRELS, ["nDCG@10", "BNDCG@10"], inference=FEW)
    yield paper_table(scores)
    yield paper_table(scores, topics=True)
    yield paper_table(score(systems, QRELS, ["nDCG@3", "BNDCG@3", "BNDCG@5", "AP", "Unjudged@5"], inference=FEW))
    yield paper_table(compare(systems, QRELS, ["nDCG@10", "AP"], inference=replace(FEW, margin=0.1)))
    yield paper_table(compare(systems, QRELS, ["nDCG@10"], baseline=names[0], inference=FEW))
    ranked = rank_systems(systems, QRELS, inference=Inference(n_draws=20))
    yield paper_table(ranked)
    yield paper_table(ranked, pairs=True)
    gold = pd.DataFrame({"qid": TOPICS, "entity_id": ["Paris", "NIL", "Rome"] * 4})
    result = gold.assign(entity_id=["Paris", "NIL", "NIL"] * 4)
    yield paper_table(linking_report(dict.fromkeys(names, result), gold, inference=FEW))
    made = planted_collection(n_topics=4, n_documents=60, n_relevant=12)
    links = link_pool(made.pool, made.tags, made.qrels)
    yield paper_table(coverage_report(dict.fromkeys(names, made.runs["odds"]), links, cutoff=3, inference=FEW))
    intents = pd.DataFrame({"qid": TOPICS * 2, "entity_id": [*("x" * 12 + "y" * 12)], "prob": 0.5})
    tags = pd.DataFrame({"docno": [f"d{at}" for at in range(7)], "entity_id": [*"xyxyxyx"]})
    tables_by_name = {
        "intents": intents,
        "tagger": tags,
        "measures": ["VB", "ES"],
        "options": IntentOptions(cutoff=[3], n_replicas=20),
    }
    yield paper_table(
        evaluate_intents(systems, pd.DataFrame({"qid": TOPICS, "query": "?"}), **tables_by_name, inference=FEW)
    )
    yield doctor_report(diagnose(systems, QRELS), "latex")


def tables_of_judging(names):
    """Tables of comparisons, leaderboards, audits and agreement, in which topics and documents have such names, too."""
    # Engines of others end ids at a NUL.
    ids = [name.replace("\0", "") for name in names]
    qids, docnos = dict(zip(TOPICS, ids, strict=False)), {f"d{at}": name for at, name in enumerate(ids[:7])}

    def renamed(frame):
        return frame.assign(qid=frame["qid"].replace(qids), docno=frame["docno"].replace(docnos))

    systems = {name: renamed(run) for name, run in runs(*names).items()}
    qrels = renamed(QRELS)
    labels = {name: renamed(QRELS.assign(label=(QRELS["label"] + at) % 3)) for at, name in enumerate(names[:3])}
    yield paper_table(score(systems, qrels, ["nDCG@3"], inference=FEW), topics=True)
    comparison = compare(systems, qrels, ["nDCG@10"], baseline=names[0], inference=FEW)
    yield paper_table(comparison, compact=True, names={names[0]: names[1]})
    yield paper_table(comparison, systems=True)
    few = Inference(n_draws=20)
    ranked = leaderboard(
        systems,
        qrels,
        "ENDCG@10",
        groups=dict(zip(names, reversed(names), strict=True)),
        automatic=labels,
        inference=few,
    )
    yield paper_table(ranked)
    audit = audit_judge(systems, qrels, labels=labels, families={names[0]: names[1]}, inference=few, budget=2)
    for name, table in audit.tables().items():
        yield paper_table(table, caption=[repr(audit), *audit.summary()], label=f"tab:{name}")
    judged = pd.DataFrame({name: frame["label"] for name, frame in labels.items()})
    yield paper_table(judge_agreement(judged), caption=list(names), label="tab:agreement")


def unlabelled(result):
    """Give tables of the same kind different labels, as an author does."""
    return [re.sub(r"\\label{.*}", "", table) for table in result]


@pytest.mark.slow
def test_all_tables_compile_with_malicious_names(pdflatex, tmp_path):
    log = compiled(pdflatex, tmp_path, *unlabelled(tables(*HOSTILE)))
    assert not re.search(r"(?m)^!|Undefined control|Missing character|undefined references", log)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_tables_of_judging_compile_with_malicious_names(pdflatex, tmp_path):
    results = list(tables_of_judging(HOSTILE))
    assert sum(table.count(r"\midrule") for table in results) > 15
    log = compiled(pdflatex, tmp_path, *unlabelled(results))
    assert not re.search(r"(?m)^!|Undefined control|Missing character|undefined references", log)
    # TeX lists the files that it reads.
    assert "(/etc/passwd" not in log


@pytest.mark.slow
def test_ordinary_tables_fit_a_column_of_text(pdflatex, tmp_path):
    log = compiled(pdflatex, tmp_path, *unlabelled(tables("bm25", "monoT5"))[:-1])
    assert re.findall(r"Overfull \\hbox.*", log) == []
    assert (tmp_path / "tables.pdf").stat().st_size > 10_000


def test_labels_are_known_to_references(pdflatex, tmp_path):
    table = paper_table(score(runs("a"), QRELS, ["nDCG@10"], inference=FEW))
    log = compiled(pdflatex, tmp_path, table, r"See Table~\ref{tab:scores}.")
    assert "undefined" not in log


@pytest.mark.parametrize("name", HOSTILE)
def test_escaped_text_is_ascii_without_commands_of_its_own(name):
    text = latex.escaped_text(name)
    assert text.isascii()
    assert "\n" not in text
    # At the start of a row these would be arguments of the line break above.
    assert not text.startswith(("[", "*"))
    plain = re.sub(r"\\(?:[&%$#_{}]|[a-z]+(?:\{\}|(?=[{}]))|[`'^~\"=.uvHcdr](?=\{))", "", text, flags=re.IGNORECASE)
    assert "\\" not in plain
    assert not re.search(r"[&%$#_~^]", plain)


def test_tables_wider_than_a_column_span_both(pdflatex, tmp_path):
    comparison = compare(
        score(runs("a-run-with-a-long-name", "b-run-with-a-long-name"), QRELS, "nDCG@10"),
        inference=Inference(n_resamples=100),
    )
    text = paper_table(comparison)
    means, pairs = (part for part in text.split("\n\n") if "tabular" in part)
    assert r"\begin{table}" in means
    assert r"\begin{table*}" in pairs
    two = DOCUMENT.replace(r"{article}", "[twocolumn]{article}").replace(r"\listoftables", "")
    assert "Overfull" not in compiled(pdflatex, tmp_path, text, document=two)


@pytest.mark.slow
def test_tables_of_sixty_systems_run_over_pages(pdflatex, tmp_path):
    names = [f"run-{number}" for number in range(60)]
    scores = score(runs(*names), QRELS, ["nDCG@10", "BNDCG@10"], inference=FEW)
    results = [
        paper_table(scores),
        paper_table(compare(scores, measures=["nDCG@10"], inference=Inference(n_resamples=20))),
    ]
    assert all(r"\begin{longtable}" in text for text in results)
    log = compiled(pdflatex, tmp_path, *results, document=DOCUMENT.replace(r"\listoftables", ""))
    assert not re.search(r"(?m)^!|Float too large", log)
    assert all(latex.escaped_text(name) in results[0] for name in names)
    assert latex.floating_table(results[0].partition("x")[0], ["Short."]).startswith(r"\begin{table}")
