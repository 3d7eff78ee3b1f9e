"""Replicas under perturbed intents and tags; intervals of means over topics, and of what is not known about each."""

from vbterrier.kernels.bca import acceleration_of
from vbterrier.uncertainty.hoeffding import hoeffding_error, hoeffding_replicas
from vbterrier.uncertainty.intervals import topics_interval, topics_intervals
from vbterrier.uncertainty.matches import Matches
from vbterrier.uncertainty.perturb import (
    Dirichlet,
    DropCandidates,
    DropConstraints,
    IntentBootstrap,
    Perturbation,
    ScoreNoise,
    TemperatureJitter,
)
from vbterrier.uncertainty.replica_ends import replica_intervals
from vbterrier.uncertainty.replicas import Replicas, left_out, replicate
from vbterrier.uncertainty.retag import TagConfusion, TagDropout
from vbterrier.uncertainty.statistics import Statistic
from vbterrier.uncertainty.variants import Variants, with_variants

__all__ = [
    "Dirichlet",
    "DropCandidates",
    "DropConstraints",
    "IntentBootstrap",
    "Matches",
    "Perturbation",
    "Replicas",
    "ScoreNoise",
    "Statistic",
    "TagConfusion",
    "TagDropout",
    "TemperatureJitter",
    "Variants",
    "acceleration_of",
    "hoeffding_error",
    "hoeffding_replicas",
    "left_out",
    "replica_intervals",
    "replicate",
    "topics_interval",
    "topics_intervals",
    "with_variants",
]
