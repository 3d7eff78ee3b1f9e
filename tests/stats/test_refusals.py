"""Bad scores, labels and options of statistics, and what the messages name: one table."""

import math

import numpy as np
import pandas as pd
import pytest
from refusals import check_refusal, refusals

from vbterrier.errors import InputError, ParameterError
from vbterrier.stats.breakpoints import breakpoint_sweep
from vbterrier.stats.candidates import CandidateArrays
from vbterrier.stats.comparisons import comparisons
from vbterrier.stats.frontier import pareto_frontier
from vbterrier.stats.inverted_intervals import confidence_sequence
from vbterrier.stats.kappa import cohen_kappa, fleiss_kappa, judge_agreement, krippendorff_alpha
from vbterrier.stats.perturbations import (
    Dirichlet,
    DropCandidates,
    DropConstraints,
    ScoreNoise,
    TagConfusion,
    TemperatureJitter,
)
from vbterrier.stats.regression import coverage_strata, gain_regressions
from vbterrier.stats.replicas import hoeffding_error, hoeffding_replicas, replica_intervals
from vbterrier.stats.topic_intervals import intervals, topics_interval
from vbterrier.stats.topic_statistics import TopicStatistics
from vbterrier.stats.variance_components import perturbations_by_source
from vbterrier.stats.variants import Variants

RNG = np.random.default_rng(3)
DRAWS = RNG.gamma(2.0, size=(40, 3, 2))
SWEPT = pd.DataFrame(RNG.random((20, 3)), columns=["one", "two", "gain"])
FRONTIER = pd.DataFrame(
    [
        (f"r{run}", f"q{topic}", measure, RNG.random())
        for run in range(4)
        for topic in range(3)
        for measure in ("RelCov@20", "NonRelCov@20")
    ],
    columns=["name", "qid", "measure", "value"],
)
# Three queries, one with a single candidate, one with a candidate of probability 0; unsorted rows.
INTENTS = pd.DataFrame(
    {
        "qid": ["q2", "q1", "q1", "q3", "q2", "q2", "q1"],
        "entity_id": [*"ZBAAYXC"],
        "prob": [0.5, 0.3, 0.6, 1.0, 0.5, 0.0, 0.1],
    }
)


def values(**systems):
    """Values of ES@5 by system."""
    return pd.concat(
        pd.DataFrame({"name": name, "qid": [*map(str, range(len(scores)))], "measure": "ES@5", "value": scores})
        for name, scores in systems.items()
    )


SCORES = values(**dict(zip("abcde", RNG.beta(2, 3, (5, 40)), strict=True)))


def averages(scores, copies, options):
    frame = pd.DataFrame({"name": "a", "qid": list(scores), "measure": "AP", "value": list(scores.values())})
    return intervals(pd.concat([frame] * copies), **options)


def sweep(change, options):
    return breakpoint_sweep(SWEPT.assign(**change), "gain", "one", **options)


def agreement(measure, labels):
    return measure(pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in labels.items()}))


def strata(coverage, measures, options):
    return coverage_strata(pd.DataFrame({"c": [0.5, 0.6], "gain": [0.1, None]}), coverage, measures, **options)


def table():
    return pd.DataFrame({"name": "a", "qid": [*"1234"], "measure": "AP", "value": [0.1, 0.2, 0.3, 0.4]})


REFUSALS = [
    # Values of topics
    *refusals(
        "a method of intervals",
        lambda method: topics_interval(np.arange(9.0), method=method),
        (
            "BCa",
            ParameterError,
            "method='BCa': wanted one of 'unseen', 'percentile', 'bca', 'studentised', 'poisson', 'normal'",
        ),
    ),
    *refusals(
        "values to be averaged",
        averages,
        ({"q1": 0.5, "q2": math.nan}, 1, {}, InputError, "topic 'q2', AP"),
        ({"q1": 0.5}, 2, {}, InputError, "repeats row 0"),
        ({"q1": 0.5, "q2": 0.1}, 1, {"n_resamples": 0}, ParameterError, "n_resamples=0"),
    ),
    *refusals(
        "weights of a sequence",
        lambda *weights: confidence_sequence([0.1, 0.2], weights=list(weights)),
        (1.0, 0.0),
        (1.0, -1.0),
        (1.0,),
        (1.0, np.inf),
        says="weights: wanted a finite number above 0",
    ),
    *refusals(
        "scores of a sequence",
        lambda options: confidence_sequence(**options),
        (dict(values=[]), InputError, "shape \\(0,\\)"),
        (dict(values=[0.5, 1.5]), InputError, "topic 1 has 1.5, wanted 0 to 1; pass bounds="),
        (dict(values=[np.nan]), InputError, "topic 0 has nan"),
        (dict(values=[0.5], bounds=(1, 0)), ParameterError, "bounds=\\(1, 0\\)"),
        (dict(values=[0.5], level=95), ParameterError, "level=95"),
    ),
    *refusals(
        "statistics of topics",
        lambda call: call(),
        (
            lambda: TopicStatistics(seed=1).merge(TopicStatistics(seed=2)),
            ParameterError,
            "the same n_resamples and seed",
        ),
        (lambda: TopicStatistics(n_resamples=0), ParameterError, "n_resamples=0"),
        (lambda: TopicStatistics(seed=-1), ParameterError, "seed=-1"),
        (lambda: TopicStatistics().to_frame(95), ParameterError, "level=95"),
        (lambda: TopicStatistics().add(table().assign(value=np.inf)), InputError, "infinite"),
        (lambda: TopicStatistics().add(pd.concat([table(), table()])), InputError, "repeats"),
    ),
    *refusals(
        "pairs of systems",
        comparisons,
        (
            values(a=[0.5, 0.25, 0.1], b=[0.5, 0.25]),
            "of ES@5, 'a' has 3 topics, 'b' has 2, and they differ in '2'",
        ),
        (values(a=[0.5, 0.25], b=[0.5, np.nan]), r"system 'b', topic '1', ES@5"),
        (values(a=[0.5], b=[0.5]).drop(columns="value"), "missing value"),
    ),
    *refusals(
        "options of comparisons",
        lambda options: comparisons(SCORES, **options),
        ({"test": "ttest"}, "test='ttest': wanted one of 'moderated', 'randomisation', 't', 'wilcoxon', 'bootstrap'"),
        (
            {"correction": "Holm"},
            "correction='Holm': wanted one of 'auto', 'bonferroni', 'holm', 'bh', 'max-t', 'none'.* mean holm",
        ),
        *[
            ({"test": test, "correction": "max-t"}, f"a test that resamples, found test='{test}'; use test='random")
            for test in ("t", "wilcoxon")
        ],
        ({"margin": 0}, "margin=0: wanted a number above 0"),
        ({"margin": np.nan}, "margin=nan: wanted a number above 0"),
        (
            {"margin": 5},
            r"margin=5: means of .* differ by at most 1; .* did you mean 0\.05, 5 per cent of 1",
        ),
        ({"n_resamples": 0}, "n_resamples=0: wanted a whole number of at least 1"),
        ({"seed": -1}, "seed=-1: wanted a whole number of at least 0"),
        ({"level": 95}, "level=95: wanted a number between 0 and 1"),
        ({"family": "both"}, "family='both': wanted one of 'measure', 'all'"),
        error=ParameterError,
    ),
    *refusals(
        "a frontier",
        lambda table, options: pareto_frontier(table, **options),
        (FRONTIER.iloc[1:], {}, InputError, r"some run has no RelCov@20 for 1 topic .'q0'."),
        (
            FRONTIER.query("name != 'r3' or measure == 'RelCov@20'"),
            {},
            InputError,
            r"1 run .'r3'. with only one of RelCov@20",
        ),
        (FRONTIER, {"maximised": "RelCov@2"}, InputError, r"no RelCov@2; found .* Did you mean RelCov@20"),
        (FRONTIER, {"maximised": "NonRelCov@20"}, ParameterError, "wanted two measures"),
        (FRONTIER, {"n_resamples": 0}, ParameterError, "n_resamples=0"),
    ),
    *refusals(
        "a regression",
        lambda change, options: gain_regressions(
            SWEPT[:10].assign(**change), "gain", **{"measures": ["one"], **options}
        ),
        ({}, {"measures": ["tow"]}, InputError, r"missing tow; found .* Did you mean two"),
        ({"gain": [0.1] * 3 + [np.nan] + [0.1] * 6}, {}, InputError, "'gain': row 3 has no value"),
        ({"one": [0.1] * 2 + [np.inf] + [0.1] * 7}, {}, InputError, "'one': row 2 is infinite"),
        ({"one": [None] + [0.1] * 3 + ["high"] + [0.1] * 5}, {}, InputError, "'one': row 4 holds 'high'"),
        ({}, {"controls": ["one"]}, ParameterError, "each column once"),
        ({}, {"measures": []}, ParameterError, "at least one measure"),
        ({}, {"level": 95}, ParameterError, "level=95"),
    ),
    *refusals(
        "strata of coverage",
        strata,
        ("c", "gain", {}, InputError, "'gain': row 1 has no value"),
        ("d", "c", {}, InputError, "missing d"),
        ("c", "c", {"n_strata": 1}, ParameterError, "n_strata=1"),
        ("c", [], {}, ParameterError, "no measures"),
    ),
    *refusals(
        "a sweep for a breakpoint",
        sweep,
        *(
            ({}, {name: value}, ParameterError, f"{name}={value!r}")
            for name, value in (
                ("model", "curve"),
                ("min_segment", 0.5),
                ("level", 1.0),
                ("n_permutations", 0),
                ("n_resamples", -1),
                ("seed", -1),
            )
        ),
        ({"gain": [None] + [0.1] * 19}, {}, "'gain': row 0 has no value"),
    ),
    # Labels
    *refusals(
        "labels of judges",
        lambda call: call(),
        (lambda: cohen_kappa([1], [1, 0]), InputError, "first has 1 labels, second 2"),
        (lambda: cohen_kappa([], []), InputError, "no items"),
        (lambda: fleiss_kappa(pd.DataFrame({"a": [1, 0], "b": [1, None]})), InputError, "1 has no label of judge 'b'"),
        (lambda: cohen_kappa([0, 1], [0, 2], categories=[0, 1]), InputError, "item 1 has 2, wanted one of 0, 1"),
        (lambda: fleiss_kappa([[1], [0]]), InputError, "found 1 columns"),
        (lambda: fleiss_kappa([1, 0]), InputError, r"found the shape \(2,\)"),
        (lambda: cohen_kappa([0, 1], [0, 1], weights="cubic"), ParameterError, "weights='cubic'"),
        (lambda: cohen_kappa([0, 1], [0, 1], categories=[0, 1, 1]), ParameterError, "each label once"),
    ),
    *refusals(
        "labels of two kinds",
        agreement,
        *(
            (measure, labels, words)
            for measure in (
                fleiss_kappa,
                judge_agreement,
                krippendorff_alpha,
                lambda of: cohen_kappa(of["a"], of["b"]),
            )
            for labels, words in (
                (
                    {"a": ["q1", "q2"], "b": [1, 0]},
                    "found the text 'q1' and 1, which never agree; .*drop columns of queries",
                ),
                ({"a": ["1", "0"], "b": [1.0, 0.0]}, "found the text '1' and 1.0"),
                ({"a": [[1], [0]], "b": [[1], [0]]}, "wanted numbers or texts: unhashable type: 'list'"),
            )
        ),
    ),
    # Perturbations and replicas
    *refusals(
        "parameters of a perturbation",
        lambda make: make(),
        (lambda: Dirichlet(0), r"Dirichlet\(concentration=0\): wanted a number from 1e-09$"),
        *[(lambda c=c: Dirichlet(c), f"concentration={c!r}") for c in (math.inf, math.nan, "10", True)],
        (lambda: TemperatureJitter(-0.1), r"TemperatureJitter\(scale=-0.1\): wanted a number from 0 to 10"),
        (lambda: ScoreNoise(-1), r"ScoreNoise\(scale=-1\)"),
        (lambda: DropConstraints("two"), r"which='two'\): wanted 'one', 'turn' or a number from 0 to 1"),
        (lambda: DropCandidates(-0.1), "share=-0.1"),
        (lambda: TagConfusion(2), r"TagConfusion\(share=2\): wanted a number from 0 to 1"),
        (lambda: TagConfusion(0.1, lost=2), "lost=2"),
        (lambda: TagConfusion(0.1, by="document"), "by='document': wanted one of 'name', 'entity', 'mention'"),
        (lambda: Variants([]), r"frames=\[\]: wanted at least one"),
        (lambda: Variants([pd.DataFrame()], order="any"), "order='any': wanted one of 'random', 'turn'"),
        error=ParameterError,
    ),
    *refusals(
        "candidates to be perturbed",
        lambda changes: CandidateArrays.of(INTENTS.assign(**changes)),
        ({"prob": [0.5, 0.3, 0.5, 1.0, 0.5, 0.0, 0.1]}, r"probabilities of query 'q1' sum to 0.9 \(1 query is off\)"),
        ({"prob": [0.5, 0.3, 0.6, 1.0, 0.5, -0.1, 0.1]}, r"row 5 \(candidate 'X' of query 'q2'\) has probability -0.1"),
        ({"prob": [0.5, 0.3, None, 1.0, 0.5, 0.0, 0.1]}, "intents column 'prob': row 2 holds nan"),
        ({"entity_id": list("ZBBAYXC")}, "candidate 'B' of query 'q1' is in rows 1 and 2"),
        ({"violations": [[0.0]] * 6 + [[0.0, 1.0]]}, "row 1 has 1 violations, other rows of query 'q1' have 2"),
        ({"violations": [[0.0]] * 6 + [None]}, "column 'violations': wanted a list of numbers of at least 0"),
        ({"violations": [[0.0]] * 6 + [[-1.0]]}, "column 'violations': wanted a list of numbers of at least 0"),
        ({"violations": [["x"]] * 7}, "column 'violations': wanted a list of numbers in each row"),
        ({"violations": [[0.5]] * 7, "delta": 0.4}, "row 0 has delta 0.4, wanted the sum of its violations, 0.5"),
        ({"delta": -1.0}, "row 0 has delta -1, wanted a finite number of at least 0"),
    ),
    *refusals(
        "columns of candidates",
        lambda column: CandidateArrays.of(INTENTS.drop(columns=column)),
        ("prob", "intents: wanted columns qid, entity_id, prob; missing prob"),
    ),
    *refusals(
        "intervals of replicas",
        lambda draws, options: replica_intervals(draws, **options),
        (DRAWS, {"method": "t"}, "method='t': wanted one of 'percentile', 'bca', 'normal'"),
        (DRAWS, {"level": 1.0}, "wanted a number between 0 and 1"),
        (DRAWS, {"method": "bca"}, "method='bca' needs the score without perturbation: give point"),
        error=ParameterError,
    ),
    *refusals(
        "numbers of replicas",
        lambda call: call(),
        (lambda: hoeffding_replicas(0, 0.05), "epsilon=0: wanted a number above 0"),
        (lambda: hoeffding_replicas(math.nan, 0.05), "epsilon=nan"),
        (lambda: hoeffding_replicas(0.1, 0), "delta=0: wanted a number between 0 and 1"),
        (lambda: hoeffding_replicas(0.1, 1), "delta=1"),
        (lambda: hoeffding_replicas(0.1, 0.05, alpha=-1), "alpha=-1: wanted a number of at least 0"),
        (lambda: hoeffding_error(0, 0.05), "n_replicas=0: wanted a whole number of at least 1"),
        (lambda: hoeffding_error(2.5, 0.05), "n_replicas=2.5"),
        (lambda: hoeffding_error(10, 5), "delta=5"),
        error=ParameterError,
    ),
    *refusals(
        "sources of variance",
        perturbations_by_source,
        ([], "no perturbation"),
        ({"intents": []}, "no perturbation"),
        ([Dirichlet], "with apply, such as Dirichlet"),
        ({"topics": Dirichlet()}, "cannot be called 'topics'"),
        error=ParameterError,
    ),
]


@pytest.mark.parametrize(("call", "arguments", "error", "words"), REFUSALS)
def test_bad_input_is_refused_by_name(request, call, arguments, error, words):
    check_refusal(request, call, arguments, error, words)
