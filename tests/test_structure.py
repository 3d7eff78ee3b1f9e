"""The structure of the package: imports and names."""

import ast
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from journeys import BEGIN, END, PAGE, text

import vbterrier
from vbterrier.measures import MEASURES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "vbterrier"
MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports():
    """Modules that each module imports, at run time or for types alone."""
    names = {name_of(path) for path in MODULES}
    results = {name: set() for name in names}
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vbterrier"):
                wholes = {f"{node.module}.{alias.name}" for alias in node.names}
                results[name_of(path)] |= (wholes | {node.module}) & names
        results[name_of(path)].discard(name_of(path))
    # A package imports its modules; a module that names its package takes nothing from there.
    return {name: {other for other in others if not name.startswith(f"{other}.")} for name, others in results.items()}


@pytest.mark.slow
def test_no_module_is_imported_in_a_circle():
    graph, left = imports(), set(imports())
    while True:
        leaves = {name for name in left if not graph[name] & left}
        if not leaves:
            break
        left -= leaves
    assert sorted(left) == []


@pytest.mark.slow
def test_modules_are_imported_by_name_alone():
    results = {
        name_of(path)
        for path in MODULES
        for node in ast.walk(parsed(path))
        if (isinstance(node, ast.Attribute) and node.attr in {"import_module", "__import__"})
        or (isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules")
    }
    # Optional packages are imported by name in one place, which says how they are installed.
    assert results == {"vbterrier.errors"}


@pytest.mark.slow
def test_isin_receives_distinct_values():
    """pandas reads every value: 1.4 s for 300,000 rows of judgments, .01 s for their 250 topics."""
    results = []
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "isin"
                and len(node.args) == 1
            ):
                values = node.args[-1]
                while isinstance(values, ast.Call) and ast.unparse(values.func).endswith(".astype"):
                    values = values.func.value
                if isinstance(values, ast.Subscript) and isinstance(values.slice, ast.Constant):
                    results.append(f"{name_of(path)}: {ast.unparse(node)}")
    assert results == []


@pytest.mark.slow
def test_classes_have_one_name_each():
    names = Counter(node.name for path in MODULES for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef))
    assert [name for name, n in names.items() if n > 1] == []


def test_public_names_are_all_there():
    assert [name for name in vbterrier.__all__ if not hasattr(vbterrier, name)] == []


def test_every_registered_measure_is_an_attribute_of_the_package():
    assert sorted(vbterrier.measures.__all__) == sorted(measure.NAME for measure in MEASURES)
    assert [measure for measure in MEASURES if getattr(vbterrier, measure.NAME) is not measure] == []
    assert [name for name in ("Relcov", "MEASURES", "InputError", "write_run") if hasattr(vbterrier, name)] == []


@pytest.mark.slow
def test_docstrings_begin_with_a_noun_or_an_imperative():
    results = []
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                first = (ast.get_docstring(node) or "").split()[:1]
                if first and first[0].strip(",") in {"What", "How", "Where", "Whether", "Whoever"}:
                    results.append(f"{name_of(path)}: {getattr(node, 'name', 'module')}")
    assert results == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code objects have no qualified names")
def test_the_page_of_the_structure_shows_the_calls_as_they_are():
    page = PAGE.read_text(encoding="utf-8")
    made = page.partition(BEGIN)[2].partition(END)[0].strip()
    assert made == text(), "run: python tests/helpers/journeys.py"


def test_no_public_function_has_the_name_of_a_module_of_its_package():
    # Importing the module would replace the function in a package that loads names at first use.
    stubs = sorted(PACKAGE.rglob("__init__.pyi"))
    assert len(stubs) > 5
    hidden = [
        f"{stub.parent.relative_to(ROOT)}: {name.asname or name.name}"
        for stub in stubs
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
        if any((stub.parent / f"{name.asname or name.name}{suffix}").exists() for suffix in (".py", "/__init__.py"))
    ]
    assert not hidden, f"rename these modules: {hidden}"
