"""The doctor's findings as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd

from vbterrier.report.tables import rendered

if TYPE_CHECKING:
    from vbterrier.evaluate.doctor import Diagnosis


def doctor_report(diagnosis: Diagnosis, style: str) -> str:
    """All findings in one of the formats; csv has the table of runs alone, json an object of all parts."""
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
    notes = [f"- {note}" for note in diagnosis.notes]
    return "\n\n".join([*pages, "\n".join(["Notes", *notes])] if notes else pages)
