"""Fetch the public collections that tests read: ``python -m tests.data [NAME...] [--cache DIR] [--list]``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from fetching import main

if __name__ == "__main__":
    sys.exit(main())
