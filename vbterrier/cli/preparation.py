"""Commands that prepare an evaluation."""

COMMANDS = ()
