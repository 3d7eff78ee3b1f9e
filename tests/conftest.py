"""What tests of every part share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data():
    """The folder of data sets next to the repository: may be missing on a laptop, never in CI."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{folder} is missing: tests on real data need it")
    return folder
