"""Figures with embedded data."""

import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._draw import HINT, SCALE, can_draw, picture


@dataclass(frozen=True)
class Figure:
    """A figure with embedded data. Notebooks show it directly."""

    name: str
    """Its name, which is also that of its files."""
    title: str
    """Its title; empty if it has none."""
    spec: dict[str, Any]
    """The Vega-Lite specification."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes an image (PNG, SVG, PDF) or the specification (JSON), by the suffix of the path.

        Returns the path. Another suffix raises `ValueError`. An image needs vl-convert; an `ImportError` says
        how to install it.
        """
        path = Path(path)
        if path.suffix == ".json":
            path.write_text(json.dumps(self.spec, indent=1), encoding="utf-8")
        else:
            path.write_bytes(picture(json.dumps(self.spec), path.suffix.lstrip(".")))
        return path

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        """The specification, for notebooks that draw it, and a PNG for all others and for nbconvert.

        A PNG rather than an SVG: in one page of HTML, the names within several SVGs collide.
        """
        data: dict[str, Any] = {"application/vnd.vegalite.v6+json": self.spec, "text/plain": repr(self)}
        sizes: dict[str, Any] = {}
        if not can_draw():
            data["text/plain"] += f"\n{HINT}"
            return data, sizes
        try:
            png = picture(json.dumps(self.spec), "png")
        except Exception as e:  # A renderer may raise anything; the specification is shown all the same.
            warnings.warn(f"figure {self.name}: {e}", RuntimeWarning, stacklevel=2)
            return data, sizes
        data["image/png"] = png
        # A PNG begins with a signature of 8 bytes, and the length and name of the first chunk, 4 bytes each;
        # width and height follow.
        width, height = (int.from_bytes(png[at : at + 4]) for at in (16, 20))
        sizes["image/png"] = {"width": width // SCALE, "height": height // SCALE}
        return data, sizes

    def __repr__(self) -> str:
        return f"<Figure {self.name}: {self.title}>"
