"""The command `skyhaul`, also as `python -m skyhaul`: the same Rust function as the compiled program."""

import sys

from . import _core
from ._draw import renderer


def main() -> int:
    """Runs the command line and returns the exit status."""
    return _core.main(["skyhaul", *sys.argv[1:]], renderer())


if __name__ == "__main__":
    sys.exit(main())
