"""Other packages that only parts of this package need: the extras of `pyproject.toml`."""

import importlib
from typing import Any

EXTRAS = {
    "cluster": {"distributed": "distributed>=2025.1"},
    "frames": {"pandas": "pandas>=2.2", "polars": "polars>=1.30", "pyarrow": "pyarrow>=20"},
    "plot": {"vl_convert": "vl-convert-python>=1.9,<2"},
    "rl": {"gymnasium": "gymnasium>=1.2,<2"},
}
"""By the name of an extra: its modules, each with the requirement that pip installs."""


def hint(what: str, extra: str, *modules: str) -> str:
    """A line that says what to install for a purpose.

    The line names requirements, not this package with the extra: an index may have another package of that
    name, and pip would install that one.
    """
    requirements = [EXTRAS[extra][m] for m in modules]
    names = " and ".join(r.partition(">")[0] for r in requirements)
    quoted = " ".join(f"'{r}'" for r in requirements)
    return f"{what} needs {names}: pip install {quoted} (the extra [{extra}])"


def needed(what: str, extra: str, *modules: str) -> Any:
    """The first of the modules; without one of them an `ImportError` says what to install."""
    missing = []
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError:
            missing.append(module)
    if missing:
        raise ImportError(hint(what, extra, *missing))
    return importlib.import_module(modules[0])
