"""Models of a tagger's errors, estimated from labelled documents, and scores under gold tags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, examples, warn
from vbterrier.frames.contracts import TagFrame, frame_of, is_frame, require
from vbterrier.frames.ids import ids_of, require_same_kind
from vbterrier.frames.named import named
from vbterrier.frames.notebook import Panel, Shown
from vbterrier.kernels.candidates import normalised
from vbterrier.kernels.grade_regression import sigmoid
from vbterrier.kernels.resample import stream
from vbterrier.kernels.vb import per_topic
from vbterrier.stats.candidates import CandidateArrays
from vbterrier.stats.matches import WeightedSuccess

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.stats.candidates import Draws
    from vbterrier.stats.matches import Statistic
    from vbterrier.stats.perturbations import Tagged


# Labelled documents below which the rates of a tagger are mostly those of their priors.
_FEW = 20
# Standard deviations of the normal priors of the intercept, the slope and the logarithm of the strength.
_PRIOR_SD = np.array([2.0, 1.0, 1.5])
# Keeps the log odds of probabilities of 0 and 1 finite.
_LEAST = 1e-3
# Weight of the probabilities of candidates among the observed confusions of an entity.
_PRIOR_CONFUSIONS = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class TaggerModel(Shown):
    """Result of :func:`fit_tagger`: the errors of a tagger on labelled documents.

    ``entities``: one row per gold entity of the sample, most frequent first: entity_id, ``n_gold``, ``n_found``
    (documents tagged with it), ``log_odds`` (mean over the queries whose candidate it is, 0 without intents), ``found``
    (the shrunk rate). ``confusions``: entities that were missed where another was tagged wrongly: entity_id,
    ``taken_for``, ``n`` (documents; one that allows several explanations counts in part for each). ``labelled, gold,
    tags``: docno of the labelled documents, and docno and entity_id of their gold tags and tags.

    ``intercept, slope, strength``: the rates of entities are distributed as ``Beta(s μ, s (1 - μ))``, ``logit μ =
    intercept + slope * log odds``. ``lost``: share of missed entities that no wrong tag replaces. ``spurious``: wrong
    tags per labelled document.
    """

    entities: pd.DataFrame
    confusions: pd.DataFrame
    labelled: pd.DataFrame
    gold: pd.DataFrame
    tags: pd.DataFrame
    intercept: float
    slope: float
    strength: float
    lost: float
    spurious: float

    def _line(self) -> str:
        return (
            f"{len(self.labelled)} labelled documents; {self.entities['n_found'].sum()} of "
            f"{self.entities['n_gold'].sum()} entities found, {self.lost:.4f} of the others lost; strength "
            f"{self.strength:.2f}; {self.spurious:.2f} wrong tags per document"
        )

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Entities", self.entities)
        yield Panel("Confusions", self.confusions)

    @property
    def errors(self) -> TaggerErrors:
        """Perturbation of gold tags with the errors of this tagger."""
        return TaggerErrors(self)


@dataclass(frozen=True, eq=False)
class TaggerErrors:
    """Give gold tags the errors of a fitted tagger.

    In a replica, an entity of a query is found in each document with a rate drawn from its posterior distribution.
    Where it is not found, its tag is lost or replaced, by the same other candidate in all documents: one that the
    tagger took it for in labelled documents, or one drawn by its probability. Tags that the tagger adds to documents
    without the entity are not simulated.
    """

    target: ClassVar[str] = "tags"
    adds_errors: ClassVar[bool] = True
    model: TaggerModel

    def __repr__(self) -> str:
        return f"TaggerErrors({self.model._line()})"  # noqa: SLF001 - the model of this module

    def apply(self, tagged: Tagged, draws: Draws) -> Tagged:
        """Keep, replace or lose each tag."""
        from scipy.special import betaincinv

        rates = tagged.candidates.cached(("tagger rates", id(self.model)), self._rates)
        here = tagged.candidates.span.start + tagged.intent
        unit, own = tagged.keys["entity"], tagged.keys["mention"]
        found = betaincinv(rates.found[here], rates.missed[here], draws.keyed("rate", unit))
        wrong = draws.keyed("wrong", own) >= found
        lost = wrong & (draws.keyed("lost", unit) < self.model.lost)
        other = rates.taken_for(here, draws.keyed("which", unit), draws.keyed("other", unit))
        lost |= wrong & (tagged.candidates.sizes[tagged.topic] == 1)
        intent = np.where(wrong, other - tagged.candidates.span.start, tagged.intent)
        return replace(tagged, intent=intent, weight=np.where(lost, 0.0, tagged.weight))

    def _rates(self, candidates: CandidateArrays) -> _Rates:
        """Return the rates of all candidates."""
        names = candidates.entity.text.to_pylist()
        known = self.model.entities.set_index("entity_id").reindex(names)
        n_gold, n_found = (known[column].fillna(0).to_numpy(np.float64) for column in ("n_gold", "n_found"))
        frame = pd.DataFrame({"entity_id": names, "topic": candidates.topic, "row": np.arange(len(names))})
        others = frame.rename(columns={"entity_id": "taken_for", "row": "other"})
        pairs = frame.merge(self.model.confusions, on="entity_id").merge(others, on=["topic", "taken_for"])
        pairs = pairs.sort_values(["row", "other"])
        prob = _probabilities(candidates)
        mean = sigmoid(self.model.intercept + self.model.slope * _log_odds(prob))
        return _Rates(
            n_found + self.model.strength * mean,
            n_gold - n_found + self.model.strength * (1 - mean),
            np.bincount(pairs["row"], pairs["n"], len(names)).astype(np.float64),
            np.concatenate([[0.0], np.cumsum(pairs["n"].to_numpy())]),
            np.searchsorted(pairs["row"].to_numpy(), np.arange(len(names))),
            pairs["other"].to_numpy(np.int64),
            prob,
            candidates.starts[candidates.topic],
            candidates.starts[candidates.topic + 1] - 1,
        )


@dataclass(frozen=True, eq=False)
class _Rates:
    """Parameters of the beta distribution of the rate of each of n candidates, and the candidates that replace each.

    ``confused``: number of observed confusions of each candidate. ``cumulated, first, others``: cumulated numbers of
    all confusions, the first confusion of each candidate, and the other candidate of each. ``prob, start, last``:
    probability of each candidate, and the first and last candidate of its query.
    """

    found: Floats
    missed: Floats
    confused: Floats
    cumulated: Floats
    first: Ints
    others: Ints
    prob: Floats
    start: Ints
    last: Ints

    def taken_for(self, here: Ints, which: Floats, uniform: Floats) -> Ints:
        """Draw the candidate that replaces each of some candidates, shape of the uniform numbers."""
        ends = np.cumsum(self.prob)
        base = ends[self.start[here]] - self.prob[self.start[here]]
        mine = self.prob[here]
        before = ends[here] - mine - base
        # A point of the cumulated probabilities of the other candidates of the query.
        point = uniform * np.maximum(ends[self.last[here]] - base - mine, 0.0)
        point = point + np.where(point >= before, mine, 0.0)
        drawn = np.searchsorted(ends, base + point, side="right")
        drawn = np.clip(drawn, self.start[here], self.last[here])
        # Rounding may give the candidate itself, or probabilities of 0 leave no other.
        drawn = np.where(drawn == here, np.where(here < self.last[here], here + 1, self.start[here]), drawn)
        if not len(self.others):
            return drawn
        confused = self.confused[here]
        observed = which < confused / (confused + _PRIOR_CONFUSIONS)
        place = np.searchsorted(self.cumulated, self.cumulated[self.first[here]] + uniform * confused, side="right") - 1
        return np.where(observed, self.others[np.clip(place, 0, len(self.others) - 1)], drawn)


def fit_tagger(tags: Any, gold: Any, *, intents: Any = None, documents: Any = None) -> TaggerModel:
    """Estimate the errors of a tagger from a sample of labelled documents.

    The rate at which entity i is found has the posterior distribution ``Beta(s μ_i + found_i, s (1 - μ_i) + missed_i)``
    with ``logit μ_i = a + c logit π_i``. The strength s, a and c are the most probable parameters of the beta-binomial
    counts of all entities. A tagger that finds some entities always and others never has a small s: its errors repeat.

    Parameters
    ----------
    tags, gold
        Tags of documents by the tagger, and gold tags of the labelled ones (docno, entity_id [, weight]): frames,
        registered names, or paths. Weights other than 0 count as 1. Tags of other documents are ignored.
    intents
        Candidates of ambiguous queries (qid, entity_id, prob): only these entities count, and only confusions between
        candidates of the same query. Entities of ambiguous names are harder than others, so that a model without
        intents underestimates the errors that affect the scores of ambiguous queries.
    documents
        The labelled documents, a random sample of those that systems retrieve: ids, or a frame with docno. By default
        the documents of ``gold``; name labelled documents without any gold tag here.

    Returns
    -------
    TaggerModel
        ``errors`` is a perturbation that gives gold tags these errors;
        ``vbterrier.evaluate_intents(..., tagger_model=)`` estimates scores under gold tags from tags of this tagger.

    Raises
    ------
    InputError
        Illegal tags, tags of single queries, gold tags of documents that are not in ``documents``, no labelled
        document, no gold tag of a candidate, ids of different kinds.

    Examples
    --------
    >>> gold = pd.DataFrame({"docno": ["d1", "d2", "d3"], "entity_id": ["country", "team", "team"]})
    >>> tags = gold.assign(entity_id="country")
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # few documents
    ...     model = fit_tagger(tags, gold)
    >>> model.confusions.values.tolist()
    [['team', 'country', 2.0]]
    >>> model.entities[["entity_id", "n_gold", "n_found"]].values.tolist()
    [['team', 2, 0], ['country', 1, 1]]
    """
    given, right = (TagFrame(named("tags", of), name=name) for of, name in ((tags, "tags"), (gold, "gold")))
    for table in (given, right):
        if table.topics is not None:
            raise InputError(f"{table.name}: found a column qid; a tagger model needs tags of documents, drop qid")
    require_same_kind(given.docno, right.docno, "tags column 'docno'", "gold column 'docno'")
    require_same_kind(given.entity, right.entity, "tags column 'entity_id'", "gold column 'entity_id'")
    labelled = _documents(documents, right)
    inside, outside = (_pairs(table, labelled) for table in (given, right))
    if len(labelled) < _FEW:
        warn(f"{len(labelled)} labelled documents: rates of the tagger are mostly guesses; label at least {_FEW}")
    if not len(inside):
        warn(
            f"tags have none of the labelled documents: {examples(given.docno.text[:4].to_pylist())} against "
            f"{examples(labelled['docno'].iloc[:4])}; check the ids"
        )
    n_spurious = len(inside) - int(_in(inside, outside).sum())
    candidates = None if intents is None else CandidateArrays.of(named("intents", intents))
    log_odds = pd.Series(0.0, index=outside["entity_id"].unique())
    counted_tags, counted = inside, outside
    if candidates is not None:
        require_same_kind(candidates.entity, right.entity, "intents column 'entity_id'", "gold column 'entity_id'")
        names = pd.Series(candidates.entity.text.to_pylist(), dtype=object)
        log_odds = pd.Series(_log_odds(_probabilities(candidates))).groupby(names).mean()
        counted_tags, counted = (frame[frame["entity_id"].isin(names)] for frame in (inside, outside))
    if not len(counted):
        raise InputError("gold has no tag of a candidate of intents; check the entity ids, or label more documents")
    missed, wrong = counted[~_in(counted, counted_tags)], counted_tags[~_in(counted_tags, counted)]
    pairs = missed.merge(wrong.rename(columns={"entity_id": "taken_for"}), on="docno")
    if candidates is not None:
        # Entities that are candidates of the same query.
        frame = pd.DataFrame({"entity_id": names, "topic": candidates.topic})
        both = pairs[["entity_id", "taken_for"]].drop_duplicates().merge(frame, on="entity_id")
        both = both.merge(frame.rename(columns={"entity_id": "taken_for"}), on=["taken_for", "topic"])
        pairs = pairs[_in(pairs[["entity_id", "taken_for"]], both[["entity_id", "taken_for"]].drop_duplicates())]
    n_taken = len(pairs[["docno", "entity_id"]].drop_duplicates()) if candidates is not None else len(wrong)
    pairs["n"] = 1 / pairs.groupby(["docno", "entity_id"])["taken_for"].transform("size")
    confusions = pairs.groupby(["entity_id", "taken_for"], as_index=False)["n"].sum()
    confusions = confusions.sort_values(["n", "entity_id", "taken_for"], ascending=[False, True, True])
    entities = counted.assign(found=_in(counted, counted_tags)).groupby("entity_id")["found"].agg(["size", "sum"])
    entities = entities.reset_index().set_axis(["entity_id", "n_gold", "n_found"], axis=1)
    entities = entities.sort_values(["n_gold", "entity_id"], ascending=[False, True], ignore_index=True)
    entities = entities.astype({"n_gold": "int64", "n_found": "int64"})
    entities["log_odds"] = log_odds.reindex(entities["entity_id"]).to_numpy()
    intercept, slope, strength = _beta_binomial(
        *(entities[name].to_numpy(np.float64) for name in ("n_found", "n_gold", "log_odds"))
    )
    mean = sigmoid(intercept + slope * entities["log_odds"].to_numpy())
    entities["found"] = (entities["n_found"] + strength * mean) / (entities["n_gold"] + strength)
    return TaggerModel(
        entities,
        confusions.reset_index(drop=True),
        labelled,
        _typed(outside, right),
        _typed(inside, right),
        intercept,
        slope,
        strength,
        max(0.0, 1 - n_taken / len(missed)) if len(missed) else 0.0,
        n_spurious / len(labelled),
    )


def _log_odds(prob: Floats) -> Floats:
    return np.log((prob + _LEAST) / (1 - prob + _LEAST))


def _probabilities(candidates: CandidateArrays) -> Floats:
    """Return the probability of each candidate."""
    delta = 0.0 if candidates.delta is None else candidates.delta
    return normalised(np.exp(candidates.log_base - delta), candidates.topic, len(candidates.topics))


def _documents(documents: Any, gold: TagFrame) -> pd.DataFrame:
    """Return the labelled documents, ids as text."""
    own = pd.Series(gold.docno.text.to_pylist(), dtype=object)
    if documents is not None:
        if isinstance(documents, str):
            raise InputError(f"documents={documents!r}: wanted ids or a frame; put a single id in a list")
        if not is_frame(documents):
            documents = pd.DataFrame({"docno": pd.Series(list(documents), dtype=object)})
        frame = frame_of(documents, "documents")
        require(frame, ("docno",), "documents")
        ids = ids_of(frame["docno"], "documents column 'docno'")
        require_same_kind(gold.docno, ids, "gold column 'docno'", "documents column 'docno'")
        asked = pd.Series(ids.text.to_pylist(), dtype=object)
        strange = own[~own.isin(asked)]
        if len(strange):
            raise InputError(
                f"gold has tags of {strange.nunique()} documents ({examples(strange.unique())}) that are not among "
                "documents=; name all labelled documents"
            )
        own = asked
    if not len(own):
        raise InputError("gold has no rows; label at least two documents")
    return pd.DataFrame({"docno": np.sort(own.unique())})


def _pairs(table: TagFrame, labelled: pd.DataFrame) -> pd.DataFrame:
    """Return the distinct tags of positive weight of labelled documents, ids as text."""
    columns = {"docno": table.docno.text.to_pylist(), "entity_id": table.entity.text.to_pylist()}
    frame = pd.DataFrame(columns, dtype=object)[table.weight > 0]
    frame = frame[frame["docno"].isin(labelled["docno"])].drop_duplicates()
    return frame.sort_values(["docno", "entity_id"], ignore_index=True)


def _typed(frame: pd.DataFrame, table: TagFrame) -> pd.DataFrame:
    """Return a frame with ids of the kinds of a table: integers do not match text."""
    kinds = {"docno": table.docno.integers, "entity_id": table.entity.integers}
    return frame.astype({name: "int64" for name, integers in kinds.items() if integers})


def _in(frame: pd.DataFrame, other: pd.DataFrame) -> Any:
    """Return True for the rows of a frame that are rows of another, which has none twice."""
    return frame.merge(other, how="left", on=list(frame.columns), indicator="side")["side"].eq("both").to_numpy()


def _beta_binomial(found: Floats, n: Floats, log_odds: Floats) -> tuple[float, float, float]:
    """Return the most probable intercept, slope and strength of beta-binomial counts."""
    from scipy.optimize import minimize
    from scipy.special import betaln

    def rates(at: Floats) -> tuple[Floats, float]:
        return np.clip(sigmoid(at[0] + at[1] * log_odds), 1e-6, 1 - 1e-6), float(np.exp(np.clip(at[2], -10, 10)))

    def negative(at: Floats) -> float:
        mean, strength = rates(at)
        alpha, beta = mean * strength, (1 - mean) * strength
        likelihood = (betaln(alpha + found, beta + n - found) - betaln(alpha, beta)).sum()
        return float(((at / _PRIOR_SD) ** 2).sum() / 2 - likelihood)

    at = minimize(negative, np.zeros(3), method="L-BFGS-B").x
    return float(at[0]), float(at[1]) if log_odds.any() else 0.0, rates(at)[1]


# Precisions of the normal priors of the coefficients of tags and of attestation.
_OF_TAGS, _OF_ATTESTED = 0.1, 0.02
# Keeps the probability that a document is about an intent above rounding errors.
_TINY = 1e-9
# Errors repeat within documents, names and entities, so that labelled pairs count as this share of independent pairs:
# the smaller of the weights that two linkers choose for each other (docs/explanation/taggers.md).
WEIGHT = 0.25
# Samples of the coefficients, and degrees of freedom of the distribution that proposes them.
_PROPOSALS, _FREEDOM = 1000, 6
_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class RetrievedPairs:
    """Pairs of a retrieved document and a candidate intent of its query, for one system.

    ``topic, prob``: query, increasing, and probability of each intent, shape (n,).
    ``intent, rank``: intent and 0-based rank of the document of each pair, shape (m,). ``tagged, labelled, gold``: true
    for pairs whose document is tagged with the intent, is labelled, is labelled with the intent; shape (m,).
    """

    topics: Sequence[str]
    topic: Ints
    prob: Floats
    intent: Ints
    rank: Ints
    tagged: Bools
    labelled: Bools
    gold: Bools

    @cached_property
    def features(self) -> Floats:
        """Features of the probability that the document is about the intent, shape (m, 6)."""
        document = self.topic[self.intent] * (int(self.rank.max(initial=0)) + 1) + self.rank
        n_tagged = np.bincount(document, self.tagged)
        other = n_tagged[document] > self.tagged
        odds, depth = self.log_odds[self.intent], np.log1p(self.rank)
        return np.stack([np.ones(len(odds)), self.tagged, other, odds, depth, odds * depth], axis=1)

    @cached_property
    def log_odds(self) -> Floats:
        """Log odds of each intent, shape (n,)."""
        return _log_odds(self.prob)

    def sums(self, values: Floats) -> Floats:
        """Sum over the documents of each intent, shape (n,)."""
        return np.bincount(self.intent, values, len(self.prob)).astype(np.float64)


class _Posterior:
    """Posterior density of the coefficients given the labels.

    A document d is about intent i with probability ``r = sigmoid(x'β)``, independently. With probability
    ``A = sigmoid(γ_0 + γ_1 logit π_i)``, the intent is attested: at least one retrieved document is about it.
    """

    def __init__(self, pairs: RetrievedPairs, weight: float) -> None:
        self.pairs, self.weight = pairs, weight
        self.x = pairs.features
        self.v = np.stack([np.ones(len(pairs.prob)), pairs.log_odds], axis=1)
        self.gold, self.labelled = pairs.gold.astype(np.float64), pairs.labelled.astype(np.float64)
        self.seen = pairs.sums(self.gold) > 0
        self.precision = np.repeat([_OF_TAGS, _OF_ATTESTED], [self.x.shape[1], self.v.shape[1]])

    def parts(self, coefficients: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Logits and ``log(1 - r)`` of pairs, ``1 - Π(1 - r)`` of all and of unlabelled documents, and A."""
        logit = np.clip(self.x @ coefficients[: self.x.shape[1]], -30, 30)
        log_none = -np.logaddexp(0, logit)
        some = np.maximum(-np.expm1(self.pairs.sums(log_none)), _TINY)
        unseen = -np.expm1(self.pairs.sums(log_none * (1 - self.labelled)))
        return logit, log_none, some, unseen, sigmoid(self.v @ coefficients[self.x.shape[1] :])

    def negative(self, coefficients: Floats) -> tuple[float, Floats]:
        """Negative logarithm of the density, and its gradient."""
        logit, log_none, some, unseen, attested = self.parts(coefficients)
        r, intent = sigmoid(logit), self.pairs.intent
        found = np.where(self.seen, 1.0, unseen) / some
        mixed = np.maximum(1 - attested + attested * found, _TINY)
        log_density = (self.labelled * (self.gold * logit + log_none)).sum() + np.log(mixed).sum()
        of_unlabelled = np.where(self.seen, 0.0, attested * (1 - unseen) / (some * mixed))
        of_all = attested * found * (1 - some) / (some * mixed)
        slope = self.labelled * (self.gold - r) + r * ((1 - self.labelled) * of_unlabelled[intent] - of_all[intent])
        gradient = np.concatenate([self.x.T @ slope, self.v.T @ ((found - 1) / mixed * attested * (1 - attested))])
        penalty = self.precision * coefficients
        value = 0.5 * float(penalty @ coefficients) - self.weight * float(log_density)
        return value, penalty - self.weight * gradient

    def mode(self) -> Floats:
        """Coefficients of the largest density."""
        from scipy.optimize import minimize

        start = np.zeros(len(self.precision))
        return np.asarray(minimize(self.negative, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x)

    def sample(self, n: int, draw: np.random.Generator) -> Floats:
        """Draw coefficients by sampling importance resampling (Rubin 1987), shape (n, p)."""
        mode = self.mode()
        steps = _STEP * np.eye(len(mode))
        hessian = np.array([self.negative(mode + e)[1] - self.negative(mode - e)[1] for e in steps]) / (2 * _STEP)
        values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
        # A proposal is at most as wide as the prior.
        root = vectors / np.sqrt(np.maximum(values, self.precision.min()))
        t = draw.standard_normal((_PROPOSALS, len(mode)))
        t /= np.sqrt(draw.chisquare(_FREEDOM, (_PROPOSALS, 1)) / _FREEDOM)
        proposed = mode + t @ root.T
        log_proposal = -0.5 * (_FREEDOM + len(mode)) * np.log1p((t**2).sum(axis=1) / _FREEDOM)
        log_weight = np.array([-self.negative(one)[0] for one in proposed]) - log_proposal
        weight = np.exp(log_weight - log_weight.max())
        return np.asarray(proposed[draw.choice(_PROPOSALS, n, p=weight / weight.sum())])

    def coverage(self, coefficients: Floats, cutoffs: Sequence[int | None]) -> Floats:
        """Probability that a document up to each cutoff is about each intent, given the labels, (n_cutoffs, n)."""
        _, log_none, some, unseen, attested = self.parts(coefficients)
        given = np.where(self.seen, 1.0, (1 - attested + attested / some) / (1 - attested + attested * unseen / some))
        found = []
        for cutoff in cutoffs:
            shown = self.pairs.rank < (np.inf if cutoff is None else cutoff)
            covered = -np.expm1(self.pairs.sums(log_none * (shown * (1 - self.labelled)))) * given
            found.append(np.where(self.pairs.sums(self.gold * shown) > 0, 1.0, np.clip(covered, 0.0, 1.0)))
        return np.stack(found)


def gold_scores(
    pairs: RetrievedPairs, statistics: Sequence[Statistic], *, n_replicas: int, seed: int, weight: float = WEIGHT
) -> tuple[Floats, Floats]:
    """Draw the scores of a system under gold tags of all documents, given those of the labelled documents.

    Returns mean scores with binary gains over queries, each of shape (n_statistics, n_replicas): of the most probable
    coefficients, whose mean is the estimate, and of coefficients drawn with ``weight`` of the labels' likelihood, whose
    quantiles are an interval. Coverage of the intents of a query is drawn with one uniform number by systematic
    sampling at rank 1, since a document is mostly about one meaning of a name.
    """
    if not pairs.labelled.any():
        raise InputError(
            "the tagger model has labels of none of the retrieved documents; label documents that systems retrieve"
        )
    cutoffs = list(dict.fromkeys(statistic.cutoff for statistic in statistics))
    n = len(pairs.topics)
    total = per_topic(pairs.prob, pairs.topic, n)[None]
    uniform = np.stack([stream(seed, topic, "gold tags").random(n_replicas) for topic in pairs.topics], axis=1)
    first = np.searchsorted(pairs.topic, np.arange(n))
    most_probable = _Posterior(pairs, 1.0).mode()
    posterior = _Posterior(pairs, weight)
    sampled = posterior.sample(n_replicas, stream(seed, "tagger model"))
    values = np.empty((2, len(statistics), n_replicas))
    for kind, all_coefficients in enumerate((most_probable[None], sampled)):
        for b in range(n_replicas):
            if b < len(all_coefficients):
                at_first, *coverage = posterior.coverage(all_coefficients[b], [1, *cutoffs])
                before = np.cumsum(at_first) - at_first
                offset = before - before[first][pairs.topic]
            drawn = (uniform[b][pairs.topic] - offset) % 1.0
            success = [
                WeightedSuccess(pairs.prob[None], total, (drawn < covered)[None].astype(np.float64), pairs.topic)
                for covered in coverage
            ]
            for row, statistic in enumerate(statistics):
                values[kind, row, b] = statistic.of(success[cutoffs.index(statistic.cutoff)]).mean()
    return values[0], values[1]
