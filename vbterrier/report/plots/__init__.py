"""Figures for papers and notebooks (extra ``plot``). Each function takes frames and returns matplotlib Axes.

Figures are not shown or written, and global settings of matplotlib do not change. Vector files keep text as text if
figures are saved under ``SAVING``::

    with matplotlib.rc_context(SAVING):
        ax.figure.savefig("forest.pdf")

All figures take ``ax``, the axes to draw on (by default those of a new figure), and ``width``, that of a new figure in
inches: ``COLUMN`` (3.3) or ``FULL`` (7). Heights follow from the number of rows. The figure of given axes needs
``layout="constrained"``, which makes space for names and captions::

    figure, axes = plt.subplots(1, 2, figsize=(FULL, 2.5), layout="constrained")
    forest(intervals, measure="VB@10", ax=axes[0])
    forest(intervals, measure="ES@10", ax=axes[1])

Without matplotlib, figures raise ImportError. Frames without the named columns, with duplicated rows, values out of
range, or intervals with one end or in the wrong order raise InputError, which names the row. Measures, methods, systems
and topics that a frame does not have, and more series than colours, marks or dashes, raise ParameterError.

The font is that of ``matplotlib.rcParams``, so that figures can match a paper.
"""

from vbterrier.report.plots.calibration import interval_coverage, reliability
from vbterrier.report.plots.curves import curve, sensitivity
from vbterrier.report.plots.differences import beats_matrix, differences
from vbterrier.report.plots.entities import coverage_discrimination
from vbterrier.report.plots.entities_gain import coverage_by_k, gain_by_coverage, oer_distributions
from vbterrier.report.plots.forest import estimate_against_truth, forest
from vbterrier.report.plots.intents import coverage_map
from vbterrier.report.plots.queries import not_worse_by_size, power_curve, score_by_size
from vbterrier.report.plots.ranks import rank_uncertainty, variance_shares
from vbterrier.report.plots.style import COLUMN, FULL, SAVING
from vbterrier.report.plots.unjudged import removal_distributions, score_distributions

__all__ = [
    "COLUMN",
    "FULL",
    "SAVING",
    "beats_matrix",
    "coverage_by_k",
    "coverage_discrimination",
    "coverage_map",
    "curve",
    "differences",
    "estimate_against_truth",
    "forest",
    "gain_by_coverage",
    "interval_coverage",
    "not_worse_by_size",
    "oer_distributions",
    "power_curve",
    "rank_uncertainty",
    "reliability",
    "removal_distributions",
    "score_by_size",
    "score_distributions",
    "sensitivity",
    "variance_shares",
]
