"""Settings that travel together, one documented object each, the same in every call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vbterrier.errors import ParameterError, check_level, choice, excerpt, number, whole

if TYPE_CHECKING:
    import os

# Legal words, which the modules that implement them share.
INTERVALS = ("percentile", "bca", "studentised", "poisson", "normal", "bounded", "nested")
TESTS = ("randomisation", "t", "wilcoxon", "bootstrap")
CORRECTIONS = ("auto", "holm", "bh", "max-t", "none")
FAMILIES = ("measure", "all")
TOPICS = ("same", "all", "common")


@dataclass(frozen=True)
class Inference:
    """Intervals and tests of a call: the argument ``inference=``.

    ``None`` stands for the default of the call, which its documentation states. A call refuses a setting that it does
    not use.

    Parameters
    ----------
    interval
        Method of the intervals of means over topics. ``"percentile"``, ``"bca"`` or ``"studentised"``: the bootstrap
        over topics; ``"poisson"``: percentiles of the Poisson bootstrap, which draws every topic independently;
        ``"normal"``: Student's t; ``"bounded"``: for any distribution within the range of the measure; ``"nested"``:
        resampled topics and draws (:func:`vbterrier.evaluate.variance_shares`).
    level
        Nominal coverage of intervals, and 1 - the significance level of tests, between 0 and 1.
    n_resamples
        Number of resamples of the topics, and of a test, at least 1; all systems and measures share them.
    n_draws
        Number of draws of the grades of unjudged documents, or of perturbations, at least 1.
    seed
        Seed of resamples and draws, at least 0. Measures that draw have their own seed.
    test, correction, family
        Paired test, correction of its p-values, and the tests that are corrected together; see
        :func:`vbterrier.stats.comparisons.comparisons`.
    margin
        Margin of the test of equivalence, above 0, in the unit of the measure.

    Raises
    ------
    ParameterError
        A value outside of its range.

    Examples
    --------
    >>> import pandas as pd
    >>> import vbterrier
    >>> values = pd.DataFrame({"name": ["a"] * 3 + ["b"] * 3, "qid": [*"123"] * 2, "measure": "AP",
    ...                        "value": [0.3, 0.5, 0.6, 0.1, 0.4, 0.3]})
    >>> found = vbterrier.compare(values, inference=vbterrier.Inference(test="t", level=0.9))
    >>> found.pairs[["test", "p_value"]].round(3).values.tolist()
    [['paired t', 0.074]]
    """

    interval: str | None = None
    level: float | None = None
    n_resamples: int | None = None
    n_draws: int | None = None
    seed: int | None = None
    test: str | None = None
    correction: str | None = None
    family: str | None = None
    margin: float | None = None

    def __post_init__(self) -> None:
        words = {"interval": INTERVALS, "test": TESTS, "correction": CORRECTIONS, "family": FAMILIES}
        for name, legal in words.items():
            if getattr(self, name) is not None:
                choice(name, getattr(self, name), legal)
        for name, low in (("n_resamples", 1), ("n_draws", 1), ("seed", 0)):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), low=low)
        if self.level is not None:
            check_level(self.level)
        if self.margin is not None:
            number("margin", self.margin, low=0, open_low=True)


@dataclass(frozen=True, eq=False)
class Execution:
    """Memory, processes, checkpoints and progress of a call: the argument ``execution=``.

    No setting changes a result. ``None`` stands for the default of the call; a call refuses a setting that it does not
    use.

    Parameters
    ----------
    memory
        Read run files in chunks of whole topics of at most this size, as ``"1 GiB"`` or a number of bytes, by default
        each run whole; see :func:`vbterrier.score`.
    n_jobs
        Number of processes on this machine, 1 by default; -1 for one per processor.
    client
        A ``distributed.Client``, or the address of a Dask scheduler as ``"tcp://host:8786"``: its workers replace the
        processes. Workers read run files from the same paths.
    resume
        A folder of finished results (a file, for grids), from which the same call resumes after an interruption.
    progress
        Show a progress bar.

    Raises
    ------
    ParameterError
        A value outside of its range; both processes and a cluster.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.Execution(memory="1 GiB", n_jobs=2)
    Execution(memory='1 GiB', n_jobs=2, client=None, resume=None, progress=None)
    """

    memory: int | str | None = None
    n_jobs: int | None = None
    client: Any = None
    resume: str | os.PathLike[str] | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        if self.memory is not None:
            # Imports pandas, which the command line needs for no help text.
            from vbterrier.frames.files.blocks import amount

            amount("memory", self.memory)
        if isinstance(self.resume, str) and not self.resume.strip():
            raise ParameterError(f"resume={self.resume!r}: wanted a folder; leave it out to keep no checkpoints")
        if self.n_jobs is not None:
            check_jobs(self.n_jobs)
        if self.client is not None and self.n_jobs not in (None, 1):
            raise ParameterError(
                f"n_jobs={self.n_jobs} and client=: wanted one of them, processes of this machine or a cluster"
            )


@dataclass(frozen=True, eq=False)
class Data:
    """Data beside runs, judgments, intents and tags, and how all are read and aligned: the argument ``data=``.

    ``None`` stands for the default of the call; a call refuses what it does not use.

    Parameters
    ----------
    labels
        Labels that machines gave to documents, as evidence about unjudged documents for the measures of the E family: a
        frame (qid, docno, label), a path, or a mapping of name to these; see
        :class:`vbterrier.unjudged.pool.MachineLabels`.
    model
        The model of unjudged documents for measures of the E family that name none: the result of
        :func:`vbterrier.unjudged.fit`, a registered name, a digest or a folder. By default one is fitted to all runs of
        the call.
    subtopics
        All subtopics of diversity qrels, which then count also without a judged document: a frame (qid, entity_id[,
        prob]) or a path, see :func:`vbterrier.frames.read_subtopics`. alpha_nDCG, ERR_IA and StRecall count subtopics
        with a relevant document, as ndeval does.
    topics
        The queries, a frame (qid, query) or a path; pipelines are run on them, once each.
    documents
        Texts of documents, a frame (docno, text) or a path.
    on_topics
        ``"same"``: all topics of the qrels; raise if runs differ in their topics. ``"all"``: all topics of the qrels; a
        topic missing from a run scores as an empty ranking. ``"common"``: only topics that every run has.
    duplicates
        ``"error"`` refuses a document that is duplicated among the documents of a topic that the measures look at: the
        first k for a cutoff k, more for models of unjudged documents, all for measures without a cutoff.
        ``"everywhere"`` refuses duplicates at any rank. ``"first"`` keeps the best rank of a duplicated document.
    scale
        The smallest and the largest label of the judgments, by default any.
    unit
        The step of a scale with fractions, as in :func:`vbterrier.read_qrels`; 1 by default.
    pool_cutoff
        The rank up to which runs were judged, by default the cutoff of the measure.

    Raises
    ------
    ParameterError
        An illegal word; a rank below 1.

    Examples
    --------
    >>> import pandas as pd
    >>> import vbterrier
    >>> qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["a", "b"], "label": 1})
    >>> run = pd.DataFrame({"qid": ["q1"], "docno": ["a"], "score": [1.0]})
    >>> found = vbterrier.score({"mine": run}, qrels, ["RR@10"], data=vbterrier.Data(on_topics="all"))
    >>> found.means().loc["mine"].tolist()
    [0.5]
    """

    labels: Any = None
    model: Any = None
    subtopics: Any = None
    topics: Any = None
    documents: Any = None
    on_topics: str | None = None
    duplicates: str | None = None
    scale: tuple[int, int] | None = None
    unit: float | None = None
    pool_cutoff: int | None = None

    def __post_init__(self) -> None:
        if self.on_topics is not None:
            choice("on_topics", self.on_topics, TOPICS)
        if self.pool_cutoff is not None:
            whole("pool_cutoff", self.pool_cutoff)


def check_jobs(n_jobs: int) -> None:
    """Raise an error unless a number of processes is at least 1, or -1."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or (n_jobs < 1 and n_jobs != -1):
        raise ParameterError(f"n_jobs={excerpt(n_jobs)}: wanted a whole number of at least 1, or -1 for all processors")
