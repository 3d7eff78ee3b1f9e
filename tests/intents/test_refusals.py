"""Bad candidates, constraints, tags and parameters, and what the messages name: one table."""

import math

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from refusals import check_refusal, refusals

from vbterrier.errors import ParameterError
from vbterrier.frames.ranking import Run
from vbterrier.intents.calibrate import Calibrate
from vbterrier.intents.calibration import calibration_error
from vbterrier.intents.candidates import CandidateIntents
from vbterrier.intents.constraints import ParseConstraints, parse_constraints
from vbterrier.intents.coverage import Intents, Tags, cover, oracle_success
from vbterrier.intents.dedup import Dedup
from vbterrier.intents.relax import RelaxConstraints
from vbterrier.intents.truncation import Truncate

INTENTS = pd.DataFrame({"qid": ["a", "a", "b", "b"], "entity_id": [*"ABAB"], "prob": [0.8, 0.2, 0.6, 0.4]})
LABELS = pd.DataFrame({"qid": ["a", "b"], "entity_id": ["A", "B"]})
SCORED = pd.DataFrame({"qid": ["b", "a", "a"], "entity_id": ["B", "A", "B"], "score": [1.0, 2.0, 1.0]})
FIVE = pd.DataFrame(
    {"qid": [*"babab"], "entity_id": ["B1", "A1", "B2", "A2", "B3"], "prob": [0.04, 0.5, 0.56, 0.5, 0.4]}
)
TWO_INTENTS = pd.DataFrame({"qid": [*"baaa"], "entity_id": [*"AABC"], "prob": [1.0, 0.5, 0.25, 0.25]})
TAGS = pd.DataFrame({"docno": [*"xyyz"], "entity_id": ["A", "B", "C", "elsewhere"]})
RUN = pd.DataFrame({"qid": [*"baaba"], "docno": [*"xxyyz"], "score": [2.0, 3.0, 2.0, 1.0, 1.0]})
TOPICS = pd.DataFrame({"qid": ["q0", "q1"], "query": ["jordan", "air jordan"]})
CUT = Truncate(cutoff=1)


def candidates(rows):
    """Candidates of one topic from a retriever of entities with these rows."""
    frame = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    source = pt.apply.generic(lambda _: frame, transform_outputs=lambda _: ["qid", "query", "docno", "score"])
    return CandidateIntents(source)(TOPICS[:1])


class Unasked:
    """A linker of topics that are refused before they are linked."""

    id_space = "test"

    def link(self, _):
        raise AssertionError


def linked(changes):
    return CandidateIntents(Unasked())(TOPICS.assign(**changes))


def of_kind(stage, options):
    source = {"source": pt.Transformer.identity()} if stage is CandidateIntents else {}
    return stage(**source | options)


def merged(options, *rows):
    return Dedup(**options)(pd.DataFrame(rows, columns=["entity_id", "prob", "name"]).assign(qid="q"))


def covered(intents, tagged):
    frame = pd.DataFrame({"docno": ["x"], "entity_id": ["A"]}).assign(**tagged)
    return cover(Run(RUN), Intents(TWO_INTENTS.assign(**intents)), Tags(frame), None)


def oracle(intents, tags, documents):
    return oracle_success(TWO_INTENTS.assign(**intents), TAGS.assign(**tags), 3, documents=documents)


def parsed(changes):
    return ParseConstraints()(pd.DataFrame({"qid": ["1"], "query": ["x"]}).assign(**changes))


def relaxed(options, *, people):
    return RelaxConstraints(**{"kb": people, **options})


REFUSALS = [
    *refusals(
        "topics of candidates",
        linked,
        ({"query": ["jordan", None]}, r"topics: row 1 \(query 'q1'\) has (None|nan) as its text, wanted text"),
        ({"query": ["jordan", 1984]}, r"topics: row 1 \(query 'q1'\) has 1984 as its text"),
        ({"qid": ["q0", "q0"]}, "topics: query 'q0' is in rows 0 and 1; keep one"),
        ({"qid": ["q0", None]}, "topics column 'qid': row 1 has no id"),
        ({"score": [1, 2]}, "topics: column 'score' is an output column; rename or drop it"),
    ),
    *refusals(
        "intents to be cut",
        lambda changes: CUT(FIVE.assign(**changes)),
        ({"prob": [0.04, 0.5, 0.56, 0.4, 0.4]}, r"query 'a' sum to 0.9 \(1 query is off\); wanted 1"),
        ({"prob": [-0.04, 0.5, 0.64, 0.5, 0.4]}, r"row 0 \(candidate 'B1' of query 'b'\) has probability -0.04"),
        ({"prob": [np.nan, 0.5, 0.56, 0.5, 0.4]}, r"row 0 holds nan \(candidate 'B1' of query 'b'\)"),
        ({"entity_id": ["B2", "A1", "B2", "A2", "B3"]}, "candidate 'B2' of query 'b' is in rows 0 and 2; keep"),
    ),
    # Candidates and their probabilities
    *refusals(
        "results of a retriever",
        candidates,
        ([("q0", "A", 1.0), ("q0", "A", 2.0)], "retrieved entities: candidate 'A' of query 'q0' is in rows 0 and 1"),
        ([("q0", "A", np.inf)], "candidate 'A' of query 'q0'. has score inf, wanted finite"),
        ([("q0", "A", np.nan)], "retrieved entities column 'score': row 0 holds nan"),
        ([("q7", "A", 1.0)], "retrieved entities: query 'q7' is not among the topics"),
        ([(0, "A", 1.0)], "retrieved entities column 'qid' holds integers, topics column 'qid' holds text"),
    ),
    *refusals(
        "parameters of candidates",
        of_kind,
        (CandidateIntents, {"source": "wikipedia"}, r"wanted a linker \(with \.link\) or a PyTerrier retriever"),
        (CandidateIntents, {"source": dict}, r"wanted a linker \(with \.link\) or a PyTerrier retriever"),
        (CandidateIntents, {"prob": "sofmax"}, r"prob='sofmax': wanted one of .* Did you mean softmax\?"),
        (CandidateIntents, {"cutoff": 0}, "cutoff=0: wanted a whole number of at least 1"),
        (CandidateIntents, {"mentions": "first"}, "mentions='first': wanted one of 'all', 'longest'"),
        (CandidateIntents, {"nil": 1}, "nil=1: wanted less than 1"),
        (CandidateIntents, {"nil": -0.1}, "nil=-0.1: wanted a number of at least 0 and at most 1"),
        (Truncate, {}, "wanted threshold=, cutoff= or mass="),
        (Truncate, {"threshold": 1.5}, "threshold=1.5: wanted a number of at least 0 and at most 1"),
        (Truncate, {"cutoff": 0}, "cutoff=0: wanted a whole number of at least 1"),
        (Truncate, {"mass": 0}, "mass=0: wanted a number above 0 and at most 1"),
        error=ParameterError,
    ),
    *refusals(
        "scores of candidates",
        lambda changes: Calibrate()(SCORED.assign(**changes)),
        ({"score": [1.0, np.nan, 2.0]}, r"row 1 holds nan \(candidate 'A' of query 'a'\)"),
        ({"score": [1.0, np.inf, 2.0]}, r"row 1 \(candidate 'A' of query 'a'\) has score inf, wanted finite"),
        ({"entity_id": ["B", "B", "B"]}, "candidate 'B' of query 'a' is in rows 1 and 2"),
    ),
    *refusals(
        "parameters of a calibration",
        lambda options: Calibrate(**options),
        ({"method": "plat"}, r"method='plat': wanted one of .* Did you mean platt\?"),
        ({"temperature": 0}, "temperature=0: wanted a number above 0"),
        ({"temperature": math.inf}, "temperature=inf"),
        ({"temperature": None}, "temperature=None"),
        ({"method": "platt", "temperature": 2}, "temperature=2: method 'platt' has none"),
        error=ParameterError,
    ),
    *refusals(
        "labels of a calibration",
        lambda labels: calibration_error(INTENTS, labels),
        (LABELS.assign(qid="z"), "labels: none of the 1 queries"),
        (LABELS.drop(columns="entity_id"), "labels: wanted columns qid, entity_id; missing entity_id"),
        (LABELS.assign(prob=0.5), "labels: the probabilities of query 'a' sum to 0.5"),
        (LABELS.assign(label=["yes", "no"]), "labels column 'label': row 0 holds 'yes'"),
        (LABELS.assign(qid=[1, 2]), "labels column 'qid' holds integers"),
    ),
    *refusals(
        "options of a calibration error",
        lambda options: calibration_error(INTENTS, LABELS, **options),
        ({"n_bins": 0}, "n_bins=0"),
        ({"floor": 0}, "floor=0"),
        ({"n_bins": 2.5}, "n_bins=2.5"),
        error=ParameterError,
    ),
    *refusals(
        "aliases of candidates",
        lambda aliases: merged({"aliases": aliases}, ("x", 1.0, "")),
        ({"x": "y", "y": "x"}, "aliases: '[xy]' is part of a cycle; remove one"),
        (pd.DataFrame({"entity_id": "x", "canonical": ["A", "B"]}), "'x' has the canonical ids 'A' and 'B'; keep one"),
        ({"x": 5}, "'x' has the canonical id 5; wanted ids as text"),
        (pd.DataFrame({"entity_id": ["x"]}), "aliases: wanted columns entity_id, canonical; missing canonical"),
    ),
    *refusals(
        "likeness of names",
        lambda options: merged(options, ("A", 0.5, "a"), ("B", 0.5, "b")),
        ({"embedder": lambda names: np.ones(len(names))}, r"shape \(2, d\) for 2 names, found shape \(2,\)"),
        ({"embedder": lambda _: np.ones((3, 2))}, r"found shape \(3, 2\)"),
        ({"embedder": lambda _: np.full((2, 2), np.nan)}, "with NaN or infinity"),
        ({"judge": lambda _: [0.5, 0.5]}, "judge: wanted 1 confidences from 0 to 1, found array"),
        ({"judge": lambda _: [1.5]}, "judge: wanted 1 confidences"),
        ({"judge": lambda _: [np.nan]}, "judge: wanted 1 confidences"),
        *(
            ({name: result}, f"{name}: wanted numbers, as a list or an array, found a {kind}")
            for name in ("judge", "embedder")
            for result, kind in (
                (lambda _: "0.5", "str: '0.5'"),
                (lambda _: {"a": 0.5}, "dict"),
                (lambda names: (0.5 for _ in names), "generator"),
                (lambda _: [[0.5], [0.5, 1.0]], "list"),
                (lambda names: ["high"] * len(names), "list"),
                (lambda _: object(), "object"),
            )
        ),
    ),
    *refusals(
        "parameters of merging",
        lambda options: Dedup(**options),
        ({"similarity": 0}, "similarity=0: wanted a number above 0 and at most 1"),
        ({"similarity": 1.1}, "similarity=1.1"),
        ({"kb": "x.kb"}, r"kb='x.kb': wanted a knowledge base, such as KnowledgeBase\(path\); .* 'resolve'"),
        ({"embedder": "minilm"}, "embedder='minilm': wanted a callable"),
        ({"embedder": len, "judge": len}, "wanted an embedder or a judge, found both"),
        error=ParameterError,
    ),
    # Constraints
    *refusals(
        "a constraint",
        parse_constraints,
        ("state", "wanted attribute:value in 'state'"),
        (":OH", "wanted attribute:value in ':OH'"),
        ("^2", r"wanted attribute:value in '\^2'"),
        ("a:b^1^2", "wanted attribute:value"),
        ('"a":b', "wanted attribute:value"),
        ("a:", "an empty or half-quoted value in 'a:'"),
        ("a:b|", "an empty or half-quoted value"),
        ('a:"b', "an empty or half-quoted value"),
        ('a:"b"c', "an empty or half-quoted value"),
        ("a:b^x", "weight 'x' in 'a:b.x': wanted a number of at least 0"),
        ("a:b^", "weight '' in"),
        ("a:b^-1", "weight '-1' in"),
        ("a:b^inf", "weight 'inf' in"),
        ("a:9..1", r"the range '9..1' is empty; put the smaller end first"),
        (5, "constraints 5: wanted text or a mapping, found int"),
        ({"a": {"b": 1}}, "attribute 'a' is {'b': 1}; wanted text, a number or a list"),
        ({"a;b": 1}, "attribute 'a;b': wanted a name without"),
        ({5: 1}, "attribute 5: wanted a name"),
    ),
    *refusals(
        "topics with constraints",
        parsed,
        ({"query": "Smith state:OH^x"}, "query '1': constraints: weight 'x'.*pass names= to keep"),
        ({"query": None}, "query '1' has (None|nan) as its text"),
        ({"constraints": "a:b"}, "column 'constraints' exists already"),
    ),
    *refusals(
        "parameters of relaxation",
        relaxed,
        ({"unknown": "maybe"}, "unknown='maybe': wanted 'satisfied', 'violated' or a number from 0 to 1"),
        ({"unknown": 1.5}, "unknown=1.5: wanted a number of at least 0 and at most 1"),
        ({"weights": {"state": -1}}, "weights..state..=-1: wanted a number of at least 0"),
        ({"weights": 2}, "weights=2: wanted a mapping"),
        ({"parser": "yes"}, "parser='yes': wanted a callable"),
        ({"kb": {"A": {}}}, r"wanted a knowledge base, .*; it has no method 'attributes'"),
        *(
            ({"spellings": bad}, "wanted lists of spellings by")
            for bad in ({"a": {"OH": "Ohio"}}, {"a": ["Ohio"]}, ["a"])
        ),
        error=ParameterError,
    ),
    # Coverage
    *refusals(
        "integers and text",
        covered,
        ({"qid": [1, 2, 2, 2]}, {}, "intents column 'qid' holds integers, run column 'qid' holds text"),
        ({}, {"entity_id": [1]}, "intents column 'entity_id' holds text, tags column 'entity_id' holds integers"),
        ({}, {"docno": [7]}, "tags column 'docno' holds integers, run column 'docno' holds text"),
    ),
    *refusals(
        "an oracle",
        oracle,
        ({}, {}, "x", "documents='x': wanted ids or a frame"),
        ({}, {}, [7], "tags column 'docno' holds text, documents column 'docno' holds integers"),
        ({}, {}, pd.DataFrame({"doc": ["x"]}), "documents: wanted columns docno; missing docno"),
        ({}, {}, pd.DataFrame({"docno": ["x"], "qid": [1]}), "documents column 'qid' holds integers"),
        ({"entity_id": [1, 1, 2, 3]}, {}, None, "intents column 'entity_id' holds integers, tags column"),
        ({}, {"qid": [1, 1, 1, 1]}, None, "intents column 'qid' holds text, tags column 'qid' holds integers"),
        ({"prob": 0.4}, {}, None, "the probabilities of query 'b' sum to 0.4"),
        ({}, {"weight": 2}, None, "has weight 2, wanted 0 to 1"),
    ),
    *refusals(
        "a cutoff",
        lambda cutoff: oracle_success(TWO_INTENTS, TAGS, cutoff),
        *((cutoff,) for cutoff in (0, -1, 2.5, True, "2")),
        error=ParameterError,
        says=r"cutoff=.*: wanted a whole number of at least 1, or None",
    ),
]


@pytest.mark.parametrize(("call", "arguments", "error", "words"), REFUSALS)
def test_bad_input_is_refused_by_name(request, call, arguments, error, words):
    check_refusal(request, call, arguments, error, words)
