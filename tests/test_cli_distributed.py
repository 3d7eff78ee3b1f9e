"""Several processes on the command line: --jobs and --dask."""

import pytest
from typer.testing import CliRunner

from vbterrier.cli import app
from vbterrier.errors import ParameterError, ServiceError
from vbterrier.execution import dask

RUN = "".join(f"q{t} Q0 d{r} {r} {10 - r}.5 tag\n" for t in range(6) for r in range(5))


@pytest.fixture
def asked(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.run").write_text(RUN)
    (tmp_path / "qrels").write_text("".join(f"q{t} 0 d{t % 4} 1\n" for t in range(6)))
    return [tmp_path / "one.run", tmp_path / "two.run", "-q", tmp_path / "qrels", "-m", "nDCG@3", "--format", "csv"]


def printed(*argv):
    return CliRunner().invoke(app, ["score", *map(str, argv)], catch_exceptions=False).output


def test_jobs_score_the_same(asked):
    assert printed(*asked, "--jobs", 2) == printed(*asked)
    with pytest.raises(ParameterError, match="n_jobs=0"):
        printed(*asked, "--jobs", 0)


def test_a_scheduler_that_does_not_answer_is_an_error(asked, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask, "SCHEDULER", 1)
    with pytest.raises(ServiceError, match="no Dask scheduler answers there"):
        printed(*asked, "--dask", "tcp://127.0.0.1:9")
    with pytest.raises(ParameterError, match="n_jobs=2 and client=: wanted one of them"):
        printed(*asked, "--dask", "tcp://127.0.0.1:9", "--jobs", 2)


def test_replicas_of_intents_are_made_in_one_process(asked, tmp_path):
    (tmp_path / "intents.tsv").write_text("qid\tentity_id\tprob\nq0\tE\t1.0\n")
    with pytest.raises(ParameterError, match="--jobs and --dask: wanted --qrels"):
        printed(asked[0], "--intents", tmp_path / "intents.tsv", "-m", "VB@3", "--jobs", 2)
