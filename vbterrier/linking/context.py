"""Disambiguation of mentions by the words around them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError, ParameterError, number
from vbterrier.frames.contracts import frame_of, require
from vbterrier.kernels import rankings
from vbterrier.linking.lexicon import STOP_ALIASES
from vbterrier.linking.links import COLUMNS, Identified, Links, positive
from vbterrier.linking.words import Words, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from vbterrier.annotations import Floats, Ints

_DESCRIPTIONS = "descriptions"
# The range of weights that a fit searches.
_MOST = 100.0
_SPAN = ["text", "start", "end"]


class ContextLinker(Identified):
    """Weight the candidates of a linker by the similarity of their descriptions to the words around the mention.

    ``p(e | m, c) ∝ p(e | m) exp(λ s(c, d_e))``, a conditional logit with the prior of the linker and the similarity of
    the context c and the description d of the entity. Without an encoder s is the cosine of the sets of their words,
    function words excluded, weighted by ``ln((n + 1) / n_w)`` for a word in the descriptions of n_w of the n candidates
    of the mention. A word that describes all candidates hardly counts.

    Parameters
    ----------
    linker
        A linker with probabilities, such as :class:`DictionaryLinker`.
    descriptions
        A frame (entity_id, text); ``None`` for names and attributes in the knowledge base of the linker.
    weight
        λ, at least 0; 0 leaves the priors unchanged. :meth:`fit` estimates it from labelled mentions.
    window
        The number of words before and after a mention.
    encoder
        A function from texts to vectors of shape (n, d), such as ``SentenceTransformer(...).encode``: s is the cosine
        of the vectors of the description and of the window, including the mention.

    Raises
    ------
    ParameterError
        An invalid parameter; a linker whose scores are not probabilities; no descriptions.
    InputError
        Descriptions without a column, or two of an entity.

    Notes
    -----
    The result for a text depends on this text alone. The probabilities of a mention keep their sum. The default weight
    is within the estimates of :meth:`fit` on AIDA (6.5 to 12.7, ``tests/data/test_context.py``); fit it on your data.

    McFadden, *Conditional logit analysis of qualitative choice behavior*, 1974; Mihalcea and Csomai, *Wikify!*, CIKM
    2007, section 4 (overlap of words and descriptions).

    Examples
    --------
    >>> import pandas as pd
    >>> from vbterrier.linking import DictionaryLinker
    >>> names = pd.DataFrame({"alias": "John Smith", "entity_id": ["baker", "senator"]})
    >>> texts = {"baker": "owner of a bakery in Paris", "senator": "member of the senate, senator from Ohio"}
    >>> described = pd.DataFrame({"entity_id": texts.keys(), "text": texts.values()})
    >>> linker = ContextLinker(DictionaryLinker(names, id_space="people"), described)
    >>> found = linker.link(["John Smith bakery", "John Smith, senator from Ohio"]).frame
    >>> found.drop_duplicates("text")["entity_id"].tolist()
    ['baker', 'senator']
    """

    def __init__(
        self,
        linker: Any,
        descriptions: Any = None,
        *,
        weight: float = 8.0,
        window: int = 50,
        encoder: Callable[[list[str]], Any] | None = None,
    ) -> None:
        if not callable(getattr(linker, "link", None)):
            raise ParameterError(f"linker={linker!r}: wanted a linker, such as DictionaryLinker(kb)")
        if encoder is not None and not callable(encoder):
            raise ParameterError(f"encoder={encoder!r}: wanted a function from texts to vectors")
        self.linker, self.id_space, self.encoder = linker, linker.id_space, encoder
        self.weight = number("weight", weight, low=0)
        self.window = positive("window", window)
        self.descriptions = None if descriptions is None else _checked(descriptions)
        bases = (one for one in (linker, getattr(linker, "aliases", None)) if hasattr(one, "attributes"))
        self._base: Any = next(bases, None)
        if descriptions is None and self._base is None:
            raise ParameterError("descriptions: wanted a frame (entity_id, text), or a linker with a knowledge base")

    def link(self, texts: Sequence[str]) -> Links:
        """Link the mentions in each text, with the most probable of the linker's candidates first."""
        texts = texts_of(texts)
        frame, mention, prior, similarity = self._linked(texts)
        frame = frame.assign(score=_posterior(prior, similarity, mention, self.weight), mention_number=mention)
        order = ["mention_number", "score", "entity_id"]
        frame = frame.sort_values(order, ascending=[True, False, True], kind="stable", ignore_index=True)
        return Links(frame[list(COLUMNS)], self.id_space, "probability")

    def fit(self, texts: Sequence[str], gold: Any) -> ContextLinker:
        """Return a linker with the weight of the highest likelihood of labelled mentions.

        Parameters
        ----------
        texts, gold
            The texts, and their labels: columns text (index of the text), start, end, entity_id. Mentions that the
            linker does not find with the labelled entity among its candidates are left out.

        Raises
        ------
        InputError
            No labelled mention has the labelled entity and another one among its candidates.
        """
        from scipy.optimize import minimize_scalar

        texts = texts_of(texts)
        gold = frame_of(gold, "gold")
        require(gold, (*_SPAN, "entity_id"), "gold")
        frame, mention, prior, similarity = self._linked(texts)
        keys = [*_SPAN, "entity_id"]
        right = frame[keys].merge(gold[keys].drop_duplicates().assign(right=True), how="left", on=keys)["right"]
        is_right = right.notna().to_numpy() & (prior > 0)
        if not (is_right & (np.bincount(mention, minlength=1)[mention] > 1)).any():
            raise InputError(
                "gold: no labelled mention has the labelled entity and another one among its candidates; check the "
                "offsets and the ids"
            )

        def loss(weight: float) -> float:
            return -float(np.log(_posterior(prior, similarity, mention, weight)[is_right]).sum())

        found = minimize_scalar(loss, bounds=(0.0, _MOST), method="bounded", options={"xatol": 1e-6})
        fitted = copy.copy(self)
        fitted.weight = float(found.x)
        return fitted

    def _linked(self, texts: list[str]) -> tuple[pd.DataFrame, Ints, Floats, Floats]:
        """Return the linker's candidates, the number of the mention of each, its prior and its similarity."""
        links = self.linker.link(texts)
        if links.scale != "probability":
            raise ParameterError(f"linker={self.linker!r}: its scores are not probabilities")
        frame = links.frame.reset_index(drop=True)
        mention = frame.groupby([*_SPAN, "mention"], sort=False).ngroup().to_numpy(np.int64)
        return frame, mention, frame["score"].to_numpy(np.float64), self._similarity(texts, frame, mention)

    def _similarity(self, texts: list[str], frame: pd.DataFrame, mention: Ints) -> Floats:
        """Return the similarity of the context and the description of each candidate, in [-1, 1]."""
        if not len(frame):
            return np.zeros(0)
        first = np.flatnonzero(np.diff(mention, prepend=-1))
        words = Words.of(texts)
        text, start, end = (frame[name].to_numpy(np.int64)[first] for name in _SPAN)
        windows = _windows(words, text, start, end, self.window)
        entities, entity = np.unique(frame["entity_id"].to_numpy(object), return_inverse=True)
        described = self._described(entities.tolist())
        if self.encoder is None:
            return _overlap(words, windows, described, entity, mention)
        low, _, _, high = windows
        contexts = [
            texts[words.text[begin]][words.start[begin] : words.end[end - 1]] if begin < end else ""
            for begin, end in zip(low.tolist(), high.tolist(), strict=True)
        ]
        context, description = (_unit(self.encoder(some)) for some in (contexts, described))
        found: Floats = np.einsum("ij,ij->i", context[mention], description[entity])
        found[np.array([not text for text in described], bool)[entity]] = 0.0
        return found

    def _described(self, ids: list[str]) -> list[str]:
        """Return the description of each entity; empty if there is none."""
        if self.descriptions is not None:
            return [self.descriptions.get(one, "") for one in ids]
        facts = self._base.attributes(ids)
        # A true attribute is described by its name, and a false one by nothing.
        is_boolean = facts["type"].eq("boolean")
        facts = facts[~is_boolean | facts["value"].eq("true")]
        facts = facts.assign(value=facts["value"].mask(is_boolean, facts["attribute"]))
        values = facts.groupby("entity_id", sort=False)["value"].agg(" ".join).to_dict()
        return [f"{name} {values.get(one, '')}".strip() for one, name in zip(ids, self._base.names(ids), strict=True)]

    def _parameters(self) -> tuple[Any, ...]:
        described = None if self.descriptions is None else tuple(sorted(self.descriptions.items()))
        return (self.linker, described, self.weight, self.window, self.encoder)

    def __repr__(self) -> str:
        shown = "" if self.descriptions is None else f", {len(self.descriptions)} descriptions"
        return f"ContextLinker({self._subject()}{shown}, weight={self.weight:g}, window={self.window})"


def _checked(descriptions: Any) -> dict[str, str]:
    frame = frame_of(descriptions, _DESCRIPTIONS)
    require(frame, ("entity_id", "text"), _DESCRIPTIONS)
    twice = frame["entity_id"].duplicated()
    if twice.any():
        raise InputError(f"{_DESCRIPTIONS}: entity {frame['entity_id'][twice].iloc[0]!r} has two; join their texts")
    texts = texts_of(frame["text"].fillna("").tolist())
    return dict(zip(frame["entity_id"].astype(str), texts, strict=True))


def _posterior(prior: Floats, similarity: Floats, mention: Ints, weight: float) -> Floats:
    """Return ``p exp(λ s)``, scaled so that each mention keeps the sum of its priors."""
    n = int(mention.max(initial=-1)) + 1
    highest = np.full(n, -np.inf)
    np.maximum.at(highest, mention, similarity)
    # The largest exponent of a mention is 0, so that none overflows.
    raised = prior * np.exp(weight * (similarity - highest[mention]))
    total, before = (np.bincount(mention, weights=values, minlength=n) for values in (raised, prior))
    scale = np.divide(before, total, out=np.zeros(n), where=total > 0)
    found: Floats = np.minimum(raised * scale[mention], 1.0)
    return found


def _windows(words: Words, text: Ints, start: Ints, end: Ints, window: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the first word of the window of each mention, of the mention, after it, and after the window."""
    step = 1 + max(int(words.end.max(initial=0)), int(end.max(initial=0)))
    place = words.text * step + words.start
    first = np.searchsorted(place, text * step + np.maximum(start, 0))
    # A mention without offsets is the whole text.
    after = np.searchsorted(place, np.where(end < 0, (text + 1) * step, text * step + end))
    low, high = (np.searchsorted(words.text, text, side) for side in ("left", "right"))
    return np.maximum(first - window, low), first, after, np.minimum(after + window, high)


def _overlap(words: Words, windows: tuple[Ints, ...], described: list[str], entity: Ints, mention: Ints) -> Floats:
    """Return the cosine of the weighted words of contexts and descriptions, shape (n_candidates,)."""
    of_texts, of_descriptions = words.folded().split(), [form.split() for form in Words.of(described).forms()]
    n_words = np.array([len(form) for form in of_descriptions], np.int64)
    every = np.array([*of_texts, *(word for form in of_descriptions for word in form)], dtype=object)
    # Sorted, so that sums do not depend on other texts.
    distinct, code = np.unique(every, return_inverse=True) if len(every) else (every, np.empty(0, np.int64))
    counts = np.array([word not in STOP_ALIASES for word in distinct], bool)
    n_distinct = len(distinct) + 1
    low, first, after, high = windows
    parts = [rankings.spans(low, first), rankings.spans(after, high)]
    owner, word = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    context = np.unique(owner * n_distinct + code[word])
    ends = np.cumsum(n_words)
    row, place = rankings.spans((ends - n_words)[entity], ends[entity])
    pair = np.unique(row * n_distinct + code[len(of_texts) + place])
    row, word = pair // n_distinct, pair % n_distinct
    row, word = row[counts[word]], word[counts[word]]
    # The words of the candidates of each mention, and the number of candidates that have them.
    keys, at, n_having = np.unique(mention[row] * n_distinct + word, return_inverse=True, return_counts=True)
    n_candidates = np.bincount(mention, minlength=1)[keys // n_distinct]
    squared = np.log((n_candidates + 1) / n_having) ** 2
    is_shared = np.isin(keys, context)
    n = len(mention)
    own = np.bincount(row, weights=squared[at], minlength=n)
    shared = np.bincount(row, weights=(squared * is_shared)[at], minlength=n)
    in_context = np.bincount(keys // n_distinct, weights=squared * is_shared, minlength=n)[mention]
    length = np.sqrt(own * in_context)
    cosine: Floats = np.divide(shared, length, out=np.zeros(n), where=length > 0)
    return cosine


def _unit(vectors: Any) -> Floats:
    """Return vectors of length 1; zeros stay."""
    found = np.asarray(vectors, np.float64)
    length = np.linalg.norm(found, axis=1, keepdims=True)
    unit: Floats = np.divide(found, length, out=np.zeros_like(found), where=length > 0)
    return unit
