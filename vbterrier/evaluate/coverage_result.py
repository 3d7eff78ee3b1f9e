"""The three-level coverage report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import ParameterError, examples, nearest, printable
from vbterrier.frames.notebook import Panel, Shown, counted, facts, of_means

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vbterrier.frames.notebook import Figures


_DEFINED = (
    "Means are over the topics for which a measure is defined (n_qids); DiscRatio is over the topics for which both "
    "of its coverages are defined."
)
_NOTHING = "No document systems were given."


@dataclass(frozen=True, eq=False, repr=False)
class CoverageReport(Shown):
    """Result of :func:`coverage_report`.

    Parameters
    ----------
    documents
        Level 1, a C frame: open-world effectiveness of the document systems; empty without any.
    entities
        Level 2, a C frame of the entity runs: coverage, evidence and bait. A mean leaves out topics for which its
        measure is undefined; ``n_qids`` counts the remaining topics. DiscRatio is a ratio of means.
    discrimination
        One row per entity run, over the topics for which both coverages are defined: name, RelCov, NonRelCov,
        DiscRatio (their ratio), low, high, n_qids, level, method. The means in ``entities`` are over the topics of each
        measure, so that their ratio may differ.
    strata
        Level 3: the document systems, and their gains over the baseline, by the coverage of the reference run: name and
        the columns of :func:`vbterrier.stats.coverage_strata`. The measure of a gain is ``"<measure> - <baseline>"``.
    pool
        One row: n_qids, n_documents, n_relevant, n_unjudged, n_without_entities, share_unjudged and
        share_without_entities (of the documents), n_without_relevant and n_without_other (topics), n_entities, n_links,
        and the means of the measures in ``offers``.
    missing
        name, n_qids, n_missing: the number of topics of the pool without any entity of a run; they count as empty
        lists.
    topics
        One row per topic of the pool: qid, n_documents, n_relevant, n_unjudged, n_without_entities, ObsCov and
        OracleCov@cutoff.
    values, document_values
        V frames of the entity runs (defined values only) and of the document systems.
    offers
        Names of the measures that do not depend on the run: ObsCov and OracleCov@cutoff.
    reference, baseline
        The entity run that defines the strata; the document system that gains refer to, or ``None``.
    settings
        cutoff, rel, alpha, shrinkage, level.
    """

    documents: pd.DataFrame
    entities: pd.DataFrame
    discrimination: pd.DataFrame
    strata: pd.DataFrame
    pool: pd.DataFrame
    missing: pd.DataFrame
    topics: pd.DataFrame
    values: pd.DataFrame
    document_values: pd.DataFrame
    offers: tuple[str, ...]
    reference: str
    baseline: str | None
    settings: dict[str, float]

    def _line(self) -> str:
        runs, documents = self.entities["name"].nunique(), self.documents["name"].nunique()
        with_documents = f", {counted(documents, 'document system')}" if documents else ""
        topics = counted(len(self.topics), "topic")
        return f"{counted(runs, 'entity run')}{with_documents}, cutoff {self.settings['cutoff']}; {topics}"

    def _panels(self) -> Iterator[Panel]:
        yield from of_means(self.entities, title="Entity runs")
        yield Panel("On the topics with both coverages", self.discrimination, value="DiscRatio")
        if len(self.documents):
            yield from of_means(self.documents, title="Document systems")
            yield Panel(f"By the coverage of {self.reference}", self.strata)
        yield Panel("The pool", facts({str(name): self.pool[name].iloc[0] for name in self.pool.columns}))
        missing = self.missing[self.missing["n_missing"] > 0]
        if len(missing):
            yield Panel("Topics without any entity of a run", missing)

    def _figures(self) -> Figures:
        cutoff = self.settings["cutoff"]
        return {
            "coverage_discrimination": lambda: {
                "values": self.values,
                "x": f"NonRelCov@{cutoff}",
                "y": f"RelCov@{cutoff}",
            },
            "forest": lambda: {"intervals": self.documents if len(self.documents) else self.entities},
        }

    def text(self) -> str:
        """The report as plain text: the pool and the three levels."""
        return _text(self)

    def gains(
        self, name: str, measure: str, *, baseline: str | None = None, entities: str | None = None
    ) -> pd.DataFrame:
        """Gains of a document system over the baseline by topic, with coverage, for regressions.

        Parameters
        ----------
        name
            The document system.
        measure
            One of the measures of document systems, as text.
        baseline
            Another document system; that of the report by default.
        entities
            The entity run with the coverage; the reference run by default.

        Returns
        -------
        pandas.DataFrame
            One row per topic of the document systems: qid, gain, baseline (its score), n_relevant, ObsCov,
            OracleCov@cutoff and all measures of the entity run; NaN if undefined.

        Raises
        ------
        ParameterError
            An unknown system, measure or entity run; no baseline.
        """
        base = baseline or self.baseline
        if base is None:
            raise ParameterError("gains need a baseline: name one of the document systems")
        rows = self.document_values[self.document_values["measure"] == measure]
        scores = rows.pivot(index="qid", columns="name", values="value")
        require_known("measure", measure, self.document_values["measure"].unique())
        for system in (name, base):
            require_known("document system", system, scores.columns)
        chosen = entities or self.reference
        require_known("entity run", chosen, self.missing["name"])
        reached = self.values[self.values["name"] == chosen]
        own = reached.pivot(index="qid", columns="measure", values="value")[reached["measure"].unique()]
        gained = pd.DataFrame({"gain": scores[name] - scores[base], "baseline": scores[base]}).loc[rows["qid"].unique()]
        topics = self.topics.set_index("qid").drop(columns=["n_documents", "n_unjudged", "n_without_entities"])
        return gained.join(topics).join(own).rename_axis(columns=None).reset_index(names="qid")


def _text(report: CoverageReport) -> str:
    cutoff, alpha, shrinkage, level = (report.settings[name] for name in ("cutoff", "alpha", "shrinkage", "level"))
    missing = report.missing[report.missing["n_missing"] > 0]
    over = f"; gains over {report.baseline}" if report.baseline else ""
    parts = [
        _pool(report),
        f"Level 1: documents, open-world; {level:.0%} intervals over topics",
        _means(report.documents) if len(report.documents) else _NOTHING,
        f"Level 2: entities, the first {cutoff:g} of each run; OER with alpha {alpha:g}, shrinkage {shrinkage:g}",
        _means(report.entities) + "\n" + _DEFINED,
        "On the topics for which both coverages are defined\n" + _plain(report.discrimination.drop(columns="level")),
        *(
            f"{row[0]} has no entities for {row[1]} of {row[2]} topics, which count as empty lists"
            for row in zip(missing["name"], missing["n_missing"], missing["n_qids"], strict=True)
        ),
        f"Level 3: documents by RelCov@{cutoff:g} of {report.reference}{over}",
        _strata(report.strata) if len(report.strata) else _NOTHING,
    ]
    # Names from files must not contain terminal control sequences.
    return "\n".join(map(printable, "\n\n".join(parts).split("\n"))) + "\n"


def _pool(report: CoverageReport) -> str:
    pool = report.pool.to_dict("records")[0]
    linked = f"{pool['n_links']} links to {pool['n_entities']} entities"
    lines = [
        f"Pool: {pool['n_documents']} documents of {pool['n_qids']} topics, {linked}",
        f"Relevant documents (label at least {report.settings['rel']:g}): {pool['n_relevant']}",
        f"Unjudged documents, which count as non-relevant: {pool['n_unjudged']} ({pool['share_unjudged']:.1%})",
        f"Documents without entities: {pool['n_without_entities']} ({pool['share_without_entities']:.1%})",
        f"Topics without relevant documents: {pool['n_without_relevant']}",
        f"Topics without non-relevant documents: {pool['n_without_other']}",
        *(f"{name}, which does not depend on the run: {pool[name]:.4f}" for name in report.offers),
    ]
    return "\n".join(lines)


def _means(intervals: pd.DataFrame) -> str:
    shown = intervals[["name", "measure", "value", "low", "high", "n_qids", "method"]]
    return _plain(shown)


def _strata(strata: pd.DataFrame) -> str:
    shown = strata[["name", "measure", "stratum", "coverage_low", "coverage_high", "value", "low", "high", "n_qids"]]
    left_out = int(strata["n_undefined"].iloc[0])
    note = f"\n{left_out} topics without coverage are in no stratum" if left_out else ""
    return _plain(shown) + note


def _plain(frame: pd.DataFrame) -> str:
    return frame.to_string(index=False, float_format=lambda value: f"{value:.4f}", na_rep="-")


def require_known(what: str, name: str, known: Iterable[Any]) -> None:
    """Raise ParameterError if a name is unknown."""
    known = list(known)
    if name not in known:
        raise ParameterError(f"{what} {name!r} is unknown; found {examples(known)}.{nearest(name, map(str, known))}")
