"""The distribution of a score over what its unjudged documents could be.

``problem`` states the process, ``moments`` gives mean and variance, ``exact``, ``grid`` and ``sampled`` the whole
distribution in the forms of ``laws``, and ``distribution_of`` chooses between them.
"""

from vbterrier.kernels.grades.choice import METHODS, TooLargeError, distribution_of
from vbterrier.kernels.grades.distributions import central_interval
from vbterrier.kernels.grades.model import UnjudgedModel
from vbterrier.kernels.grades.moments import moments

__all__ = ["METHODS", "TooLargeError", "UnjudgedModel", "central_interval", "distribution_of", "moments"]
