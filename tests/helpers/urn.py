"""Grades of unjudged documents drawn from an urn, followed by hand: every sequence, one by one."""

import itertools
import math

import numpy as np

from vbterrier.kernels.grades.model import UnjudgedModel
from vbterrier.kernels.rankings import discounts


def no_draws(topic):
    raise AssertionError(f"topic {topic} was sampled")


def assigned_grades(sequence, left):
    """Each draw is assigned the next lower grade that is left."""
    left, assigned = list(left), []
    for grade in sequence:
        while grade > 0 and left[grade] == 0:
            grade -= 1  # noqa: PLW2901 - as in the paper's Algorithm 1
        left[grade] -= 1
        assigned.append(grade)
    return assigned


def sequences_by_hand(prob, strength):
    """Every sequence of grades and its probability: balls are intervals of [0, 1] on which no document's grade changes.

    A document takes a new ball by the length of its interval with weight ``strength``, or the ball of an earlier one.
    """
    if np.isinf(strength):
        each = itertools.product(*(list(enumerate(row)) for row in prob))
        return {tuple(grade for grade, _ in of): math.prod(chance for _, chance in of) for of in each}
    ends = [list(itertools.accumulate(row)) for row in prob]
    cuts = sorted({0.0, 1.0, *(end for row in ends for end in row[:-1] if end < 1 - 1e-12)})
    cells = [(high - low, (low + high) / 2) for low, high in itertools.pairwise(cuts)]
    outcome = {}
    for balls in itertools.product(range(len(cells)), repeat=len(prob)):
        chance = 1.0
        for i, ball in enumerate(balls):
            fresh, seen = cells[ball][0], balls[:i].count(ball)
            chance *= (strength * fresh + seen) / (strength + i)
        grades = tuple(sum(end <= cells[ball][1] for end in row[:-1]) for row, ball in zip(ends, balls, strict=True))
        outcome[grades] = outcome.get(grades, 0.0) + chance
    return outcome


def outcome_probs(model, topic=0, digits=11):
    """{score: probability}, by the textbook."""
    n = int(model.n_unjudged[topic])
    prob = np.broadcast_to(model.prob[topic, : max(n, 1)], (n, len(model.gain))).tolist()
    strength = np.inf if model.strength is None else model.strength[topic]
    outcome = {}
    for sequence, chance in sequences_by_hand(prob, strength).items():
        assigned = assigned_grades(sequence, model.left[topic])
        if model.value is None:
            gains = zip(model.weights[topic], assigned, strict=False)
            score = model.base[topic] + sum(w * model.gain[level] for w, level in gains)
        else:
            score = model.value(topic, np.array([assigned], dtype=int).reshape(1, n))[0]
        if chance > 0:
            outcome[round(score, digits)] = outcome.get(round(score, digits), 0.0) + chance
    return dict(sorted(outcome.items()))


def outcome_moments(outcome):
    mean = sum(v * p for v, p in outcome.items())
    return mean, sum((v - mean) ** 2 * p for v, p in outcome.items())


def topic_model(weights, prob, left, gain, *, base=0.0, strength=None, value=None):
    """A model of one topic; ``prob`` is one prior, or one row for each document."""
    weights = np.atleast_2d(np.asarray(weights, dtype=float))
    strength = None if strength is None else np.array([float(strength)])
    prob, left = np.atleast_2d(prob)[None], np.atleast_2d(left)
    n = np.array([weights.shape[1]])
    return UnjudgedModel(np.array([base]), weights, n, prob, left, np.asarray(gain, dtype=float), strength, value)


def random_problem(rng, *, n_levels=None, n_unjudged=None, binding=None, shared=None, strength=None):
    """One topic with grades that run out or not, one prior or several, zeros among probabilities."""
    n_levels = n_levels or int(rng.integers(1, 5))
    n_unjudged = int(rng.integers(0, 6)) if n_unjudged is None else n_unjudged
    gain = np.concatenate([[0.0], np.sort(rng.choice(np.arange(1, 9), n_levels - 1, replace=False))])
    shared = rng.random() < 0.5 if shared is None else shared
    prob = rng.random((1 if shared else n_unjudged, n_levels)) * (rng.random(n_levels) < 0.85)
    prob[:, int(rng.integers(n_levels))] += 1e-2
    prob = prob.reshape(-1, n_levels) / prob.sum(axis=1, keepdims=True)
    binding = rng.random() < 0.6 if binding is None else binding
    left = rng.integers(0, 4, n_levels) if binding else np.full(n_levels, 50)
    weights = rng.permutation(discounts(12))[:n_unjudged] / 7.0
    return topic_model(weights, prob, left, gain, base=rng.random(), strength=strength)
