"""Names that the package uses of its hosts are checked at import."""

import importlib
import subprocess
import sys
import types
import warnings
from importlib.metadata import EntryPoint
from pathlib import Path

import ir_measures
import pyterrier as pt
import pytest

import vbterrier
from vbterrier.demo import demo_folder
from vbterrier.errors import ParameterError
from vbterrier.hosts import require_api
from vbterrier.hosts.ir_measures import repair_parser


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


def _removed(node):
    return node.gone


def _deprecated(node):
    warnings.warn("ast.Num is deprecated", DeprecationWarning, stacklevel=1)
    return node.value


@pytest.mark.parametrize("reader", [_removed, _deprecated])
def test_texts_of_measures_are_read_without_deprecated_classes_of_python(monkeypatch, reader):
    monkeypatch.setattr(ir_measures.util, "_ast_to_value", reader)
    with pytest.raises((AttributeError, DeprecationWarning)):
        ir_measures.parse_measure("nDCG@10")
    repair_parser()
    for text in ("nDCG@10", "BNDCG(prior='pool')@5", "nDCG(gains={0: 0, 1: 9})@10", "Judged@3"):
        assert ir_measures.parse_measure(text) == ir_measures.parse_measure(repr(ir_measures.parse_measure(text)))
    assert ir_measures.parse_measure("nDCG(gains={0: 0, 1: 9})@10").params == {"gains": {0: 0, 1: 9}, "cutoff": 10}
    with pytest.raises(ValueError, match="malformed"):
        ir_measures.parse_measure("nDCG(dcg=print)@10")


@pytest.mark.slow
def test_the_import_issues_no_warning():
    script = "import vbterrier; print(vbterrier.measures_from('nDCG@10'))"
    result = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("[nDCG@10]\n", "")


def test_the_demo_is_a_dataset_of_pyterrier(monkeypatch):
    tomllib = pytest.importorskip("tomllib")
    root = Path(__file__).resolve().parents[2]
    declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    group, (name, value) = "pyterrier.dataset_provider", *declared["pyterrier.dataset_provider"].items()
    # As PyTerrier finds it in the metadata of the installed package.
    monkeypatch.setattr(pt.utils, "entry_points", lambda _: [EntryPoint(name, value, group)])
    monkeypatch.setattr(pt.datasets._core, "_loaded_providers", {})
    dataset = pt.get_dataset("vb:demo")
    table = pt.Experiment(
        [dataset.get_results(), dataset.get_results("dense")], *dataset.get_topicsqrels(), ["ndcg_cut_10"], ["a", "b"]
    )
    runs = {"a": demo_folder() / "lexical.run", "b": demo_folder() / "dense.run"}
    expected = vbterrier.score(runs, demo_folder() / "qrels.txt", ["nDCG@10"]).means()["nDCG@10"]
    assert table["ndcg_cut_10"].tolist() == pytest.approx(expected.tolist())
    documents = list(dataset.get_corpus_iter())
    assert set(dataset.get_qrels("complete")["docno"]) <= {each["docno"] for each in documents}
    assert set(documents[0]) == {"docno", "text"}
    assert len(dataset.get_qrels("complete")) > len(dataset.get_qrels())
    assert dataset.get_topics("need")["query"].str.len().min() > 20
    with pytest.raises(KeyError, match="not found in provider"):
        pt.get_dataset("vb:other")
    with pytest.raises(ParameterError, match="variant='bm25'"):
        dataset.get_results("bm25")
