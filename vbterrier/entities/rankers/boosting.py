"""LambdaRank by LightGBM, the same for the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.rankers.base import warn
from vbterrier.errors import InputError, ParameterError
from vbterrier.linking.extras import module_of_extra

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

CUTOFF = 20
# Small trees: entities of some hundred queries are few.
_USUAL = {"learning_rate": 0.1, "num_leaves": 15, "min_data_in_leaf": 10, "lambdarank_truncation_level": CUTOFF}
_FIXED = {"objective": "lambdarank", "deterministic": True, "force_row_wise": True, "num_threads": 1, "verbosity": -1}
# LightGBM drops the aliases of what is given under its own name, and says so where nobody listens.
_ALIASES = {
    "objective_type", "app", "application", "loss", "num_thread", "nthread", "nthreads", "n_jobs", "verbose",
    "random_seed", "random_state", "metrics", "metric_types", "ndcg_eval_at", "ndcg_at", "map_eval_at",
    "map_at", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round", "num_rounds",
    "nrounds", "num_boost_round", "n_estimators", "max_iter", "early_stopping_round", "early_stopping_rounds",
    "early_stopping", "n_iter_no_change",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Examples:
    """What to learn from, topic by topic: features (n, n_features), labels (n,), how many rows each topic has."""

    table: Floats
    label: Ints
    sizes: Ints

    @property
    def n_contrasts(self) -> int:
        """How many topics have more than one label, without which a ranking teaches nothing."""
        if not len(self.sizes):
            return 0
        starts = np.cumsum(self.sizes) - self.sizes
        low, high = np.minimum.reduceat(self.label, starts), np.maximum.reduceat(self.label, starts)
        return int((low < high).sum())


def learn(
    examples: Examples,
    checked: Examples | None,
    *,
    names: Sequence[str],
    rounds: int,
    patience: int,
    parameters: Mapping[str, Any],
    seed: int,
) -> str:
    """Fit trees, and stop early by other topics where there are any with something to order; the model as text.

    Raises
    ------
    ParameterError
        A parameter that is ours to set.
    InputError
        No topic with positives and negatives.
    """
    lightgbm = module_of_extra("lightgbm", "ltr")
    ours = sorted(set(parameters) & {*_FIXED, *_ALIASES, "seed", "metric", "eval_at"})
    if ours:
        raise ParameterError(f"parameters: {ours[0]!r} is set by the stage, so that its results can be repeated")
    if not examples.n_contrasts:
        raise InputError(
            f"no topic has positive and negative entities among {len(examples.label)} labelled ones in "
            f"{len(examples.sizes)} topics; nothing can be learned: give a longer entity run, or more judgments"
        )
    given = {**_USUAL, **parameters, **_FIXED, "seed": seed, "metric": "ndcg", "eval_at": [CUTOFF]}

    def dataset(of: Examples, reference: Any = None) -> Any:
        return lightgbm.Dataset(
            of.table, of.label, group=of.sizes, feature_name=_plain(names), reference=reference, params=given
        )

    teaching = dataset(examples)
    if checked is None or not checked.n_contrasts:
        model = lightgbm.train(given, teaching, rounds)
    else:
        stop = lightgbm.early_stopping(patience, verbose=False)
        model = lightgbm.train(given, teaching, rounds, valid_sets=[dataset(checked, teaching)], callbacks=[stop])
    if not model.feature_importance().any():
        warn(f"nothing learned from {len(examples.label)} rows: all entities score alike; lower min_data_in_leaf")
    text: str = model.model_to_string()
    return text


def predict(model: str, table: Floats) -> Floats:
    """The score of each row of features, shape (n,)."""
    booster = module_of_extra("lightgbm", "ltr").Booster(model_str=model)
    return np.asarray(booster.predict(table, num_threads=1), dtype=np.float64)


def _plain(names: Sequence[str]) -> list[str]:
    """Names without the signs that LightGBM's text of models does not take."""
    return [f"{place}_" + "".join(sign if sign.isalnum() else "_" for sign in name) for place, name in enumerate(names)]
