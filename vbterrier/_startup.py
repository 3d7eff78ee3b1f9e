"""The start of the process: a command or a library; Ctrl-C while a command is imported ends without a traceback."""

import signal
import sys
from pathlib import PurePath


def _is_command() -> bool:
    if not sys.argv:
        return False
    # Python names the script of a module after its package has been imported.
    of_module = sys.argv[0] == "-m" and ("-m", "vbterrier") in zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
    return of_module or PurePath(sys.argv[0]).stem == "vbterrier"


IS_COMMAND = _is_command()
if IS_COMMAND and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
