"""Reports of the commands ``doctor`` and ``demo`` as text."""

from __future__ import annotations

import json
import shlex
import warnings
from typing import TYPE_CHECKING

import pandas as pd

from vbterrier.demo import copy_demo, demo_folder
from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate.scores import score
from vbterrier.frames.files.reading import read_qrels, read_run
from vbterrier.report.tables import escaped, footing, rendered, summary

if TYPE_CHECKING:
    from pathlib import Path

    from vbterrier.evaluate.doctor import Diagnosis
    from vbterrier.evaluate.scores import Scores


NAIVE, CONDENSED, BOOTSTRAPPED, UNJUDGED = "nDCG@10", "nDCG(judged_only=True)@10", "BNDCG@10", "Unjudged@10"
SYSTEMS = ("lexical", "dense")


def doctor_report(diagnosis: Diagnosis, style: str) -> str:
    """Report all findings; csv has the table of runs only, json an object of all parts."""
    support = pd.DataFrame(
        [(item.measures, "yes" if item.possible else "no", item.reason) for item in diagnosis.support],
        columns=["measures", "possible", "why"],
    )
    if style == "csv":
        return rendered(diagnosis.runs, style)
    if style == "json":
        parts = {"qrels": diagnosis.qrels, "runs": diagnosis.runs, "support": support}
        found = {name: json.loads(rendered(frame, style)) for name, frame in parts.items()}
        return json.dumps({**found, "notes": list(diagnosis.notes)}, indent=2, ensure_ascii=False)
    sheets = [("Judgments", diagnosis.qrels), ("Runs", diagnosis.runs), ("Measures", support)]
    pages = [rendered(frame, style, title=title, digits=3) for title, frame in sheets]
    notes = [f"- {escaped(note, style)}" for note in diagnosis.notes]
    return "\n\n".join([*pages, "\n".join(["Notes", *notes])] if notes else pages)


def demo_report(save: Path | None = None, *, seed: int = 0) -> str:
    """Report the comparison of the demo as text, and write its files to ``save`` if given."""
    folder = demo_folder()
    runs = {name: read_run(folder / f"{name}.run") for name in SYSTEMS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        scores = score(runs, read_qrels(folder / "qrels.txt"), [UNJUDGED, NAIVE, CONDENSED, BOOTSTRAPPED], seed=seed)
        truth = score(runs, read_qrels(folder / "complete.txt"), [NAIVE], seed=seed)
    n_topics = int(scores.intervals["n_qids"].iloc[0])
    parts = [
        f"Two systems on {n_topics} topics, judged from a pool to which `dense`, the newer one, did not contribute.",
        rendered(summary(scores, "table"), "table"),
        footing(scores),
        "\n".join(_verdicts(scores, truth)),
    ]
    if save is not None:
        written = copy_demo(save)
        parts.append(f"{len(written)} files in {save}. Next:\n{_next(save)}")
    else:
        parts.append("`vbterrier demo --save demo` writes the files, for the commands of the README.")
    return "\n\n".join(parts)


def _verdicts(scores: Scores, truth: Scores) -> list[str]:
    """Order of the systems by each measure, and with complete judgments."""
    means, complete = scores.means(), truth.means()[NAIVE]
    lines = [
        (NAIVE, "unjudged is non-relevant", means[NAIVE]),
        (CONDENSED, "unjudged is dropped", means[CONDENSED]),
        (BOOTSTRAPPED, "unjudged is uncertain", means[BOOTSTRAPPED]),
        (NAIVE, "complete judgments", complete),
    ]
    said = ["Means over topics, and in brackets their differences from the means with complete judgments:"]
    for measure, meaning, values in lines:
        order = " > ".join(f"{name} {value:.3f}" for name, value in values.sort_values(ascending=False).items())
        errors = ", ".join(f"{name} {value:+.3f}" for name, value in (values - complete).items())
        said.append(f"  {meaning:<26} {measure:<26} {order}" + ("" if values is complete else f"   ({errors})"))
    said.append(
        "Unjudged documents are also missing from the ideal ranking, which raises nDCG of every system, of condensed "
        "lists too. BNDCG draws the grades of all unjudged documents, and the ideal ranking with them."
    )
    return said


def _next(save: Path) -> str:
    runs, qrels = shlex.join(str(save / f"{name}.run") for name in SYSTEMS), shlex.quote(str(save / "qrels.txt"))
    return "\n".join(
        [
            f"  vbterrier doctor {runs} --qrels {qrels}",
            f"  vbterrier score {runs} --qrels {qrels} -m BNDCG@10 -m 'nDCG(judged_only=True)@10'",
        ]
    )
