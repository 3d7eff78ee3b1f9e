"""A model of the candidate that each document of an ambiguous query is about, fitted to annotated documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.kernels.conditional_logit import candidate_probabilities, fit_conditional_logit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Bools, Floats, Ints


#: The features of candidates; the last four describe NIL, the candidate that stands for none of the others.
FEATURES = (
    "tag",
    "log prior",
    "similarity of the name",
    "similarity to its documents",
    "log share among annotated documents",
    "has an annotated document",
    "NIL",
    "NIL without tag",
    "NIL by rank",
    "log prior by rank",
)
#: Number of parts of the topics: coefficients of each are fitted to the annotations of the others.
N_FOLDS = 5
# The probability of NIL before documents are annotated, the weight of priors among counts, and of unseen candidates.
_NIL_SHARE, _PRIOR_WEIGHT, _LEAST_PRIOR = 0.2, 2.0, 0.01


class CoefficientPriors(NamedTuple):
    """Means and standard deviations of the coefficients of :data:`FEATURES`, each of shape (10,)."""

    mean: Floats
    deviation: Floats


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """The candidates of all documents: those of the topic in order, then NIL.

    - ``topic``: of each document, ascending, shape (D,)
    - ``prob``: probability of the candidates of each topic, 0 beyond its last, shape (Q, n_candidates)
    - ``n_candidates``: of each topic, without NIL, shape (Q,)
    - ``tagged``: True if the machine tags the document with the candidate, shape (n,)
    - ``of_name``: similarity of the document and the name of the candidate, 0 for NIL, shape (n,)
    - ``similarities``: of the documents of each topic, (n_q, n_q) each
    - ``reciprocal_rank``: mean over systems of 1/rank, 0 where a system does not show the document, shape (D,)
    """

    topic: Ints
    prob: Floats
    n_candidates: Ints
    tagged: Bools
    of_name: Floats
    similarities: Sequence[Floats]
    reciprocal_rank: Floats

    @cached_property
    def document(self) -> Ints:
        """The document of each candidate, shape (n,)."""
        return np.repeat(np.arange(len(self.topic)), self.n_candidates[self.topic] + 1)

    @cached_property
    def starts(self) -> Ints:
        """The first candidate of each document, and the end of the last, shape (D + 1,)."""
        return np.concatenate([[0], np.cumsum(self.n_candidates[self.topic] + 1)])

    @cached_property
    def place(self) -> Ints:
        """The place of each candidate among those of its document, shape (n,)."""
        return np.arange(self.starts[-1]) - self.starts[:-1][self.document]

    @cached_property
    def is_nil(self) -> Bools:
        """True for NIL, shape (n,)."""
        return np.asarray(self.place == self.n_candidates[self.topic[self.document]])

    @cached_property
    def _fixed_features(self) -> Floats:
        """The features that annotations do not change, 0 for the others, shape (n, 10)."""
        document, nil = self.document, self.is_nil
        made = np.zeros((len(document), len(FEATURES)))
        first = np.concatenate([[0], np.cumsum(np.bincount(self.topic, minlength=len(self.prob)))])
        log_prior = np.log(self.prob + _LEAST_PRIOR)
        real = np.arange(self.prob.shape[1]) < self.n_candidates[:, None]
        log_prior -= (np.where(real, log_prior, 0).sum(axis=1) / np.maximum(self.n_candidates, 1))[:, None]
        topic = self.topic[document]
        some = ~nil
        made[some, 0] = self.tagged[some]
        made[some, 1] = log_prior[topic[some], self.place[some]]
        n = np.maximum(self.n_candidates[topic], 1)
        mean = np.bincount(document[some], self.of_name[some], len(self.topic))[document] / n
        made[some, 2] = (self.of_name - mean)[some]
        made[nil, 6] = 1
        has_tag = np.bincount(document[some], self.tagged[some], len(self.topic)) > 0
        made[nil, 7] = ~has_tag[document[nil]]
        logarithm = np.log(self.reciprocal_rank + _LEAST_PRIOR)
        logarithm -= (np.bincount(self.topic, logarithm, len(self.prob)) / np.maximum(np.diff(first), 1))[self.topic]
        made[nil, 8] = logarithm[document[nil]]
        made[some, 9] = made[some, 1] * logarithm[document[some]]
        return made

    def features(self, share: Floats, is_annotated: Bools) -> Floats:
        """The features of all candidates, which never use the annotation of their own document, shape (n, 10).

        - ``share``: of each candidate in the annotation of its document, shape (n,)
        - ``is_annotated``: shape (D,)
        """
        made = self._fixed_features.copy()
        if not is_annotated.any():
            return made
        starts = np.searchsorted(self.topic, np.arange(len(self.prob) + 1))
        for topic in np.unique(self.topic[is_annotated]):
            here = slice(starts[topic], starts[topic + 1])
            n = int(self.n_candidates[topic]) + 1
            rows = slice(self.starts[here.start], self.starts[here.stop])
            labelled, mine = is_annotated[here], share[rows].reshape(-1, n) * is_annotated[here][:, None]
            counts = mine.sum(axis=0) - mine
            total = counts.sum(axis=1, keepdims=True)
            similarity = np.where(labelled[None, :] & ~np.eye(len(labelled), dtype=bool), self.similarities[topic], -1)
            best = np.where(mine[None] > 0, similarity[:, :, None], -1).max(axis=1)
            prior = np.append(self.prob[topic, : n - 1] * (1 - _NIL_SHARE), _NIL_SHARE)
            block = made[rows].reshape(-1, n, len(FEATURES))
            block[:, :, 3] = np.maximum(best, 0)
            with np.errstate(divide="ignore"):
                ratio = np.log((counts + _PRIOR_WEIGHT * prior) / (total + _PRIOR_WEIGHT)) - np.log(prior)
            # A candidate with the prior 0 has no logarithm.
            block[:, :, 4] = np.where(prior > 0, ratio, np.log(np.maximum(counts, 1)))
            block[:, :, 5] = counts > 0
        return made

    def probabilities(
        self,
        share: Floats,
        is_annotated: Bools,
        priors: CoefficientPriors,
        *,
        by_topic: bool,
    ) -> Floats:
        """The probability of each candidate, of annotated documents too, never from their own annotation, shape (n,).

        Coefficients of a fifth of the topics are fitted to the annotations of the others. ``by_topic``: use no
        annotation of the document's topic, as estimates from whole topics need.
        """
        features = self.features(share, is_annotated & (not by_topic))
        mean, precision = priors.mean, 1 / priors.deviation**2
        fold = self.topic % N_FOLDS
        prob = np.zeros(len(self.document))
        for part in range(N_FOLDS):
            coef = self.coefficients(features, share, is_annotated & (fold != part), mean, precision)
            rows = np.flatnonzero(fold[self.document] == part)
            prob[rows] = candidate_probabilities(
                features[rows], np.cumsum(np.diff(self.document[rows], prepend=-1) != 0) - 1, coef
            )
        return prob

    def coefficients(self, features: Floats, share: Floats, chosen: Bools, mean: Floats, precision: Floats) -> Floats:
        """The coefficients from the annotations of some documents, shape (10,)."""
        rows = np.flatnonzero(chosen[self.document])
        number = np.cumsum(chosen) - 1
        return fit_conditional_logit(features[rows], number[self.document[rows]], share[rows], mean, precision)
