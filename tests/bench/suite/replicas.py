"""A call that draws replicas of intents."""

import numpy as np
import pandas as pd

from vbterrier.kernels.resample import stream
from vbterrier.stats.matches import Matches, Statistic
from vbterrier.stats.perturbations import Dirichlet
from vbterrier.stats.replicas import replicate

N_QUERIES, N_INTENTS = 250, 8


def replicated(*, seed=0):
    """A call that draws as many Dirichlet replicas of VB@10 on 250 queries with 8 intents as it is told to."""
    draw = stream(seed, "replicas")
    frame = pd.DataFrame(
        {
            "qid": np.repeat([f"q{topic}" for topic in range(N_QUERIES)], N_INTENTS),
            "entity_id": [f"e{place}" for place in range(N_INTENTS)] * N_QUERIES,
            "prob": draw.dirichlet(np.ones(N_INTENTS), N_QUERIES).ravel(),
        }
    )
    served = np.sort(draw.choice(len(frame), 3 * len(frame) // 4, replace=False))
    docno = [f"d{number}" for number in range(served.size)]
    matches = {"a": Matches(served, draw.integers(0, 10, served.size), docno=docno)}
    return lambda n: replicate(frame, matches, [Dirichlet(10)], [Statistic("VB", 10)], n_replicas=n, seed=seed)
