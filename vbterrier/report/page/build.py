"""The HTML report: template, provenance and assembly."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import shlex
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier._version import __version__
from vbterrier.errors import FileError, ParameterError, printable
from vbterrier.evaluate.comparison import N_RESAMPLES
from vbterrier.frames.files.writing import replacing
from vbterrier.report.captions import topics_of
from vbterrier.report.page import figures, tables
from vbterrier.report.page.caveats import Caveat, caveats
from vbterrier.report.page.data import page_data, script
from vbterrier.report.page.evaluated import evaluated, inputs_of
from vbterrier.report.page.verdict import sentences, test_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    import ir_measures

    from vbterrier.report.page.evaluated import Inputs, ReportNumbers


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
    found = [("vbterrier", __version__), ("Python", platform.python_version())]
    installed = {one.name.replace("-", "_").lower(): one.version for one in metadata.distributions() if one.name}
    return found + [(name, installed[name]) for name in _PACKAGES if name in installed]


def parameters(found: ReportNumbers, given: Inputs, settings: dict[str, Any]) -> list[tuple[str, str]]:
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


@dataclass(frozen=True)
class Page:
    """What :func:`write_report` wrote.

    Parameters
    ----------
    path
        The file.
    verdict
        What can be told, a sentence each.
    caveats
        What stands beside it: about, text, and whether it may turn the verdict around.
    n_bytes
        The size of the file.
    """

    path: Path
    verdict: tuple[str, ...]
    caveats: tuple[Caveat, ...]
    n_bytes: int


def write_report(
    runs: Any,
    path: str | os.PathLike[str],
    qrels: Any = None,
    measures: str | ir_measures.Measure | Sequence[str | ir_measures.Measure] | None = None,
    *,
    intents: Any = None,
    tags: Any = None,
    links: Any = None,
    topics: Any = None,
    baseline: str | None = None,
    test: str = "randomisation",
    correction: str = "auto",
    interval: str = "percentile",
    level: float = 0.95,
    on_topics: str = "same",
    duplicates: str = "error",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    title: str = "",
    command: Sequence[str] | None = None,
    plots: bool | None = None,
    progress: bool = False,
) -> Page:
    """Evaluate and compare runs, and write all of it to one HTML file that needs nothing else, no network above all.

    The page says first what can be told and what stands against it; then come means with intervals and letters,
    figures, all pairs, every topic to be searched, sorted and opened (what its intents are and which ranks cover them,
    its unjudged documents, what it could score), and how all of it was made.

    Parameters
    ----------
    runs
        A mapping of name to run (a frame or a path), or paths, which are named after their files. With ``links``, runs
        of entities.
    path
        The file to write.
    qrels
        A frame or the path of TREC qrels, adhoc or diversity.
    measures
        Measure objects or their text; the first that systems can be compared by is the one of the verdict. By default
        BNDCG@10, nDCG@10 and Unjudged@10 with adhoc qrels, ES@10 and VB@10 with intents or diversity qrels, RelCov@20,
        NonRelCov@20 and DiscRatio@20 with links.
    intents, tags
        Candidate intents (qid, entity_id, prob) and tags of documents (docno, entity_id[, weight, qid]): frames,
        registered names or paths.
    links
        What entity runs are measured on: a linked pool, its K frame, or the path of one; with ``qrels``, relabelled.
    topics
        The text of queries: a frame (qid, query) or a path.
    baseline
        The run that all others are compared with; ``None`` for all pairs.
    test, correction, interval, level, n_resamples, seed
        As :func:`vbterrier.compare` takes them; means have intervals of the same kind.
    on_topics, duplicates
        As :func:`vbterrier.score` takes them (``topics`` there).
    title
        What the page is called.
    command
        The command line that the page names as its origin.
    plots
        Whether figures are drawn; ``None`` where matplotlib is installed (``pip install 'vbterrier[plot]'``).
    progress
        Show a progress bar over runs.

    Returns
    -------
    Page
        The path, the verdict, what stands against it, and the size in bytes.

    Raises
    ------
    InputError
        Runs or frames that cannot be evaluated.
    ParameterError
        Nothing to evaluate against; options without legal value.
    FileError
        A path that cannot be written.
    ImportError
        ``plots=True`` without matplotlib.

    Notes
    -----
    20 runs of 250 topics take less than 3 MB. Ids are escaped wherever they stand, the page's script never makes
    markup of them, and a content security policy forbids all other code and every request. The moment in the page is
    that of the variable SOURCE_DATE_EPOCH where it is set.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> qrels = pd.DataFrame({"qid": [*"12345678"], "docno": "a", "label": 1})
    >>> good = pd.DataFrame({"qid": [*"12345678"] * 2, "docno": ["a"] * 8 + ["b"] * 8, "score": [2.0] * 8 + [1.0] * 8})
    >>> runs = {"new": good, "old": good.assign(score=-good["score"])}
    >>> path = pathlib.Path(tempfile.mkdtemp(), "report.html")
    >>> page = write_report(runs, path, qrels, "nDCG@10", plots=False)
    >>> print(page.verdict[0].partition(" (")[0])
    By nDCG@10, new scores higher than old: 1.000 against 0.631, a difference of 0.369
    """
    if plots and not figures.can_draw():
        raise ImportError("plots need matplotlib: pip install 'vbterrier[plot]'")
    where = Path(path)
    if not where.parent.is_dir():
        raise FileError(where, f"cannot be written: there is no folder {printable(where.parent)}")
    if where.is_dir():
        raise ParameterError(f"{printable(where)} is a folder; wanted the name of a file, as report.html")
    given = inputs_of(runs, qrels, intents=intents, tags=tags, links=links, topics=topics, duplicates=duplicates)
    asked = given.measures(measures)
    settings: dict[str, Any] = {"test": test, "correction": correction, "on_topics": on_topics, "interval": interval}
    settings |= {"level": level, "n_resamples": n_resamples, "seed": seed}
    found = evaluated(given, asked, baseline=baseline, progress=progress, **settings)
    shared_caption, against = tuple(sentences(found)), tuple(caveats(found))
    text = _filled(
        found,
        title=printable(title) or _title(found),
        verdict=shared_caption,
        caveats=against,
        test=None if found.comparison is None else test_sentence(found.comparison),
        figures=figures.figures(found) if (figures.can_draw() if plots is None else plots) else [],
        data=script(page_data(found, given.queries)),
        parameters=parameters(found, given, settings),
        command=None if command is None else printable(shlex.join(command)),
    )
    written = text.encode()
    with replacing(where) as file:
        file.write(written)
    return Page(where, shared_caption, against, len(written))


def _title(found: ReportNumbers) -> str:
    names = [printable(name) for name in found.names]
    if len(names) == 1:
        return f"Evaluation of {names[0]}"
    return f"Comparison of {' and '.join(names)}" if len(names) == 2 else f"Comparison of {len(names)} systems"  # noqa: PLR2004


def _filled(found: ReportNumbers, **parts: Any) -> str:
    """The template with its parts, and a policy that allows the page's own style and script alone."""
    from jinja2 import Environment
    from markupsafe import Markup

    assets = resources.files("vbterrier.report.page") / "assets"
    template, style, code = (
        (assets / name).read_text(encoding="utf-8").strip() for name in ("page.html", "page.css", "page.js")
    )
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(code)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    moment = now()
    # Style and script are the package's own, data was escaped as JSON: nothing of it is markup.
    parts |= {"style": Markup(style), "code": Markup(code), "data": Markup(parts["data"])}  # noqa: S704
    return environment.from_string(template).render(
        **parts,
        policy=policy,
        means=tables.means(found),
        pairs=tables.pairs(found),
        notes=tables.notes,
        found=found,
        versions=versions(),
        date=f"{moment:%Y-%m-%d %H:%M} UTC",
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
