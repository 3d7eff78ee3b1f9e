"""Joint draws of the levels of unjudged documents and of the sizes of complete pools, in blocks of topics."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from vbterrier.frames.ids import Ids
from vbterrier.kernels import fingerprints
from vbterrier.kernels.grade_regression import symmetric_root
from vbterrier.kernels.normal import normal_cdf, normal_quantile
from vbterrier.kernels.resample import binomials, gammas, poissons, symmetric, uniforms
from vbterrier.unjudged.features import FEATURES
from vbterrier.unjudged.groups import consecutive, document_groups
from vbterrier.unjudged.model import LOGIT_SHRINKAGE, GradeModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints, Words
    from vbterrier.kernels.resample import Singles
    from vbterrier.unjudged.metrics import Metric
    from vbterrier.unjudged.model import Shift


# Unseen documents: the weight of the mean over topics beside a topic's own relevant documents, and the gamma's shape.
UNSEEN_SHRINKAGE, UNSEEN_SHAPE = 0.1, 0.5
# The ratio of hidden relevant documents of a level to those of the lower one, relative to that in the evidence.
HIDDEN_LEVELS = 0.4
# Pairs of a document and a draw of a block, and those that are computed at a time, in the processor's cache.
_BLOCK_CELLS, _CACHE_CELLS = 1 << 20, 1 << 18
# Blocks are kept if they have at most so many bytes for each distinct run, and at most so many in total; larger ones
# are drawn again each time they are needed.
KEPT_PER_RUN, MOST_KEPT = 1 << 26, 1 << 30
# The judged shares of all topics are those of at most about so many topics.
SHARED_TOPICS = 512
# Numbers of a topic, of its unseen documents, of a document and of the documents below the cuts differ by these words.
_TOPIC_KEY, _UNSEEN_KEY, _DOCUMENT_KEY, _GROUPS_KEY = (np.uint64(number) << np.uint64(56) for number in (1, 2, 3, 4))
# The least weight of a run beside others in the errors of its documents, and the least divisor without any run.
_LEAST_WEIGHT, _MIN_DIVISOR = 1e-9, 1e-12
# Keys of what topics share: numbers of errors and shift, then those of the coefficients of a step, of which those of
# machine labels follow those of features.
_COEFS, _N_STEP_KEYS, _LABEL_COEFS = 16, 1 << 12, 64


class DrawnTopics(NamedTuple):
    """The draws of the topics of a block."""

    # Positions of the topics, and of the first of the documents with levels and of the one after the last.
    topics: slice
    documents: slice
    # The level of each document, shape (n_documents, n_draws).
    levels: NDArray[np.uint8]
    # All documents of each topic and level, shape (n_topics, L, n_draws).
    counts: NDArray[np.int32]


class _Retrieved(NamedTuple):
    """Draws of a block before relevant documents that no run retrieves."""

    levels: NDArray[np.uint8]
    # Drawn documents of each topic and level above 0.
    counts: NDArray[np.int32]


class _Overall(NamedTuple):
    """Draws of the judged share of the relevant documents in the evidence, of its mean over topics, and of documents.

    Shapes (n_draws,), (n_draws,), and (L, n_draws) for the mean number of documents of each level in the evidence.
    """

    judged: Floats
    mean_share: Floats
    relevant: Floats


class GradeDraws:
    """Joint draws of the levels of unjudged documents, and of the sizes of the complete pools.

    Numbers depend on the seed, the ids of topics and documents, and the number of draws, not on their order. Each
    random number is a stratified sample over the draws, see :func:`vbterrier.kernels.resample.strata`, and normal ones
    come in pairs of opposite signs, which removes most of the sampling error of means.

    Documents in a cut are drawn one by one. Of the others, which only the ideal ranking needs, the number in each level
    of each topic is drawn, with the probabilities of :class:`~vbterrier.unjudged.groups.Groups`: the number of those
    that reach level 1 is binomial with the mean and the variance of their sum, and so is the number of these that reach
    the next level.

    Attributes
    ----------
    model, n_draws, seed
        The model, the number of draws and their seed.
    evidence
        The evidence of the model.
    documents
        Positions among the unjudged documents of those whose levels are available: the documents in a cut, or with
        ``deep`` all, which are then drawn one by one, shape (n_documents,).
    """

    def __init__(self, model: GradeModel, n_draws: int, seed: int, *, deep: bool = False) -> None:
        self.model, self.n_draws, self.seed, self.evidence = model, n_draws, seed, model.evidence
        evidence = model.evidence
        near = evidence.near[evidence.unjudged_positions]
        self.documents: Ints = np.arange(len(near)) if deep else np.flatnonzero(near)
        # Judged documents of each topic and level in the evidence, and the ends of the documents of each topic.
        self._inside = evidence.counts - evidence.outside
        self._ends = np.searchsorted(evidence.topic[evidence.unjudged_positions], np.arange(len(evidence.topics) + 1))
        self._stored_ends = np.searchsorted(self.documents, self._ends)
        # Normal quantiles in the middle of the strata of half of the draws, scaled to a variance of 1.
        n = 1 << max(((n_draws + 1) // 2 - 1).bit_length(), 1)
        normal = normal_quantile((np.arange(n) + 0.5) / n)
        self._normal = (normal / np.sqrt((normal**2).mean())).astype(np.float32)
        self._normal_cdf = normal_cdf(self._normal)
        self._seed_key = fingerprints.mix(np.array([seed & (1 << 64) - 1], dtype=np.uint64))
        topics = fingerprints.mix(Ids(pa.array(evidence.topics, pa.large_string())).fingerprints)
        self._topic_keys = fingerprints.mix(topics + self._seed_key)
        self._cell, self._cell_keys = self._cells(near)
        self._run_roots = np.sqrt(np.maximum(evidence.weights.by_copies, _LEAST_WEIGHT))
        self._trust = evidence.trust[evidence.unjudged_positions].astype(np.float32)
        self._call_keys: Words = fingerprints.mix(np.arange(_COEFS, dtype=np.uint64) + self._seed_key)
        self._shared = self._of_call() if model.steps else []
        if model.steps:
            self._shift = model.shift
            self._noise = self._noise_variances(self._shift)
        self._groups = document_groups(model, ~near & (not deep), self._ends)
        # The divisors of metrics by block, which all runs share, (n_topics, n_draws) each.
        self.norms: dict[tuple[Metric, int | None, int], Floats] = {}
        self._blocks = consecutive(self._stored_ends + self._groups.ends, max(_BLOCK_CELLS // n_draws, 1))
        cells = len(self.documents) + 4 * evidence.counts.size
        self.is_kept = cells * n_draws <= min(KEPT_PER_RUN * max(evidence.n_distinct, 1), MOST_KEPT)
        self._kept: list[DrawnTopics] = []
        if self.is_kept:
            self._kept = list(self.blocks())

    def blocks(self, topics: Ints | None = None) -> Iterator[DrawnTopics]:
        """Yield the draws of all topics, or of the blocks with some topics (positions, increasing), block by block."""
        blocks = self._blocks
        if topics is not None:
            blocks = [one for one in blocks if np.diff(np.searchsorted(topics, [one.start, one.stop]))[0]]
        if self._kept:
            yield from (block for block in self._kept if block.topics in blocks)
            return
        parts: Iterable[tuple[slice, _Retrieved]] = ((each, self._retrieved_draws(each)) for each in blocks)
        if self.is_kept:
            parts = list(parts)
            overall = self._overall(parts)
        else:
            overall = self._overall_of_some
        for each, drawn in parts:
            counts = drawn.counts + self._draw_unseen_counts(each, drawn.counts, overall)
            counts += self.evidence.counts[each, :, None].astype(np.int32)
            documents = slice(int(self._stored_ends[each.start]), int(self._stored_ends[each.stop]))
            yield DrawnTopics(each, documents, drawn.levels, counts)

    @cached_property
    def levels(self) -> NDArray[np.uint8]:
        """The level of each available document in each draw, shape (n_documents, n_draws)."""
        return np.concatenate([block.levels for block in self.blocks()])

    @cached_property
    def counts(self) -> Ints:
        """All documents of each topic and level, shape (n_draws, n_topics, L)."""
        return np.concatenate([np.moveaxis(block.counts, 2, 0) for block in self.blocks()], axis=1).astype(np.int64)

    @cached_property
    def unseen_counts(self) -> Ints:
        """Documents that no run retrieves and nobody judged, shape (n_draws, n_topics, L)."""
        inside = [self._retrieved_draws(topics).counts + self._inside[topics, :, None] for topics in self._blocks]
        outside: Ints = self.counts - np.moveaxis(np.concatenate(inside), 2, 0) - self.evidence.outside
        outside[:, :, 0] = 0
        return outside

    @cached_property
    def shares(self) -> Floats:
        """The share of draws in which each unjudged document has each level, shape (n_unjudged, L)."""
        shares = np.empty((len(self.evidence.unjudged_positions), self.evidence.counts.shape[1]))
        for topics in self._blocks:
            documents = np.arange(self._ends[topics.start], self._ends[topics.stop])
            steps = [self._of_topics(number, topics) for number in range(len(self.model.steps))]
            levels = np.zeros((len(documents), self.n_draws), dtype=np.uint8)
            for part, drawn, _ in self._draw_levels(topics, documents, steps):
                levels[:, part] = drawn
            shares[documents] = np.stack(
                [np.count_nonzero(levels == level, axis=1) for level in range(shares.shape[1])], axis=1
            )
        return shares / self.n_draws

    def _noise_variances(self, shift: Shift) -> Floats:
        """The variance of all errors of the logit of a kind of documents, except of regressions, shape (n_kinds,)."""
        constants, n_near = self.model.constants, len(self._cell)
        selected = shift.parts**2 @ np.square(constants.shift_sds) + constants.topic_selected**2
        in_cut = np.arange(len(shift.parts)) < n_near
        of_run = np.where(in_cut, self.model.of_run**2 + constants.of_run_topic**2, 0.0)
        return np.asarray(constants.topic**2 + constants.call**2 + of_run + self.model.sigma * selected)

    def _cells(self, near: Bools) -> tuple[Ints, Words]:
        """Cells of a topic and a run, whose documents share an error.

        The cell of each unjudged document in a cut, that of the run with its best rank, shape (n_near,), and a key of
        each cell, which depends on the topic and the documents of the run.
        """
        evidence = self.evidence
        run_keys = evidence.run_keys
        # The best rank of a document in a cut is in a cut.
        cut, rows = evidence.in_cut, evidence.unjudged_positions[near]
        run, item = evidence.run[cut], evidence.item[cut]
        order = np.lexsort((run_keys[run], evidence.rank[cut], item))
        leading = run[order[np.searchsorted(item[order], rows)]]
        cells, cell_of_row = np.unique(evidence.topic[rows] * evidence.n_distinct + leading, return_inverse=True)
        topic, run = np.divmod(cells, max(evidence.n_distinct, 1))
        return cell_of_row.reshape(-1), fingerprints.mix(self._topic_keys[topic] + run_keys[run])

    def _of_call(self) -> list[_StepDraws]:
        """Draws of what all topics share, for each step."""
        model, constants, n = self.model, self.model.constants, self.n_draws
        selected = uniforms(self._call_keys[:1], n)[0] < model.sigma
        means = (constants.selected, constants.excess, constants.pool, constants.strange, 0.0)
        of_shift = (
            symmetric(self._call_keys[5 : 5 + len(means)], n, self._normal) * np.array(constants.shift_sds)[:, None]
        )
        of_shift = (of_shift + np.array(means)[:, None]) * selected
        shared = symmetric(self._call_keys[1:2], n, self._normal)[0] * constants.call
        run_keys = fingerprints.mix(self.evidence.run_keys) ^ self._call_keys[2]
        of_run = model.of_run * symmetric(run_keys, n, self._normal)
        of_topic = np.sqrt(constants.topic**2 + selected * constants.topic_selected**2)
        steps = []
        for number, step in enumerate(model.steps):
            part, fitted = constants.higher if number else 1.0, step.regression
            root, keys = symmetric_root(fitted.coef_cov * constants.inflation), self._coef_keys(number)
            coef = fitted.coef[:, None] + root @ symmetric(keys, n, self._normal).astype(np.float64)
            rows, first = np.zeros((fitted.n_random + 1, n)), len(coef) + len(means)
            of_topic_rows = slice(first, first + len(rows))
            weights = np.concatenate([coef, part * of_shift, rows, part * of_run])
            noise = part * np.stack([shared, of_topic])
            steps.append(_StepDraws(weights.astype(np.float32), noise.astype(np.float32), of_topic_rows))
        return steps

    def _coef_keys(self, number: int) -> Words:
        """A key of each coefficient of a step, by the name of its feature, its labeller or its run, shape (p,)."""
        features, n_coefs = self.model.features, len(self.model.steps[number].regression.coef)
        start = np.uint64(_COEFS + number * _N_STEP_KEYS) + self._seed_key
        # Models of pools alone have an intercept.
        is_intercept = n_coefs == 1
        n_runs = 0 if is_intercept else features.by_run.shape[1]
        names = features.names[:1] if is_intercept else features.names
        places = [FEATURES.index(name) for name in names]
        places += range(_LABEL_COEFS, _LABEL_COEFS + n_coefs - len(places) - n_runs)
        of_features = np.array(places, dtype=np.uint64)
        return fingerprints.mix(
            np.concatenate([of_features, fingerprints.mix(self.evidence.run_keys[:n_runs])]) + start
        )

    def _step_design(
        self, number: int, features: Floats | Singles, kind: Ints, support: NDArray[Any], variance: Any = 0.0
    ) -> Singles:
        """Features of documents of some kinds for the rows of weights of a step, shape (n, n_weights).

        ``support``: membership in the cuts of distinct runs, shape (n, n_distinct). The error of a document is the mean
        of those of its runs, weighted by the roots of their weights and scaled to the variance of one.
        ``variance``: that of the logits of the documents that a row stands for, which reduces the logit of their mean
        probability as noise does.
        """
        constants, n_random = self.model.constants, self.model.steps[number].regression.n_random
        part, extra = (constants.higher, constants.topic_higher) if number else (1.0, 0.0)
        inflated = 1 + LOGIT_SHRINKAGE * (part**2 * self._noise[kind] + extra**2)[:, None]
        of_run = support * self._run_roots
        of_run /= np.sqrt(np.maximum((of_run**2).sum(axis=1, keepdims=True), _MIN_DIVISOR))
        scaled = np.column_stack([features, self._shift.parts[kind], features[:, :n_random]]) * np.sqrt(inflated)
        weighed = np.column_stack([scaled, np.ones(len(scaled)), of_run])
        return np.asarray(
            weighed / np.sqrt(1 + LOGIT_SHRINKAGE * np.reshape(variance, (-1, 1)) * inflated), dtype=np.float32
        )

    def _of_topics(self, number: int, topics: slice) -> Singles:
        """Draws of the effects and of the noise of each topic in a step, shape (n_topics, q + 1, n_draws)."""
        step = self.model.steps[number]
        extra = self.model.constants.topic_higher
        n_random, keys = step.regression.n_random, self._topic_keys[topics] ^ _TOPIC_KEY
        # Numbers of the noise of all steps, of that of this step, and of each effect.
        numbers = np.array([0, 1 + number, *range(64 * (number + 1), 64 * (number + 1) + n_random)], dtype=np.uint64)
        every = fingerprints.mix(keys[:, None] + numbers)
        normals = symmetric(every.reshape(-1), self.n_draws, self._normal).reshape(*every.shape, -1)
        root = np.linalg.cholesky(step.regression.effect_cov[topics] * self.model.constants.inflation)
        effects = root.astype(np.float32) @ normals[:, 2:]
        effects += step.regression.effect[topics, :, None].astype(np.float32)
        if step.intercepts is not None:
            intercepts = replace(step.intercepts, cdf=step.intercepts.cdf[topics])
            # The probabilities below the normal numbers of the first effect.
            prob = symmetric(every[:, 2], self.n_draws, self._normal_cdf, opposite=self._normal_cdf[::-1])
            effects[:, 0] = intercepts.quantiles(prob.T).T
        shared, of_topic = self._shared[number].noise
        noise = normals[:, 0] * of_topic + shared
        if number:
            noise += np.float32(extra) * normals[:, 1]
        return np.concatenate([effects, noise[:, None]], axis=1)

    def _logits(self, number: int, design: Singles, of_topic: Singles, ends: list[int], part: slice) -> Singles:
        """The logits of a step of the documents of a block, shape (n_documents, n_part).

        ``of_topic``: see :meth:`_of_topics`; ``ends``: the first document of each topic and the number of all.
        """
        shared = self._shared[number]
        value = np.empty((len(design), part.stop - part.start), dtype=np.float32)
        weights = shared.weights[:, part].copy()
        # A product for each topic, so that its numbers do not depend on other topics.
        for place, (low, high) in enumerate(pairwise(ends)):
            if low < high:
                weights[shared.of_topic] = of_topic[place, :, part]
                np.matmul(design[low:high], weights, out=value[low:high])
        return value

    def _retrieved_draws(self, topics: slice) -> _Retrieved:
        """Draw the levels of the unjudged documents of some topics."""
        n_levels, n_steps = self.evidence.counts.shape[1], len(self.model.steps)
        documents = self.documents[self._stored_ends[topics.start] : self._stored_ends[topics.stop]]
        levels = np.zeros((len(documents), self.n_draws), dtype=np.uint8)
        counts = np.zeros((topics.stop - topics.start, n_levels, self.n_draws), dtype=np.int32)
        if not n_steps:
            return _Retrieved(levels, counts)
        steps = [self._of_topics(number, topics) for number in range(n_steps)]
        ends = self._stored_ends[topics.start : topics.stop + 1] - self._stored_ends[topics.start]
        open_ = np.flatnonzero(np.diff(ends))
        # A quarter of the time of wider numbers.
        kind = np.uint8 if np.diff(ends).max() <= np.iinfo(np.uint8).max else np.int32
        for part, drawn, counted in self._draw_levels(topics, documents, steps):
            levels[:, part] = drawn
            for level in range(1, n_steps + 1):
                reached = (counted >= level).view(np.uint8)
                counts[open_, level, part] = np.add.reduceat(reached, ends[open_], axis=0, dtype=kind)
        if self._groups.ends[topics.stop] > self._groups.ends[topics.start]:
            counts[:, 1 : n_steps + 1] += self._below(topics, steps)
        counts[:, 1:n_steps] -= counts[:, 2 : n_steps + 1]
        return _Retrieved(levels, counts)

    def _draw_levels(
        self, topics: slice, documents: Ints, steps: list[Singles]
    ) -> Iterator[tuple[slice, NDArray[np.uint8], NDArray[np.uint8]]]:
        """Yield some of the draws: levels of documents of a block one by one, and in complete pools, (n_documents, n).

        ``documents``: positions among the unjudged documents; ``steps``: see :meth:`_of_topics`. A document reaches a
        level if its uniform number is below the probability p of it, and counts with this level in complete pools if
        the number is below p times its trust: documents of useless runs add nothing to the ideal rankings of others.
        """
        evidence, constants, n = self.evidence, self.model.constants, self.n_draws
        if not len(documents) or not steps:
            return
        items, kind = evidence.unjudged_positions[documents], self._shift.kind[documents]
        ends = np.searchsorted(documents, self._ends[topics.start : topics.stop + 1]).tolist()
        # Documents in a cut are the first kinds.
        near = evidence.near[items]
        cells, cell_of_row = np.unique(self._cell[kind[near]], return_inverse=True)
        keys = fingerprints.mix(evidence.keys[items] + self._seed_key) ^ _DOCUMENT_KEY
        support, trust = evidence.members[items], self._trust[documents, None]
        all_count = bool((trust >= 1).all())
        designs = [
            self._step_design(number, step.design[items], kind, support) for number, step in enumerate(self.model.steps)
        ]
        step = max(_CACHE_CELLS // len(documents), 1)
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            uniform = uniforms(keys, n, part.start, part.stop)
            errors = symmetric(self._cell_keys[cells], n, self._normal, part.start, part.stop) * np.float32(
                constants.of_run_topic
            )
            drawn, reached = np.zeros(uniform.shape, dtype=np.uint8), np.ones(1, dtype=np.float32)
            counted = drawn if all_count else np.zeros_like(drawn)
            for number, of_topic in enumerate(steps):
                value = self._logits(number, designs[number], of_topic, ends, part)
                value[near] += errors[cell_of_row.reshape(-1)] * np.float32(constants.higher if number else 1.0)
                # The probability of a level at least, which the uniform number of a document falls below.
                reached = reached * _sigmoid(value)
                drawn += uniform < reached
                if not all_count:
                    counted += uniform < reached * trust
            yield part, drawn, counted

    def _below(self, topics: slice, steps: list[Singles]) -> NDArray[np.int32]:
        """Draws of the documents below the cuts that reach each level above 0, shape (n_topics, n_steps, n_draws)."""
        n, groups = self.n_draws, slice(*self._groups.ends[[topics.start, topics.stop]].tolist())
        ends = self._groups.ends[topics.start : topics.stop + 1] - groups.start
        open_ = np.flatnonzero(np.diff(ends))
        first = ends[open_]
        # The kind of all documents of a topic below the cuts.
        kind = len(self._cell) + np.repeat(np.arange(topics.start, topics.stop), np.diff(ends))
        sizes = self._groups.sizes[groups, None].astype(np.float32)
        # No run has them in its cut.
        support = np.zeros((len(kind), self.evidence.n_distinct))
        designs = [
            self._step_design(number, means[groups], kind, support, variances[groups])
            for number, (means, variances) in enumerate(zip(self._groups.means, self._groups.variances, strict=True))
        ]
        expected = np.zeros((len(steps), len(ends) - 1, n), dtype=np.float32)
        squares = np.zeros(expected.shape[1:], dtype=np.float32)
        step = max(_CACHE_CELLS // len(kind), 1)
        for start in range(0, n, step):
            part, reached = slice(start, min(start + step, n)), np.ones(1, dtype=np.float32)
            for number, of_topic in enumerate(steps):
                reached = reached * _sigmoid(self._logits(number, designs[number], of_topic, ends.tolist(), part))
                documents = reached * sizes
                expected[number, open_, part] = np.add.reduceat(documents, first, axis=0)
                if not number:
                    squares[open_, part] = np.add.reduceat(documents * reached, first, axis=0)
        # Their sum has the mean Σ p and the variance Σ p (1 - p), those of Σ p / P trials of P = Σ p² / Σ p.
        counts, tiny = np.empty((len(ends) - 1, len(steps), n), dtype=np.int32), np.float32(1e-30)
        prob = squares / (expected[0] + tiny)
        size, most = expected[0] / (prob + tiny), np.diff(self._ends - self._stored_ends)[topics, None]
        for number in range(len(steps)):
            if number:
                prob = expected[number] / (expected[number - 1] + tiny)
                size, most = counts[:, number - 1].astype(np.float32), counts[:, number - 1]
            keys = self._topic_keys[topics] ^ _GROUPS_KEY ^ np.uint64(number)
            drawn = binomials(size, np.minimum(prob, np.float32(1 - 1e-6)), uniforms(keys, n))
            counts[:, number] = np.minimum(drawn, most)
        return counts

    @cached_property
    def _overall_of_some(self) -> _Overall:
        """See :meth:`_overall`, over some blocks: all of them would be drawn twice."""
        every = max(len(self.evidence.topics) // SHARED_TOPICS, 1)
        return self._overall([(topics, self._retrieved_draws(topics)) for topics in self._blocks[::every]])

    def _overall(self, parts: Sequence[tuple[slice, _Retrieved]]) -> _Overall:
        judged = sum(self._inside[topics, 1:].sum() for topics, _ in parts)
        drawn = np.sum([step.counts.sum(axis=0) for _, step in parts], axis=0)
        share = judged / np.maximum(judged + drawn[1:].sum(axis=0), 1e-9)
        n_topics = sum(topics.stop - topics.start for topics, _ in parts)
        shares = [self._judged_share(topics, step.counts, share).sum(axis=0, dtype=float) for topics, step in parts]
        inside = np.sum([self._inside[topics].sum(axis=0) for topics, _ in parts], axis=0)[:, None]
        return _Overall(share, np.sum(shares, axis=0) / n_topics, (inside + drawn) / n_topics + 1e-3)

    def _judged_share(self, topics: slice, drawn: NDArray[np.int32], overall: Floats) -> Singles:
        """The judged share of the relevant documents of each topic, shape (n_topics, n_draws).

        A beta distribution with the share Q of all topics as prior of weight 4, lowered to ``q^(1 + 2 sigma U)``. Its
        parameters are ``j + 4Q + 1`` and ``u + 4(1 - Q)`` with j judged and u unjudged relevant documents: the 1 makes
        the mean of the odds ``(1 - q)/q``, to which unseen documents are proportional, ``(u + 4(1 - Q))/(j + 4Q)``.
        """
        judged = self._inside[topics, 1:].sum(axis=1)[:, None]
        others = np.maximum(drawn[:, 1:].sum(axis=1) + 4 * (1 - overall), 1e-9)
        first, second = (
            gammas(self._topic_keys[topics] ^ _UNSEEN_KEY ^ np.uint64(number), self.n_draws, self._normal, shape)
            for number, shape in ((1, judged + 4 * overall + 1), (2, others))
        )
        lowered = 1 + np.float32(2 * self.model.sigma) * uniforms(self._call_keys[3:4], self.n_draws)
        share: Singles = np.clip(first / (first + second + np.float32(1e-30)), np.float32(0.02), np.float32(1 - 1e-7))
        return np.asarray(np.maximum(share**lowered, np.float32(0.02)))

    def _draw_unseen_counts(self, topics: slice, drawn: NDArray[np.int32], overall: _Overall) -> NDArray[np.int32]:
        """Relevant documents that no run retrieves and nobody judged, shape (n_topics, L, n_draws).

        The judged share q of the relevant documents in the evidence estimates that of the documents outside (see
        :meth:`_judged_share`). The relevant documents outside that were judged, then follow a Poisson distribution with
        rate ``q λ``, and the others one with rate ``(1 - q) λ``. λ has a gamma prior whose mean is that over topics, in
        proportion to the topic's documents of this level in the evidence, shrunk to their mean.

        If documents were selected, and hardly any outside the evidence was judged, nothing is known about them. The
        part of them that nobody could find is then ``h (1 - q)`` times the relevant documents in the evidence, with the
        logarithm of h normal around that of :attr:`GradeModel.hidden`; fewer of higher levels.
        """
        evidence, model, n = self.evidence, self.model, self.n_draws
        unseen = np.zeros(drawn.shape, dtype=np.int32)
        # A topic without unjudged documents has its pool as it is.
        open_ = np.flatnonzero(np.diff(self._ends[topics.start : topics.stop + 1]))
        if not len(open_) or not model.steps:
            return unseen
        # The share of documents outside that could be judged, and the relevant ones of the others.
        n_outside, n_judged = evidence.outside.sum(), evidence.counts.sum()
        reached = np.float32(1 - model.sigma * (1 - min(n_outside / max(n_judged - n_outside, 1), 1.0)))
        median, deviation = model.hidden
        size = median * np.exp(deviation * symmetric(self._call_keys[4:5], n, self._normal)[0])
        hidden = ((1 - reached) * size * (1 - overall.judged)).astype(np.float32)
        share = self._judged_share(topics, drawn, overall.judged)
        share *= reached
        for level in range(1, drawn.shape[1]):
            n_beyond = evidence.outside[topics, level]
            rate = ((evidence.outside[:, level].sum() + 0.5) / len(evidence.topics) / overall.mean_share).astype(
                np.float32
            )
            within = (drawn[:, level] + (self._inside[topics, level, None] + 1e-3)).astype(np.float32)
            prior = within / overall.relevant[level].astype(np.float32) + np.float32(UNSEEN_SHRINKAGE)
            prior *= rate / np.float32(1 + UNSEEN_SHRINKAGE)
            prior += hidden * np.float32(HIDDEN_LEVELS ** (level - 1)) * within
            keys = self._topic_keys[topics] ^ _UNSEEN_KEY ^ np.uint64(2 * level + 1)
            expected = gammas(keys, n, self._normal, (n_beyond + UNSEEN_SHAPE)[:, None])
            expected *= (1 - share) / (np.float32(UNSEEN_SHAPE) / prior + share)
            uniform = uniforms(keys + np.uint64(1), n)
            unseen[open_, level] = poissons(expected[open_], uniform[open_])
        return unseen


class _StepDraws(NamedTuple):
    """Draws of what all topics share in a step."""

    # Coefficients of features and of the shift, zeros for the effects and the noise of a topic, errors of runs, (., B).
    weights: Singles
    # Noise of the call, and the standard deviation of that of a topic, shape (2, B).
    noise: Singles
    # The rows of the weights for the effects and the noise of a topic.
    of_topic: slice


def _sigmoid(value: Singles) -> Singles:
    """``1 / (1 + exp(-value))``, in place."""
    with np.errstate(over="ignore"):
        np.exp(np.negative(value, out=value), out=value)
    value += np.float32(1)
    return np.divide(np.float32(1), value, out=value)
