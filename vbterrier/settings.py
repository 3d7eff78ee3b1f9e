"""Settings that travel together, one documented object each, the same in every call."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from vbterrier.errors import (
    ParameterError,
    check_level,
    choice,
    collect_warnings,
    excerpt,
    number,
    settings_parameter,
    whole,
)
from vbterrier.remedies import Call, function_interface, interface, is_in_use, public_name, source

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping


P = ParamSpec("P")
T = TypeVar("T")

# Legal words, which the modules that implement them share.
INTERVALS = ("unseen", "percentile", "bca", "studentised", "poisson", "normal", "bounded", "nested")
TESTS = ("moderated", "t", "randomisation", "wilcoxon", "bootstrap")
CORRECTIONS = ("auto", "bonferroni", "holm", "bh", "max-t", "none")
FAMILIES = ("measure", "all")
TOPICS = ("same", "all", "common")


class _Unset:
    """The value of a setting that is left out."""

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self) -> str:
        return "UNSET"


UNSET: Any = _Unset()


class Options:
    """Base of settings: dataclasses with the default ``UNSET`` for a setting that is left out.

    The default of a parameter, as in ``inference: Inference = Inference(level=0.95, seed=0)``, has the settings that a
    call uses, with their defaults; :func:`with_defaults` completes the settings of callers with them.
    """

    def explicit_settings(self) -> dict[str, Any]:
        """Return the settings that are not left out, by name."""
        return {name: value for name, value in vars(self).items() if value is not UNSET}

    def __repr__(self) -> str:
        settings = (f"{name}={value!r}" for name, value in self.explicit_settings().items())
        return f"{type(self).__name__}({', '.join(settings)})"


S = TypeVar("S", bound=Options)


# Calls that honour settings which others refuse.
_HONOURED = {
    "queries": "; weights, clusters and segments are for score, compare, rank_systems, queries_needed, "
    "detectable_difference, release_gate"
}


def completed_settings(call: str, settings: S, defaults: S) -> S:
    """Return settings with the defaults of a call for those left out; raise an error for one that it does not use.

    >>> completed_settings("score", Inference(level=0.9), Inference(level=0.95, seed=0))
    Inference(level=0.9, seed=0)
    >>> completed_settings("score", Inference(test="t"), Inference(level=0.95, seed=0))
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: score: Inference(test='t') has no effect; leave test out, it uses level, seed
    """
    values, used = settings_parameter(call, type(defaults), settings).explicit_settings(), defaults.explicit_settings()
    for name, value in values.items():
        # None states that something is absent, which has no effect either.
        if name not in used and value is not None:
            raise ParameterError(
                f"{call}: {type(defaults).__name__}({name}={excerpt(value)}) has no effect; leave {name} out, it uses "
                f"{', '.join(used)}{_HONOURED.get(name, '')}"
            )
    return replace(defaults, **{name: value for name, value in values.items() if name in used})  # type: ignore[type-var]
    # settings are dataclasses


def with_defaults(call: Callable[P, T], further: tuple[str, ...] = ()) -> Callable[P, T]:
    """Complete the settings of a call with the defaults of its signature; parameters of settings are keyword-only.

    The call handles floating-point errors as NumPy does by default. ``further``: parameters among its ``**kwargs``.
    """
    signature = inspect.signature(call)
    parameters = signature.parameters
    defaults = {name: one.default for name, one in parameters.items() if isinstance(one.default, Options)}
    if any(parameters[name].kind is not inspect.Parameter.KEYWORD_ONLY for name in defaults):
        raise TypeError(f"{call.__name__}: parameters of settings are keyword-only")

    used = function_interface(call, defaults, further)

    @wraps(call)
    def with_all_settings(*args: P.args, **options: P.kwargs) -> T:
        from vbterrier.kernels.floats import usual_errors

        words = {} if is_in_use() else argument_words(signature, args, options)
        passed: dict[str, Any] = options
        for name in passed.keys() & defaults.keys():
            passed[name] = completed_settings(call.__name__, passed[name], defaults[name])
        if is_in_use():
            with usual_errors():
                return call(*args, **options)
        with collect_warnings() as messages, usual_errors():
            made_by = Call(public_name(call), words, warnings=messages)
            with interface(replace(used, call=made_by)):
                return call(*args, **options)

    return with_all_settings


def argument_words(
    signature: inspect.Signature, args: tuple[Any, ...], options: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """Return the given arguments of a call by parameter, as text; none if they do not fit the signature."""
    try:
        bound = signature.bind(*args, **options).arguments
    except TypeError:
        # The call itself raises.
        return {}
    named = {name for name, one in signature.parameters.items() if one.kind is inspect.Parameter.KEYWORD_ONLY}
    named |= options.keys()
    for name in [name for name, one in signature.parameters.items() if one.kind is one.VAR_KEYWORD]:
        bound |= bound.pop(name, {})
    return {
        name: (f"{name}={source(value, name)}" if name in named else source(value, name),)
        for name, value in bound.items()
    }


@dataclass(frozen=True, repr=False, kw_only=True)
class Inference(Options):
    """Intervals and tests of a call: the argument ``inference=``.

    A setting that is left out has the default in the signature of the call. A call refuses a setting that it does not
    use.

    Parameters
    ----------
    interval
        Method of the intervals of means over topics. ``"unseen"``: Student's t, corrected for skewness and for topics
        that were not sampled (:func:`vbterrier.stats.intervals`). ``"percentile"``, ``"bca"`` or ``"studentised"``: the
        bootstrap over topics; ``"poisson"``: percentiles of the Poisson bootstrap, which draws every topic
        independently; ``"normal"``: Student's t; ``"bounded"``: for any distribution within the range of the measure;
        ``"nested"``: resampled topics and draws (:func:`vbterrier.evaluate.variance_shares`).
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
    >>> result = vbterrier.compare(values, inference=vbterrier.Inference(test="t", level=0.9))
    >>> result.pairs[["test", "p_value"]].round(3).values.tolist()
    [['paired t', 0.074]]
    """

    interval: str = UNSET
    level: float = UNSET
    n_resamples: int = UNSET
    n_draws: int = UNSET
    seed: int = UNSET
    test: str = UNSET
    correction: str = UNSET
    family: str = UNSET
    margin: float | None = UNSET

    def __post_init__(self) -> None:
        words = {"interval": INTERVALS, "test": TESTS, "correction": CORRECTIONS, "family": FAMILIES}
        for name, legal in words.items():
            if getattr(self, name) is not UNSET:
                choice(name, getattr(self, name), legal)
        for name, low in (("n_resamples", 1), ("n_draws", 1), ("seed", 0)):
            if getattr(self, name) is not UNSET:
                whole(name, getattr(self, name), low=low)
        if self.level is not UNSET:
            check_level(self.level)
        if _is_given(self.margin):
            number("margin", self.margin, low=0, open_low=True)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Execution(Options):
    """Memory, processes, checkpoints and progress of a call: the argument ``execution=``.

    No setting changes a result. A setting that is left out has the default in the signature of the call; a call refuses
    a setting that it does not use.

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
    Execution(memory='1 GiB', n_jobs=2)
    """

    memory: int | str | None = UNSET
    n_jobs: int = UNSET
    client: Any = UNSET
    resume: str | os.PathLike[str] | None = UNSET
    progress: bool = UNSET

    def __post_init__(self) -> None:
        if _is_given(self.memory):
            # Imports pandas, which the command line needs for no help text.
            from vbterrier.frames.files.blocks import amount

            amount("memory", self.memory)
        if isinstance(self.resume, str) and not self.resume.strip():
            raise ParameterError(f"resume={self.resume!r}: wanted a folder; leave it out to keep no checkpoints")
        if self.n_jobs is not UNSET:
            check_jobs(self.n_jobs)
        if _is_given(self.client) and self.n_jobs not in (UNSET, 1):
            raise ParameterError(
                f"n_jobs={self.n_jobs} and client=: wanted one of them, processes of this machine or a cluster"
            )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Data(Options):
    """Data beside runs, judgments, intents and tags, and how all are read and aligned: the argument ``data=``.

    A setting that is left out has the default in the signature of the call; a call refuses a setting that it does not
    use.

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
    queries
        How the queries were sampled, and how much each counts: a frame (qid, and any of weight, cluster, segment,
        drawn, covariate) or a path, see :func:`vbterrier.frames.queries.queries_frame`. A call refuses a column that
        it does not honour.
    topics
        The queries, a frame (qid, query) or a path; pipelines are run on them, once each. Columns of ``queries`` in
        topics count as ``queries`` if these are left out.
    documents
        Texts of documents, a frame (docno, text) or a path.
    on_topics
        ``"same"``: all topics of the qrels; raise if runs differ in their topics. ``"all"``: all topics of the qrels; a
        topic missing from a run scores as an empty ranking. ``"common"``: only topics that every run has.
    duplicates
        ``"error"`` refuses a document that is duplicated among the documents of a topic that the measures look at: the
        first k for a cutoff k, more for models of unjudged documents, all for measures without a cutoff.
        ``"everywhere"`` refuses duplicates at any rank. ``"first"`` keeps the best rank of a duplicated document.
    system
        The column that names the system of a row, for tables of several systems, which are evaluated one by one under
        its values; by default a column called name, system, model, tag or run_id if documents or ranks of a topic
        repeat across its values. ``"none"``: each table is one run.
    scale
        The smallest and the largest label of the judgments, by default any.
    unit
        The step of a scale with fractions, as in :func:`vbterrier.read_qrels`; 1 by default.
    pool_cutoff
        The rank up to which runs were judged: by default the cutoff of the measure for pools of groups, and the depth
        that the judgments show for measures of the E family, which estimate the scores of judgments to this depth.

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
    >>> result = vbterrier.score({"mine": run}, qrels, ["RR@10"], data=vbterrier.Data(on_topics="all"))
    >>> result.means().loc["mine"].tolist()
    [0.5]
    """

    labels: Any = UNSET
    model: Any = UNSET
    subtopics: Any = UNSET
    queries: Any = UNSET
    topics: Any = UNSET
    documents: Any = UNSET
    on_topics: str = UNSET
    duplicates: str = UNSET
    scale: tuple[int, int] | None = UNSET
    unit: float = UNSET
    pool_cutoff: int | None = UNSET
    system: str | None = UNSET

    def __post_init__(self) -> None:
        if self.on_topics is not UNSET:
            choice("on_topics", self.on_topics, TOPICS)
        if _is_given(self.pool_cutoff):
            whole("pool_cutoff", self.pool_cutoff)
        if _is_given(self.system) and (not isinstance(self.system, str) or not self.system):
            raise ParameterError(f"system={excerpt(self.system)}: wanted the name of a column, or 'none'")


def _is_given(value: Any) -> bool:
    return value is not UNSET and value is not None


def check_jobs(n_jobs: int) -> None:
    """Raise an error unless a number of processes is at least 1, or -1."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or (n_jobs < 1 and n_jobs != -1):
        raise ParameterError(f"n_jobs={excerpt(n_jobs)}: wanted a whole number of at least 1, or -1 for all processors")
