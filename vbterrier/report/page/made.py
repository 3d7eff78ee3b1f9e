"""How a page was made: the command, the parameters, the versions, the day."""

from __future__ import annotations

import os
import platform
import sys
from datetime import datetime, timezone
from importlib import metadata
from typing import TYPE_CHECKING, Any

from vbterrier.errors import printable
from vbterrier.report.captions import topics_of

if TYPE_CHECKING:
    from vbterrier.report.page.evaluated import Found
    from vbterrier.report.page.inputs import Inputs

_ON_TOPICS = {
    "same": "all judged topics, the same for all systems",
    "all": "all judged topics; what a system lacks scores as an empty ranking",
    "common": "those that all systems have",
}
_PACKAGES = ("numpy", "pandas", "scipy", "ir_measures", "pyterrier", "matplotlib")


def now() -> datetime:
    """The moment, or that of the variable SOURCE_DATE_EPOCH, for pages that are to be the same byte by byte."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(given), timezone.utc) if given.isdecimal() else datetime.now(timezone.utc)


def versions() -> list[tuple[str, str]]:
    """Names and versions of what computed the numbers."""
    found = [("vbterrier", sys.modules["vbterrier"].__version__), ("Python", platform.python_version())]
    installed = {one.name.replace("-", "_").lower(): one.version for one in metadata.distributions() if one.name}
    return found + [(name, installed[name]) for name in _PACKAGES if name in installed]


def parameters(found: Found, given: Inputs, settings: dict[str, Any]) -> list[tuple[str, str]]:
    """What decides the numbers, a row each."""
    law = next(iter(found.laws.values()), None)
    rows = [
        ("Systems", ", ".join(f"{printable(name)} ({len(run):,} rows)" for name, run in given.runs.items())),
        ("Topics", f"n = {len(found.topics):,} ({_ON_TOPICS[settings['on_topics']]})"),
        ("Measures", ", ".join(found.measures)),
        ("First documents looked at", f"k = {found.depth}"),
    ]
    if given.qrels is not None:
        kind = "for several subtopics" if given.is_diversity else "adhoc"
        rows.append(("Judgments", f"{len(given.qrels):,}, {kind}"))
    if found.covered:
        intents = next(iter(found.covered.values())).intents
        rows.append(("Intents", f"{len(intents):,} in {topics_of([intents['qid'].nunique()])}"))
    if given.links is not None:
        rows.append(("Links", repr(given.links)))
    if law is not None:
        prior = "auto (learned)" if law.process.prior == "auto" and not law.process.compat else law.process.prior
        rows.append(("Unjudged documents", f"{found.law}: prior {prior}, seed {law.process.seed}"))
    level = f"{100 * settings['level']:g}%"
    rows.append(
        (
            "Intervals",
            f"{level}, {settings['interval']}, {settings['n_resamples']:,} resamples, seed {settings['seed']}",
        )
    )
    if found.comparison is not None:
        base = f", baseline {printable(found.comparison.baseline)}" if found.comparison.baseline is not None else ""
        by = found.comparison.pairs["correction"].iloc[0]
        rows.append(("Tests", f"{settings['test']}, {by}, at {found.comparison.alpha:g}{base}"))
    return rows
