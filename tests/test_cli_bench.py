import json
import sys

import pytest

from vbterrier.cli import main
from vbterrier.cli.bench import _size


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["vbterrier", "bench", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    return left.value.code or 0


def test_numbers_and_tables_are_written(monkeypatch, tmp_path, capsys):
    kept, page = tmp_path / "bench.json", tmp_path / "benchmarks.md"
    options = ["--size", "4x12", "-m", "ES", "--rounds", 2, "--no-memory", "--peer", "pyndeval"]
    assert run(monkeypatch, *options, "--json", kept, "--markdown", page) == 0
    out, err = capsys.readouterr()
    assert not out
    assert err == "vbterrier: intents, 4 queries x 12\n"
    found = json.loads(kept.read_text())
    assert found["options"] == {"sizes": [[4, 12]], "rounds": 2, "seed": 0}
    assert {row["way"] for row in found["timings"]} == {
        "vbterrier ES@10", "vbterrier.score ES@10", "pyndeval alpha-nDCG@10"
    }  # fmt: skip
    assert "## Intents, 4 queries x 12, ids as clueweb, from file" in page.read_text()
    assert "| vbterrier ES@10 |" in page.read_text()

    assert run(monkeypatch, "--from-json", kept) == 0
    assert capsys.readouterr().out == page.read_text()


def test_a_size_is_a_number_of_queries_or_with_documents():
    assert _size("6980") == (6980, 1000)
    assert _size("50x20") == (50, 20)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--size", "0x5"], 2, "--size 0x5"),
        (["--size", "5x5x5"], 2, "--size 5x5x5"),
        (["--quick", "--size", "5"], 2, "--quick"),
        (["-m", "nDCG"], 2, "measure 'nDCG'"),
        (["--peer", "ranks"], 2, "ranx"),
        (["--from-json", "none.json"], 1, "none.json"),
    ],
)
def test_bad_options_are_refused_in_a_line(monkeypatch, tmp_path, capsys, options, code, said):
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *options) == code
    err = capsys.readouterr().err
    assert err.startswith("vbterrier: error: ")
    assert said in err
    assert len(err.splitlines()) == 1
