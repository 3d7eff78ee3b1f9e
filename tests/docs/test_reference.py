"""The generated reference leaves nothing out, and its hand-made parts are what the code does."""

import importlib
import importlib.resources
import re
import sys
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest
import typer.main

import vbterrier
from vbterrier.cli import app
from vbterrier.demo import copy_demo
from vbterrier.measures import MEASURES
from vbterrier.measures.base import Measure
from vbterrier.settings import Inference

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = {path.stem: path.read_text(encoding="utf-8") for path in ROOT.glob("docs/reference/*.rst")}
STAGES = "\n".join(
    (ROOT / f"vbterrier/pt_docs/{name}.rst").read_text(encoding="utf-8") for name in ("api", "rankers", "rerankers")
)


def extension(name):
    """A module of docs/_ext; it needs Sphinx, which builds the site in CI."""
    pytest.importorskip("sphinx")
    sys.path.insert(0, str(ROOT / "docs/_ext"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "docs/_ext"))


def is_stage(value):
    return isinstance(value, type) and issubclass(value, pt.Transformer)


def test_every_measure_is_in_one_family_with_all_its_parameters():
    measures = extension("measures")
    listed = [measure for family in measures.FAMILIES.values() for measure in family]
    assert sorted(map(repr, listed)) == sorted(map(repr, MEASURES))
    assert all(f".. measures:: {family}" in REFERENCE[f"measures-{family}"] for family in measures.FAMILIES)
    for measure in MEASURES:
        text = "\n".join(measures.parameters(measure))
        for name in measure.SUPPORTED_PARAMS:
            assert ("``@k``" if name == "cutoff" else f"``{name}``") in text
        assert "object at" not in text


def test_what_each_measure_means_and_when_not_to_use_it_is_explained():
    numbers = (ROOT / "docs/explanation/numbers.md").read_text(encoding="utf-8")
    assert [measure.NAME for measure in MEASURES if not re.search(rf"`{measure.NAME}\b", numbers)] == []
    assert len(re.findall(r"(?m)^Do not use", numbers)) >= 4


def test_the_text_for_the_providers_of_ir_measures_lists_every_measure():
    text = (ROOT / "docs/developers/upstream.md").read_text(encoding="utf-8")
    listed = re.findall(r"``(\w+)(?:\([\w=]*\))?(?:@\w+)?``", text.split("**Supported Measures:**")[1].split("###")[0])
    assert sorted(listed) == sorted(measure.NAME for measure in MEASURES)


def test_every_notebook_is_on_the_page_of_notebooks():
    listed = re.findall(r"\]\(\.\./notebooks/([\w.-]+)\)", (ROOT / "docs/notebooks.md").read_text(encoding="utf-8"))
    assert listed == sorted(path.name for path in ROOT.glob("notebooks/*.ipynb"))


def test_parameters_are_shown_as_they_are_declared():
    measures = extension("measures")
    declared = vbterrier.VB.SUPPORTED_PARAMS
    assert measures.legal(declared["gain"]) == "``'binary'``, ``'dcg'``"
    assert measures.legal(declared["alpha"]) == "number, at least 0"
    assert measures.legal(vbterrier.BNDCG.SUPPORTED_PARAMS["level"]) == "number, 0 to 1"
    assert measures.default(declared["alpha"]) == "``1.0``"
    assert measures.default(declared["cutoff"]) == ""
    assert measures.limits(vbterrier.ES) == "[0, 1]"
    assert measures.direction(vbterrier.BaitRate) == "lower is better"
    assert measures.direction(vbterrier.RelCov) == "higher is better"


def test_every_public_name_is_on_a_page():
    names = extension("public_names")
    shown = {
        package
        for text in REFERENCE.values()
        for line in re.findall(r"public-names:: (.*)", text)
        for package in line.split()
    }
    assert shown == {*names.PACKAGES, names.REST}
    for name, value in names.public().items():
        is_elsewhere = isinstance(value, (dict, float)) or is_stage(value) or isinstance(value, Measure)
        assert (names.package_of(value) is None) == is_elsewhere, name


def test_every_stage_is_on_the_page_that_pyterrier_collects():
    stages = [name for name, value in extension("public_names").public().items() if is_stage(value)]
    assert sorted(re.findall(r"autoclass:: vbterrier\.([\w.]+)", STAGES)) == sorted(stages)


def test_the_pages_for_pyterrier_come_with_the_package():
    pages = importlib.resources.files("vbterrier").joinpath("pt_docs")
    index = pages.joinpath("index.rst").read_text(encoding="utf-8")
    for name in re.findall(r"(?m)^   (\w+)$", index.split(".. toctree::")[1].split("References")[0]):
        assert pages.joinpath(f"{name}.rst").is_file()
        # Our own site shows the same pages.
        shown = (ROOT / f"docs/pyterrier/{name}.rst").read_text(encoding="utf-8")
        assert shown == f".. include:: ../../vbterrier/pt_docs/{name}.rst\n"


def test_every_command_has_its_options():
    command_line = extension("command_line")
    group = typer.main.get_command(app)
    result = dict(command_line.commands(group, "vbterrier"))
    assert {"vbterrier score", "vbterrier compare", "vbterrier queries power"} <= set(result)
    text = "\n".join(command_line.described("vbterrier score", result["vbterrier score"]))
    for option in ("--qrels", "``-q``", "--memory", "RUNS"):
        assert option in text
    assert command_line.plain("As 'BNDCG@10', *or*") == "As 'BNDCG\\@10', \\*or\\*"


def test_transformers_are_shown_with_their_own_parameters():
    ours = extension("of_this_package")
    shown, _ = ours.parameters(None, "class", "", vbterrier.Truncate, None, "(*args, **kwargs)", None)
    assert shown == "(*, threshold=None, cutoff=None, mass=None)"
    assert ours.parameters(None, "function", "", len, None, "(obj, /)", None) == ("(obj, /)", None)


def test_a_measure_is_no_address():
    ours = extension("of_this_package")
    from docutils.core import publish_doctree

    tree = publish_doctree("BNDCG@10.de and https://ir-measur.es")
    ours.plain(None, tree)
    assert re.findall('refuri="([^"]*)"', str(tree)) == ["https://ir-measur.es"]
    assert tree.astext() == "BNDCG@10.de and https://ir-measur.es"


def test_pipelines_are_drawn_without_the_network(monkeypatch):
    drawing = extension("schematic")
    monkeypatch.setattr(pt.documentation, "objects_inv", lambda: pytest.fail("looked up"))
    here = Path.cwd()
    pipeline = drawing.pipeline_of(
        "import pandas as pd, vbterrier\n"
        'run = pd.DataFrame({"qid": ["1"], "docno": ["d1"], "score": [1.0], "text": ["a"]})\n'
        "pt.Transformer.from_df(run) >> vbterrier.TagEntities(len)"
    )
    assert Path.cwd() == here
    html = drawing.drawn(pipeline, ["qid", "query"])
    assert "Source" in html
    assert "TagEntities" in html
    with pytest.raises(TypeError, match="last line"):
        drawing.pipeline_of("stage = 1")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Frames as the package makes them, by their letter."""
    demo = tmp_path_factory.mktemp("docs") / "demo"
    copy_demo(demo)
    runs = {name: str(demo / f"{name}.run") for name in ("lexical", "dense")}
    qrels, tags = vbterrier.read_qrels(demo / "qrels.txt"), vbterrier.read_tags(demo / "tags.tsv")
    scores = vbterrier.score(runs, qrels, ["BNDCG@10"], inference=Inference(n_resamples=100))
    return {
        "Q": vbterrier.read_topics(demo / "topics.tsv"),
        "I": vbterrier.read_intents(demo / "intents.tsv"),
        "R": vbterrier.read_run(runs["dense"]),
        "T": tags,
        "L": qrels,
        "K": vbterrier.entities.link_pool(vbterrier.read_run(runs["dense"]), tags, qrels).to_frame(),
        "V": scores.values,
        "C": scores.intervals,
        "P": vbterrier.compare(scores.values, inference=Inference(n_resamples=100)).pairs,
    }


@pytest.mark.parametrize("letter", ["Q", "I", "R", "T", "L", "K", "V", "C", "P"])
def test_frames_have_the_columns_that_are_named(made, letter):
    row = REFERENCE["frames"].split(f".. _frame-{letter.lower()}:")[1].split("   * -")[0]
    columns = row.split("     - ")[2].split("[")[0]
    expected = re.findall(r"``(\w+)``", columns)
    assert expected
    assert set(expected) <= set(made[letter].columns)
    assert isinstance(made[letter], pd.DataFrame)


def test_the_reference_states_every_declared_range():
    documented = extension("measures")
    unlimited = [one.NAME for one in MEASURES if not documented.limits(one)]
    assert unlimited == [
        one.NAME for one in MEASURES if one.score_range(str(one))[1] == float("inf") and one.NAME == "OER"
    ]
    assert documented.limits(vbterrier.EAP) == "[0, 1]"
    assert documented.limits(vbterrier.DiscRatio) == "at least 0"


def test_examples_of_measures_are_no_parameters():
    described = extension("measures").described
    assert [
        one.NAME
        for one in MEASURES
        if any(":param >>>" in line or "(>>>" in line for line in described(one, "unjudged"))
    ] == []
