"""Every example in a docstring runs."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest
from night import slow

import vbterrier

MODULES = sorted(info.name for info in pkgutil.walk_packages(vbterrier.__path__, "vbterrier."))
# Its examples train a model in each fold.
TRAINED = "vbterrier.evaluate.frozen"


@pytest.mark.parametrize("name", [slow(name) if name == TRAINED else name for name in MODULES])
def test_examples_of_module_run(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("measure", vbterrier.measures.MEASURES, ids=str)
def test_examples_of_measure_run(measure):
    # PyTerrier sets __module__ of registered measures, so that they are not found in their modules.
    (result,) = doctest.DocTestFinder(recurse=False).find(type(measure), measure.NAME, module=False)
    assert doctest.DocTestRunner().run(result).failed == 0


def test_every_public_name_has_an_example():
    without = []
    names = {name: getattr(vbterrier, name) for name in vbterrier.__all__}
    for space in [name for name, value in names.items() if inspect.ismodule(value)]:
        module = names.pop(space)
        names.update(
            {f"{space}.{name}": getattr(module, name) for name in module.__all__ if callable(getattr(module, name))}
        )
    for name, value in names.items():
        text = (type(value) if isinstance(value, vbterrier.measures.Measure) else value).__doc__ or ""
        if ">>>" not in text and not name.startswith("__"):
            without.append(name)
    # Errors and results are made by the library, not by its users.
    assert [name for name in without if not name.endswith(("Error", "Warning", "Distribution"))] == []


@pytest.mark.parametrize("space", ["design", "entities", "intents"])
def test_docstrings_state_the_errors_of_checked_values(space):
    """The other pages of the reference state the errors that all their functions share."""
    package, without = getattr(vbterrier, space), []
    checks = {"choice", "whole", "number", "check_level", "check_number", "ParameterError", "InputError", "FileError"}
    for name in package.__all__:
        value = getattr(package, name)
        functions = (
            [vars(value).get(part) for part in ("__init__", "__post_init__")] if inspect.isclass(value) else [value]
        )
        used = {word for each in functions if inspect.isfunction(each) for word in each.__code__.co_names}
        if used & checks and "Raises\n" not in value.__doc__:
            without.append(name)
    assert without == []


def documented(text):
    """Names of a section "Parameters" of a docstring, or of the list of parameters of a kernel."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?:^[A-Z]\w+\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^(\S.*)\n(?= )", section[1], re.MULTILINE) if section else []
    listed = re.findall(r"^- ((?:``\w+``(?:, )?)+):", text, re.MULTILINE)
    return [re.findall(r"\w+", head) for head in heads], [re.findall(r"\w+", head) for head in listed]


@pytest.mark.parametrize("module", MODULES)
def test_documented_parameters_are_those_of_the_signature(module):
    space, wrong = importlib.import_module(module), []
    for name, value in vars(space).items():
        if getattr(value, "__module__", None) != module or not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        if inspect.isclass(value) and issubclass(value, vbterrier.measures.Measure):
            continue  # Takes its parameters as keywords of any name.
        heads, listed = documented(inspect.getdoc(value) or "")
        if module.startswith("vbterrier.kernels.") and inspect.isfunction(value):
            heads += listed
        if heads:
            parameters = inspect.signature(value).parameters
            wrong += [f"{name}: {word}" for words in heads for word in words if word not in parameters]
    assert wrong == []
