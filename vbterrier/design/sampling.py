"""Test queries drawn from a corpus of mentions, each with the probability of being drawn."""

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
OURS = ("n_documents", "stratum", "prob", "n_draws")


@dataclass(frozen=True, eq=False, repr=False)
class QuerySample(Shown):
    """Queries drawn from a corpus of mentions, and the design by which they were.

    Parameters
    ----------
    frame
        A row a query, in the order of the draws within each stratum: qid, docno, mention, the other columns of the
        mentions, n_documents (that hold the mention, in the corpus), stratum ("all" where there are none), prob (the
        probability that the query is in the sample; with replacement that of one draw in its stratum), n_draws (how
        often it was drawn, 1 without replacement).
    strata
        A row a stratum: stratum, n_queries (its distinct queries in the corpus), n_drawable (what can be drawn without
        replacement), n_draws.
    method
        How queries were drawn.
    replace
        Whether with replacement.
    seed
        What decided the draws.
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
        """How many distinct queries the corpus has."""
        return int(self.strata["n_queries"].sum())

    @property
    def weights(self) -> Floats:
        """How many queries of the corpus each drawn one speaks for, shape (n,): ``1/π``, or ``n_draws/(n_h p)``."""
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
    r"""Draw queries (docno, mention) from a corpus of mentions, with the probability of each.

    ``random-document`` (RD): a document, uniformly, then one of its mentions. ``random-mention`` (RM): a mention,
    uniformly, then one of the documents that hold it. ``uniform``: a query, uniformly. ``weighted``: a query, with a
    probability proportional to its weight. Of N queries, D documents with ``M_d`` mentions and M mentions in
    ``D_m`` documents:

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
        Columns docno, mention; others, such as entity_id, pass through. Or the path of a file of them. Rows that repeat
        a docno and mention are one query (a mention has one meaning in a document), the first of which is taken.
        Mentions are compared as they are spelt, and documents without a mention are not there.
    n
        How many draws.
    method
        How.
    replace
        With replacement. Without it queries differ, and RD takes one query at most from a document, RM one at most of
        a mention: it is the units of the first stage that are not put back. This keeps the probabilities above exact,
        which those of drawing on until n queries differ are not.
    strata
        To draw from each part of the corpus by itself, by the method applied to that part alone: a column; a number of
        bins of mention frequency of about as many queries each; or a function from the frame of distinct queries (with
        n_documents, the mention's frequency) to a label each.
    allocation
        Draws of each stratum: ``"proportional"`` to the share that it would have of the draws without strata,
        ``"equal"``, ``"neyman"`` (``N_h sqrt(variance_h)``, best for the mean under ``uniform``), or a mapping of
        strata to numbers. Every stratum gets two draws at least, or one where n or the stratum is too small for that.
    variances
        For ``"neyman"``: the variance of a value within each stratum, from a pilot.
    weights
        For ``"weighted"``: the column of sizes, above 0. Of repeated rows the first counts.
    seed
        Decides the draws, with the method and the names of the strata alone: neither the order of the rows nor other
        columns do.

    Returns
    -------
    QuerySample

    Raises
    ------
    InputError
        A missing column or value, no rows, weights that are not above 0, a column named as one of ours.
    ParameterError
        More than can be drawn without replacement, an unknown method, a sample too small for its strata.

    Notes
    -----
    Where queries have no column qid, a query's qid is a fingerprint of its docno and mention: the same in all samples.
    A larger n draws the same queries and more, stratum by stratum, but for ``weighted`` without replacement: judgments
    made for the smaller sample stay of use.

    ``weighted`` without replacement is systematic sampling along a random order, with exactly these probabilities; a
    query whose weight asks for more than 1 is taken for certain. The probabilities of pairs are not known in closed
    form: variances are estimated as for sampling of the largest entropy (Hájek 1964). See :func:`horvitz_thompson`.

    The cost is that of sorting the ids once: about a second for two million rows.

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
        raise ParameterError("allocation and variances are about strata; give strata, too")
    corpus = MentionCorpus(mentions)
    extras = _extras(corpus)
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


def _extras(corpus: MentionCorpus) -> list[str]:
    """The columns that pass through."""
    for name in OURS:
        if name in corpus.frame.columns:
            raise InputError(f"mentions: column {name!r} would be replaced by that of the sample; rename it")
    return [name for name in corpus.frame.columns if name not in ("qid", "docno", "mention")]


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
    """The qid, docno and mention of some queries; a qid is their own, or a fingerprint of docno and mention."""
    rows = corpus.frame.iloc[corpus.rows[query]]
    docno, mention = (ids_of(rows[name], f"mentions column {name!r}") for name in ("docno", "mention"))
    if "qid" not in rows.columns:
        # The length keeps ("a", "bc") and ("ab", "c") apart.
        length = pc.cast(pc.binary_length(docno.text), pa.large_string())
        text = pc.binary_join_element_wise(length, docno.text, mention.text, pa.scalar(" ", pa.large_string()))
        prints = [f"q{number:016x}" for number in Ids(text).fingerprints.tolist()]
        return {"qid": Ids(pa.array(prints, pa.large_string())), "docno": docno, "mention": mention}
    qid = ids_of(rows["qid"], "mentions column 'qid'")
    if len(pc.unique(qid.text)) < len(qid):
        raise InputError("mentions column 'qid': two queries have one qid; give each its own, or drop the column")
    return {"qid": qid, "docno": docno, "mention": mention}
