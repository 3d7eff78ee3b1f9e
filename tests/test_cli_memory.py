"""Runs larger than memory on the command line: --memory and --resume."""

import pytest
from typer.testing import CliRunner

from vbterrier.cli import app
from vbterrier.errors import FileError, ParameterError

RUN = "".join(f"q{t} Q0 d{r} {r} {10 - r}.5 tag\n" for t in range(6) for r in range(5))
QRELS = "".join(f"q{t} 0 d{t % 4} 1\n" for t in range(6))


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "1.run").write_text(RUN[: RUN.index("q3")])
    (folder / "2.run").write_text(RUN[RUN.index("q3") :])
    (tmp_path / "whole.run").write_text(RUN)
    (tmp_path / "qrels").write_text(QRELS)
    return tmp_path


def printed(*argv):
    return CliRunner().invoke(app, ["score", *map(str, argv), "--format", "csv"], catch_exceptions=False).output


def test_chunks_score_the_same_and_a_folder_is_one_run(files):
    asked = ("-q", files / "qrels", "-m", "nDCG@3", "-m", "AP")
    wanted = printed(files / "whole.run", *asked)
    assert printed(files / "whole.run", *asked, "--memory", "64 MiB") == wanted
    assert printed(files / "mine", *asked, "--memory", "64 MiB").replace("mine", "whole") == wanted
    for _ in range(2):
        assert printed(files / "whole.run", *asked, "--resume", files / "done") == wanted


def test_what_does_not_go_together_is_refused(files):
    asked = ("-q", files / "qrels", "-m", "nDCG@3")
    with pytest.raises(ParameterError, match="memory='little'"):
        printed(files / "whole.run", *asked, "--memory", "little")
    with pytest.raises(FileError, match="cannot be made"):
        printed(files / "whole.run", *asked, "--resume", files / "qrels")
    (files / "intents.tsv").write_text("qid\tentity_id\tprob\nq1\tA\t1\n")
    with pytest.raises(ParameterError, match="wanted --qrels"):
        printed(files / "whole.run", "--intents", files / "intents.tsv", "-m", "VB@3", "--memory", "1 GiB")
