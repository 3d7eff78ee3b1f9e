"""Bad links, folds, vectors, replies and parameters of entity rankers, and the complete message of each: one table."""
# ruff: noqa: E501 - a row has the message on one line, as users see it.

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from refusals import check_message, refusals
from sklearn.model_selection import ShuffleSplit

from vbterrier.entities import (
    ConsensusEntities,
    EntityReachable,
    EntitySelector,
    LinkedPool,
    OverlapReranker,
    judge_entities,
    link_pool,
    supervision_report,
)
from vbterrier.entities.cross_validation import Folds, cross_validated
from vbterrier.entities.rankers.consensus import LocalIDF, PersonalisedPageRank
from vbterrier.entities.rankers.hybrid import HybridEntities, OERFilter
from vbterrier.entities.rankers.similarity import EntitySimilarity
from vbterrier.entities.rerank.embedding import EmbeddingReranker
from vbterrier.entities.rerank.expansion import ExpandByEntities
from vbterrier.entities.rerank.overlap import PropagationReranker
from vbterrier.entities.vectors import read_vectors
from vbterrier.errors import FileError, InputError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")

RUN = pd.DataFrame({"qid": ["q1"] * 3 + ["q2"] * 2, "query": ["rome"] * 3 + ["texas"] * 2, "rank": [0, 1, 2, 0, 1]})
RUN = RUN.assign(docno=["d1", "d2", "d3", "d1", "d4"], score=[3.0, 2.0, 1.0, 2.0, 1.0])
QRELS = RUN[["qid", "docno"]].assign(label=[1, 0, 1, 0, 1])
TAGS = pd.DataFrame({"docno": ["d1", "d2", "d2", "d4"], "entity_id": ["Rome", "Italy", "Rome", "Texas"]})
ENTITIES = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["Italy", "Rome", "Texas"], "score": [2.0, 1.0, 1.0]})
POOL = link_pool(RUN, TAGS, QRELS)
LINKS = POOL.to_frame().dropna(subset="entity_id").reset_index(drop=True)
QUERY = pd.DataFrame({"qid": ["q1"], "entity_id": ["Rome"], "prob": [-1.0]})
VECTORS = {"Rome": [1.0, 0.0], "Italy": [0.5, 0.5], "Texas": [0.0, 1.0]}
RANKERS = [ConsensusEntities(POOL), PersonalisedPageRank(POOL)]


def embed(texts):
    return np.ones((len(texts), 2))


def parameters(stage, options):
    """A stage on the pool with these parameters; stages that read an entity run get one."""
    entities = [ENTITIES] if stage in {EntityReachable, OverlapReranker, PropagationReranker} else []
    return stage(POOL, *entities, **options)


def read(content, prefix=""):
    Path("vectors").write_bytes(content)
    return read_vectors("vectors", prefix=prefix)


# fmt: off
REFUSALS = [
    # Pools of links
    *refusals(
        "links",
        lambda change: LinkedPool.from_frame(change(LINKS), name="links"),
        (lambda links: links.assign(rank=links["rank"] - 1), "links: row 0 has rank -1, wanted at least 0, the first rank"),
        (lambda links: links.assign(weight=[None] + [1.0] * (len(links) - 1)), "links: row 0 has no weight, wanted 0 to 1; for linkers without weights, use 1 for all"),
        (lambda links: links.assign(weight=2.0), "links: row 0 has weight 2, wanted 0 to 1; convert scores to probabilities first: exp(x) of log probabilities, 1 / (1 + exp(-x)) of logits, or a softmax over the candidates of each mention; or leave the column out, which counts every link as 1"),
        (lambda links: links.assign(weight=math.inf), "links: row 0 has weight inf, wanted 0 to 1; convert scores to probabilities first: exp(x) of log probabilities, 1 / (1 + exp(-x)) of logits, or a softmax over the candidates of each mention; or leave the column out, which counts every link as 1"),
        (lambda links: links.assign(mentions=0), "links: row 0 has 0 mentions; a link has at least one"),
        (lambda links: links.assign(label=0.5), "links column 'label': row 0 holds 0.5, wanted a whole number; map graded or fractional judgments to integer grades first, as vbterrier.frames.in_units does"),
        (lambda links: links.drop(columns="rank"), "links: wanted columns qid, docno, entity_id, label, rank, weight; missing rank; found qid, docno, entity_id, label, weight, mentions."),
        (lambda links: pd.concat([links, links[:1].assign(entity_id="G", label=0)]), "links: document 'd1' of query 'q1' has the labels 1 and 0; keep one"),
        (lambda links: pd.concat([links, links[:1].assign(entity_id="G", rank=7)]), "links: document 'd1' of query 'q1' has several ranks; give all rows of a document its rank in the pool"),
        (lambda links: links.assign(qid=[None] + ["q1"] * (len(links) - 1)), "links column 'qid': row 0 has no id; repair or drop the row before evaluating"),
    ),
    *refusals(
        "tags of a pool",
        lambda change: link_pool(RUN, TAGS.assign(**change)),
        ({"entity_id": ""}, "tags: no link of the pool has an entity, all are NIL; check the column entity_id"),
        ({"entity_id": ["wd:Q1", "wd:Q2", "dbr:Paris", "wd:Q3"]}, "tags column 'entity_id': entity 'dbr:Paris' is of dbpedia, 'wd:Q3' is of wikidata: ids of different spaces are different entities; bring both to one space with `vbterrier convert IN --kind links --to tags --ids wikidata --mapping TABLE --output OUT` (or --to answers) or read_entity_links(ids=, mapping=)"),
        ({"docno": range(4)}, "tags column 'docno' holds integers, pool column 'docno' holds text: they can never match; cast tags column 'docno' with .astype(str), or read both from files with vbterrier.read_run and read_qrels"),
        ({"docno": [*"wxyz"]}, "none of the 5 documents of the pool has an entity in tags; check the document ids (tags: ['w', 'x', 'y'], pool: ['d1', 'd2', 'd3'])"),
    ),
    *refusals(
        "the cutoff of a pool",
        lambda cutoff: link_pool(RUN, TAGS, cutoff=cutoff),
        *((cutoff, f"cutoff={cutoff}: wanted a whole number of at least 1") for cutoff in (0, -1, 2.5, True)),
        error=ParameterError,
    ),
    # Stages
    *refusals(
        "parameters of a stage",
        parameters,
        (ConsensusEntities, {"support": "rang"}, "support='rang': wanted one of 'rank', 'rho', 'rho+rank'. Did you mean rank?"),
        (ConsensusEntities, {"min_documents": 0}, "min_documents=0: wanted a whole number of at least 1"),
        (ConsensusEntities, {"pool_cutoff": 1.5}, "pool_cutoff=1.5: wanted a whole number of at least 1"),
        (ConsensusEntities, {"cutoff": True}, "cutoff=True: wanted a whole number of at least 1"),
        (LocalIDF, {"pool_cutoff": 0}, "pool_cutoff=0: wanted a whole number of at least 1"),
        (OERFilter, {"threshold": math.nan}, "threshold=nan: wanted a number that is finite"),
        (OERFilter, {"alpha": 0}, "alpha=0: wanted a number above 0"),
        (OERFilter, {"shrinkage": -1}, "shrinkage=-1: wanted a number above 0"),
        (OERFilter, {"rel": 0}, "rel=0: wanted a whole number of at least 1"),
        (OERFilter, {"pool_cutoff": 0}, "pool_cutoff=0: wanted a whole number of at least 1"),
        (PersonalisedPageRank, {"damping": 1}, "damping=1: wanted a number above 0 and below 1"),
        (PersonalisedPageRank, {"tolerance": 0}, "tolerance=0: wanted a number above 0 and below 1"),
        (PersonalisedPageRank, {"restart": "support"}, "restart='support': wanted one of 'rank', 'rho', 'rho+rank', 'uniform'."),
        (PersonalisedPageRank, {"restart": QUERY[["qid"]]}, InputError, "restart: wanted columns qid, entity_id; missing entity_id; found qid."),
        (PersonalisedPageRank, {"restart": QUERY}, InputError, "restart: row 0 has prob -1, wanted a number of at least 0"),
        (EntitySimilarity, {}, "EntitySimilarity: entities have no vectors; pass embeddings= or embed="),
        (EntitySimilarity, {"embeddings": {}}, "EntitySimilarity: queries have no vectors; pass embed= or query_entities="),
        (EntitySimilarity, {"embed": "MiniLM"}, "embed='MiniLM': wanted a callable from texts to vectors"),
        (EntitySimilarity, {"embed": embed, "embeddings": {}, "texts": {}}, "texts= and embeddings= both describe the entities; pass one of them"),
        (EntitySelector, {"features": []}, "features=[]: wanted a list of different names"),
        (EntitySelector, {"features": "df"}, "features='df': wanted a list of different names"),
        (EntitySelector, {"features": ["df", "df"]}, "features=['df', 'df']: wanted a list of different names"),
        (EntitySelector, {"supervision": "qrels"}, "supervision='qrels': wanted one of 'documents', 'entities'."),
        (EntitySelector, {"rounds": 0}, "rounds=0: wanted a whole number of at least 1"),
        (EntitySelector, {"patience": 0}, "patience=0: wanted a whole number of at least 1"),
        (EntitySelector, {"seed": -1}, "seed=-1: wanted a whole number of at least 0"),
        (EntitySelector, {"rel": 0}, "rel=0: wanted a whole number of at least 1"),
        (EntityReachable, {"cutoff": 0}, "cutoff=0: wanted a whole number of at least 1"),
        (EntityReachable, {"cutoff": 1.5}, "cutoff=1.5: wanted a whole number of at least 1"),
        (EntityReachable, {"cutoff": True}, "cutoff=True: wanted a whole number of at least 1"),
        (EntityReachable, {"cutoff": "2"}, "cutoff='2': wanted a whole number of at least 1"),
        (OverlapReranker, {"cutoff": 0}, "cutoff=0: wanted a whole number of at least 1"),
        (OverlapReranker, {"weight": 1.5}, "weight=1.5: wanted a number of at least 0 and at most 1; did you mean 0.015, 1.5 per cent?"),
        (OverlapReranker, {"weight": -0.1}, "weight=-0.1: wanted a number of at least 0 and at most 1"),
        (OverlapReranker, {"norm": "max"}, "norm='max': wanted one of 'minmax', 'z', 'none'. Did you mean minmax?"),
        (OverlapReranker, {"entity_weight": "x"}, "entity_weight='x': wanted one of 'uniform', 'rank', 'score', 'idf'."),
        (OverlapReranker, {"link_weight": "x"}, "link_weight='x': wanted one of 'uniform', 'document', 'entity'."),
        (PropagationReranker, {"damping": 2}, "damping=2: wanted a number of at least 0 and at most 1; did you mean 0.02, 2 per cent?"),
        (PropagationReranker, {"steps": 0}, "steps=0: wanted a whole number of at least 1"),
        (PropagationReranker, {"entity_weight": "x"}, "entity_weight='x': wanted one of 'uniform', 'rank', 'score', 'idf'."),
        error=ParameterError,
    ),
    *refusals(
        "parameters of a hybrid",
        lambda options: HybridEntities(**({"rankers": RANKERS} | options)),
        ({"rankers": []}, "rankers=[]: wanted a list of transformers, as [one, two]"),
        ({"rankers": [len]}, "rankers=[<built-in function len>]: wanted a list of transformers, as [one, two]"),
        ({"weights": [1]}, "weights=[1]: wanted one for each of 2 rankers, and one above 0"),
        ({"weights": [0, 0]}, "weights=[0, 0]: wanted one for each of 2 rankers, and one above 0"),
        ({"weights": [1, -1]}, "weights=-1: wanted a number of at least 0"),
        ({"fusion": "rff"}, "fusion='rff': wanted one of 'rrf', 'linear'. Did you mean rrf?"),
        ({"norm": "zscore"}, "norm='zscore': wanted one of 'minmax', 'none'."),
        ({"k": -1}, "k=-1: wanted a number of at least 0"),
        error=ParameterError,
    ),
    *refusals(
        "values of a report of supervision",
        lambda options: supervision_report(POOL, **options),
        ({"rel": 0}, "rel=0: wanted a whole number of at least 1, the lowest relevant label"),
        ({"rel": True}, "rel=True: wanted a whole number of at least 1, the lowest relevant label"),
        ({"alpha": 0}, "alpha=0: wanted a number above 0"),
        ({"alpha": math.inf}, "alpha=inf: wanted a finite number above 0"),
        ({"shrinkage": -1.0}, "shrinkage=-1.0: wanted a number above 0"),
        ({"shrinkage": math.nan}, "shrinkage=nan: wanted a number above 0"),
        error=ParameterError,
    ),
    *refusals(
        "data of a stage",
        lambda call: call(),
        (lambda: ConsensusEntities({}), "links: wanted a data frame, found dict; pass a pandas or polars frame"),
        (lambda: ConsensusEntities(TAGS[["docno"]]), "links: wanted columns docno, entity_id; missing entity_id; found docno."),
        (lambda: OERFilter(link_pool(RUN, TAGS)), "OERFilter: no document of the links is judged; give link_pool the qrels"),
        (lambda: HybridEntities([pt.Transformer.from_df(ENTITIES.assign(score=math.inf))], fusion="linear")(RUN.drop_duplicates("qid")[["qid", "query"]]), "run of ranker 0: infinite scores cannot be added; fuse by ranks, with fusion='rrf'"),
        (lambda: EntityReachable(TAGS, ENTITIES.assign(qid=1)).transform(RUN), "entities column 'qid' holds integers, run column 'qid' holds text: they can never match; cast entities column 'qid' with .astype(str), or read both from files with vbterrier.read_run and read_qrels"),
        (lambda: EntityReachable(TAGS, ENTITIES.assign(docno=range(3))).transform(RUN), "links column 'entity_id' holds text, entities column 'docno' holds integers: they can never match; cast entities column 'docno' with .astype(str), or read both from files with vbterrier.read_run and read_qrels"),
        (lambda: EntityReachable(TAGS.assign(docno=range(4)), ENTITIES).transform(RUN), "links column 'docno' holds integers, run column 'docno' holds text: they can never match; cast links column 'docno' with .astype(str), or read both from files with vbterrier.read_run and read_qrels"),
        (lambda: OverlapReranker(TAGS, ENTITIES).transform(RUN.assign(score=math.inf)), "run column 'score': document 'd3' of query 'q1' has inf, wanted a finite number"),
        (lambda: EmbeddingReranker(TAGS, ENTITIES, "vectors.bin"), ParameterError, "embeddings: found str, wanted a mapping from ids, such as a dictionary"),
        (lambda: EmbeddingReranker(TAGS, ENTITIES.assign(score=-1.0 * ENTITIES["score"]), VECTORS, entity_weight="score").transform(RUN), "entities: 'Rome' of query 'q1' has the score -1, wanted at least 0 as a weight; use entity_weight='rank'"),
        (lambda: EmbeddingReranker(TAGS, ENTITIES, VECTORS, document_embeddings={"d1": [1.0]}).transform(RUN), "vectors of documents have 1 numbers, vectors of entities 2; use the same embedding model"),
        (lambda: ExpandByEntities(ENTITIES.assign(qid=[1, 1, 3])).transform(RUN), "entities column 'qid' holds integers, topics column 'qid' holds text: they can never match; cast entities column 'qid' with .astype(str), or read both from files with vbterrier.read_run and read_qrels"),
        (lambda: ExpandByEntities(ENTITIES, texts={"Italy": 3}).transform(RUN), "texts: entity 'Italy' has 3, wanted text"),
        (lambda: ExpandByEntities(ENTITIES, texts="names.tsv"), ParameterError, "texts: found str, wanted a mapping from ids, such as a dictionary"),
    ),
    *refusals(
        "vectors and texts of a similarity",
        lambda options, run: EntitySimilarity(TAGS, **options)(run),
        ({"embeddings": VECTORS | {"Rome": [1.0, math.nan]}, "embed": embed}, RUN, "vectors of entities: the vector of 'Rome' is not finite; leave it out"),
        ({"embeddings": VECTORS, "embed": lambda texts: np.ones((len(texts), 3))}, RUN, "vectors of entities have 2 numbers, vectors of queries 3; use the same embedding model"),
        ({"embeddings": VECTORS, "embed": lambda _texts: np.ones((1, 2))}, RUN, "vectors of 2 queries: wanted a table of shape (2, d), found (1, 2)"),
        ({"embed": embed}, RUN.assign(query=["rome", "rome", "other", "texas", "texas"]), "input: row 2 has a different text for query 'q1'; give all rows of a query the same text"),
        ({"embed": embed}, RUN.assign(query=None), "input: row 0 has no text for query 'q1'; give all rows of a query the same text"),
    ),
    *refusals(
        "what a selector learns from",
        lambda call: call(EntitySelector(POOL)),
        (lambda selector: selector(RUN), "EntitySelector is not fitted; call fit, or use cross_validated or load"),
        (lambda selector: selector.fit(RUN, QRELS.assign(label=0)), "no topic has positive and negative entities among 0 labelled entities of 0 topics; use a longer entity run, or more judgments"),
        (lambda selector: selector.fit(RUN, QRELS[:3].assign(qid=1)), "qrels column 'qid' holds integers, entity run column 'qid' holds text: they can never match; cast qrels column 'qid' with .astype(str), or read both from files with vbterrier.read_run and read_qrels"),
        (lambda selector: selector.cross_validated(RUN, QRELS, folds=1), ParameterError, "folds=1: wanted a whole number of at least 2"),
        (lambda selector: selector.cross_validated(RUN, QRELS, folds=2), "2 topics are too few for 2 folds of sizes 2, 0: they are in one fold; use more topics, fewer folds, or folds of equal size: folds=sklearn.model_selection.KFold(2)"),
    ),
    # Folds
    *refusals(
        "folds",
        lambda folds, n: list(Folds(folds, [f"q{at}" for at in range(n)], 0)),
        (5, 1, "1 topic is too few for 5 folds of sizes 0, 0, 0, 1, 0: they are in one fold; use more topics"),
        (5, 3, "3 topics are too few for 5 folds of sizes 0, 1, 1, 1, 0: folds would be empty; use more topics, fewer folds, or folds of equal size: folds=sklearn.model_selection.KFold(3)"),
        ([["q0"], ["q1"], ["q2"]], 2, "2 topics are too few for 3 folds of sizes 1, 1, 0: none is left to learn from for fold 0; use more topics"),
        (ShuffleSplit(3, test_size=2, random_state=1), 4, ParameterError, "folds: 2 topics are in several folds ('q2', 'q3')"),
        ([["q0"], ["q1"]], 3, "folds: 1 topic of the run is in no fold ('q2')"),
        ([["q0", "q1"], ["q1", "q2"]], 3, ParameterError, "folds: 1 topic is in several folds ('q1')"),
        ([["q0", "q1", "q2"]], 3, ParameterError, "folds: found 1 fold, wanted at least 2"),
        ([["q0", "q1", "q2"], ["q3"]], 3, "3 topics are too few for 2 folds of sizes 3, 0: they are in one fold; use more topics"),
        ("five", 3, ParameterError, "folds: found str, wanted a number, a splitter of scikit-learn, lists of topics, or a mapping of topic to fold"),
        (1, 3, ParameterError, "folds=1: wanted a whole number of at least 2"),
        (2.5, 3, ParameterError, "folds=2.5: wanted a whole number of at least 2"),
    ),
    *refusals(
        "a pipeline without estimator",
        lambda stage: cross_validated(stage, RUN, QRELS),
        (ConsensusEntities(POOL), "stage: ConsensusEntities(2 topics) contains no estimator; call it, there is nothing to fit"),
        error=ParameterError,
    ),
    # Language models as judges
    *refusals(
        "a reply",
        lambda reply: judge_entities(ENTITIES[:1].assign(query="rome"), {"one": lambda _: reply}),
        ("3", "judge 'one', query 'q1', entity 'Italy': replied '3', wanted one grade: 0, 1 or 2"),
        ("relevant", "judge 'one', query 'q1', entity 'Italy': replied 'relevant', wanted one grade: 0, 1 or 2"),
        ("1 or 2", "judge 'one', query 'q1', entity 'Italy': replied '1 or 2', wanted one grade: 0, 1 or 2"),
        ("", "judge 'one', query 'q1', entity 'Italy': replied '', wanted one grade: 0, 1 or 2"),
        (None, "judge 'one', query 'q1', entity 'Italy': replied 'None', wanted one grade: 0, 1 or 2"),
        ("-", "judge 'one', query 'q1', entity 'Italy': replied '-', wanted one grade: 0, 1 or 2"),
        ("1.5", "judge 'one', query 'q1', entity 'Italy': replied '1.5', wanted one grade: 0, 1 or 2"),
        ("12", "judge 'one', query 'q1', entity 'Italy': replied '12', wanted one grade: 0, 1 or 2"),
    ),
    *refusals(
        "judges of a majority",
        lambda judges: judge_entities(ENTITIES[:1].assign(query="rome"), judges),
        ({}, "judges: wanted an odd number of callables by name, so that a majority can exist"),
        ({"a": str, "b": str}, "judges: wanted an odd number of callables by name, so that a majority can exist"),
        ({"a": "gpt"}, "judges: wanted an odd number of callables by name, so that a majority can exist"),
        ([str], "judges: wanted an odd number of callables by name, so that a majority can exist"),
        error=ParameterError,
    ),
    # Files of vectors
    *refusals(
        "a file of vectors",
        read,
        (b"", "vectors: cannot be read: is empty; wanted at least one vector"),
        (b"\x80\x04model", "vectors: is a pickled model, which is never loaded; wanted word2vec or text: unpack it, or save it with save_text"),
        (b"\x1f\x8bzip", "vectors: is compressed; wanted word2vec or text: unpack it, or save it with save_text"),
        (b"2 3\na 1 2 3\n", "vectors:1: the header says 2 vectors of 3 numbers, found 1 of 3: was it written to its end?"),
        (b"a 1 2\nb 1 2\na 3 4\n", "vectors: has two vectors of 'a'; keep one"),
        (b"a 1 2\nb\n", "vectors:2: wanted a name and numbers"),
        (b"a 1 2\nb 1\n", "vectors:2: has 1 word after the name, wanted 2 numbers; separate names with spaces by a tab"),
        (b"2 2\nNew York " + bytes(8) + b"b " + bytes(8), "vectors: vector 2 of 2 has the name b'\\x00\\x00\\x00\\x00\\x00b'; wanted text without spaces, and 2 numbers of 32 bits: save titles with underscores"),
        (b"1 2\na " + bytes(8) + b"b " + bytes(8), "vectors:1: has more than the 1 vector of 2 numbers that its header says"),
        (b"2 3\nNew York 1 2 3\nb 1 2 3\n", "vectors:3: has 3 words after the name, wanted 4 numbers; separate names with spaces by a tab"),
        (b"\n\n", "vectors: has no vectors; wanted lines of a name and numbers"),
        (b"9 100\na " + bytes(50), "vectors:1: the header says 9 vectors of 100 numbers, more than the file has"),
        (b"3 2\na " + bytes(8) + b"b " + bytes(8) + b"c " + bytes(7), "vectors: ends in vector 3 of 3: was it written to its end?"),
        (b"2 2\n " + bytes(8) + b"b " + bytes(8), "vectors: vector 1 of 2 has no name"),
        (b"a 1 2\n", "ENTITY/", "vectors: no name begins with 'ENTITY/'; found 'a'"),
        error=FileError,
    ),
    *refusals(
        "a vector of a file",
        lambda name: read(b"a 1 2\nb 1 -\nc 1 x\nd 1 nan\n")[name],
        ("b", "vectors: the vector of 'b': wanted 2 numbers, found b'1 -'"),
        ("c", "vectors: the vector of 'c': wanted 2 numbers, found b'1 x'"),
        ("d", "vectors: the vector of 'd' is not finite; remove it from the file"),
        error=FileError,
    ),
    *refusals("a missing file of vectors", read_vectors, ("none", "none: cannot be read: No such file or directory"), error=FileError),
]
# fmt: on


@pytest.mark.parametrize(("call", "arguments", "error", "message"), REFUSALS)
def test_bad_input_has_this_message(request, call, arguments, error, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    check_message(request, call, arguments, error, message)
