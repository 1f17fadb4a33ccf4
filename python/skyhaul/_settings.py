"""Python values as TOML, as `--set` takes them."""

import json
import math
import operator
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TypeAlias

from ._core import SkyhaulError

Value: TypeAlias = "bool | int | float | str | PathLike[str] | Sequence[Value] | Mapping[str, Value]"
"""The types that a key of a scenario accepts."""


_KINDS = "text, a number, True or False, or a list or a dictionary of these"


def toml(value: Value) -> str:
    """The value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, PathLike):
        value = fspath(value)
    if isinstance(value, str):
        # A JSON string is a TOML string, except for one control character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml(str(k))} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    if isinstance(value, float) or not isinstance(value, int):
        # NumPy numbers too.
        try:
            number = float(value)
        except TypeError as e:
            raise TypeError(f"{value!r} cannot be written as TOML: write {_KINDS}") from e
        if number.is_integer() and not isinstance(value, float):
            return str(int(number))
        return repr(number) if math.isfinite(number) else str(number)
    return str(value)


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
