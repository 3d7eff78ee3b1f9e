"""All results display themselves: as a line, as tables in notebooks, as figures on request."""

import inspect
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from results import BESIDE, DENSE, JUDGED, MAKERS, results

import vbterrier
from vbterrier.errors import ParameterError
from vbterrier.frames.notebook import Panel, shared_caption
from vbterrier.frames.results import Shown
from vbterrier.report import plots
from vbterrier.settings import Inference

VOID = {"circle", "path"}


@pytest.fixture
def made():
    return results()


class Page(HTMLParser):
    """Parser that collects the text of a page by element and checks that elements are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.captions = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, _attrs):
        assert tag in VOID

    def handle_data(self, data):
        if self.open and self.open[-1] == "caption":
            self.captions.append(data)


def results_of_public_functions():
    """Classes that public functions of this package return."""
    result = set()
    public = [getattr(vbterrier, name) for name in vbterrier.__all__]
    public += [getattr(space, name) for space in public if inspect.ismodule(space) for name in space.__all__]
    for function in public:
        if inspect.isfunction(function):
            word = re.match(r"\w+", str(function.__annotations__.get("return"))).group()
            for module in [module for name, module in sys.modules.items() if name.startswith("vbterrier.")]:
                returned = vars(module).get(word)
                if inspect.isclass(returned) and returned.__module__.startswith("vbterrier."):
                    result.add(returned)
    return result


@pytest.mark.slow
def test_every_result_of_a_public_function_shows_itself(made):
    plain = {kind.__name__ for kind in results_of_public_functions() if not issubclass(kind, Shown)}
    # A linker, a collection and vectors, which are data, and a page of HTML.
    assert plain <= {"KnowledgeBase", "Planted", "Page", "VectorFile"}
    shown = {kind for kind in results_of_public_functions() if issubclass(kind, Shown)}
    assert len(shown) > 20
    assert {type(one) for one in made.values()} >= shown, "all are looked at here"


def rows_of(result):
    """The first sentence about the rows of a result, as the documentation has it."""
    return result.to_frame.__doc__.split("\n")[0].removeprefix("Return ").removesuffix(".").replace("``", "`")


def test_the_table_of_the_documentation_has_every_result_and_its_figures(made):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "results.md").read_text(encoding="utf-8")
    listed = re.findall(r"(?m)^\| `(\w+)` \| `(\w+)` \| (.*) \|(.*)\|$", page)
    result = {name: (type(one).__name__, rows_of(one), [*one._figures()]) for name, one in made.items()}
    assert {name: (kind, rows, re.findall(r"`(\w+)`", figures)) for name, kind, rows, figures in listed} == result


@pytest.mark.parametrize("name", MAKERS)
def test_a_result_is_a_line_of_text_and_tables(name, made):
    result = made[name]
    line = repr(result)
    assert line.startswith(type(result).__name__ + "(")
    assert "\n" not in line
    assert len(line) < 250
    page = Page(result._repr_html_())
    tables = [attributes for tag, attributes in page.seen if tag == "table"]
    assert len(tables) == len(page.captions) >= 1
    assert all(attributes["scope"] in {"row", "col"} for tag, attributes in page.seen if tag == "th")
    drawn = [attributes for tag, attributes in page.seen if tag == "svg"]
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in drawn)
    assert all(str(n) not in page.captions for n in ("nan", "None"))


@pytest.mark.parametrize("name", MAKERS)
def test_a_result_draws_every_figure_of_its_kind(name, made):
    result = made[name]
    for kind in result._figures():
        _, ax = plt.subplots(layout="constrained")
        assert result.plot(kind, ax=ax, **BESIDE.get((name, kind), {})) is ax
        assert ax.has_data()


def test_intervals_are_drawn_where_the_numbers_are(made):
    result = made["score"]
    page = Page(result._repr_html_())
    labels = [attributes["aria-label"] for tag, attributes in page.seen if tag == "svg"]
    rows = result.intervals[["value", "low", "high"]].to_numpy()
    assert labels == [f"{value:.4f}, {low:.4f} to {high:.4f}" for value, low, high in rows]


def test_captions_say_n_k_method_level_resamples_and_seed(made):
    systems, pairs = Page(made["compare"]._repr_html_()).captions
    assert systems == "Means: nDCG@10; 12 topics; 95% intervals: topics (unseen); seed 0"
    assert pairs == (
        "Differences a - b: nDCG@10; 12 topics; 95% intervals: inverted moderated paired t, simultaneous; "
        "moderated paired t test; p corrected: Bonferroni; seed 0"
    )


def test_means_over_replicas_have_their_own_rows(made):
    captions = Page(made["evaluate_intents"]._repr_html_()).captions
    assert captions[0].startswith("Means: 12 topics; 95% intervals: topics (unseen)")
    assert captions[1].startswith("Means over replicas: 12 topics; 95% intervals: replicas (percentile); 50 resamples")
    assert not any("replicas" in caption for caption in Page(made["variance_shares"]._repr_html_()).captions)


def test_with_too_many_marks_only_one_kind_of_interval_is_drawn(made):
    result = made["evaluate_intents"]
    assert len(result.intervals.drop_duplicates(["measure", "method"])) == 8
    text = result.plot("forest").texts[-1].get_text()
    assert "topics (unseen)" in text
    assert "replicas" not in text


def test_names_are_never_markup():
    odd = "<b>&\"'\x1b\u202e</script>"
    values = pd.DataFrame(
        {"name": [odd] * 9 + ["b"] * 9, "qid": [*"123456789"] * 2, "measure": "<i>", "value": range(18)}
    )
    text = vbterrier.compare(values, inference=Inference(interval="percentile"))._repr_html_()
    assert not any(sign in text for sign in ("<b>", "<i>", "\x1b", "\u202e"))
    assert "&lt;b&gt;&amp;&quot;&#x27;\\x1b\\u202e&lt;/script&gt;" in text
    Page(text)


def test_the_usual_figure_is_the_first_and_options_reach_it(made):
    ax = made["compare"].plot(width=plots.FULL)
    assert ax.get_xlabel() == "difference in nDCG@10"
    assert ax.figure.get_figwidth() == plots.FULL
    assert made["compare"].plot("forest").get_xlabel() == "nDCG@10"
    with pytest.raises(ParameterError, match="kind='forrest': plots of Comparison: 'differences', 'forest'"):
        made["compare"].plot("forrest")
    with pytest.raises(ParameterError, match="JudgingPlan has no plots"):
        made["judge_next"].plot(None)


def test_distributions_of_many_topics_are_not_computed_to_be_shown(monkeypatch):
    result = vbterrier.unjudged.bootstrap_distribution(DENSE, JUDGED, cutoff=10)
    monkeypatch.setattr("vbterrier.unjudged.distribution._MAX_DISPLAYED_TOPICS", 11)
    assert "<svg" not in result._repr_html_()
    assert "distributions" not in vars(result)
    result.interval(0.9)
    assert "<svg" in result._repr_html_()


@pytest.mark.slow
def test_without_matplotlib_the_extra_is_named():
    code = """
import sys
sys.modules["matplotlib"] = None
import pandas as pd
import vbterrier
values = pd.DataFrame({"name": ["a"] * 3 + ["b"] * 3, "qid": [*"123"] * 2, "measure": "AP", "value": range(6)})
found = vbterrier.compare(values, inference=vbterrier.Inference(n_resamples=50))
assert "<svg" in found._repr_html_()
assert "vbterrier.report" not in sys.modules
try:
    found.plot()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "plots need matplotlib: pip install 'vbterrier[plot]'"), done


def test_values_shared_by_all_rows_move_to_the_caption():
    frame = pd.DataFrame({"name": ["a", "b"], "level": [0.9, 0.95], "method": "t", "seed": 0, "n_qids": [1, 1]})
    message, rest = shared_caption(frame)
    assert message == "1 topic; t; seed 0"
    assert list(rest) == ["name", "level"]
    message, rest = shared_caption(frame.head(0))
    assert (message, list(rest)) == ("", list(frame))
    none = pd.DataFrame({"name": ["a"], "level": [np.nan], "method": ["none"], "n_resamples": [0], "seed": [3]})
    assert shared_caption(none)[0] == "seed 3"


def test_empty_columns_are_omitted():
    frame = pd.DataFrame({"name": ["a"], "value": [0.5], "low": [np.nan], "high": [np.nan], "letters": [""]})
    text = Panel("Means", frame, value="value").html()
    assert re.findall(r'<th scope="col"[^>]*>(\w+)', text) == ["system", "value"]
    assert "<svg" not in text
    some = pd.concat([frame, frame.assign(low=0.4, high=0.6, letters="a")]).assign(list=[[], ["x"]])
    text = Panel("Means", some, value="value").html()
    shown = ["system", "value", "low", "high", "interval", "letters", "list"]
    assert re.findall(r'<th scope="col"[^>]*>(\w+)', text) == shown
