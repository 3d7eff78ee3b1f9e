"""Client and answer format of REL (van Hulst et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from vbterrier.linking.links import WIKIPEDIA_TITLE
from vbterrier.linking.services.client import Client
from vbterrier.linking.services.json_answers import Candidate, Format, title_id, title_name
from vbterrier.linking.services.transport import Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.linking.services.json_answers import Node


_N_FIELDS = 7


@dataclass(frozen=True, kw_only=True)
class REL(Format):
    """Answers of REL: a list of ``[start, length, mention, title, conf_ed, conf_md, tag]``.

    The last two fields may be in either order. An object with one document, as returned by REL's Python interface, is
    read as that document. The title "NIL" links to nothing.

    - ``score``: ``"conf_ed"``, the confidence in the entity (-1 or 0 if REL computes none); or ``"conf_md"``, the
      confidence in the mention
    - ``ids``: ``"wikipedia_title"``
    - ``misplaced``: see ``Format``

    >>> REL().links([[[0, 3, "Fox", "Fox_Broadcasting_Company", 0.9, 0.99, "ORG"]]]).frame.values.tolist()
    [[0, 0, 3, 'Fox', 'Fox_Broadcasting_Company', 0.9, 'Fox Broadcasting Company']]
    """

    score: str = "conf_ed"
    ids: str = WIKIPEDIA_TITLE

    service: ClassVar[str] = "REL"
    scores: ClassVar[Mapping[str, str]] = {"conf_ed": "score", "conf_md": "score"}
    spaces: ClassVar[tuple[str, ...]] = (WIKIPEDIA_TITLE,)
    utf16: ClassVar[bool] = False

    def candidates(self, answer: Node) -> Iterator[Candidate]:
        """Yield the links of an answer."""
        if isinstance(answer.value, dict):
            if len(answer.value) != 1:
                raise answer.wanted("a list of links, or an object with one document (pass the list of each document)")
            answer = answer[next(iter(answer.value))]
        for node in answer.items():
            fields = node.items()
            if len(fields) != _N_FIELDS:
                raise node.wanted("7 fields: start, length, mention, title, conf_ed, conf_md, tag")
            start, title = fields[0].whole(), fields[3].text()
            conf_md, tag = fields[5:] if isinstance(fields[6].value, str) else fields[:4:-1]
            tag.text()
            score = fields[4] if self.score == "conf_ed" else conf_md
            entity = "" if title == "NIL" else title_id(title)
            end = start + fields[1].whole()
            yield Candidate(node, start, end, fields[2].text(), entity, score.number(), title_name(title))


@dataclass(frozen=True, kw_only=True, repr=False)
class RELClient(Client):
    """A client of REL's server.

    Parameters
    ----------
    endpoint
        The address of the server, such as ``http://localhost:5555``.
    score, misplaced
        See ``REL``.
    token, timeout, deadline, max_bytes, retries, backoff, proxy, cache
        See ``vbterrier.linking.services.Client``.

    Examples
    --------
    >>> RELClient("http://localhost:5555", score="conf_md").format.scale
    'score'
    """

    score: str = "conf_ed"

    @cached_property
    def format(self) -> REL:
        """The format of REL's answers."""
        return REL(score=self.score, misplaced=self.misplaced)

    def _request(self, text: str) -> Request:
        # Without spans REL detects the mentions.
        return Request(json={"text": text, "spans": []})
