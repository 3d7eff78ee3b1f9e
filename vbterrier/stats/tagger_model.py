"""Models of a tagger's errors, estimated from labelled documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, examples, warn
from vbterrier.frames.entities import TagFrame, documents_frame
from vbterrier.frames.ids import column_ids, require_same_kind
from vbterrier.frames.named import named_frame
from vbterrier.frames.notebook import Panel
from vbterrier.frames.results import Shown
from vbterrier.kernels.candidates import normalise_weights
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.grade_regression import sigmoid
from vbterrier.stats.candidates import CandidateArrays
from vbterrier.stats.gold_scores import log_odds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Floats, Ints
    from vbterrier.stats.candidates import Draws
    from vbterrier.stats.perturbations import Tagged


# Labelled documents below which the rates of a tagger are mostly those of their priors.
_MIN_LABELLED_DOCUMENTS = 20
# Standard deviations of the normal priors of the intercept, the slope and the logarithm of the strength.
_PRIOR_SD = np.array([2.0, 1.0, 1.5])
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

    def to_frame(self) -> pd.DataFrame:
        """Return ``entities``: a row per gold entity."""
        return self.entities

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

        rates = tagged.candidates.compute_once(("tagger rates", id(self.model)), self._rates)
        here = tagged.candidates.span.start + tagged.intent
        unit, mention = tagged.keys["entity"], tagged.keys["mention"]
        threshold = betaincinv(rates.detected[here], rates.missed[here], draws.uniform_by_key("rate", unit))
        wrong = draws.uniform_by_key("wrong", mention) >= threshold
        lost = wrong & (draws.uniform_by_key("lost", unit) < self.model.lost)
        other = rates.taken_for(here, draws.uniform_by_key("which", unit), draws.uniform_by_key("other", unit))
        lost |= wrong & (tagged.candidates.sizes[tagged.topic] == 1)
        intent = np.where(wrong, other - tagged.candidates.span.start, tagged.intent)
        return replace(tagged, intent=intent, weight=np.where(lost, 0.0, tagged.weight))

    def _rates(self, candidates: CandidateArrays) -> _Rates:
        """Return the rates of all candidates."""
        names = candidates.entity.text.to_pylist()
        counts = self.model.entities.set_index("entity_id").reindex(names)
        n_gold, n_found = (counts[column].fillna(0).to_numpy(np.float64) for column in ("n_gold", "n_found"))
        frame = pd.DataFrame({"entity_id": names, "topic": candidates.topic, "row": np.arange(len(names))})
        others = frame.rename(columns={"entity_id": "taken_for", "row": "other"})
        pairs = frame.merge(self.model.confusions, on="entity_id").merge(others, on=["topic", "taken_for"])
        pairs = pairs.sort_values(["row", "other"])
        prob = _probabilities(candidates)
        mean = sigmoid(self.model.intercept + self.model.slope * log_odds(prob))
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

    detected: Floats
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


@with_usual_errors
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
    tagged, right = (
        TagFrame(named_frame("tags", frame), name=name) for frame, name in ((tags, "tags"), (gold, "gold"))
    )
    for table in (tagged, right):
        if table.topics is not None:
            raise InputError(f"{table.name}: found a column qid; a tagger model needs tags of documents, drop qid")
    require_same_kind(tagged.docno, right.docno, "tags column 'docno'", "gold column 'docno'")
    require_same_kind(tagged.entity, right.entity, "tags column 'entity_id'", "gold column 'entity_id'")
    labelled = _documents(documents, right)
    inside, outside = (_pairs(table, labelled) for table in (tagged, right))
    if len(labelled) < _MIN_LABELLED_DOCUMENTS:
        warn(
            f"{len(labelled)} labelled documents: rates of the tagger are mostly guesses; label at least "
            f"{_MIN_LABELLED_DOCUMENTS}"
        )
    if not len(inside):
        warn(
            f"tags have none of the labelled documents: {examples(tagged.docno.text[:4].to_pylist())} against "
            f"{examples(labelled['docno'].iloc[:4])}; check the ids"
        )
    n_spurious = len(inside) - int(_in(inside, outside).sum())
    candidates = None if intents is None else CandidateArrays.of(named_frame("intents", intents))
    odds = pd.Series(0.0, index=outside["entity_id"].unique())
    counted_tags, counted = inside, outside
    if candidates is not None:
        require_same_kind(candidates.entity, right.entity, "intents column 'entity_id'", "gold column 'entity_id'")
        names = pd.Series(candidates.entity.text.to_pylist(), dtype=object)
        odds = pd.Series(log_odds(_probabilities(candidates))).groupby(names).mean()
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
    entities["log_odds"] = odds.reindex(entities["entity_id"]).to_numpy()
    intercept, slope, strength = _beta_binomial(
        *(entities[name].to_numpy(np.float64) for name in ("n_found", "n_gold", "log_odds"))
    )
    mean = sigmoid(intercept + slope * entities["log_odds"].to_numpy())
    entities["found"] = (entities["n_found"] + strength * mean) / (entities["n_gold"] + strength)
    return TaggerModel(
        entities,
        confusions.reset_index(drop=True),
        labelled,
        _with_id_kinds(outside, right),
        _with_id_kinds(inside, right),
        intercept,
        slope,
        strength,
        max(0.0, 1 - n_taken / len(missed)) if len(missed) else 0.0,
        n_spurious / len(labelled),
    )


def _probabilities(candidates: CandidateArrays) -> Floats:
    """Return the probability of each candidate."""
    delta = 0.0 if candidates.delta is None else candidates.delta
    return normalise_weights(np.exp(candidates.log_base - delta), candidates.topic, len(candidates.topics))


def _documents(documents: Any, gold: TagFrame) -> pd.DataFrame:
    """Return the labelled documents, ids as text."""
    docnos = pd.Series(gold.docno.text.to_pylist(), dtype=object)
    if documents is not None:
        ids = column_ids(documents_frame(documents)["docno"], "documents column 'docno'")
        require_same_kind(gold.docno, ids, "gold column 'docno'", "documents column 'docno'")
        listed = pd.Series(ids.text.to_pylist(), dtype=object)
        strange = docnos[~docnos.isin(listed)]
        if len(strange):
            raise InputError(
                f"gold has tags of {strange.nunique()} documents ({examples(strange.unique())}) that are not among "
                "documents=; name all labelled documents"
            )
        docnos = listed
    if not len(docnos):
        raise InputError("gold has no rows; label at least two documents")
    return pd.DataFrame({"docno": np.sort(docnos.unique())})


def _pairs(table: TagFrame, labelled: pd.DataFrame) -> pd.DataFrame:
    """Return the distinct tags of positive weight of labelled documents, ids as text."""
    columns = {"docno": table.docno.text.to_pylist(), "entity_id": table.entity.text.to_pylist()}
    frame = pd.DataFrame(columns, dtype=object)[table.weight > 0]
    frame = frame[frame["docno"].isin(labelled["docno"].unique())].drop_duplicates()
    return frame.sort_values(["docno", "entity_id"], ignore_index=True)


def _with_id_kinds(frame: pd.DataFrame, table: TagFrame) -> pd.DataFrame:
    """Return a frame with ids of the kinds of a table: integers do not match text."""
    kinds = {"docno": table.docno.integers, "entity_id": table.entity.integers}
    return frame.astype({name: "int64" for name, integers in kinds.items() if integers})


def _in(frame: pd.DataFrame, other: pd.DataFrame) -> Any:
    """Return True for the rows of a frame that are rows of another, which has none twice."""
    return frame.merge(other, how="left", on=list(frame.columns), indicator="side")["side"].eq("both").to_numpy()


def _beta_binomial(successes: Floats, n: Floats, log_odds: Floats) -> tuple[float, float, float]:
    """Return the most probable intercept, slope and strength of beta-binomial counts."""
    from scipy.optimize import minimize
    from scipy.special import betaln

    def rates(at: Floats) -> tuple[Floats, float]:
        return np.clip(sigmoid(at[0] + at[1] * log_odds), 1e-6, 1 - 1e-6), float(np.exp(np.clip(at[2], -10, 10)))

    def negative(at: Floats) -> float:
        mean, strength = rates(at)
        alpha, beta = mean * strength, (1 - mean) * strength
        likelihood = (betaln(alpha + successes, beta + n - successes) - betaln(alpha, beta)).sum()
        return float(((at / _PRIOR_SD) ** 2).sum() / 2 - likelihood)

    at = minimize(negative, np.zeros(3), method="L-BFGS-B").x
    return float(at[0]), float(at[1]) if log_odds.any() else 0.0, rates(at)[1]
