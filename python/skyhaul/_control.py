"""User-defined congestion controls: the argument `controls`, and fingerprints of classes."""

import difflib
import hashlib
import inspect
import itertools
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from . import _core
from ._core import Control

Controls = Mapping[str, type[Control]]
"""Classes, by the names that scenarios use."""

Spec = list[tuple[str, type[Control], str | None]]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a control requires of the sender: the class attribute `policy`, an instance or a dict of its keys.

    The sender reads it before the handshake, after `on_start`, and when the peer turns out not to answer
    probes; it must not change at any other time.
    """

    recovery: Literal["tahoe", "reno", "newreno", "sack", "prr"] = "sack"
    """How losses are repaired (RFC 5681, 6582, 6675, 9937)."""
    recovery_end: Literal["all-outstanding", "triggering-segment"] = "all-outstanding"
    """When a recovery ends: one reduction per window of data, or per lost segment."""
    gate_on_flight: bool = False
    """With "sack", compare cwnd with FlightSize instead of the pipe."""
    pipe: Literal["scoreboard", "counter", "counter-partial-extra"] = "scoreboard"
    """How the pipe is estimated: RFC 6675, or Fall, Floyd 1996 (the last as ns-2 does it)."""
    max_burst: int = 0
    """Largest number of segments per run of the send loop; 0 is unlimited."""
    rtt_samples: bool = True
    """Fill in `Ack.rtt`; a control that does not read it saves time with False."""
    rate_samples: bool = False
    """Fill in `Ack.rate`."""
    receiver_rate: bool = False
    """Make the peer measure the arrival rate of data: `Ack.receiver_rate`."""
    loss_events: bool = False
    """Raise `on_lost`. Set for classes that define it."""
    sent_events: bool = False
    """Raise `on_sent`. Set for classes that define it."""
    watch_head: bool = False
    """Fill in `head_age` and `head_retransmissions`."""
    transmit_events: bool = False
    """Raise `on_transmit`. Set for classes that define it."""
    low_priority_data: bool = False
    """Some data is sent with low priority (`priority`); used to warn of routers without priorities."""
    probes: bool = False
    """Offer probes in the handshake; without this, none can be sent."""
    rack: bool = False
    """Detect losses by time (RACK, RFC 8985) whatever the endpoint says; needs SACK and "sack" or "prr"."""


def spec(controls: Controls | None) -> Spec:
    """Checks the argument `controls`."""
    checked: Spec = []
    for name, cls in (controls or {}).items():
        if not (isinstance(cls, type) and issubclass(cls, Control)):
            what = f"the class {cls.__name__}" if isinstance(cls, type) else f"{type(cls).__name__} {cls!r}"
            raise TypeError(
                f'controls["{name}"]: {what} is not accepted: pass a class that derives from '
                "skyhaul.Control (the class itself; options go into the scenario)"
            )
        _known_methods(name, cls)
        checked.append((name, cls, fingerprint(cls)))
    return checked


def _known_methods(name: str, cls: type[Control]) -> None:
    """Warns of public methods that are never called; an error if the name resembles one that is called."""
    known = [n for n in dir(Control) if not n.startswith("_")]
    bases = itertools.takewhile(lambda c: c is not Control, cls.__mro__)
    own = {n for c in bases if issubclass(c, Control) for n, v in vars(c).items() if inspect.isfunction(v)}
    for method in sorted(n for n in own if not n.startswith("_") and n not in known):
        where = f'controls["{name}"]: nothing calls {cls.__name__}.{method}'
        if close := difflib.get_close_matches(method, known, n=1, cutoff=0.75):
            raise TypeError(
                f"{where}: did you mean {close[0]}? (the names of your own helpers must begin with _)"
            )
        warnings.warn(f"{where}: if it is your own helper, begin its name with _", stacklevel=4)


def refused_options(cls: type[Control], options: dict[str, Any]) -> str | None:
    """Why the class rejects these options, before anything runs; None if it accepts them."""
    if cls.__init__ is object.__init__:
        if not options:
            return None
        return f"options: {cls.__name__} takes none, since it has no __init__: {', '.join(options)}"
    try:
        signature = inspect.signature(cls.__init__)
        signature.bind(None, **options)
    except ValueError:
        return None  # Without a signature, the call itself checks the options.
    except TypeError as e:
        known = ", ".join(list(signature.parameters)[1:]) or "none"
        return f"options of {cls.__name__}: {e} (known: {known})"
    return None


def interrupt(threads: list[int]) -> None:
    """Raises KeyboardInterrupt in threads that run cells: signals reach only the main one."""
    import ctypes

    for thread in threads:
        raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
        raise_in(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


class _Unknown(Exception):
    """An object without a text that identifies its version."""


def fingerprint(cls: type[Control]) -> str | None:
    """A hash of the source of a class, which identifies the version that made a result.

    It covers the class and its bases up to `skyhaul.Control`, the values of class attributes, and the
    functions, classes and constants of its module that its methods name, directly or indirectly. It does not
    cover other modules. None if there is no source, or if a method uses an object whose version cannot be
    determined.
    """
    digest = hashlib.sha256()
    try:
        for part in _class(cls, set()):
            digest.update(part.encode())
            digest.update(b"\0")
    except (_Unknown, OSError, TypeError):
        return None
    return digest.hexdigest()


def _class(cls: type, done: set[int]) -> Iterator[str]:
    """What identifies the version of a class; `done` has the ids of objects that are covered already."""
    for base in cls.__mro__:
        if base in (Control, object) or id(base) in done:
            continue
        done.add(id(base))
        yield base.__qualname__
        yield inspect.getsource(base)
        for name, value in sorted(vars(base).items()):
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            if isinstance(value, property):
                for function in filter(None, (value.fget, value.fset)):
                    yield from _value(function, base.__module__, done)
            elif isinstance(value, types.FunctionType):
                yield from _value(value, base.__module__, done)
            elif not (name.startswith("__") and name.endswith("__")) and _constant(value):
                yield f"{name} = {_shown(value)}"


def _value(value: object, module: str, done: set[int]) -> Iterator[str]:
    """What identifies the version of a value that a name in a method refers to."""
    if _constant(value):
        yield _shown(value)
        return
    value = inspect.unwrap(value) if callable(value) else value
    if isinstance(value, types.ModuleType | types.BuiltinFunctionType) or id(value) in done:
        return
    if not isinstance(value, type | types.FunctionType):
        raise _Unknown
    if value.__module__ != module:
        return
    if isinstance(value, type):
        yield from _class(value, done)
        return
    done.add(id(value))
    # Generated methods, such as those of dataclasses, have no source of their own; their class has.
    if value.__code__.co_filename != "<string>":
        yield inspect.getsource(value)
    # The code that runs may differ from a file that was edited later.
    yield from _code(value.__code__)
    for default in (value.__defaults__ or ()) + tuple((value.__kwdefaults__ or {}).values()):
        yield from _value(default, module, done)
    for cell in value.__closure__ or ():
        if not (isinstance(cell.cell_contents, type) and id(cell.cell_contents) in done):
            yield from _value(cell.cell_contents, module, done)
    for name in sorted(_names(value.__code__)):
        if name in value.__globals__:
            yield name
            yield from _value(value.__globals__[name], module, done)


def _code(code: types.CodeType) -> Iterator[str]:
    """The instructions and constants of a function, with those of the functions inside it."""
    yield code.co_code.hex()
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _code(value)
        else:
            yield _shown(value)


def _names(code: types.CodeType) -> set[str]:
    """The names that a function, or a function inside it, refers to."""
    inner = (_names(c) for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*inner)


def _shown(value: object) -> str:
    """A constant as text."""
    # The order of a set of strings differs between processes.
    return repr(sorted(value, key=repr) if isinstance(value, set | frozenset) else value)


def _constant(value: object) -> bool:
    """Whether `_shown` identifies the value."""
    if isinstance(value, tuple | list | frozenset | set):
        return all(map(_constant, value))
    if isinstance(value, dict):
        return all(_constant(k) and _constant(v) for k, v in value.items())
    return value is None or isinstance(value, bool | int | float | complex | str | bytes | Policy)


def run_cell(job: str, controls: Spec) -> str:
    """Runs a cell of a study in the current process."""
    # A class that arrived by value has no source here: use the hash that came with it.
    known = [(name, cls, fingerprint(cls) or sent) for name, cls, sent in controls]
    return _core.run_cell(job, known)
