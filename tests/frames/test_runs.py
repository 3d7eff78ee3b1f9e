"""Mappings of named runs."""

import pandas as pd
import pytest

from vbterrier.errors import InputError
from vbterrier.frames.ranking import runs_of

RUN = pd.DataFrame({"qid": "q1", "docno": ["a", "007"], "score": [2.0, 1.0]})


def test_frames_and_paths_are_the_same_run(tmp_path):
    path = tmp_path / "mine.run"
    path.write_text("q1 Q0 a 1 2.0 mine\nq1 Q0 007 2 1.0 mine\n")
    loaded = runs_of({"frame": RUN, "path": path, "text": str(path)})
    assert list(loaded) == ["frame", "path", "text"]
    assert {tuple(run.docno.text.to_pylist()) for run in loaded.values()} == {("a", "007")}
    assert [run.name for run in loaded.values()] == ["run 'frame'", "run 'path'", "run 'text'"]


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (RUN, "wanted a mapping of name to run, found DataFrame; pass {'mine': run}"),
        ([RUN], "found list"),
        ({}, "runs: none; name at least one run"),
        ({"mine": RUN.drop(columns="score")}, "run 'mine'.*score"),
    ],
)
def test_other_data_than_a_mapping_of_runs_are_refused(runs, words):
    with pytest.raises(InputError, match=words):
        runs_of(runs)
