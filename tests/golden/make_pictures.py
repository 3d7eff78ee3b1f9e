"""Draw the pictures of the README and of docs/start.md: ``python tests/golden/make_pictures.py``.

Scores are those of one topic of the demo, computed here.
"""

import math
import sys
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import vbterrier
from vbterrier.demo import demo_folder

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
INK, GREY, BLUE, ORANGE, PALE = "#1b1f24", "#6a737d", "#0b61a4", "#b4531a", "#eef2f6"
TOPIC, SYSTEM, CUTOFF = "q04", "dense", 5
STYLE = {
    "font.family": "sans-serif",
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "vbterrier",
    "savefig.facecolor": "white",
}


def scores():
    """Labels of the first documents of the topic, and its scores: a dictionary of value or (value, low, high)."""
    folder = demo_folder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = {name: vbterrier.read_run(folder / f"{name}.run") for name in ("lexical", "dense")}
        qrels, complete = (vbterrier.read_qrels(folder / name) for name in ("qrels.txt", "complete.txt"))

        def value(measure, judgments=qrels, systems=runs):
            values = vbterrier.score(systems, judgments, [measure]).values
            return float(values[(values["name"] == SYSTEM) & (values["qid"] == TOPIC)]["value"].iloc[0])

        def interval(measure):
            return tuple(value(f"{measure}{stat}@{CUTOFF}") for stat in ("", "(stat='lo')", "(stat='hi')"))

        run = runs[SYSTEM][runs[SYSTEM]["qid"] == TOPIC].head(CUTOFF)
        labels = run.merge(qrels, on=["qid", "docno"], how="left")["label"].tolist()
        condensed = runs[SYSTEM].merge(qrels[["qid", "docno"]], on=["qid", "docno"])
        plain = f"nDCG@{CUTOFF}"
        return labels, {
            "nDCG: non-relevant": (value(plain),),
            "condensed list: removed": (value(plain, systems={SYSTEM: condensed}),),
            "BNDCG: grades of the topic's own judgments": interval("BNDCG"),
            "ENDCG: grades that all runs suggest": interval("ENDCG"),
            "with complete judgments": (value(plain, judgments=complete),),
        }


def unjudged():
    """The documents of one ranking, and what each treatment of the unjudged ones makes of its score."""
    labels, result = scores()
    figure, axes = plt.subplots(figsize=(7.2, 3.1))
    axes.set(xlim=(0, 7.2), ylim=(-0.2, 2.9))
    axes.axis("off")
    axes.text(
        0.1, 2.68, f"First {CUTOFF} documents of topic {TOPIC} of the demo, system {SYSTEM}", weight="bold", color=INK
    )
    for place, label in enumerate(labels):
        judged = not math.isnan(label)
        box = FancyBboxPatch(
            (0.1 + 1.05 * place, 2.08),
            0.9,
            0.36,
            boxstyle="round,pad=0.02",
            facecolor=PALE if judged else "white",
            edgecolor=GREY,
            linestyle="-" if judged else "--",
        )
        axes.add_patch(box)
        text = f"grade {label:.0f}" if judged else "unjudged"
        axes.text(0.55 + 1.05 * place, 2.26, text, ha="center", va="center", color=INK if judged else ORANGE)
    left, width = 4.0, 2.6

    def at(score):
        return left + width * score

    for tick in (0, 0.5, 1):
        axes.plot([at(tick)] * 2, [0.28, 1.82], color="#d8dee4", lw=0.8, zorder=0)
        axes.text(at(tick), 0.1, f"{tick:g}", ha="center", va="center", color=GREY)
    for row, (text, values) in enumerate(result.items()):
        y = 1.7 - 0.33 * row
        colour = BLUE if len(values) > 1 else INK
        axes.text(0.1, y, text, va="center", color=colour)
        if len(values) > 1:
            axes.plot([at(values[1]), at(values[2])], [y, y], color=colour, lw=2, solid_capstyle="round")
        shape = "D" if text.startswith("with") else "o"
        axes.plot(at(values[0]), y, shape, color=colour, ms=5)
        axes.text(7.1, y, f"{values[0]:.2f}", va="center", ha="right", color=colour)
    caption = (
        f"nDCG@{CUTOFF}; lines: 90% intervals over the grades of the unjudged documents; ENDCG: 1,000 draws, seed 0"
    )
    axes.text(0.1, -0.14, caption, va="center", color=GREY, size=7.5)
    return figure


BOXES = {
    "Q": (0.1, 1.9, "Q queries", "qid, query"),
    "I": (2.0, 3.2, "I intents", "with probabilities"),
    "R": (2.0, 1.9, "R rankings", "of any retriever"),
    "L": (2.0, 1.1, "L labels", "incomplete judgments"),
    "T": (3.9, 2.55, "T tags", "entities of documents"),
    "K": (3.9, 0.6, "K links", "entities of the pool"),
    "ES": (5.8, 3.2, "ES, VB", "ambiguous queries"),
    "B": (5.8, 1.5, "nDCG, B, E", "unjudged documents"),
    "RelCov": (5.8, 0.6, "RelCov, OER", "entity systems"),
    "C": (0.1, -0.2, "comparisons, report, gate, track", "intervals over topics and unjudged documents"),
}
# The last of a pair is entered from the left, or from above where the first one stands over it.
ARROWS = (
    *(("Q", "I"), ("Q", "R"), ("R", "T"), ("I", "ES"), ("T", "ES"), ("R", "B"), ("L", "B"), ("L", "K"), ("T", "K")),
    ("K", "RelCov"),
)


def flow():
    """The frames, and which measures read them."""
    figure, axes = plt.subplots(figsize=(7.6, 3.9))
    axes.set(xlim=(0, 7.6), ylim=(-0.3, 3.8))
    axes.axis("off")
    places = {}
    for name, (x, y, title, more) in BOXES.items():
        width = 7.3 if name == "C" else 1.6
        is_measure = name in {"ES", "B", "RelCov"}
        box = FancyBboxPatch(
            (x, y), width, 0.5, boxstyle="round,pad=0.02", facecolor="white" if is_measure else PALE, edgecolor=BLUE
        )
        axes.add_patch(box)
        axes.text(x + width / 2, y + 0.33, title, ha="center", va="center", weight="bold", color=INK)
        axes.text(x + width / 2, y + 0.13, more, ha="center", va="center", color=GREY, size=7.5)
        places[name] = (x, y, width)
    for start, stop in ARROWS:
        (x0, y0, w0), (x1, y1, _) = places[start], places[stop]
        if x1 > x0 + w0 - 0.1:
            ends = (x0 + w0 + 0.03, y0 + 0.25), (x1 - 0.03, y1 + 0.25)
        else:
            ends = (x0 + w0 / 2, y0 - 0.03), (x0 + w0 / 2, y1 + 0.53)
        axes.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=9, color=GREY, lw=0.9))
    return figure


def main():
    """Draw all pictures."""
    PICTURES.mkdir(exist_ok=True)
    with plt.rc_context(STYLE):
        for make in (unjudged, flow):
            figure = make()
            figure.savefig(
                PICTURES / f"{make.__name__}.svg", bbox_inches="tight", pad_inches=0.08, metadata={"Date": None}
            )
            plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
