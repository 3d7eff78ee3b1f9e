"""A cross-encoder of entities, judges of entities, and a language model that reranks them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities import fingerprints
from vbterrier.entities.learners import Prepared, TrainingTopic
from vbterrier.entities.neural.checkpoints import PretrainedEncoder, parameters_of_layers, run_layers
from vbterrier.entities.neural.models import SHARPNESS, NeuralModel, cross_entropy
from vbterrier.entities.neural.reference import binary
from vbterrier.entities.neural.reranker import VARIANTS, NeuralStage, Training
from vbterrier.entities.rankers.base import RunOnPool, RunReranker, Topics
from vbterrier.entities.rankers.selector import aligned_entity_labels, derived_entity_labels
from vbterrier.entities.rankers.similarity import entity_texts
from vbterrier.entities.rerank.base import by_id, normalise_by_topic
from vbterrier.entities.stage import EntityStage
from vbterrier.errors import (
    InputError,
    ParameterError,
    agreeing,
    choice,
    examples,
    excerpt,
    settings_parameter,
    warn,
    whole,
)
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.pool_links import UNJUDGED
from vbterrier.frames.ranking import Run, ranked
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.neural.models import Arrays


class PairEncoder(NeuralModel):
    """MonoBERT: the vector of [CLS] for a query and an entity, a linear score, and the first-stage score.

    The scores of a checkpoint that is a cross-encoder are a further input.
    """

    rate = 5e-4
    criterion = staticmethod(cross_entropy)

    def __init__(self, checkpoint: Any, n_layers: int) -> None:
        self.checkpoint, self.n_layers = PretrainedEncoder(checkpoint), n_layers

    def features(self, batch: Any) -> Arrays:
        """Return the output of the frozen layers for pairs of texts, and the scores, from ``(pairs, scores)``."""
        pairs, score = batch
        hidden, mask, scorer_output = self.checkpoint.pairs(tuple(pairs), self.n_layers)
        inputs = {"score": score.astype(np.float32), "hidden": hidden, "mask": mask}
        return inputs if scorer_output is None else {**inputs, "own": scorer_output[:, None].astype(np.float32)}

    @property
    def standardised_features(self) -> tuple[str, ...]:  # type: ignore[override]
        """The features that are standardised."""
        return () if self.checkpoint.networks.scorer is None else ("own",)

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:  # noqa: ARG002 - common signature
        """Return the initial parameters."""
        layers: Arrays = {name: np.zeros(1) for name in self.standardised_features}
        layers |= parameters_of_layers(self.checkpoint.layers(self.n_layers), "layer")
        return {"first": np.ones(1), "bias": np.zeros(1), "head": np.zeros(x["hidden"].shape[2]), **layers}

    def forward(self, p: Arrays, x: Arrays) -> Any:
        """Return the scores, shape (n,)."""
        hidden = run_layers(self.checkpoint.layers(self.n_layers), p, "layer", x["hidden"], x["mask"])
        # The linear score learns at the rate of the encoder, from zero: it needs the larger steps.
        learned = hidden[:, 0] @ p["head"]
        for name in self.standardised_features:
            learned = learned + x[name] @ p[name]
        return x["score"] * p["first"] + p["bias"] + SHARPNESS * learned


class PublishedPairEncoder(PairEncoder):
    """MonoBERT as published: ``softmax(W CLS(query, entity) + b)`` of two classes, without the first-stage score.

    The score is the logit of the second class, whose sigmoid is its probability, and the loss the cross-entropy.
    """

    criterion = staticmethod(binary)

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:
        """Return the initial parameters."""
        size = x["hidden"].shape[2]
        head = draw.uniform(-1, 1, (size, 2)) / np.sqrt(size)
        return {"head": head, "bias": np.zeros(2)} | parameters_of_layers(
            self.checkpoint.layers(self.n_layers), "layer"
        )

    def forward(self, p: Arrays, x: Arrays) -> Any:
        """Return the difference of the logits of both classes, shape (n,)."""
        hidden = run_layers(self.checkpoint.layers(self.n_layers), p, "layer", x["hidden"], x["mask"])
        logits = hidden[:, 0] @ p["head"] + p["bias"]
        return logits[:, 1] - logits[:, 0]

    @property
    def standardised_features(self) -> tuple[str, ...]:  # type: ignore[override]
        """No feature is standardised."""
        return ()


_RANKER = Training(epochs=10, patience=3, batch_size=4, seed=0, rel=1)


class NeuralEntityRanker(NeuralStage, RunReranker):
    """Rerank an entity run by a cross-encoder of query and entity, learned from entity labels: E -> E.

    MonoBERT, by default with the weights of all-MiniLM-L6-v2: ``p(e, q) = σ(w · CLS(query, text of e) + v score + b)``.

    Parameters
    ----------
    links
        A :class:`~vbterrier.entities.LinkedPool`, or its K frame. Its labels are not read.
    names
        Texts of entities by id, such as name and description; by default the id, with spaces for underscores.
    supervision
        ``"binary"``: the qrels passed to :meth:`fit` judge documents, and an entity is positive if only relevant
        documents of the pool mention it, negative if only non-relevant ones do, and left out if both do. Or a frame of
        entity labels (qid, entity_id, label), such as those of :func:`judge_entities`; the qrels are then not read.
    variant
        ``"compact"``: with the first-stage score as an input; ``"reference"``: as published, a softmax over two classes
        without it.
    checkpoint
        The encoder of pairs of texts: ``None`` for all-MiniLM-L6-v2, the folder of a checkpoint of transformers, a pair
        of tokenizer and model, or a ``CrossEncoder`` of sentence-transformers, whose scores are a further input.
    layers
        The number of last layers to fine-tune (of encoders like BERT, RoBERTa and ELECTRA); 0 trains the linear score
        only.
    training
        A :class:`vbterrier.entities.Training`: ``epochs`` (10), ``patience`` (3), ``batch_size`` (4), ``rate``
        (0.0005), ``seed`` (0), ``rel`` (1).

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        Tags instead of a pool; no topic with positive and negative entities; a call before :meth:`fit`; an encoder of
        another dimension than in training. See the contracts of runs and qrels.
    FileError
        A folder that is no checkpoint.
    ModuleNotFoundError
        PyTorch is not installed; ``pip install 'vbterrier[neural]'``.

    Notes
    -----
    In training, the negatives of a topic are sampled to the number of its positives, by seed and topic. Scores are
    probabilities, so that ``ranker >> LocalIDF(links)`` is the CER + IDF ranker of the paper. From a few thousand pairs
    the encoder learns little; the first-stage score is an input, and the best validation epoch may be the first stage.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.6 (1) to (3), equation 5. Nogueira and Cho:
    Passage Re-ranking with BERT, arXiv 1901.04085.

    Examples
    --------
    >>> import pandas as pd
    >>> from vbterrier.entities import link_pool
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["Texas", "Paris"]})
    >>> NeuralEntityRanker(link_pool(pool, tags), {"Paris": "capital of France"}, layers=3)
    NeuralEntityRanker(1 topics, 1 entries, 'binary', layers=3)
    """

    STORED = ("variant", "layers", *NeuralStage.STORED)
    INPUT = "entity run"

    def __init__(
        self,
        links: Any,
        names: Mapping[str, str] | None = None,
        supervision: Any = "binary",
        *,
        variant: str = "compact",
        checkpoint: Any = None,
        layers: int = 2,
        training: Training = _RANKER,
    ) -> None:
        super().__init__()
        self._set_links(links, None)
        self.training = settings_parameter("training", Training, training).with_defaults(_RANKER)
        self.names = by_id("names", names)
        if isinstance(supervision, str) and supervision != "binary":
            raise ParameterError(
                f"supervision={excerpt(supervision)}: wanted 'binary' or a frame (qid, entity_id, label)"
            )
        self.supervision = (
            supervision if isinstance(supervision, str) else pandas_frame(supervision, "supervision").copy()
        )
        self.layers = whole("layers", layers, low=0)
        self.checkpoint = checkpoint
        self.variant = choice("variant", variant, VARIANTS)
        self._pairs = (PairEncoder if variant == "compact" else PublishedPairEncoder)(checkpoint, self.layers)

    @property
    def _network(self) -> NeuralModel:
        return self._pairs

    def _require_columns(self, inp: pd.DataFrame) -> None:
        self.require_columns(inp, "qid", "docno", "score", "query")

    def _compute_features(self, inp: pd.DataFrame) -> Prepared:
        self._require_columns(inp)
        aligned = RunOnPool.on(self._pool, inp)
        run = aligned.run
        queries, called = Topics(inp).queries(run.topics), entity_texts(run.docno.text.to_pylist(), self.names)
        rows, starts, sizes = run.ordered_rows()
        score = normalise_by_topic(run.score[rows], np.append(starts, len(rows)), "z")
        topics = np.split(rows, starts[1:])[: len(starts)]
        features = [
            self._pairs.features(
                ([(queries[at], called[row]) for row in topic_rows.tolist()], score[start : start + size])
            )
            for at, (topic_rows, start, size) in enumerate(zip(topics, starts.tolist(), sizes.tolist(), strict=True))
        ]
        return Prepared(run, topics, features, aligned=aligned)

    def _labels(self, prepared: Prepared, qrels: Any) -> list[Ints | None]:
        if isinstance(self.supervision, str):
            label = derived_entity_labels(prepared.aligned, qrels, self.rel)
        else:
            label = aligned_entity_labels(prepared.aligned, self.supervision)
            label = np.where(label == UNJUDGED, UNJUDGED, label >= self.rel)
        return [label[rows] for rows in prepared.rows]

    def _example(self, qid: str, x: Arrays, label: Ints) -> TrainingTopic:
        """Return the labelled entities of a topic, with at most as many negatives as positives."""
        positive, negative = np.flatnonzero(label > 0), np.flatnonzero(label == 0)
        if len(negative) > len(positive) > 0:
            negative = stream(self.seed, "negatives", qid).choice(negative, len(positive), replace=False)
        kept = np.sort(np.concatenate([positive, negative]))
        return TrainingTopic(qid, {name: values[kept] for name, values in x.items()}, label[kept])

    def _fingerprints(self, ids: Sequence[str]) -> dict[str, Any]:
        encoder = self._pairs.checkpoint

        def of_pair(text: str) -> Any:
            hidden, _, scores = encoder.pairs(((text, text),), self.layers)
            return np.append(hidden[0, 0], [] if scores is None else scores)[None]

        return {"checkpoint": fingerprints.of_encoder(of_pair), "names": fingerprints.of_texts(self.names, ids)}

    def _sizes_of_encoder(self, learned: Arrays) -> tuple[int, int]:
        size = self._pairs.checkpoint.size
        return (len(learned["head"]) if "head" in learned else size), size

    def _output(self, score: Floats) -> Floats:
        return 1 / (1 + np.exp(-score))


GRADES = ("0", "1", "2")
# The paper describes its prompt and prints none: the wording is this package's.
JUDGE_PROMPT = """You judge whether an entity is a useful topical signal for finding documents that answer a query.

Query: {query}
{further}Entity: {name}
Description: {text}

Grades:
2: a core topical match of the query
1: semantically related, a supporting signal
0: generic, irrelevant, or a sign of another topic
Do not reward generic concepts, such as countries, dates or common words that many documents mention.
Reply with the grade only: 0, 1 or 2."""
RANK_PROMPT = """Rank entities by how useful they are as topical signals for finding documents that answer a query.

Query: {query}

Entities:
{entities}

Reply with the numbers of the entities only, the most useful first, separated by commas."""


def judge_entities(
    run: Any,
    judges: Mapping[str, Callable[[str], str]],
    *,
    names: Mapping[str, str] | None = None,
    descriptions: Mapping[str, str] | None = None,
    narratives: Mapping[str, str] | None = None,
    cutoff: int = 100,
    prompt: str = JUDGE_PROMPT,
) -> pd.DataFrame:
    """Label the first entities of each topic by the majority of language models (conceptual entity relevance).

    Parameters
    ----------
    run
        An entity run with queries: qid, query, docno, score.
    judges
        Callables from a prompt to a reply, by name; an odd number, three in the paper. The reply is a grade, 0 to 2.
    names, descriptions, narratives
        Names and descriptions of entities by id; an entity without a name is named by its id. Further text on the
        topic, such as description and narrative, by qid.
    cutoff
        The number of entities of each topic to judge.
    prompt
        A text with the fields ``query``, ``further``, ``name`` and ``text``.

    Returns
    -------
    pandas.DataFrame
        qid, entity_id, label, and one column of grades per judge. The label is the grade of most judges, the median
        if all differ. :func:`vbterrier.stats.judge_agreement` measures how far the judges agree.

    Raises
    ------
    ParameterError
        No judge, or an even number.
    InputError
        A reply that is not a grade.

    Notes
    -----
    One call per judge and pair. The labels are conceptual: no judge sees documents, links or frequencies. Use them as
    ``supervision`` of :class:`NeuralEntityRanker`.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.6 (2).

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": "q1", "query": "gas tax", "docno": ["Fuel_tax", "Monday"], "score": [2.0, 1.0]})
    >>> judges = {"strict": lambda prompt: "2" if "Fuel" in prompt else "0", "lenient": lambda prompt: "1",
    ...           "other": lambda prompt: "Grade: 2" if "Fuel" in prompt else "0"}
    >>> judge_entities(run, judges)[["entity_id", "label", "lenient"]].values.tolist()
    [['Fuel_tax', 2, 1], ['Monday', 0, 1]]
    """
    if not hasattr(judges, "items") or len(judges) % 2 == 0 or not all(map(callable, judges.values())):
        raise ParameterError("judges: wanted an odd number of callables by name, so that a majority can exist")
    frame = ranked(run, whole("cutoff", cutoff), name="entity run")
    checked = Run(frame, name="entity run")
    queries, ids = Topics(frame).queries(checked.topics), checked.docno.text.to_pylist()
    called, further, described = entity_texts(ids, names), narratives or {}, descriptions or {}
    reserved = {"qid", "entity_id", "label"} & set(judges)
    if reserved:
        raise ParameterError(f"judges: the name {min(reserved)!r} is that of another column; name the judge otherwise")
    grades: dict[str, list[int]] = {name: [] for name in judges}
    qids = [checked.topics[topic] for topic in checked.topic.tolist()]
    for row, (entity, qid, topic) in enumerate(zip(ids, qids, checked.topic.tolist(), strict=True)):
        text = prompt.format(
            query=queries[topic],
            further=f"Details: {further[qid]}\n" if qid in further else "",
            name=called[row],
            text=described[entity] if entity in described else "none",  # noqa: SIM401 - a mapping needs no get
        )
        for name, judge in judges.items():
            grades[name].append(_grade(judge(text), f"judge {name!r}, query {qid!r}, entity {entity!r}"))
    table = np.array(list(grades.values()), dtype=np.int64).reshape(len(judges), len(ids))
    counts = np.stack([(table == grade).sum(axis=0) for grade in range(len(GRADES))])
    most = counts.max(axis=0)
    tied = (counts == most).sum(axis=0) > 1
    label = np.where(tied, np.median(table, axis=0), counts.argmax(axis=0)).astype(np.int64)
    return pd.DataFrame({"qid": qids, "entity_id": ids, "label": label, **grades})


def _grade(reply: Any, where: str) -> int:
    # A full stop may follow a grade; fractions are none.
    runs = re.findall(r"[\d.]+", reply) if isinstance(reply, str) else []
    grades = [grade for run in runs if (grade := run.rstrip(".")).isdecimal()]
    if len(grades) != 1 or grades[0] not in GRADES:
        raise InputError(f"{where}: replied {str(reply)[:60]!r}, wanted one grade: 0, 1 or 2")
    return int(grades[0])


class LanguageModelEntities(EntityStage):
    """Rerank the first entities of each topic by the order that a language model gives: E -> E.

    Parameters
    ----------
    ask
        A callable from a prompt to a reply: numbers of entities, the best first. Entities that the reply leaves out
        follow in their order in the run.
    names
        Texts of entities by id; the text of an entity without one is its id, with spaces for underscores.
    cutoff
        The number of entities of each topic that the model sees and that the result keeps.
    prompt
        A text with the fields ``query`` and ``entities``.

    Raises
    ------
    ParameterError
        ``ask`` is not a callable.
    InputError
        A reply with a number that was not in the prompt.

    Notes
    -----
    One call per topic. Scores are ``1/rank``. Nothing is cached: wrap ``ask`` if the model answers twice differently.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.8. Sun et al.: Is ChatGPT Good at Search?,
    EMNLP 2023, for ranking by permutation.

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": "q1", "query": "gas tax", "docno": ["Monday", "Fuel_tax"], "score": [2.0, 1.0]})
    >>> LanguageModelEntities(lambda prompt: "2, 1")(run)[["docno", "score"]].values.tolist()
    [['Fuel_tax', 1.0], ['Monday', 0.5]]
    """

    def __init__(
        self,
        ask: Callable[[str], str],
        names: Mapping[str, str] | None = None,
        *,
        cutoff: int = 20,
        prompt: str = RANK_PROMPT,
    ) -> None:
        super().__init__()
        if not callable(ask):
            raise ParameterError(f"ask={excerpt(ask)}: wanted a callable from a prompt to a reply")
        self.ask, self.names, self.prompt = ask, by_id("names", names), prompt
        self.cutoff = whole("cutoff", cutoff)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rerank the first rows of every topic."""
        self.require_columns(inp, "qid", "docno", "score", "query")
        frame = ranked(inp, self.cutoff, name="entity run")
        if not len(frame):
            return frame
        run = Run(frame, name="entity run")
        queries, called = Topics(frame).queries(run.topics), entity_texts(run.docno.text.to_pylist(), self.names)
        score = np.empty(len(run))
        silent = []
        for topic, qid in enumerate(run.topics):
            rows = np.flatnonzero(run.topic == topic)
            listed = "\n".join(f"[{n}] {called[row]}" for n, row in enumerate(rows.tolist(), 1))
            reply = self.ask(self.prompt.format(query=queries[topic], entities=listed))
            order = list(dict.fromkeys(int(each) for each in re.findall(r"\d+", str(reply))))
            wrong = [each for each in order if not 1 <= each <= len(rows)]
            if wrong:
                raise InputError(
                    f"language model: replied entity {wrong[0]} for query {qid!r}, wanted numbers from 1 to {len(rows)}"
                )
            if not order:
                silent.append(qid)
            left = [each for each in range(1, len(rows) + 1) if each not in set(order)]
            score[rows[np.array([*order, *left]) - 1]] = 1 / np.arange(1, len(rows) + 1)
        if silent:
            warn(
                f"language model: no numbers for {agreeing(len(silent), 'topics')}, whose order is "
                f"kept ({examples(silent)})"
            )
        return ranked(frame.assign(score=score), name="entity run")
