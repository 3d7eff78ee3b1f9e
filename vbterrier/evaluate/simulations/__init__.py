"""Estimators held against the truth: judgments made incomplete, scores estimated from what is left."""

from vbterrier.evaluate.simulations.estimators import RANGES, STANDARD
from vbterrier.evaluate.simulations.result import Simulation
from vbterrier.evaluate.simulations.simulate import simulate

__all__ = ["RANGES", "STANDARD", "Simulation", "simulate"]
