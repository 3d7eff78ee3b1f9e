"""Names that the package uses of its hosts are checked at import."""

import importlib
import types

import pytest

from vbterrier.hosts import require_api


def host(**names):
    made = types.ModuleType("ir_measures")
    vars(made).update(names)
    return made


def test_names_are_attributes_and_keys_of_dictionaries():
    require_api(host(measures=host(registry={"nDCG": 1})), "ir_measures", "0.4.3", ["measures.registry.nDCG"])


@pytest.mark.parametrize("name", ["DefaultPipeline.providers", "measures.registry.AP", "measures.other", "gone"])
def test_a_missing_name_is_an_import_error_that_names_versions_and_remedy(name):
    changed = host(measures=host(registry={"nDCG": 1}))
    message = (
        rf"tested with ir_measures 0\.0\.1; the installed version \(0\.\d.*\) has no ir_measures\.{name}: pip install"
    )
    with pytest.raises(ImportError, match=message):
        require_api(changed, "ir_measures", "0.0.1", ["measures", name])


def test_a_package_that_is_not_installed_under_its_name_has_an_unknown_version():
    with pytest.raises(ImportError, match=r"installed version \(unknown\) has no dict\.gone"):
        require_api({}, "no-such-distribution", "1.0", ["gone"])


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("ir_measures", "parse_trec_measure"),
        ("pyterrier", "model.push_queries"),
        ("trectools", "TrecEval.get_unjudged"),
    ],
)
def test_a_change_of_a_host_stops_the_import_with_what_is_missing(module, name, monkeypatch):
    adapter = importlib.import_module(f"vbterrier.hosts.{module}")
    monkeypatch.delattr(f"{module}.{name}")
    with pytest.raises(ImportError, match=rf"has no {module}\.{name}: pip install '{module}=="):
        importlib.reload(adapter)
