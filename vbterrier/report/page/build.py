"""The HTML report: template, provenance and assembly."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import shlex
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from vbterrier._version import __version__
from vbterrier.errors import FileError, ParameterError, agreeing, path_parameter, printable
from vbterrier.evaluate.comparison import corrected_over
from vbterrier.evaluate.verdicts import count_range_text
from vbterrier.frames.answer import MARKS, Answer, with_warnings
from vbterrier.frames.files.source import is_folder
from vbterrier.frames.files.writing import replacing, require_no_input, require_page_name
from vbterrier.measures.unjudged import require_use
from vbterrier.remedies import call_in_use
from vbterrier.report.captions import engine_versions
from vbterrier.report.page import content as page_content
from vbterrier.report.page.evaluated import ComparisonOptions, ReportContent, evaluate_inputs, read_inputs
from vbterrier.report.page.verdict import agreement, caveats, sentences, test_sentence
from vbterrier.settings import Data, Execution, Inference, with_defaults
from vbterrier.stats.topic_intervals import N_RESAMPLES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import ir_measures

    from vbterrier.frames.answer import Caveat
    from vbterrier.frames.notebook import Panel
    from vbterrier.frames.pictures import IntervalPicture
    from vbterrier.remedies import Call
    from vbterrier.report.page.evaluated import Inputs, ReportNumbers


_ON_TOPICS = {
    "same": "all judged topics, the same for all systems",
    "all": "all judged topics; missing topics score as empty rankings",
    "common": "topics that all systems have",
}
_SCRIPTS = ("tables.js", "core.js", "topic.js", "pair.js", "topics.js")
# Arguments that a plan of judgments has, too.
_NEXT_STEP_ARGUMENTS = ("runs", "qrels", "labels", "on_topics", "duplicates", "system")
_PACKAGES = ("numpy", "pandas", "scipy", "ir_measures", "pyterrier", "matplotlib")


@dataclass(frozen=True)
class Page:
    """Result of :func:`write_report`.

    Parameters
    ----------
    path, n_bytes
        The file and its size.
    verdict
        Sentences about significant differences.
    answer
        The :class:`~vbterrier.frames.answer.Answer`: the first of these sentences, with caveats and the next step.
    """

    path: Path
    verdict: tuple[str, ...]
    answer: Answer
    n_bytes: int

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """Caveats of the verdict: about, text, and serious, True if a caveat may reverse the verdict."""
        return self.answer.caveats


def versions() -> list[tuple[str, str]]:
    """Names and versions of the packages that computed the numbers."""
    programs = [("vbterrier", __version__), ("Python", platform.python_version())]
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            programs.append((name, metadata.version(name)))
    return programs


def parameters(numbers: ReportNumbers, inputs: Inputs, options: ComparisonOptions) -> list[tuple[str, str]]:
    """Names and values of all settings that affect the numbers."""
    distribution = next(iter(numbers.distributions.values()), None)
    sizes = {name: f"{n:,} rows" for name, n in inputs.n_rows.items()}
    rows = [
        ("Systems", ", ".join(f"{printable(name)} ({sizes.get(name, 'first ranks')})" for name in inputs.runs)),
        ("Topics", f"n = {len(numbers.topics):,} ({_ON_TOPICS[options.on_topics]})"),
        ("Measures", ", ".join(numbers.measures)),
        ("Cutoff", f"rank {numbers.cutoff}"),
    ]
    if engines := engine_versions(numbers.measures):
        rows.append(("Measures of other packages", engines))
    if inputs.qrels is not None:
        kind = "diversity" if inputs.is_diversity else "adhoc"
        rows.append(("Judgments", f"{len(inputs.qrels):,}, {kind}"))
    if numbers.covered:
        intents = next(iter(numbers.covered.values())).intents
        rows.append(("Intents", f"{len(intents):,} in {count_range_text(intents['qid'].nunique(), 'topic')}"))
    if inputs.links is not None:
        rows.append(("Links", repr(inputs.links)))
    if distribution is not None:
        model = f"{numbers.bootstrapped}: {distribution.source}, seed {distribution.seed}"
        rows.append(("Unjudged documents", model))
    how = options.tests
    resamples = f"{how.n_resamples:,} resamples, seed {how.seed}"
    rows.append(("Intervals", f"{100 * how.level:g}%, {how.interval}, {resamples}"))
    if numbers.comparison is not None:
        base = f", baseline {printable(numbers.comparison.baseline)}" if numbers.comparison.baseline is not None else ""
        by = corrected_over(numbers.comparison.pairs)
        rows.append(("Tests", f"{how.test}, {by}, at {numbers.comparison.alpha:g}{base}"))
    return rows


@with_defaults
def write_report(
    runs: Any,
    qrels: Any = None,
    measures: str | ir_measures.Measure | Sequence[str | ir_measures.Measure] | None = None,
    *,
    path: str | os.PathLike[str],
    content: ReportContent = ReportContent(),
    baseline: str | None = None,
    data: Data = Data(
        labels=None,
        pool_cutoff=None,
        subtopics=None,
        topics=None,
        documents=None,
        on_topics="same",
        duplicates="error",
        system=None,
    ),
    inference: Inference = Inference(
        interval="unseen",
        level=0.95,
        n_resamples=N_RESAMPLES,
        seed=0,
        test="moderated",
        correction="auto",
        family="measure",
    ),
    execution: Execution = Execution(memory=None, progress=False),
) -> Page:
    """Evaluate and compare runs, and write all results to one self-contained HTML file.

    The page begins with the means of all systems by all measures, the verdict and its caveats. All pairs and a sortable
    table of topics follow, with the rankings, intents and possible scores of each topic; then the parameters, versions
    and warnings of the evaluation.

    Parameters
    ----------
    runs
        A mapping of name to run (a frame, a path or, with ``data.topics``, a pipeline), or a list of paths and
        pipelines, which are named after their files and their text. With ``content.links``, entity runs.
    qrels
        A frame or the path of TREC qrels, adhoc or diversity.
    measures
        Measure objects or their text; the verdict begins with the first by which systems can be compared. By default
        BNDCG@10, nDCG@10 and Unjudged@10 with adhoc qrels (nDCG@10, RR@10 and Unjudged@10 if only relevant
        documents are judged), alpha_nDCG@10 and ERR_IA@10 with diversity qrels if pyndeval is installed
        (WeightedAlphaNDCG@10 and WeightedERRIA@10 if probabilities of subtopics differ), ES@10 and VB@10 with intents
        or diversity qrels, RelCov@20, NonRelCov@20 and DiscRatio@20 with links.
    path
        The file to write, ``.html``. It must not be an input; an existing one is replaced.
    content
        A :class:`vbterrier.report.ReportContent`: ``intents``, ``tags``, ``links``, ``names`` of systems, ``title``,
        ``command``.
    baseline
        The run that all other runs are compared with; ``None`` for all pairs.
    data
        A :class:`vbterrier.Data`: ``labels``, ``pool_cutoff``, ``subtopics``, ``topics`` and ``documents``, whose texts
        the page shows, ``on_topics`` (``"same"``), ``duplicates`` (``"error"``), ``system``.
    inference
        An :class:`vbterrier.Inference`: ``interval`` (``"unseen"``), ``level`` (0.95), ``n_resamples`` (2,000),
        ``seed`` (0), ``test`` (``"moderated"``), ``correction`` (``"auto"``), ``family`` (``"measure"``).
    execution
        An :class:`vbterrier.Execution`: ``memory``, which needs measures with a cutoff of at most 100, ``progress``
        (False).

    Returns
    -------
    Page
        The path, the verdict, its caveats, and the size in bytes.

    Raises
    ------
    InputError
        Runs or frames that cannot be evaluated.
    ParameterError
        Nothing to evaluate against; an illegal option; a path that is an input or does not end in ``.html``.
    FileError
        A file that cannot be written.

    Notes
    -----
    20 runs of 250 topics take less than 3 MB. All ids are escaped, the script of the page inserts them as text only,
    and a content security policy forbids other code and all requests. The environment variable SOURCE_DATE_EPOCH sets
    the time on the page.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> qrels = pd.DataFrame({"qid": [*"12345678"], "docno": "a", "label": 1})
    >>> good = pd.DataFrame({"qid": [*"12345678"] * 2, "docno": ["a"] * 8 + ["b"] * 8, "score": [2.0] * 8 + [1.0] * 8})
    >>> runs = {"new": good, "old": good.assign(score=-good["score"])}
    >>> page = write_report(runs, qrels, "nDCG@10", path=pathlib.Path(tempfile.mkdtemp(), "report.html"))
    >>> print(page.verdict[0].partition(" (")[0])
    By nDCG@10, new and old do not differ significantly: 1.000 against 0.631, a difference of 0.369
    """
    where = path_parameter("path", path)
    if not is_folder(where.parent):
        raise FileError(where, f"cannot be written: there is no folder {printable(where.parent)}")
    if is_folder(where):
        raise ParameterError(f"{printable(where)} is a folder; wanted the name of a file, as report.html")
    require_page_name(where)
    require_no_input(where, runs, qrels, content.intents, content.tags, content.links)
    require_no_input(where, data.labels, data.subtopics, data.topics, data.documents)
    if isinstance(baseline, (str, int)):
        baseline = str((content.names or {}).get(baseline, baseline))
    options = ComparisonOptions(baseline, data.on_topics, inference)
    inputs, reported = read_inputs(runs, qrels, measures, content=content, data=data, execution=execution)
    require_use(reported, pool_cutoff=data.pool_cutoff)
    numbers = evaluate_inputs(inputs, reported, options, progress=execution.progress)
    verdict, call = tuple(sentences(numbers)), call_in_use()
    answer = Answer(
        verdict[0],
        " ".join(agreement(numbers)),
        _next(numbers, call),
        with_warnings(caveats(numbers), numbers.messages),
        # The folder of the page says nothing about it.
        made_by="" if call is None else call.again(**{"path" if call.options is None else "output": where.name}),
    )
    pairs, names = page_content.pairs(numbers), [printable(name) for name in numbers.names]
    systems = " and ".join(names) if len(names) == 2 else f"{len(names)} systems"  # noqa: PLR2004 - two fit a title
    default = f"Comparison of {systems}" if len(names) > 1 else f"Evaluation of {names[0]}"
    text = _render_template(
        "page.html",
        _SCRIPTS,
        title=printable(content.title) or default,
        verdict=[answer.verdict, *filter(None, [answer.reason])],
        answer=answer,
        details=verdict[1:],
        caveats=by_severity(answer.caveats),
        test=None if numbers.comparison is None else test_sentence(numbers.comparison),
        matrix=page_content.matrix(numbers),
        pairs=pairs,
        # Safe: escaped JSON.
        data=Markup(page_content.script(page_content.page_data(numbers, inputs, pairs))),  # noqa: S704
        notes=page_content.notes,
        found=numbers,
        parameters=parameters(numbers, inputs, options),
        command=answer.made_by if content.command is None else printable(shlex.join(content.command)),
        versions=versions(),
    )
    written = text.encode()
    with replacing(where) as file:
        file.write(written)
    return Page(where, verdict, answer, len(written))


def _next(numbers: ReportNumbers, call: Call | None) -> str:
    """The documents to judge next, if some are unjudged; else the comparison in a file."""
    if call is None:
        return ""
    if not any(top.n_unjudged.any() for top in numbers.tops.values()):
        return ""
    if numbers.scores.model is not None:
        return call.next("judge", "judge_next", _NEXT_STEP_ARGUMENTS, budget=20)
    # Without a model, the measure of the page that has a distribution over the grades of unjudged documents.
    if numbers.bootstrapped:
        return call.next("judge", "judge_next", _NEXT_STEP_ARGUMENTS, budget=20, measure=numbers.bootstrapped)
    return ""


def tables_page(title: str, answer: Answer, picture: IntervalPicture | None, panels: Sequence[Panel]) -> str:
    """Return a page of the answer, the picture and the tables of a result, with the parts of the report."""
    # Safe: the tables and the picture are escaped.
    sections = [(panel, Markup(panel.html(joined=True))) for panel in panels]  # noqa: S704
    drawn = None if picture is None else Markup(picture.svg())  # noqa: S704
    parts = {"title": title, "answer": answer, "mark": MARKS.get(answer.decision, ""), "picture": drawn}
    parts |= {"caveats": by_severity(answer.caveats), "sections": sections}
    return _render_template("result.html", ("tables.js", "result.js"), **parts, agreeing=agreeing, versions=versions())


def by_severity(caveats: Sequence[Caveat]) -> dict[str, list[Caveat]]:
    """Serious caveats, and the others."""
    return {kind: [one for one in caveats if one.serious == (kind == "serious")] for kind in ("serious", "other")}


def _render_template(template: str, scripts: Sequence[str], **parts: Any) -> str:
    """Fill a template; the content security policy allows only the style and the scripts of the package."""
    from jinja2 import Environment, FunctionLoader

    def asset(name: str) -> str:
        return (resources.files("vbterrier.report.page") / "assets" / name).read_text(encoding="utf-8")

    style, code = asset("page.css"), "\n".join(map(asset, scripts))
    allowed = ["default-src 'none'", f"style-src '{_hash(style)}'", "base-uri 'none'", "form-action 'none'"]
    if scripts:
        allowed.append(f"script-src '{_hash(code)}'")
    environment = Environment(loader=FunctionLoader(asset), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    # Safe: policy, style and scripts are texts of the package.
    parts |= {"policy": Markup("; ".join(allowed)), "style": Markup(style), "code": Markup(code)}  # noqa: S704
    # SOURCE_DATE_EPOCH makes pages reproducible.
    epoch, now = os.environ.get("SOURCE_DATE_EPOCH", ""), datetime.now(timezone.utc)
    moment = datetime.fromtimestamp(int(epoch), timezone.utc) if epoch.isdecimal() else now
    return environment.get_template(template).render(**parts, date=f"{moment:%Y-%m-%d %H:%M} UTC")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
