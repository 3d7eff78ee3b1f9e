"""The structure and the language of the package stay within their limits."""

import ast
import re
import sys
import threading
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import vbterrier
from vbterrier.demo import demo_folder

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "vbterrier"
MODULES = sorted(PACKAGE.rglob("*.py"))
DEMO = demo_folder()

# Words that hide their meaning from readers of other projects, with the words that say it.
PHRASES = {
    r"bars of progress": "progress bars",
    r"\b(?:is|are|was|were) told of\b": "reported",
    r"larger than the memory": "larger than memory",
    r"goes on where (?:it|he|they) (?:stopped|was|were)": "resumes",
    r"\bstands? twice": "is duplicated",
    r"is the same document in both": "shared by both runs",
    r"\btells? [AB] and [AB] apart|\btold apart|distinguishable by": "differ significantly",
    r"\btak(?:es|en|ing) (?:them |it )?for not relevant": "treated as non-relevant",
    r"held against the truth|near the truth": "compared with, close to the ground truth",
    r"intervals? holds? \.?\d": "intervals cover",
    r"other topics of the kind": "topics from the same population",
    r"weighs heavily|what stands against": "serious; caveats",
    r"\bA less B\b": "A - B",
    r"\blaws? of (?:scores?|the score)\b|\bgrades? runs? out": "distribution; too few documents of a grade",
    r"labels of entities|measures of diversity|tests of types": "entity labels, diversity measures, type tests",
    r"put right by labels|takes? a penalty off": "corrected with labels, subtracts a penalty",
    r"leave condensed lists|what bad input gets": "migrating from condensed lists, input validation",
    r"in the place of|where they are there": "instead of, if available",
    r"first documents looked at|likeliest meaning": "cutoff, the most probable intent",
    # In quotes it is the label of a random stream, which belongs to the numbers.
    r"a (?:call|file) of its own\b|(?<!\")\banew\b(?!\")": "separately, a separate file, again",
    r"\bwhoever calls\b|whatever it is\b": "callers",
}


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def lines_of_code(path):
    """Lines that are neither blank, comment nor docstring."""
    tree, documented = parsed(path), set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            documented.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return sum(1 for n, line in lines if line.strip() and not line.strip().startswith("#") and n not in documented)


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports():
    """Modules that each module imports, at run time or for types alone."""
    names = {name_of(path) for path in MODULES}
    found = {name: set() for name in names}
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vbterrier"):
                wholes = {f"{node.module}.{alias.name}" for alias in node.names}
                found[name_of(path)] |= (wholes | {node.module}) & names
        found[name_of(path)].discard(name_of(path))
    # A package imports its modules; a module that names its package takes nothing from there.
    return {name: {other for other in others if not name.startswith(f"{other}.")} for name, others in found.items()}


def test_modules_are_few_and_not_cut_too_finely():
    # Five modules of neural systems, and five of audits, release gates and leaderboards, among them.
    assert len(MODULES) <= 220
    tests = ROOT.glob("tests/**/*.py")
    n_lines, n_of_tests = (
        sum(len(path.read_text(encoding="utf-8").splitlines()) for path in of) for of in (MODULES, tests)
    )
    assert n_lines <= 58_700
    assert n_of_tests <= 56_240
    small = [name_of(path) for path in MODULES if lines_of_code(path) < 30 and path.name != "__init__.py"]
    assert len(small) <= 15, small


def test_no_module_is_imported_in_a_circle():
    graph, left = imports(), set(imports())
    while True:
        leaves = {name for name in left if not graph[name] & left}
        if not leaves:
            break
        left -= leaves
    assert sorted(left) == []


def test_modules_are_imported_by_name_alone():
    found = {
        name_of(path)
        for path in MODULES
        for node in ast.walk(parsed(path))
        if (isinstance(node, ast.Attribute) and node.attr in {"import_module", "__import__"})
        or (isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules")
    }
    # Optional packages are imported by name in one place, which says how they are installed.
    assert found == {"vbterrier.errors"}


def test_classes_have_one_name_each():
    names = Counter(node.name for path in MODULES for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef))
    assert [name for name, n in names.items() if n > 1] == []


def test_public_names_are_few_and_all_are_there():
    assert len(vbterrier.__all__) <= 80
    assert [name for name in vbterrier.__all__ if not hasattr(vbterrier, name)] == []


def test_docstrings_begin_with_a_noun_or_an_imperative():
    found = []
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                first = (ast.get_docstring(node) or "").split()[:1]
                if first and first[0].strip(",") in {"What", "How", "Where", "Whether", "Whoever"}:
                    found.append(f"{name_of(path)}: {getattr(node, 'name', 'module')}")
    assert found == []


@cache
def pages():
    """The lines of each page for readers."""
    found = [*MODULES, *PACKAGE.rglob("*.rst"), *PACKAGE.rglob("*.html"), *PACKAGE.rglob("*.js")]
    found += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.rst"), *ROOT.glob("notebooks/*.ipynb")]
    found += [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md"]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").splitlines() for path in found}


@pytest.mark.parametrize("phrase", PHRASES)
def test_phrases_are_those_of_the_field(phrase):
    pattern = re.compile(phrase, re.IGNORECASE)
    found = [
        f"{path}:{n}: {line.strip()[:100]}"
        for path, lines in pages().items()
        for n, line in enumerate(lines, 1)
        if pattern.search(line)
    ]
    assert found == [], f"write: {PHRASES[phrase]}"


@pytest.fixture
def traced():
    """Run a call; give the files of the package that it enters, and the depth of the package's frames.

    A first call of the same does the imports.
    """

    def run(call):
        files, depth = set(), 0

        def seen(frame, event, _):
            nonlocal depth
            if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
                files.add(frame.f_code.co_filename)
                own = 0
                while frame is not None:
                    own += frame.f_code.co_filename.startswith(str(PACKAGE))
                    frame = frame.f_back
                depth = max(depth, own)

        call()
        before = sys.getprofile()
        sys.setprofile(seen)
        threading.setprofile(seen)
        try:
            call()
        finally:
            sys.setprofile(before)
            threading.setprofile(None)
        return files, depth

    return run


RUNS = {"lexical": str(DEMO / "lexical.run"), "dense": str(DEMO / "dense.run")}


@pytest.mark.parametrize(
    ("measures", "n_files"), [(["nDCG@10"], 18), (["BNDCG@10", "nDCG@10"], 28)], ids=["nDCG", "BNDCG and nDCG"]
)
def test_a_score_enters_few_files(traced, measures, n_files):
    files, depth = traced(lambda: vbterrier.score(RUNS, str(DEMO / "qrels.txt"), measures))
    assert len(files) <= n_files, sorted(files)
    assert depth <= 16


def test_a_report_enters_few_files(traced, tmp_path):
    files, _ = traced(lambda: vbterrier.write_report(RUNS, tmp_path / "report.html", str(DEMO / "qrels.txt")))
    assert len(files) <= 45, sorted(files)
