"""Rendering of figures, offline: with the package vl-convert, or the command of that name."""

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._optional import hint

HINT = hint("rendering figures", "plot", "vl_convert") + ", or the command vl-convert"

KINDS = ("png", "svg", "pdf")
"""The kinds of images."""

SCALE = 2
"""Pixels of a PNG per pixel of the figure."""


def renderer() -> Callable[[str, Path], None] | None:
    """A function that draws a specification into a file, or None if nothing can draw."""
    return draw if can_draw() else None


def can_draw() -> bool:
    """Whether the package or the command is installed."""
    return _has_package() or shutil.which("vl-convert") is not None


def draw(spec: str, path: Path) -> None:
    """Draws a Vega-Lite specification (JSON) into a file: PNG, SVG or PDF by its ending."""
    Path(path).write_bytes(picture(spec, Path(path).suffix.lstrip(".")))


def picture(spec: str, kind: str) -> bytes:
    """The rendered figure. Without a renderer an `ImportError` says what to install."""
    if kind not in KINDS:
        raise ValueError(f'figures cannot be rendered as "{kind}" (known: {", ".join(KINDS)})')
    if _has_package():
        return _by_package(spec, kind)
    if command := shutil.which("vl-convert"):
        return _by_command(command, spec, kind)
    raise ImportError(HINT)


def _has_package() -> bool:
    return importlib.util.find_spec("vl_convert") is not None


def _by_package(spec: str, kind: str) -> bytes:
    import vl_convert

    converter: Any = vl_convert
    match kind:
        case "png":
            return bytes(converter.vegalite_to_png(spec, scale=SCALE))
        case "svg":
            return str(converter.vegalite_to_svg(spec)).encode()
        case _:
            return bytes(converter.vegalite_to_pdf(spec))


def _by_command(command: str, spec: str, kind: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="skyhaul-") as folder:
        out = Path(folder) / f"figure.{kind}"
        line = [command, f"vl2{kind}", "--input", "-", "--output", str(out)]
        if kind == "png":
            line += ["--scale", str(SCALE)]
        done = subprocess.run(line, input=spec.encode(), capture_output=True, check=False)
        if done.returncode != 0 or not out.is_file():
            lines = done.stderr.decode(errors="replace").strip().splitlines() or ["vl-convert failed"]
            raise OSError(f"cannot draw with {command}: {lines[-1]}")
        return out.read_bytes()
