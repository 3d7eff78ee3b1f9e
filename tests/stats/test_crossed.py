"""Sources that vary together, against a case with variances in closed form."""

import numpy as np
import pandas as pd
import pytest

from vbterrier.errors import ParameterError
from vbterrier.stats.matches import Matches, Statistic
from vbterrier.stats.perturbations import Dirichlet, DropConstraints, ScoreNoise, TagDropout, TemperatureJitter
from vbterrier.stats.replicas import replicate
from vbterrier.stats.variance_components import crossed_replicas, first_order, sources_of
from vbterrier.stats.variants import Variants

B = 40_000
P, C, W = 0.7, 9.0, (0.6, 0.2)
INTENTS = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "prob": [P, 1 - P]})
SYSTEMS = {
    "both": Matches(np.array([0, 1]), np.array([0, 1]), np.array(W), docno=["a", "b"]),
    "first": Matches(np.array([0]), np.array([0]), docno=["a"]),
}
ES = Statistic("ES", 5)


def test_first_order_variances_of_success():
    # ES = π d_A + (1 - π) d_B with d ~ Bernoulli(w).
    spread = P * (1 - P) / (C + 1)
    of_tags = [w * (1 - w) for w in W]
    wanted = {"intents": (W[0] - W[1]) ** 2 * spread, "tags": P**2 * of_tags[0] + (1 - P) ** 2 * of_tags[1]}
    total = sum(wanted.values()) + spread * sum(of_tags)
    made, again = crossed_replicas(INTENTS, SYSTEMS, sources_of([Dirichlet(C), TagDropout()]), ES, n_replicas=B, seed=2)
    scores = made.of("both", ES)[:, 0]
    assert scores.var() == pytest.approx(total, rel=0.03)
    for source, variance in wanted.items():
        assert first_order(scores, again[source][0][:, 0]) == pytest.approx(variance, abs=4 * total / np.sqrt(B))
    # With certain tags, all variance is due to the intents.
    scores = made.of("first", ES)[:, 0]
    assert first_order(scores, again["intents"][1][:, 0]) == pytest.approx(scores.var(), rel=1e-3)
    assert first_order(scores, again["tags"][1][:, 0]) == pytest.approx(0, abs=4 * spread / np.sqrt(B))


def test_replicas_are_those_of_replicate():
    noise = [Dirichlet(5), TagDropout(), Dirichlet(50)]
    made, again = crossed_replicas(INTENTS, SYSTEMS, sources_of(noise), ES, n_replicas=50, seed=3)
    np.testing.assert_array_equal(made.values, replicate(INTENTS, SYSTEMS, noise, [ES], n_replicas=50, seed=3).values)
    assert list(again) == ["intents (Dirichlet)", "tags", "intents (Dirichlet) 2"]
    assert all((values != made.values[:, 0]).any() for values in again.values())
    # Pairs are taken about their common mean, 0.5 and 1.5: (0 - 1)(1 - 1) + (1 - 1)(2 - 1).
    assert first_order(np.array([0.0, 1.0]), np.array([1.0, 2.0])) == 0.0
    # One source needs no second run.
    made, again = crossed_replicas(INTENTS, SYSTEMS, sources_of(Dirichlet()), ES, n_replicas=10)
    assert (made.n_replicas, len(again)) == (10, 0)


def test_names_of_sources():
    assert list(sources_of([Dirichlet(), TagDropout()])) == ["intents", "tags"]
    assert list(sources_of([Dirichlet(), ScoreNoise()])) == ["intents (Dirichlet)", "intents (ScoreNoise)"]
    both = sources_of({"linker": [TemperatureJitter(), ScoreNoise()], "tagger": TagDropout()})
    assert both == {"linker": [TemperatureJitter(), ScoreNoise()], "tagger": [TagDropout()]}


def test_a_perturbation_that_takes_turns_is_alone():
    variants = Variants([INTENTS], order="turn")
    assert list(sources_of(variants)) == ["intents"]
    for turning in (variants, DropConstraints("turn")):
        with pytest.raises(ParameterError, match=f"{type(turning).__name__} takes turns"):
            sources_of([turning, TagDropout()])
    assert len(sources_of([DropConstraints("one"), TagDropout()])) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "no perturbation"),
        ({"intents": []}, "no perturbation"),
        ([Dirichlet], "with apply, such as Dirichlet"),
        ({"topics": Dirichlet()}, "cannot be called 'topics'"),
    ],
)
def test_what_is_no_source(given, said):
    with pytest.raises(ParameterError, match=said):
        sources_of(given)
