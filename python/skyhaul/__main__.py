"""The command `skyhaul`, also as `python -m skyhaul`: the same Rust function as the compiled program."""

import signal
import sys

from . import _core
from ._draw import renderer


def main() -> int:
    """Runs the command line and returns the exit status."""
    # The command line that starts this program again, up to its arguments. sys.executable, unlike the file
    # that it links to, leads to the packages of a virtual environment.
    own_command = [sys.executable, *sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv[1:])]]
    # The command handles Ctrl-C, and keeps what is finished. Python would raise an exception afterwards.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(["skyhaul", *sys.argv[1:]], renderer(), own_command)


if __name__ == "__main__":
    sys.exit(main())
