"""Rendering of figures, offline, with vl-convert if it is installed."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

HINT = "rendering figures needs vl-convert: pip install 'skyhaul[plot]'"


def renderer() -> Callable[[str, Path], None] | None:
    """A function that draws a specification into a file, or None without vl-convert."""
    return draw if importlib.util.find_spec("vl_convert") else None


def draw(spec: str, path: Path) -> None:
    """Draws a Vega-Lite specification (JSON) into a file: PNG, SVG or PDF by its ending."""
    Path(path).write_bytes(picture(spec, Path(path).suffix.lstrip(".")))


def picture(spec: str, kind: str) -> bytes:
    """The rendered figure."""
    try:
        import vl_convert
    except ImportError as e:
        raise ImportError(HINT) from e
    converter: Any = vl_convert
    match kind:
        case "png":
            return bytes(converter.vegalite_to_png(spec, scale=2))
        case "svg":
            return str(converter.vegalite_to_svg(spec)).encode()
        case "pdf":
            return bytes(converter.vegalite_to_pdf(spec))
        case _:
            raise ValueError(f'figures cannot be rendered as "{kind}" (known: png, svg, pdf)')
