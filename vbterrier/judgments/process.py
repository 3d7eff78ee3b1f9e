"""How unjudged documents are graded and scored."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vbterrier.errors import ParameterError
from vbterrier.frames.parameters import choice, whole
from vbterrier.judgments.metrics import DCG
from vbterrier.judgments.priors import ALL_UNJUDGED, PAPER, check_prior, check_strength
from vbterrier.kernels.grades import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPAT = ("", "ecir23")
N_DRAWS = 1000
MOST_DRAWS = 10_000_000


@dataclass(frozen=True)
class Process:
    """How unjudged documents are graded and scored: everything a distribution depends on but data and cutoff.

    See :func:`bootstrap_distribution` for the meaning of each parameter.
    """

    prior: str | Mapping[int, float] = "auto"
    dcg: str = "log2"
    method: str = "auto"
    compat: str = ""
    all_unjudged: str = "auto"
    n_draws: int = N_DRAWS
    seed: int = 0
    prior_strength: float | str = "auto"

    def __post_init__(self) -> None:
        check_prior(self.prior)
        for name, legal in (("dcg", DCG), ("method", METHODS), ("compat", COMPAT), ("all_unjudged", ALL_UNJUDGED)):
            choice(name, getattr(self, name), legal)
        check_strength(self.prior_strength)
        if self.compat and self.prior not in ("auto", *PAPER):
            raise ParameterError(f"compat={self.compat!r} knows priors by name only: {', '.join(map(repr, PAPER))}")
        if self.compat and self.prior_strength not in ("auto", math.inf):
            raise ParameterError(
                f"compat={self.compat!r} takes its prior for certain; leave out prior_strength={self.prior_strength}, "
                "or compat"
            )
        whole("n_draws", self.n_draws, high=MOST_DRAWS)
        whole("seed", self.seed, low=0)

    @property
    def chosen_prior(self) -> str | Mapping[int, float]:
        """The prior that ``"auto"`` stands for, or the one that was named."""
        if self.prior != "auto":
            return self.prior
        return "pool+run" if self.compat else "learned"

    @property
    def drops_negative(self) -> bool:
        """Whether labels below 0 are no judgments at all."""
        return self.compat == "ecir23"
