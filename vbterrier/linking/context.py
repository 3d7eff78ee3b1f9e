"""Disambiguation of mentions by the words around them."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, excerpt, number
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.files.reading import read_descriptions
from vbterrier.kernels import rankings
from vbterrier.linking.lexicon import STOP_ALIASES
from vbterrier.linking.links import COLUMNS, Identified, Links, positive
from vbterrier.linking.words import Words, check_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vbterrier.annotations import Floats, Ints

_DESCRIPTIONS = "descriptions"
# The range of weights that a fit searches.
_MAX_WEIGHT = 100.0
_SPAN = ["text", "start", "end"]
# Words of a context that describe no candidate and count. Documents have many, queries have few.
_MOST_UNKNOWN = 3


class ContextLinker(Identified):
    """Weight the candidates of a linker by the similarity of their descriptions to the words around the mention.

    ``p(e | m, c) ∝ p(e | m) exp(λ s(c, d_e))``, a conditional logit with the prior of the linker and the similarity of
    the context c and the description d of the entity. Without an encoder s is the cosine of the sets of their words,
    function words excluded, weighted by ``ln((n + 1) / n_w)`` for a word in the descriptions of n_w of the n candidates
    of the mention. A word that describes all candidates hardly counts. Up to three words of the context that describe
    no candidate count as words of one candidate, so that a single rare word does not decide among others.

    Parameters
    ----------
    linker
        A linker with probabilities, such as :class:`DictionaryLinker`.
    descriptions
        A frame (entity_id, text) or its path; ``None`` for names and attributes in the knowledge base of the linker.
    weight
        λ, at least 0; 0 leaves the priors unchanged. :meth:`fit` estimates it from labelled mentions.
    window
        The number of words before and after a mention.
    encoder
        A function from texts to vectors of shape (n, d), such as ``SentenceTransformer(...).encode``: s is the cosine
        of the vectors of the description and of the window, including the mention.
    nil
        The probability that none of the candidates is meant if no word of the context describes any of them, in
        [0, 1): the column ``nil`` of the links is this number times the share of such words in the squared length of
        the context. "John Smith bakery" then means none of 14 legislators: ``TagEntities`` leaves a mention untagged if
        ``nil`` is larger than the probability ``(1 - nil) p`` of its best candidate, and
        ``CandidateIntents(nil="context")`` has it as the probability of NIL. 0 with an encoder.

    Raises
    ------
    ParameterError
        An invalid parameter; a linker whose scores are not probabilities; no descriptions.
    InputError
        Descriptions without a column, or two of an entity.

    Notes
    -----
    The result for a text depends on this text alone. The probabilities of a mention keep their sum. The default weight
    is within the estimates of :meth:`fit` on AIDA (7.7 and 8.3, ``tests/data/test_context.py``); fit it on your data.
    Values that a knowledge base has further names for (``spellings`` of :func:`vbterrier.linking.build_kb`), such as
    "NY", are described by these names, too.

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
    >>> result = linker.link(["John Smith bakery", "John Smith, senator from Ohio"]).frame
    >>> result.drop_duplicates("text")["entity_id"].tolist()
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
        nil: float = 0.3,
    ) -> None:
        if not callable(getattr(linker, "link", None)):
            raise ParameterError(f"linker={excerpt(linker)}: wanted a linker, such as DictionaryLinker(kb)")
        if encoder is not None and not callable(encoder):
            raise ParameterError(f"encoder={excerpt(encoder)}: wanted a function from texts to vectors")
        self.linker, self.id_space, self.encoder = linker, linker.id_space, encoder
        self.weight = number("weight", weight, low=0)
        self.window = positive("window", window)
        self.nil = number("nil", nil, low=0, high=1)
        if self.nil == 1:
            raise ParameterError("nil=1: wanted less than 1, because candidates would have probability 0")
        self.descriptions = None if descriptions is None else _description_texts(descriptions)
        bases = (one for one in (linker, getattr(linker, "aliases", None)) if hasattr(one, "attributes"))
        self._base: Any = next(bases, None)
        if descriptions is None and self._base is None:
            raise ParameterError(
                "descriptions: wanted a frame (entity_id, text), its path, or a linker with a knowledge base"
            )

    def link(self, texts: Sequence[str]) -> Links:
        """Link the mentions in each text, with the most probable of the linker's candidates first.

        The frame has a further column ``nil``, the probability that none of the candidates of the mention is meant;
        ``score`` is the probability of a candidate given that one of them is.
        """
        texts = check_texts(texts)
        frame, mention, prior, similarity, unknown = self._score_candidates(texts)
        score = _posterior(prior, similarity, mention, self.weight)
        frame = frame.assign(score=score, nil=self.nil * unknown[mention], mention_number=mention)
        order = ["mention_number", "score", "entity_id"]
        frame = frame.sort_values(order, ascending=[True, False, True], kind="stable", ignore_index=True)
        return Links(frame[[*COLUMNS, "nil"]], self.id_space, "probability")

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

        texts = check_texts(texts)
        gold = pandas_frame(gold, "gold")
        require(gold, (*_SPAN, "entity_id"), "gold")
        frame, mention, prior, similarity, _ = self._score_candidates(texts)
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

        optimum = minimize_scalar(loss, bounds=(0.0, _MAX_WEIGHT), method="bounded", options={"xatol": 1e-6})
        fitted = copy.copy(self)
        fitted.weight = float(optimum.x)
        return fitted

    def _score_candidates(self, texts: list[str]) -> tuple[pd.DataFrame, Ints, Floats, Floats, Floats]:
        """Return the linker's candidates, the mention, prior and similarity of each, and the unknown of each mention.

        ``unknown`` is the share of the words that describe no candidate in the squared length of the context.
        """
        links = self.linker.link(texts)
        if links.scale != "probability":
            raise ParameterError(f"linker={self.linker!r}: its scores are not probabilities")
        frame = links.frame.reset_index(drop=True)
        mention = frame.groupby([*_SPAN, "mention"], sort=False).ngroup().to_numpy(np.int64)
        return frame, mention, frame["score"].to_numpy(np.float64), *self._similarity(texts, frame, mention)

    def _similarity(self, texts: list[str], frame: pd.DataFrame, mention: Ints) -> tuple[Floats, Floats]:
        """Return the similarity of context and description of each candidate, and the unknown of each mention."""
        if not len(frame):
            return np.zeros(0), np.zeros(0)
        first = np.flatnonzero(np.diff(mention, prepend=-1))
        words = Words.of(texts)
        text, start, end = (frame[name].to_numpy(np.int64)[first] for name in _SPAN)
        windows = _windows(words, text, start, end, self.window)
        entities, entity = np.unique(frame["entity_id"].to_numpy(object), return_inverse=True)
        described = self._entity_descriptions(entities.tolist())
        if self.encoder is None:
            return _overlap_similarity(words, windows, described, entity, mention)
        low, _, _, high = windows
        contexts = [
            texts[words.text[begin]][words.start[begin] : words.end[end - 1]] if begin < end else ""
            for begin, end in zip(low.tolist(), high.tolist(), strict=True)
        ]
        context, description = (_unit_vectors(self.encoder(some)) for some in (contexts, described))
        similarity: Floats = np.einsum("ij,ij->i", context[mention], description[entity])
        similarity[np.array([not text for text in described], bool)[entity]] = 0.0
        return similarity, np.zeros(len(first))

    def _entity_descriptions(self, ids: list[str]) -> list[str]:
        """Return the description of each entity; empty if there is none."""
        if self.descriptions is not None:
            return [self.descriptions.get(one, "") for one in ids]
        facts = self._base.attributes(ids)
        # A true attribute is described by its name, and a false one by nothing.
        is_boolean = facts["type"].eq("boolean")
        facts = facts[~is_boolean | facts["value"].eq("true")]
        facts = facts.assign(value=facts["value"].mask(is_boolean, facts["attribute"]) + self._written_out(facts))
        values = facts.groupby("entity_id", sort=False)["value"].agg(" ".join).to_dict()
        return [f"{name} {values.get(one, '')}".strip() for one, name in zip(ids, self._base.names(ids), strict=True)]

    def _written_out(self, facts: pd.DataFrame) -> pd.Series[str]:
        """Return the names of each value, after a blank: those that the knowledge base has, or of an entity's id."""
        texts = facts["value"][facts["type"].eq("text")].drop_duplicates().tolist()
        rows = [("value", None, text, name) for text, name in zip(texts, self._base.names(texts), strict=True) if name]
        spellings = self._base.spellings() if hasattr(self._base, "spellings") else {}
        for attribute, values in spellings.items():
            rows += [("spelling", attribute, value, " ".join(names)) for value, names in values.items()]
        named = pd.DataFrame(rows, columns=["kind", "attribute", "value", "names"], dtype=object)
        of_value, of_both = (named[named["kind"].eq(kind)].drop(columns="kind") for kind in ("value", "spelling"))
        pairs = facts[["attribute", "value"]].astype(object)
        pairs = pairs.merge(of_both, how="left", on=["attribute", "value"])
        pairs = pairs.merge(of_value[["value", "names"]], how="left", on="value", suffixes=("", "_of_id"))
        names = (" " + pairs["names"]).fillna("") + (" " + pairs["names_of_id"]).fillna("")
        return pd.Series(names.to_numpy(), index=facts.index, dtype="str")

    def _parameters(self) -> tuple[Any, ...]:
        described = None if self.descriptions is None else tuple(sorted(self.descriptions.items()))
        return (self.linker, described, self.weight, self.window, self.encoder, self.nil)

    def __repr__(self) -> str:
        shown = "" if self.descriptions is None else f", {len(self.descriptions)} descriptions"
        return f"ContextLinker({self._subject()}{shown}, weight={self.weight:g}, window={self.window})"


def _description_texts(descriptions: Any) -> dict[str, str]:
    is_path = isinstance(descriptions, (str, os.PathLike))
    frame = read_descriptions(descriptions) if is_path else pandas_frame(descriptions, _DESCRIPTIONS)
    require(frame, ("entity_id", "text"), _DESCRIPTIONS)
    twice = frame["entity_id"].duplicated()
    if twice.any():
        raise InputError(f"{_DESCRIPTIONS}: entity {frame['entity_id'][twice].iloc[0]!r} has two; join their texts")
    texts = check_texts(frame["text"].fillna("").tolist())
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
    prob: Floats = np.minimum(raised * scale[mention], 1.0)
    return prob


def _windows(words: Words, text: Ints, start: Ints, end: Ints, window: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the first word of the window of each mention, of the mention, after it, and after the window."""
    step = 1 + max(int(words.end.max(initial=0)), int(end.max(initial=0)))
    place = words.text * step + words.start
    first = np.searchsorted(place, text * step + np.maximum(start, 0))
    # A mention without offsets is the whole text.
    after = np.searchsorted(place, np.where(end < 0, (text + 1) * step, text * step + end))
    low, high = (np.searchsorted(words.text, text, side) for side in ("left", "right"))
    return np.maximum(first - window, low), first, after, np.minimum(after + window, high)


def _overlap_similarity(
    words: Words, windows: tuple[Ints, ...], described: list[str], entity: Ints, mention: Ints
) -> tuple[Floats, Floats]:
    """Return the cosines of the weighted words of contexts and descriptions, and the share of unknown words.

    Shapes (n_candidates,) and (n_mentions,).
    """
    of_texts, of_descriptions = words.folded_words().split(), [form.split() for form in Words.of(described).forms()]
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
    n_mentions, of_mention, is_shared = len(low), keys // n_distinct, np.isin(keys, context)
    n_candidates = np.bincount(mention, minlength=n_mentions)
    squared = np.log((n_candidates[of_mention] + 1) / n_having) ** 2
    n = len(mention)
    squared_length = np.bincount(row, weights=squared[at], minlength=n)
    shared = np.bincount(row, weights=(squared * is_shared)[at], minlength=n)
    shared_words = np.bincount(of_mention, weights=squared * is_shared, minlength=n_mentions)
    n_words = np.bincount(context[counts[context % n_distinct]] // n_distinct, minlength=n_mentions)
    n_unknown = n_words - np.bincount(of_mention[is_shared], minlength=n_mentions)
    unknown = np.minimum(n_unknown, _MOST_UNKNOWN) * np.log(n_candidates + 1) ** 2
    length = np.sqrt(squared_length * (shared_words + unknown)[mention])
    cosine: Floats = np.divide(shared, length, out=np.zeros(n), where=length > 0)
    share: Floats = np.divide(unknown, shared_words + unknown, out=np.zeros(n_mentions), where=n_unknown > 0)
    return cosine, share


def _unit_vectors(vectors: Any) -> Floats:
    """Return vectors of length 1; zeros stay."""
    table = np.asarray(vectors, np.float64)
    length = np.linalg.norm(table, axis=1, keepdims=True)
    unit: Floats = np.divide(table, length, out=np.zeros_like(table), where=length > 0)
    return unit
