"""The command line by ``python -m vbterrier``."""

from vbterrier.cli import main

if __name__ == "__main__":
    main()
