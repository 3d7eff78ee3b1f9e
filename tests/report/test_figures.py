"""Properties of all figures: nothing is cut off or overlaps, ids are shown as they are, inputs and settings stay."""

import itertools
import pickle
import sys

import figures
import matplotlib as mpl
import pandas as pd
import pytest
from figures import JUDGED_RUN, LONG, QRELS, caption_text, drawings, inside, legend_texts, rows_named
from matplotlib.figure import Figure
from night import at_night

from vbterrier.report import plots
from vbterrier.report.plots import COLUMN, FULL, SAVING
from vbterrier.report.plots.style import SIZE
from vbterrier.unjudged.distribution import bootstrap_distribution

pytestmark = pytest.mark.slow

ODD = ["costs $5 and $6", "_under", r"\alpha$x$", "esc\x1b[31m", "two\nlines", "$", "NA"]
AS_SHOWN = [r"costs \$5 and \$6", "_under", r"\alpha\$x\$", r"esc\x1b[31m", r"two\nlines", r"\$", "NA"]
KINDS = list(drawings())
IN_LEGENDS = ("curve", "alpha", "sensitivity", "reliability", "estimates", "coverage", "sizes", "one size", "not worse")
PANELS = ("forest", "map", "distributions", "sizes", "differences")
# Frames of each figure, and what it says of an empty one.
FRAMES = [
    (plots.forest, (figures.c_frame(["a", "b"], ["VB@1", "VB@10"]),), "intervals"),
    (plots.curve, (figures.c_frame(["a", "b"], ["VB@1", "VB@10"]),), "scores"),
    (
        lambda intents, run, tags: plots.coverage_map(run, intents, tags=tags, cutoff=1),
        (figures.INTENTS, figures.RUN, figures.TAGS),
        "topics",
    ),
    (plots.reliability, (figures.BINS,), "bins"),
    (plots.estimate_against_truth, (figures.estimates(),), "estimates"),
    (plots.interval_coverage, (figures.coverage_frame(),), "coverage"),
    (plots.rank_uncertainty, (figures.RANKING, figures.CHANCES), "systems"),
    (plots.beats_matrix, (figures.chances_frame(("a", "b", 0.3)),), "pairs"),
    (plots.score_by_size, (figures.sizes_frame(),), "scores"),
    (plots.not_worse_by_size, (figures.counts_frame(),), "counts"),
    (plots.power_curve, (figures.curve_frame(),), "curve"),
    (plots.removal_distributions, (figures.draws_frame(),), "draws"),
    (plots.variance_shares, (figures.shares_frame(),), "shares"),
    (plots.differences, (figures.pairs_frame(),), "pairs"),
]


@pytest.mark.parametrize(
    ("names", "width"),
    [
        (LONG, COLUMN),
        *(at_night(*case) for case in ((LONG, FULL), (["a"], COLUMN), (["a"], FULL))),
    ],
    ids=lambda names: len(names) if isinstance(names, list) else names,
)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_cut_off_or_overlaps_at_either_width(kind, names, width):
    names = ["a", "b"] if kind == "differences" and len(names) == 1 else names
    ax = drawings(names)[kind](width=width)
    assert ax.figure.get_figwidth() == width
    assert inside(ax.figure)
    assert ax.bbox.width > 0.3 * ax.figure.bbox.width, "names leave space for the axes"
    *inner, caption = [text.get_window_extent() for text in ax.texts]
    assert caption.y1 < ax.xaxis.get_tightbbox().y0
    if ax.get_legend() is not None:
        box = ax.get_legend().get_window_extent()
        assert box.y0 >= ax.bbox.y1 - 1
        assert not any(box.overlaps(one) for one in inner)
    if kind in ("distributions", "ranks"):
        assert all(one.x0 > ax.bbox.x1 for one in inner[:-1]), "numbers are beside the axes"
    for axis in (ax.xaxis, ax.yaxis):
        ticks = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
        assert not any(one.overlaps(other) for one, other in itertools.pairwise(ticks))


@pytest.mark.parametrize("kind", ["forest", "map", *map(at_night, ("one measure", "distributions", "ranks", "pairs"))])
def test_many_rows_fit_a_page_without_overlap(kind):
    n, height = (50, 9.8) if kind in ("distributions", "ranks", "pairs") else (100, 9.5)
    ax = drawings([f"system {place}" for place in range(n)])[kind]()
    assert inside(ax.figure)
    assert ax.figure.get_figheight() < height
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert len(boxes) == n + (kind == "pairs")
    assert all(abs(above.y0 - below.y0) > 0.8 * above.height for above, below in itertools.pairwise(boxes))


@pytest.mark.nightly
@pytest.mark.parametrize("width", [COLUMN, FULL])
@pytest.mark.parametrize("kind", KINDS)
def test_captions_stay_inside_at_any_resolution(kind, width):
    figure = drawings()[kind](width=width).figure
    for dpi in (72, 130, 150, 300):
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        assert figure.axes[0].texts[-1].get_window_extent().x1 <= figure.bbox.width, dpi


@pytest.mark.parametrize("kind", [kind if kind in PANELS else at_night(kind) for kind in KINDS])
def test_panels_are_drawn_where_asked_and_stay_in_their_figure(kind):
    figure = Figure(figsize=(FULL, 3.5), layout="constrained")
    axes = figure.subplots(1, 2)
    for ax in axes:
        assert drawings(LONG[:4])[kind](ax=ax) is ax
    assert figure.get_figheight() == 3.5
    assert inside(figure)
    captions = [ax.texts[-1].get_window_extent() for ax in axes]
    assert captions[0].x1 < captions[1].x0
    assert {axes[0].xaxis.label.get_fontsize(), axes[0].get_yticklabels()[0].get_fontsize()} == {SIZE}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "power"])
def test_names_are_shown_as_they_are(kind):
    ax = drawings(ODD)[kind]()
    shown = legend_texts(ax) if kind in IN_LEGENDS else rows_named(ax)
    if kind == "differences":
        expected = [" − ".join(pair) for pair in itertools.combinations(AS_SHOWN, 2)]
        assert {label.replace("…", "") for label in shown} >= {label for label in expected if len(label) < 12}
    elif kind == "pairs":
        assert sorted(label.split(" ", 1)[1] for label in shown) == sorted([*AS_SHOWN, "another"])
    else:
        assert sorted(shown) == sorted(AS_SHOWN)


@pytest.mark.parametrize("kind", [kind if kind in PANELS else at_night(kind) for kind in KINDS if kind != "power"])
def test_figures_are_pickled_and_saved_with_names_as_text(kind, tmp_path):
    ax = drawings(ODD)[kind]()
    assert pickle.loads(pickle.dumps(ax.figure)).axes
    with mpl.rc_context(SAVING):
        ax.figure.savefig(tmp_path / "figure.svg")
    # Labels of pairs are cut.
    assert kind == "differences" or "costs $5 and $6" in (tmp_path / "figure.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_settings_stay_as_they_were_and_a_missing_matplotlib_names_the_extra(kind, monkeypatch):
    with mpl.rc_context({"font.size": 11.5, "axes.labelsize": 13.5, "figure.facecolor": "pink", "text.usetex": True}):
        before = mpl.rcParams.copy()
        figure = drawings(ODD)[kind]().figure
        assert mpl.rcParams == before
    # Ids are not TeX, even with this global setting.
    for text in figure.findobj(mpl.text.Text):
        assert not text.get_usetex() or not text.get_text() or text.get_text() in "0.20.40.60.81.0"
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'vbterrier\[plot\]'"):
        drawings()[kind]()


def artists(ax):
    return caption_text(ax), [line.get_xydata().tolist() for line in ax.lines]


@pytest.mark.parametrize(("draw", "frames", "_what"), FRAMES, ids=[what for *_, what in FRAMES])
def test_inputs_stay_as_they_were_and_other_tables_are_read(draw, frames, _what):
    polars = pytest.importorskip("polars")
    copies = [frame.copy(deep=True) for frame in frames]
    drawn = artists(draw(*frames))
    more = [frame.assign(at=1, line="x", own="y", note="z").set_index(frame.index + 7) for frame in frames]
    assert str(artists(draw(*more))) == str(drawn)
    assert str(artists(draw(*map(polars.from_pandas, frames)))) == str(drawn)
    for frame, copy in zip(frames, copies, strict=True):
        pd.testing.assert_frame_equal(frame, copy)


@pytest.mark.parametrize(
    ("ax", "what"),
    [
        *((lambda draw=draw, of=of: draw(of[0][:0]), what) for draw, of, what in FRAMES if what != "topics"),
        (lambda: plots.coverage_map(figures.RUN, figures.INTENTS[:0], tags=figures.TAGS, cutoff=1), "topics"),
        (lambda: plots.score_distributions(bootstrap_distribution(JUDGED_RUN, QRELS, 3), topics=[]), "topics"),
        (lambda: plots.curve(pd.DataFrame({"name": [], "qid": [], "measure": [], "value": []})), "scores"),
        (lambda: plots.removal_distributions({}), "draws"),
        (lambda: plots.reliability({}), "bins"),
    ],
)
def test_empty_frames_give_figures_with_a_message(ax, what):
    ax = ax()
    assert [text.get_text() for text in ax.texts] == [f"no {what}"]
    assert inside(ax.figure)
