"""The calls that join siblings: scores of many systems, and what a set of files can be evaluated for."""

from vbterrier.evaluate.scores import Scores, score

__all__ = ["Scores", "score"]
