"""Collections of any size that look like real ones: what benchmarks run on."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from vbterrier.hosts.ir_measures import TO_IR_MEASURES
from vbterrier.kernels.resample import stream

KINDS = ("judged", "intents", "entities", "linking")
# Judged documents of a query (of an intent, where it has some), and the documents and mentions of its pool.
N_JUDGED, N_POOLED, N_MENTIONS = 20, 50, 10
# As many as passages of MS MARCO; a prime, so that any stride through it meets every number.
_N_DOCUMENTS = 8_841_823
_N_QUERIES = 1_200_000
_FILES = {
    "run": ("qid", "Q0", "docno", "rank", "score", "tag"),
    "qrels": ("qid", "iteration", "docno", "label"),
}


@dataclass(frozen=True)
class Shape:
    """What a synthetic collection is like, which the seed decides; labels are 0 to ``n_grades - 1``.

    Kinds: ``"judged"``, a run and graded judgments; ``"intents"``, a run and judgments of several intents;
    ``"entities"``, a run of entities and the links of a pool; ``"linking"``, one answer a query, and the right one.
    Ids: ``"numbers"``, as MS MARCO's; ``"clueweb"``, as clueweb09-en0003-55-31884. Frames hold them as ``"str"``
    or as ``"object"``.
    """

    kind: str = "judged"
    n_queries: int = 250
    depth: int = 1000
    ids: str = "numbers"
    text: str = "str"
    n_intents: int = 8
    n_grades: int = 4
    seed: int = 0

    def made(self):
        """The frames: ``run`` and ``qrels``, whatever stands in their places."""
        made = {"entities": _entities, "linking": _linking}.get(self.kind, _judged)(self)
        if self.text == "str":
            return made
        return {name: frame.astype(dict.fromkeys(_text(frame), object)) for name, frame in made.items()}


class Collection:
    """The frames of a shape, and the files of a folder that hold the same, written when one is first asked for."""

    def __init__(self, shape, folder):
        self.shape, self.folder = shape, Path(folder)

    @cached_property
    def frames(self):
        """The frames, from the folder where :meth:`keep` put them."""
        kept = {name: self.folder / f"{name}.parquet" for name in ("run", "qrels")}
        if not all(path.exists() for path in kept.values()):
            return self.shape.made()
        dtype = object if self.shape.text == "object" else "str"
        results = {name: pd.read_parquet(path) for name, path in kept.items()}
        return {name: frame.astype(dict.fromkeys(_text(frame), dtype)) for name, frame in results.items()}

    @cached_property
    def as_theirs(self):
        """The frames under ir_measures' names of columns."""
        return {name: frame.rename(columns=TO_IR_MEASURES) for name, frame in self.frames.items()}

    def keep(self):
        """Write the frames, so that another process need not make them."""
        for name, frame in self.frames.items():
            frame.to_parquet(self.folder / f"{name}.parquet", index=False)

    def file(self, name):
        """The path of a TREC file; of links for the ``qrels`` of entities."""
        is_links = self.shape.kind == "entities" and name == "qrels"
        path, frame = self.folder / f"{name}.{'links.parquet' if is_links else 'txt'}", self.frames[name]
        if path.exists():
            return path
        if is_links:
            frame.to_parquet(path, index=False)
            return path
        constant = {"Q0": "Q0", "iteration": "0", "tag": "bench"}
        full = frame.assign(**{key: value for key, value in constant.items() if key not in frame})[list(_FILES[name])]
        options = pacsv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
        # Six decimals, as most runs have.
        pacsv.write_csv(pa.Table.from_pandas(full.round(6), preserve_index=False), path, options)
        return path


def _text(frame):
    return [name for name in ("qid", "docno", "entity_id", "iteration") if name in frame]


def _judged(shape):
    draw, n, depth = stream(shape.seed, "judged"), shape.n_queries, shape.depth
    qid, docs = _qids(n, draw), _distinct(n, depth, draw)
    score = -np.sort(-draw.gamma(9.0, size=(n, depth)), axis=1)
    run = _frame(_repeated(qid, depth), _named(docs.ravel(), shape.ids), score=score.ravel(), rank=_counted(n, depth))
    n_judged = N_JUDGED if shape.kind == "judged" else N_JUDGED * shape.n_intents // 2
    # What is relevant stands further up than elsewhere.
    at = np.floor(depth * draw.random((n, n_judged)) ** 2).astype(np.int64)
    topic = np.repeat(np.arange(n), n_judged)
    label = draw.integers(0, shape.n_grades, topic.size)
    columns = {"label": label}
    if shape.kind == "intents":
        columns["iteration"] = draw.integers(1, shape.n_intents + 1, topic.size)
    keys = pd.DataFrame({"topic": topic, "at": at.ravel()} | columns)
    keys = keys.drop_duplicates([name for name in keys if name != "label"], ignore_index=True)
    place = keys["topic"].to_numpy() * depth + keys["at"].to_numpy()
    qrels = run[["qid", "docno"]].take(place).reset_index(drop=True).assign(label=keys["label"])
    if shape.kind == "intents":
        qrels = qrels.assign(iteration=keys["iteration"].astype(str).astype("str"))
    return {"run": run, "qrels": qrels}


def _entities(shape):
    """Entities are as frequent in the pool as words are, and a run finds frequent ones first, more or less."""
    draw, n, depth = stream(shape.seed, "entities"), shape.n_queries, shape.depth
    qid, first = _qids(n, draw), _distinct(n, depth, draw)
    run = _frame(
        _repeated(qid, depth),
        _prefixed("Q", first.ravel()),
        score=-np.sort(-draw.gamma(9.0, size=(n, depth)), axis=1).ravel(),
        rank=_counted(n, depth),
    )
    docs = _distinct(n, N_POOLED, draw)
    frequent = np.minimum(draw.pareto(0.8, (n, N_POOLED * N_MENTIONS)) * 4, depth - 1).astype(np.int64)
    document = np.repeat(np.arange(n * N_POOLED), N_MENTIONS)
    entity = np.take_along_axis(first, frequent, axis=1).ravel()
    rows = pd.DataFrame({"document": document, "entity": entity}).drop_duplicates(ignore_index=True)
    at = rows["document"].to_numpy()
    label = (draw.random(n * N_POOLED) < 0.2).astype(np.int64)
    links = _frame(qid.take(at // N_POOLED), _named(docs.ravel(), shape.ids).take(at))
    links["entity_id"] = _series(_prefixed("Q", rows["entity"].to_numpy()))
    return {"run": run, "qrels": links.assign(label=label[at], rank=at % N_POOLED, weight=1.0)}


def _linking(shape):
    """Every tenth query has no entity, which systems see, and some more get no answer; three of four are right."""
    draw, n = stream(shape.seed, "linking"), shape.n_queries
    qid = _qids(n, draw)
    right = draw.integers(1, _N_DOCUMENTS, n)
    answered = np.where(draw.random(n) < 0.75, right, draw.permutation(right))
    nil = np.arange(n) % 10 == 0
    silent = nil | (draw.random(n) < 0.05)
    texts = (
        pc.if_else(pa.array(none), _word("NIL"), _prefixed("Q", entity))
        for entity, none in ((answered, silent), (right, nil))
    )
    links, gold = (_frame(qid, text) for text in texts)
    return {"run": links.assign(score=1.0, rank=0), "qrels": gold.assign(label=1)}


def _qids(n, draw):
    return pc.cast(pa.array(np.sort(draw.choice(max(_N_QUERIES, 2 * n), n, replace=False))), pa.large_string())


def _distinct(n, depth, draw):
    """Numbers of documents, none twice in a row: a walk of its own through a prime for each."""
    start, stride = draw.integers(1, _N_DOCUMENTS, (2, n, 1))
    return (start + np.arange(depth) * stride) % _N_DOCUMENTS


def _named(number, ids):
    """Numbers of documents as their ids."""
    text = pc.cast(pa.array(number), pa.large_string())
    if ids == "numbers":
        return text
    padded = pc.utf8_lpad(text, width=9, padding="0")
    parts = [pc.utf8_slice_codeunits(padded, start, stop) for start, stop in ((0, 2), (2, 4), (4, 9))]
    return pc.binary_join_element_wise(_prefixed("clueweb09-en00", parts[0]), *parts[1:], _word("-"))


def _prefixed(prefix, number):
    text = pc.cast(pa.array(number) if isinstance(number, np.ndarray) else number, pa.large_string())
    return pc.binary_join_element_wise(_word(prefix), text, _word(""))


def _word(text):
    return pa.scalar(text, pa.large_string())


def _repeated(text, times):
    return text.take(pa.array(np.repeat(np.arange(len(text)), times)))


def _counted(n, depth):
    return np.tile(np.arange(depth), n)


def _series(text):
    """Ids as pandas holds text: its own type of strings since 3, objects before."""
    return pd.Series(text.to_pandas()).astype("str")


def _frame(qid, docno, **columns):
    return pd.DataFrame({"qid": _series(qid), "docno": _series(docno), **columns})
