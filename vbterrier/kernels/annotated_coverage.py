"""Expected success and its variance penalty under gold tags, from the annotations of some documents.

Rankings are rows of document numbers, the first ``K`` ranks of a system and topic; the number ``n_documents`` stands
for no document. The entities of a document are bits of words: bit ``i % 56`` of word ``i // 56`` is candidate i.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.kernels.grade_regression import sigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints

    Words = NDArray[np.int64]


#: Candidates in a word of bits.
BITS = 56
# Numbers that are computed at a time.
_BLOCK_CELLS = 1 << 23
# The largest slope of gold scores on those of the model.
_MOST_SLOPE = 1.5
# Multiples of the scale of second-order corrections: standard deviations that systems may have around their mean.
_DEVIATIONS = np.array([0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0])
# Standard deviations of the shifts of systems, the scale of their prior, and the largest shift.
_SHIFTS, _SHIFT_SCALE, _MOST_SHIFT = (0.05, 0.15, 0.3, 0.5, 0.8, 1.2), 0.8, 3.0
_NEWTON_STEPS, _TOLERANCE = 30, 1e-6
# Variances this small are rounding errors.
_MIN_VARIANCE = 1e-10


class Estimates(NamedTuple):
    """Scores of S systems, of shape (2, n_cutoffs, S), with their covariance and degrees of freedom.

    ``covariance``: shape (2, n_cutoffs, S, S). ``degrees``: of the t distribution of each score, shape (2, n_cutoffs,
    S). ``slope``: of gold scores on those of the model, shape (2, n_cutoffs), NaN if the design has none.
    """

    score: Floats
    covariance: Floats
    degrees: Floats
    slope: Floats


def candidate_bits(candidate: Ints, n_words: int) -> Words:
    """The words of single candidates, shape ``candidate.shape + (n_words,)``; none for -1."""
    words = np.zeros((*candidate.shape, n_words), dtype=np.int64)
    some = candidate >= 0
    bit = np.int64(1) << np.where(some, candidate % BITS, 0)
    for word in range(n_words):
        words[..., word] = np.where(some & (candidate // BITS == word), bit, 0)
    return words


def drawn_candidates(prob: Floats, document: Ints, n_documents: int, uniform: Floats) -> Ints:
    """The candidate of each document in each draw, by place among its candidates, shape (n_draws, n_documents).

    - ``prob``: probability of each candidate of each document, which sum to 1, shape (n,)
    - ``document``: the document of each, ascending from 0 without gaps, shape (n,)
    - ``uniform``: shape (n_draws, n_documents)
    """
    starts = np.searchsorted(document, np.arange(n_documents + 1))
    ends = np.cumsum(prob)
    before = ends - prob
    # Documents have the intervals [d, d + 1) of one line, so that one search serves all of them.
    line = document + np.clip(ends - before[starts[:-1]][document], 0.0, 1.0)
    places = np.searchsorted(line, uniform + np.arange(n_documents), side="right")
    drawn: Ints = np.clip(places, starts[:-1], starts[1:] - 1) - starts[:-1]
    return drawn


@dataclass(frozen=True, eq=False)
class Rankings:
    """The first K documents of each system and topic.

    - ``documents``: document numbers, ``n_documents`` for none, shape (n_rows, K); row ``q * S + s`` is system s and
      topic q
    - ``prob``: probabilities of the candidates of each topic, 0 beyond its last, shape (Q, n_candidates)
    - ``cutoffs``: ascending, shape (n_cutoffs,)
    """

    documents: Ints
    prob: Floats
    cutoffs: Sequence[int]

    @property
    def n_topics(self) -> int:
        """Number of topics."""
        return len(self.prob)

    @property
    def n_systems(self) -> int:
        """Number of systems."""
        return len(self.documents) // max(self.n_topics, 1)

    @cached_property
    def _of_bytes(self) -> Floats:
        """The sum of probabilities of each set of eight candidates, shape (Q, n_bytes, 256)."""
        n_topics, n = self.prob.shape
        padded = np.zeros((n_topics, -(-n // 8) * 8))
        padded[:, :n] = self.prob
        bits = (np.arange(256) >> np.arange(8)[:, None]) & 1
        return np.asarray(padded.reshape(n_topics, -1, 8) @ bits)

    def values(self, words: Words, topic: Ints) -> Floats:
        """ES and VB of rows of documents with the given entities, shape (2, n_cutoffs, ..., n_rows).

        ``words``: shape (..., n_rows, K, n_words); ``topic``: shape (n_rows,).
        """
        success = np.zeros((len(self.cutoffs), *words.shape[:-2]))
        n_bytes = self._of_bytes.shape[1]
        sums, start = self._of_bytes.ravel(), topic * n_bytes
        reached, shown = np.zeros((*words.shape[:-2], words.shape[-1]), dtype=np.int64), 0
        for place, cutoff in enumerate(self.cutoffs):
            for rank in range(shown, min(cutoff, words.shape[-2])):
                reached |= words[..., rank, :]
            shown = cutoff
            for byte in range(n_bytes):
                word, shift = divmod(8 * byte, BITS)
                success[place] += sums[((start + byte) << 8) + ((reached[..., word] >> shift) & 255)]
        success = np.clip(success, 0.0, 1.0)
        return np.stack([success, success - np.sqrt(success * (1 - success))])

    def means(self, words: Words, topic: Ints, shift: Floats) -> Floats:
        """Means of :meth:`values` over draws, shape (2, n_cutoffs, n_rows).

        With ``shift``, shape (n_rows,), draws have the weight ``exp(shift * pairs)``, with the number of pairs of
        documents that share a candidate. ``words``: shape (n_draws, n_rows, K, n_words).
        """
        values = self.values(words, topic)
        pairs = np.zeros(words.shape[:2])
        for later in range(1, words.shape[2]):
            for earlier in range(later):
                pairs += (words[:, :, later] & words[:, :, earlier]).any(axis=-1)
        weight = shift * pairs
        weight = np.exp(weight - weight.max(axis=0))
        weight /= weight.sum(axis=0)
        return np.asarray((values * weight).sum(axis=2))

    def topic_scores(self, words: Words) -> Floats:
        """ES and VB of the systems for known entities of all documents, shape (2, n_cutoffs, Q, S).

        ``words``: shape (n_documents + 1, n_words), the last row 0.
        """
        topic = np.repeat(np.arange(self.n_topics), self.n_systems)
        values = self.values(words[self.documents], topic)
        return values.reshape(2, len(self.cutoffs), self.n_topics, self.n_systems)

    def expected_scores(self, drawn: Words) -> Floats:
        """Means over draws of :meth:`topic_scores`, shape (2, n_cutoffs, Q, S).

        ``drawn``: shape (n_draws, n_documents + 1, n_words), the last document 0.
        """
        total = np.zeros((2, len(self.cutoffs), self.n_topics, self.n_systems))
        for words in drawn:
            total += self.topic_scores(words)
        return total / len(drawn)


def whole_topic_estimates(gold: Floats, model: Floats, is_annotated: Bools, widen: float) -> Estimates:
    """Difference estimates of mean scores from a random sample of topics whose documents are all annotated.

    ``λ mean_Q x + mean_n (g - λ x)`` with the regression coefficient λ of gold scores g on scores x of the model, both
    centred by system, in [0, 1.5] (Cochran 1977, section 7.8); its covariance is ``cov(g - λ x) (1 - n/Q) / n``, with
    standard errors ``widen`` times as large, for the coefficients are estimated.

    - ``gold``: scores under the annotations; of other topics anything, shape (2, n_cutoffs, Q, S)
    - ``model``: scores under a model that was fitted without the topic, same shape
    - ``is_annotated``: at least two topics, shape (Q,)
    """
    n, n_topics = int(is_annotated.sum()), len(is_annotated)
    y, x = gold[:, :, is_annotated], model[:, :, is_annotated]
    centred = y - y.mean(axis=2, keepdims=True), x - x.mean(axis=2, keepdims=True)
    squares = (centred[1] ** 2).sum(axis=(2, 3))
    slope = np.divide((centred[0] * centred[1]).sum(axis=(2, 3)), squares, out=0 * squares, where=squares > 0)
    slope = np.clip(slope, 0.0, _MOST_SLOPE)
    rest = y - slope[:, :, None, None] * x
    score = slope[:, :, None] * model.mean(axis=2) + rest.mean(axis=2)
    rest = rest - rest.mean(axis=2, keepdims=True)
    covariance = np.einsum("mkqs,mkqt->mkst", rest, rest) / (n - 1) / n * (1 - n / n_topics) * widen**2
    return Estimates(score, covariance, np.full(score.shape, n - 1.0), slope)


@dataclass(frozen=True, eq=False)
class Residuals:
    """Changes of the scores of a model by annotations, one document at a time and two at a time.

    - ``plug_in``: scores with the annotated documents as annotated and others drawn, shape (2, n_cutoffs, S)
    - ``first``: change of the sum over topics by each annotated document, shape (2, n_cutoffs, n_annotated, S)
    - ``second``: sum over the other annotated documents of the change by both, times ``1/w - 1`` of the other, same
      shape
    - ``inclusion``: w, the probability of each annotated document to be drawn, shape (n_annotated,)
    - ``n_topics``: Q
    """

    plug_in: Floats
    first: Floats
    second: Floats
    inclusion: Floats
    n_topics: int


def annotation_residuals(
    rankings: Rankings, gold: Words, drawn: Words, is_annotated: Bools, inclusion: Floats, shift: Floats
) -> Residuals:
    """The terms of :func:`spread_estimates`.

    - ``gold``: entities of annotated documents, shape (n_documents + 1, n_words)
    - ``drawn``: entities drawn by a model that did not use the document's own annotation, shape (n_draws, n_documents +
      1, n_words)
    - ``is_annotated``, ``inclusion``: shape (n_documents + 1,), False and 1 in the last place
    - ``shift``: shift of the logit that two documents of a system share a candidate, shape (n_rows,)
    """
    n_cutoffs, n_systems = len(rankings.cutoffs), rankings.n_systems
    rows = rankings.documents
    topic_of_row = np.repeat(np.arange(rankings.n_topics), n_systems)
    mixed = np.where(is_annotated[None, :, None], gold[None], drawn)

    def means(row: Ints, *replaced: Ints) -> Floats:
        """Means of rows in which the annotated documents at some ranks are drawn as well."""
        made = np.empty((2, n_cutoffs, len(row)))
        step = max(1, _BLOCK_CELLS // (len(drawn) * rows.shape[1] * drawn.shape[2]))
        for start in range(0, len(row), step):
            here = slice(start, start + step)
            documents = rows[row[here]]
            words = mixed[:, documents]
            for rank in replaced:
                at = np.arange(len(documents)), rank[here]
                words[:, at[0], at[1]] = drawn[:, documents[at]]
            made[:, :, here] = rankings.means(words, topic_of_row[row[here]], shift[row[here]])
        return made

    full = means(np.arange(len(rows)))
    plug_in = full.reshape(2, n_cutoffs, rankings.n_topics, n_systems).mean(axis=2)
    row, rank = np.nonzero(is_annotated[rows])
    without = means(row, rank)
    is_counted = rank[None, :] < np.asarray(rankings.cutoffs)[:, None]
    change = (full[:, :, row] - without) * is_counted
    number = np.cumsum(is_annotated) - 1
    n_annotated = int(is_annotated.sum())
    # Documents and systems come first, so that changes can be added at pairs of them.
    first = np.zeros((n_annotated, n_systems, 2, n_cutoffs))
    np.add.at(first, (number[rows[row, rank]], row % n_systems), np.moveaxis(change, -1, 0))
    # Pairs of annotated documents of a row: each with the later ones of its row.
    n_later = np.searchsorted(row, row, side="right") - 1 - np.arange(len(row))
    one = np.repeat(np.arange(len(row)), n_later)
    other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(n_later) - n_later, n_later)
    both = means(row[one], rank[one], rank[other])
    change = (full[:, :, row[one]] - without[:, :, one] - without[:, :, other] + both) * is_counted[:, other]
    second = np.zeros_like(first)
    weight = 1 / inclusion - 1
    documents = rows[row, rank]
    for mine, its in ((one, other), (other, one)):
        cells = number[documents[mine]], row[mine] % n_systems
        np.add.at(second, cells, np.moveaxis(change * weight[documents[its]], -1, 0))
    first, second = (np.moveaxis(each, (2, 3), (0, 1)) for each in (first, second))
    return Residuals(plug_in, first, second, inclusion[is_annotated], rankings.n_topics)


def spread_estimates(residuals: Residuals, scale: Floats, widen: float) -> Estimates:
    """Scores from documents that were drawn with inclusion probabilities w.

    ``F + c1 + c2`` with ``c1 = Σ_d a_d D_d / Q``, ``c2 = Σ_{d<l} a_d a_l D_dl / Q`` and ``a = 1/w - 1``: the expansion
    of the score in the annotations of documents that are not annotated, exact to the second order if they are drawn
    independently. c2 is shrunk over systems to ``N(m, t²)``, ``m ~ N(0, scale²)``, averaged over t. The variance is
    ``Σ (1 - w) h hᵀ / Q²``, ``h_d = D_d / w_d + Σ_l a_l D_dl`` (Efron and Stein 1981), and the posterior variance of
    c2; ``(Σ h²)² / Σ h⁴`` degrees of freedom.

    - ``scale``: size of c2, shape (2, n_cutoffs)
    - ``widen``: factor of standard errors
    """
    a, rest = (1 / residuals.inclusion - 1)[:, None], np.sqrt(1 - residuals.inclusion)[:, None]
    n_topics = residuals.n_topics
    score = np.array(residuals.plug_in)
    covariance, degrees = np.zeros((*score.shape, score.shape[-1])), np.zeros(score.shape)
    for at in np.ndindex(score.shape[:2]):
        first, second = residuals.first[at], residuals.second[at]
        influence = (first / residuals.inclusion[:, None] + second) * rest
        squares = influence**2
        total, fourth = squares.sum(axis=0) ** 2, (squares**2).sum(axis=0)
        degrees[at] = np.divide(total, fourth, out=np.full(len(total), np.inf), where=fourth > 0)
        of_pairs = second * a * rest
        correction, posterior = _shrunk(
            (second * a).sum(axis=0) / 2 / n_topics, of_pairs.T @ of_pairs / n_topics**2, float(scale[at])
        )
        score[at] += (first * a).sum(axis=0) / n_topics + correction
        covariance[at] = (influence.T @ influence / n_topics**2 + posterior) * widen**2
    return Estimates(score, covariance, degrees, np.full(score.shape[:2], np.nan))


def _shrunk(correction: Floats, variance: Floats, scale: float) -> tuple[Floats, Floats]:
    """Posterior mean and covariance of corrections of systems with a common mean and deviations of unknown size."""
    if scale <= 0:
        return np.zeros_like(correction), np.zeros_like(variance)
    one = np.eye(len(correction))
    variance = variance + _MIN_VARIANCE * one
    means, covariances, logs = [], [], []
    for deviation in scale * _DEVIATIONS:
        prior = scale**2 + deviation**2 * one
        total = variance + prior
        gain = np.linalg.solve(total, prior).T
        quadratic = float(correction @ np.linalg.solve(total, correction))
        logs.append(-(np.linalg.slogdet(total)[1] + quadratic + (deviation / scale) ** 2) / 2)
        means.append(gain @ correction)
        covariances.append(prior - gain @ prior)
    weight = np.exp(np.array(logs) - max(logs))
    weight /= weight.sum()
    mean: Floats = weight @ np.array(means)
    spread = np.array(means) - mean
    return mean, np.einsum("t,tij->ij", weight, np.array(covariances)) + (spread * weight[:, None]).T @ spread


def agreement_shifts(
    agreement: Floats, agrees: Bools, system: Ints, topic: Ints, about_topics: Floats, n_systems: int
) -> Floats:
    """Shifts of the logit that two documents of a system share a candidate, shape (Q, S), at most 3 in size.

    ``logit P(pair agrees) = logit A + δ_s + z_q·β`` with the agreement A of the model, effects ``δ_s ~ N(δ_0, t²)``,
    ``δ_0 ~ N(0, 1)``, ``β ~ N(0, 1/4)``, and the t of the largest Laplace approximation.

    - ``agreement``: A of each pair of annotated documents of a system and topic, shape (n_pairs,)
    - ``agrees``: True if the pair shares a candidate, shape (n_pairs,)
    - ``system``, ``topic``: of each pair, shape (n_pairs,)
    - ``about_topics``: z, standardised, shape (Q, p)
    """
    n_features = about_topics.shape[1]
    if not len(agrees):
        return np.zeros((len(about_topics), n_systems))
    clipped = np.clip(agreement, 1e-4, 1 - 1e-4)
    offset = np.log(clipped / (1 - clipped))
    x = np.hstack([np.eye(n_systems)[system], about_topics[topic]])
    most, best = -np.inf, np.zeros(x.shape[1])
    for deviation in _SHIFTS:
        precision = np.zeros((x.shape[1], x.shape[1]))
        precision[:n_systems, :n_systems] = np.linalg.inv(deviation**2 * np.eye(n_systems) + 1.0)
        precision[n_systems:, n_systems:] = 4.0 * np.eye(n_features)
        effect = np.zeros(x.shape[1])
        for _ in range(_NEWTON_STEPS):
            share = sigmoid(offset + x @ effect)
            hessian = (x * (share * (1 - share))[:, None]).T @ x + precision
            step = np.clip(np.linalg.solve(hessian, x.T @ (agrees - share) - precision @ effect), -1, 1)
            effect = effect + step
            if np.abs(step).max() < _TOLERANCE:
                break
        share = sigmoid(offset + x @ effect)
        log = float(np.where(agrees, np.log(share), np.log1p(-share)).sum() - effect @ precision @ effect / 2)
        log += (np.linalg.slogdet(precision)[1] - np.linalg.slogdet(hessian)[1] - (deviation / _SHIFT_SCALE) ** 2) / 2
        if log > most:
            most, best = log, effect
    shift = best[None, :n_systems] + (about_topics @ best[n_systems:])[:, None]
    return np.clip(shift, -_MOST_SHIFT, _MOST_SHIFT)
