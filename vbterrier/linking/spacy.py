"""The entities of a spaCy pipeline as links."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.parameters import choice
from vbterrier.linking.identity import Identified, positive
from vbterrier.linking.links import Links, links_frame
from vbterrier.linking.words import texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = tuple[int, int, int, str, str, float, str]

NIL = "NIL"


class SpacyLinker(Identified):
    """Link what a spaCy pipeline recognises: by its EntityLinker, its EntityRuler, or both.

    The id of an entity is its ``kb_id_`` (EntityLinker), else its ``ent_id_`` (the ``id`` of an EntityRuler's pattern).

    Parameters
    ----------
    nlp
        A pipeline. Whatever else it does to texts costs its time: ``nlp.select_pipes`` leaves components out.
    id_space
        What its ids count in.
    candidates
        ``"priors"``: all candidates of a linked mention in the knowledge base of the EntityLinker, with their prior
        probabilities; one entity of probability 1 where there is no such knowledge base or it lacks the mention.
        ``"best"``: what the pipeline chose, with probability 1. spaCy's EntityLinker draws among equally good
        candidates by Python's ``random``: seed that for the same choice, or take priors, which do not depend on it.
    batch_size
        Texts that ``nlp.pipe`` takes at a time.

    Raises
    ------
    ParameterError
        No pipeline, or a parameter without a legal value.

    Notes
    -----
    Mentions that the EntityLinker answers with "NIL", and those without any id, give no links; ``frame.attrs`` of the
    links counts them as ``n_nil`` and ``n_without_id``. Equal linkers have the same pipeline and parameters.

    Examples
    --------
    >>> import spacy
    >>> nlp = spacy.blank("en")
    >>> nlp.add_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": "Jordan", "id": "Q810"}])
    >>> linker = SpacyLinker(nlp, id_space="wikidata")
    >>> linker.link(["The river Jordan"]).frame[["start", "end", "mention", "entity_id"]].values.tolist()
    [[10, 16, 'Jordan', 'Q810']]
    """

    _SUBJECT = "nlp"
    _DEFAULTS: ClassVar = {"id_space": None, "candidates": "priors", "batch_size": 256}

    def __init__(self, nlp: Any, *, id_space: str, candidates: str = "priors", batch_size: int = 256) -> None:
        if not (hasattr(nlp, "pipe") and hasattr(nlp, "pipeline")):
            raise ParameterError(f"nlp: wanted a spaCy pipeline, found {type(nlp).__name__}; spacy.load makes one")
        self.nlp, self.id_space = nlp, id_space
        self.candidates = choice("candidates", candidates, ("priors", "best"))
        self.batch_size = positive("batch_size", batch_size)

    def link(self, texts: Sequence[str]) -> Links:
        """The linked mentions of each text from left to right, the most probable candidate first.

        Parameters
        ----------
        texts
            Any texts. Places count code points of the text as given.

        Returns
        -------
        Links
            Scale ``"probability"``.

        Raises
        ------
        InputError
            A text longer than ``nlp.max_length``.
        """
        texts = texts_of(texts)
        self._require_short(texts)
        sources = self._sources()
        rows: list[Row] = []
        n_nil = n_without_id = 0
        for place, doc in enumerate(self.nlp.pipe(texts, batch_size=self.batch_size)):
            for mention in doc.ents:
                entity = mention.kb_id_ or mention.ent_id_
                n_nil += entity == NIL
                n_without_id += not entity
                if entity and entity != NIL:
                    rows.extend(_rows(place, mention, entity, sources))
        if n_without_id and not rows and not n_nil:
            warnings.warn(
                f"spaCy: {n_without_id} mentions, none with an id; add an EntityLinker, or patterns with 'id'",
                DegenerateWarning,
                stacklevel=2,
            )
        frame = links_frame(rows)
        frame.attrs.update(n_nil=n_nil, n_without_id=n_without_id)
        return Links(frame, self.id_space, "probability")

    def _require_short(self, texts: list[str]) -> None:
        for place, text in enumerate(texts):
            if len(text) > self.nlp.max_length:
                raise InputError(
                    f"texts: {len(text)} characters in place {place}, and the pipeline takes {self.nlp.max_length}; "
                    "cut the text, or raise nlp.max_length"
                )

    def _sources(self) -> list[Any]:
        """The components that know candidates."""
        if self.candidates == "best":
            return []
        return [pipe for _, pipe in self.nlp.pipeline if hasattr(pipe, "kb") and hasattr(pipe, "get_candidates")]

    def _subject(self) -> str:
        return f"{self.nlp.lang}: {', '.join(self.nlp.pipe_names)}"


def _rows(place: int, mention: Any, entity: str, sources: list[Any]) -> list[Row]:
    # The component's own way of finding candidates, which may be the user's.
    found = {c.entity_: float(c.prior_prob) for pipe in sources for c in pipe.get_candidates(pipe.kb, mention)}
    return [
        (place, mention.start_char, mention.end_char, mention.text, candidate, prior, "")
        for candidate, prior in sorted((found or {entity: 1.0}).items(), key=lambda pair: (-pair[1], pair[0]))
    ]
