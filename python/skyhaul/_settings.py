"""Python values as TOML, as `--set` takes them."""

import json
import math
import operator
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any, Protocol, TypeAlias

from ._core import SkyhaulError


class Array(Protocol):
    """An array or a series of numpy, pandas or polars: values of one type."""

    @property
    def dtype(self) -> object:
        """The type of the values."""

    def __len__(self) -> int:
        """The number of values."""


Value: TypeAlias = "bool | int | float | str | PathLike[str] | Sequence[Value] | Mapping[str, Value] | Array"
"""The types that a key of a scenario accepts."""


def plain(value: Any) -> Any:
    """An array, series or number of numpy, pandas or polars as a list or number; other values as they are."""
    if isinstance(value, str | bytes) or not hasattr(value, "dtype"):
        return value
    # `tolist` of numpy and pandas, `to_list` of polars.
    to_list = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    return to_list() if callable(to_list) else value


_KINDS = "text, a number, True or False, or a list or a dictionary of these"


def toml(value: Value) -> str:
    """The value as TOML."""
    it: Any = plain(value)
    if isinstance(it, bool):
        return "true" if it else "false"
    if isinstance(it, PathLike):
        it = fspath(it)
    if isinstance(it, str):
        # A JSON string is a TOML string, except that TOML escapes DEL too.
        return json.dumps(it, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(it, Mapping):
        return "{ " + ", ".join(f"{toml(str(k))} = {toml(v)}" for k, v in it.items()) + " }"
    if isinstance(it, Sequence):
        return "[" + ", ".join(toml(v) for v in it) + "]"
    if isinstance(it, float) or not isinstance(it, int):
        # Also numbers of other types, such as fractions.
        try:
            number = float(it)
        except TypeError as e:
            raise TypeError(f"{it!r} cannot be written as TOML: write {_KINDS}") from e
        if number.is_integer() and not isinstance(it, float):
            return str(int(number))
        return repr(number) if math.isfinite(number) else str(number)
    return str(it)


def settings(values: Mapping[str, Value] | None) -> list[tuple[str, str]]:
    """Paths and values as TOML."""
    pairs = []
    for path, value in (values or {}).items():
        try:
            pairs.append((path, toml(value)))
        except TypeError as e:
            raise TypeError(f"set: {path}: {e}") from e
    return pairs


def count(name: str, value: int | None, least: int = 1) -> int | None:
    """The argument `name`: None, or a whole number of at least `least`."""
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError as e:
        raise TypeError(f"{name}: {value!r}: write a whole number, at least {least}") from e
    if not least <= number < 2**63:
        raise SkyhaulError(f"{name}: {number}: write a whole number from {least} to {2**63 - 1}")
    return number
