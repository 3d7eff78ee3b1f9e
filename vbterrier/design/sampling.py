"""Sampling of test queries from a corpus of mentions, with their inclusion probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.design.strata import STAGES, MentionCorpus, Units, allocate, strata_of
from vbterrier.errors import InputError, ParameterError, choice, whole
from vbterrier.frames.ids import Ids, ids_of
from vbterrier.frames.notebook import Panel, Shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.annotations import Floats, Ints
    from vbterrier.design.strata import Allocation, Strata


METHODS = (*STAGES, "uniform", "weighted")
RESERVED = ("n_documents", "stratum", "prob", "n_draws")


@dataclass(frozen=True, eq=False, repr=False)
class QuerySample(Shown):
    """Queries sampled from a corpus of mentions, with the sampling design.

    Parameters
    ----------
    frame
        One row per query, in the order of the draws within each stratum: qid, docno, mention, the other columns of the
        mentions, n_documents (with the mention, in the corpus), stratum ("all" without strata), prob (the inclusion
        probability; with replacement the probability of one draw in its stratum), n_draws (1 without replacement).
    strata
        One row per stratum: stratum, n_queries (distinct queries in the corpus), n_drawable (the largest number of
        draws without replacement), n_draws.
    method
        The sampling method.
    replace
        True for sampling with replacement.
    seed
        Seed of the draws.
    """

    frame: pd.DataFrame
    strata: pd.DataFrame
    method: str
    replace: bool
    seed: int

    def __len__(self) -> int:
        return len(self.frame)

    def _line(self) -> str:
        n_strata = len(self.strata)
        by = f"{self.method}, {'with' if self.replace else 'without'} replacement"
        by += f", {n_strata} strata" if n_strata > 1 else ""
        return f"{len(self)} of {self.n_queries:,} queries; {by}; seed {self.seed}"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Queries", self.frame)
        yield Panel("Strata", self.strata)

    @property
    def n_queries(self) -> int:
        """Number of distinct queries in the corpus."""
        return int(self.strata["n_queries"].sum())

    @property
    def weights(self) -> Floats:
        """Sampling weights of the queries, shape (n,): ``1/π``, or ``n_draws/(n_h p)``."""
        prob = self.frame["prob"].to_numpy(dtype=np.float64)
        if not self.replace:
            return 1 / prob
        drawn = self.strata.set_index("stratum")["n_draws"]
        n_h = drawn.loc[self.frame["stratum"]].to_numpy(dtype=np.float64)
        weights: Floats = self.frame["n_draws"].to_numpy(dtype=np.float64) / (n_h * prob)
        return weights


def sample_queries(
    mentions: Any,
    n: int,
    *,
    method: str = "random-document",
    replace: bool = False,
    strata: Strata = None,
    allocation: Allocation = "proportional",
    variances: Mapping[Any, float] | None = None,
    weights: str | None = None,
    seed: int = 0,
) -> QuerySample:
    r"""Sample queries (docno, mention) from a corpus of mentions, with their probabilities.

    ``random-document`` (RD): a uniform document, then one of its mentions. ``random-mention`` (RM): a uniform mention,
    then one of its documents. ``uniform``: a uniform query. ``weighted``: a query with probability proportional to its
    weight. For N queries, D documents with ``M_d`` mentions and M mentions in ``D_m`` documents:

    =================  =========================  ===================================  ==============
    method             one draw, with             in the sample, without replacement   largest n
                       replacement
    =================  =========================  ===================================  ==============
    random-document    ``1/(D M_d)``              ``n/(D M_d)``                        D
    random-mention     ``1/(M D_m)``              ``n/(M D_m)``                        M
    uniform            ``1/N``                    ``n/N``                              N
    weighted           ``w_i/Σ w``                ``min(1, λ w_i)``                    N
    =================  =========================  ===================================  ==============

    Parameters
    ----------
    mentions
        Columns docno, mention and optional columns such as entity_id; or the path of such a file. Rows with the same
        docno and mention are one query (a mention has one meaning in a document), of which the first row is used.
        Mentions are case-sensitive.
    n
        Number of draws.
    method
        The sampling method.
    replace
        Sample with replacement. Without replacement, RD draws at most one query per document and RM at most one per
        mention: the units of the first stage are drawn without replacement. This keeps the probabilities above exact,
        unlike drawing until n distinct queries are found.
    strata
        Strata that are sampled separately: a column; a number of bins of mention frequency with similar numbers of
        queries; or a function from the frame of distinct queries (with n_documents, the mention frequency) to labels.
    allocation
        Draws of each stratum: ``"proportional"`` to the expected draws without strata, ``"equal"``, ``"neyman"``
        (``N_h sqrt(variance_h)``, optimal for the mean under ``uniform``), or a mapping of strata to numbers. Every
        stratum gets at least two draws, or one if n or the stratum is too small.
    variances
        For ``"neyman"``: the variance of a value within each stratum, from a pilot.
    weights
        For ``"weighted"``: the column of weights, above 0. Of duplicated rows the first counts.
    seed
        Seed of the draws, which depend on the seed, the method and the names of the strata, but not on the order of
        rows or on other columns.

    Returns
    -------
    QuerySample

    Raises
    ------
    InputError
        A missing column or value, no rows, weights that are not above 0, a reserved column name.
    ParameterError
        More draws than possible without replacement, an unknown method, a sample too small for its strata.

    Notes
    -----
    Without a column qid, the qid is a fingerprint of docno and mention, the same in all samples. Within a stratum, a
    larger n extends a smaller sample (except ``weighted`` without replacement), so that its judgments remain usable.

    ``weighted`` without replacement is systematic sampling in a random order, with exactly these probabilities; a query
    with a probability of 1 is always drawn. Joint inclusion probabilities have no closed form: variances are
    estimated as for maximum entropy sampling (Hájek 1964), see :func:`horvitz_thompson`.

    Cost: sorting the ids once, about a second for two million rows.

    References
    ----------
    Mertens, Demeester, Deleu, Feys, Develder: Entity Linking: Test Collections Revisited, FIRE 2014, section 2. Hartley
    and Rao: Sampling with unequal probabilities and without replacement, Annals of Mathematical Statistics 33, 1962.
    Neyman, JRSS 97, 1934.

    Examples
    --------
    >>> pairs = [("d1", "Paris"), ("d1", "Texas"), ("d2", "Paris"), ("d3", "Paris"), ("d3", "Rue Gracieuse")]
    >>> corpus = pd.DataFrame(pairs, columns=["docno", "mention"])
    >>> found = sample_queries(corpus, 2, method="random-mention", seed=1)
    >>> found
    QuerySample(2 of 5 queries; random-mention, without replacement; seed 1)
    >>> found.frame[["docno", "mention", "n_documents", "prob"]].round(3).values.tolist()
    [['d1', 'Texas', 1, 0.667], ['d3', 'Rue Gracieuse', 1, 0.667]]
    """
    whole("n", n)
    whole("seed", seed, low=0)
    choice("method", method, METHODS)
    if (weights is not None) != (method == "weighted"):
        raise ParameterError("weights and method='weighted' go together; give both or neither")
    if strata is None and (allocation != "proportional" or variances is not None):
        raise ParameterError("allocation and variances need strata; give strata")
    corpus = MentionCorpus(mentions)
    for name in RESERVED:
        if name in corpus.frame.columns:
            raise InputError(f"mentions: the sample has a column {name!r}; rename that of the mentions")
    extras = [name for name in corpus.frame.columns if name not in ("qid", "docno", "mention")]
    names, stratum = strata_of(corpus, strata, extras)
    taken = [name for name in dict.fromkeys(["entity_id", strata, weights]) if name in (*extras, "docno", "mention")]
    corpus.warn_of_conflicts([str(name) for name in taken])
    units = Units.of(corpus, method, stratum, len(names), weights)
    if not replace and n > len(units.sizes):
        raise ParameterError(
            f"n={n}: without replacement {method} can draw {len(units.sizes)} of these mentions, one for each "
            f"{STAGES.get(method, 'query')}; draw fewer, or with replace=True"
        )
    capacity = np.full(len(names), n) if replace else units.n_units
    sizes = allocate(
        names,
        n,
        allocation,
        capacity=capacity,
        shares=np.bincount(stratum, units.share(corpus, method)).astype(np.float64),
        n_queries=np.bincount(stratum),
        variances=variances,
    )
    drawn = [
        units.draw(place, int(size), replace=replace, seed=seed, name=f"{method}, {name}")
        for place, (name, size) in enumerate(zip(names, sizes, strict=True))
    ]
    frame = _frame(corpus, extras, names, stratum, drawn)
    about = {"stratum": names, "n_queries": np.bincount(stratum), "n_drawable": units.n_units, "n_draws": sizes}
    return QuerySample(frame, pd.DataFrame(about), method, replace, seed)


def _frame(
    corpus: MentionCorpus, extras: list[str], names: list[str], stratum: Ints, drawn: list[tuple[Ints, Floats]]
) -> pd.DataFrame:
    query = np.concatenate([queries for queries, _ in drawn])
    number, distinct = pd.factorize(query)
    _, first = np.unique(number, return_index=True)
    frame: pd.DataFrame = corpus.frame[extras].iloc[corpus.rows[distinct]].reset_index(drop=True)
    for place, (name, ids) in enumerate(_ids(corpus, distinct).items()):
        frame.insert(place, name, ids.text.to_pandas())
    frame["n_documents"] = corpus.frequency[distinct]
    frame["stratum"] = pd.Series(names, dtype=frame["qid"].dtype).iloc[stratum[distinct]].to_numpy()
    frame["prob"] = np.concatenate([prob for _, prob in drawn])[first]
    frame["n_draws"] = np.bincount(number)
    return frame


def _ids(corpus: MentionCorpus, query: Ints) -> dict[str, Ids]:
    """The qid, docno and mention of some queries; without a column qid, fingerprints of docno and mention."""
    rows = corpus.frame.iloc[corpus.rows[query]]
    docno, mention = (ids_of(rows[name], f"mentions column {name!r}") for name in ("docno", "mention"))
    if "qid" not in rows.columns:
        # The length distinguishes ("a", "bc") from ("ab", "c").
        length = pc.cast(pc.binary_length(docno.text), pa.large_string())
        text = pc.binary_join_element_wise(length, docno.text, mention.text, pa.scalar(" ", pa.large_string()))
        prints = [f"q{number:016x}" for number in Ids(text).fingerprints.tolist()]
        return {"qid": Ids(pa.array(prints, pa.large_string())), "docno": docno, "mention": mention}
    qid = ids_of(rows["qid"], "mentions column 'qid'")
    if len(pc.unique(qid.text)) < len(qid):
        raise InputError("mentions column 'qid': two queries have the same qid; make it unique, or drop the column")
    return {"qid": qid, "docno": docno, "mention": mention}
