"""The command `skyhaul`, also as `python -m skyhaul`: the same Rust function as the compiled program."""

import sys

from . import _core
from ._draw import renderer


def main() -> int:
    """Runs the command line and returns the exit status."""
    # How Python was started, up to our arguments. Its own name of itself, not that of the file that runs,
    # leads to the packages of a virtual environment.
    front = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv[1:])]
    return _core.main(["skyhaul", *sys.argv[1:]], renderer(), [sys.executable, *front])


if __name__ == "__main__":
    sys.exit(main())
