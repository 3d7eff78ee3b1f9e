"""Judgments with hardly any non-relevant document: bootstrapped measures warn once a call, in every host."""

import warnings

import ir_measures
import pandas as pd
import pyterrier as pt
import pytest
from one_topic import RENAMED

import vbterrier
from vbterrier import BNDCG, BP, BRBP
from vbterrier.cli import main
from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate import variance_shares
from vbterrier.evaluate.trectools import VBTrecEval
from vbterrier.frames import write_qrels, write_run
from vbterrier.settings import Inference

QIDS = [f"q{i}" for i in range(4)]
# One known document a topic, and runs of which the second invents all of its documents.
POSITIVE = pd.DataFrame({"qid": QIDS, "docno": "known", "label": 1})
REAL, INVENTED = (
    pd.DataFrame([(qid, docno, -float(rank)) for qid in QIDS for rank, docno in enumerate(docnos)]).set_axis(
        ["qid", "docno", "score"], axis=1
    )
    for docnos in (["a", "known", "b"], ["x", "y", "z"])
)
TOPICS = pd.DataFrame({"qid": QIDS, "query": "some words"})
MEASURES = [BNDCG @ 3, BP @ 3]


def with_non_relevant(n):
    """Judgments of 19 relevant documents a topic and n non-relevant ones of all topics."""
    rows = [(qid, f"r{i}", 1) for qid in QIDS for i in range(19)] + [("q0", f"n{i}", 0) for i in range(n)]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def heard(call):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in record if issubclass(one.category, DegenerateWarning)]


def about(messages):
    return [message for message in messages if "judged documents have grade 0" in message]


def through_ir_measures(measures, qrels):
    return ir_measures.calc_aggregate(measures, qrels.rename(columns=RENAMED), REAL.rename(columns=RENAMED))


HOSTS = {
    "score": lambda measures, qrels: vbterrier.score({"real": REAL, "invented": INVENTED}, qrels, measures),
    "Experiment": lambda measures, qrels: vbterrier.Experiment([REAL, INVENTED], TOPICS, qrels, measures),
    "pt.Experiment": lambda measures, qrels: pt.Experiment([REAL], TOPICS, qrels, measures),
    "ir_measures": through_ir_measures,
    "compare": lambda measures, qrels: vbterrier.compare({"real": REAL, "invented": INVENTED}, qrels, measures),
    "TrecTools": lambda measures, qrels: VBTrecEval.from_frames(REAL, qrels).get(measures[0]),
    "rank_systems": lambda measures, qrels: vbterrier.rank_systems(
        {"real": REAL, "invented": INVENTED}, qrels, measures[0], inference=Inference(n_draws=9)
    ),
    "judge_next": lambda measures, qrels: vbterrier.judge_next({"real": REAL}, qrels, measures[0], budget=1),
    "variance_shares": lambda measures, qrels: variance_shares(
        {"real": REAL}, qrels, measures[0], inference=Inference(n_draws=9)
    ),
}


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_warns_once_a_call(host):
    (message,) = about(heard(lambda: HOSTS[host](MEASURES, POSITIVE)))
    assert "0 of 4 judged documents have grade 0, so that BNDCG@3" in message
    assert "an explicit prior=" in message
    measures = [measure(prior={0: 0.9, 1: 0.1}) for measure in MEASURES]
    assert not about(heard(lambda: HOSTS[host](measures, POSITIVE.assign(label=[1, 1, 1, 0]))))


def test_the_command_line_warns_once(tmp_path, capsys, monkeypatch):
    write_run(REAL, tmp_path / "real.run")
    write_qrels(POSITIVE, tmp_path / "qrels.txt")
    paths = [str(tmp_path / "real.run"), "-q", str(tmp_path / "qrels.txt")]
    monkeypatch.setattr("sys.argv", ["vbterrier", "score", *paths, "-m", "BNDCG@3", "-m", "BP@3"])
    with pytest.raises(SystemExit):
        main()
    output = capsys.readouterr()
    (line,) = about([*output.out.splitlines(), *output.err.splitlines()])
    assert line.startswith("Caveat: qrels: 0 of 4 judged documents have grade 0")
    assert output.err == ""


@pytest.mark.parametrize(("n_non_relevant", "n_warnings"), [(0, 1), (3, 1), (4, 0), (40, 0)])
def test_a_twentieth_of_non_relevant_judgments_is_enough(n_non_relevant, n_warnings):
    qrels = with_non_relevant(n_non_relevant)
    assert len(about(heard(lambda: through_ir_measures(MEASURES, qrels)))) == n_warnings


@pytest.mark.parametrize(
    "measure",
    [BNDCG(prior={0: 0.5, 1: 0.5}) @ 3, BRBP(stat="upper") @ 3, ir_measures.nDCG @ 3, vbterrier.Unjudged @ 3],
    ids=str,
)
def test_measures_that_draw_nothing_from_the_judgments_are_silent(measure):
    assert not about(heard(lambda: through_ir_measures([measure], with_non_relevant(1))))


@pytest.mark.filterwarnings("ignore:qrels. 0 of 4 judged documents")
def test_what_the_warning_says_is_so():
    """A run of invented documents scores higher than the run that found the known document."""
    invented, real = (
        ir_measures.calc_aggregate([BNDCG @ 3], POSITIVE.rename(columns=RENAMED), run.rename(columns=RENAMED))[
            BNDCG @ 3
        ]
        for run in (INVENTED, REAL)
    )
    assert invented > real
