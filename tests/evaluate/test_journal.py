"""Journals that cannot be opened, and results that somebody else wrote."""

import pytest

from vbterrier.errors import FileError
from vbterrier.execution.checkpoint import Journal


def test_paths_that_cannot_hold_a_journal_are_told_of(tmp_path):
    for path in (tmp_path, tmp_path / "no folder" / "grid.jsonl"):
        with pytest.raises(FileError, match="cannot be opened"):
            Journal(path, "inputs")
