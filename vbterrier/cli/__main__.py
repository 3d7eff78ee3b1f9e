"""The command line by ``python -m vbterrier.cli``."""

from vbterrier.cli import main

main()
