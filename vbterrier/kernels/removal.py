"""Queries removed from a set of two-stage decisions: how many of each kind, and the scores of what is left.

The cells of a decision, in this order: a gold link resolved right, resolved wrong, missed (resolved as NIL); a gold NIL
recognised, a gold NIL taken for a link. Rows of ``cells`` are numbers of queries in each, shape (..., 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.linking import FIGURES, figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

N_CELLS = 5
# Where they stand in a table of gold link and gold NIL by right link, wrong link, NIL, unanswered, row by row.
PLACES = np.array([0, 1, 2, 6, 5])
SCORES = ("P", "R", "F1")
_TOTALS = [FIGURES.index(name) for name in ("LinkingP", "LinkingR", "LinkingF1")]
# Numbers of a block: 16 MB.
_BLOCK = 1 << 21


def scores(cells: Ints) -> Floats:
    """P, R and F1 of each row, shape (..., 3).

    >>> scores(np.array([3, 1, 1, 4, 1])).round(3).tolist()
    [0.7, 0.7, 0.7]
    """
    tables = np.zeros((*cells.shape[:-1], 8))
    tables[..., PLACES] = cells
    return figures(tables.reshape(*cells.shape[:-1], 2, 4))[..., _TOTALS]


def nested_draws(cells: Ints, n_removed: int, n_draws: int, draws: np.random.Generator) -> Ints:
    """How many of each kind go when queries are removed at random, shape (n_draws, 5).

    Links among the removed, those of them that were found, and those of these that were resolved right are
    hypergeometric, each given the one before; so are the NILs recognised among the NILs removed.
    """
    right, wrong, missed, nil, taken = (int(n) for n in cells)
    links = draws.hypergeometric(right + wrong + missed, nil + taken, n_removed, n_draws)
    found = draws.hypergeometric(right + wrong, missed, links)
    correct = draws.hypergeometric(right, wrong, found)
    recognised = draws.hypergeometric(nil, taken, n_removed - links)
    gone = [correct, found - correct, links - found, recognised, n_removed - links - recognised]
    return np.stack(gone, axis=-1).astype(np.int64)


def removed_queries(kind: Ints, n_removed: int, n_draws: int, draws: np.random.Generator) -> Ints:
    """How many of each kind go when queries are picked one by one, shape (n_draws, 5).

    Parameters
    ----------
    kind
        The cell of each query, from 0, shape (n,).
    """
    gone = [
        np.bincount((N_CELLS * np.arange(len(picked))[:, None] + kind[picked]).ravel(), minlength=N_CELLS * len(picked))
        for picked in _picked(len(kind), n_removed, n_draws, draws)
    ]
    return np.concatenate(gone).reshape(-1, N_CELLS).astype(np.int64)


def _picked(n: int, n_picked: int, n_draws: int, draws: np.random.Generator) -> Iterator[Ints]:
    """Blocks of rows of different queries, shape (rows, n_picked)."""
    step = max(1, _BLOCK // n)
    for done in range(0, n_draws, step):
        numbers = draws.random((min(step, n_draws - done), n))
        yield np.argpartition(numbers, n_picked - 1, axis=1)[:, :n_picked]


def extremes(cells: Ints, n_removed: int) -> tuple[Floats, Floats]:
    """The lowest and the highest P, R and F1 that removing so many queries can leave, each shape (3,).

    Notes
    -----
    Let the missed links and the taken NILs that go be fixed, d what is left of the first less what is left of the
    second, A the links and B the NILs that the system still predicts, n = A + B. Then
    ``n P = n R + d (right/A - nil/B)``, and of the other removed queries s are links. Best, wrong links go before right
    ones: P and R rise with s up to the number of wrong links; from there on R stays and P is monotone, in the
    direction of -d. Worst, right links go first: up to their number R stays and P is monotone, beyond it both rise. So
    the extremes of all three scores lie where s is at an end of its range or at that number: all removals of missed
    links and taken NILs are tried with these, which costs their product.
    """
    right, wrong, missed, nil, taken = (int(n) for n in cells)
    lowest, highest = np.full(3, np.inf), np.full(3, -np.inf)
    all_missed, all_taken = np.arange(min(missed, n_removed) + 1), np.arange(min(taken, n_removed) + 1)
    step = max(1, _BLOCK // (32 * len(all_taken)))
    for start in range(0, len(all_missed), step):
        gone_missed, gone_taken = np.meshgrid(all_missed[start : start + step], all_taken, indexing="ij")
        rest = n_removed - gone_missed - gone_taken
        low, high = np.maximum(rest - nil, 0), np.minimum(rest, right + wrong)
        possible = low <= high
        low, high, rest = low[possible], high[possible], rest[possible]
        for best, turn in ((True, wrong), (False, right)):
            links = np.stack([low, np.clip(turn, low, high), high])
            gone_right = np.maximum(links - wrong, 0) if best else np.minimum(links, right)
            gone = [gone_right, links - gone_right, *np.broadcast_arrays(gone_missed[possible], rest - links)]
            gone.append(np.broadcast_to(gone_taken[possible], links.shape))
            found = scores(cells - np.stack(gone, axis=-1)).reshape(-1, 3)
            if found.size:
                lowest = np.minimum(lowest, found.min(axis=0))
                highest = np.maximum(highest, found.max(axis=0))
    return lowest, highest
