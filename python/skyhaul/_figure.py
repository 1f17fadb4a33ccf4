"""Figures with embedded data."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._draw import picture


@dataclass(frozen=True)
class Figure:
    """A figure with embedded data. Notebooks show it directly."""

    name: str
    title: str
    spec: dict[str, Any]
    """The Vega-Lite specification."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes an image (PNG, SVG, PDF) or the specification (JSON), by the suffix of the path.

        Returns the path.
        """
        path = Path(path)
        if path.suffix == ".json":
            path.write_text(json.dumps(self.spec, indent=1), encoding="utf-8")
        else:
            path.write_bytes(picture(json.dumps(self.spec), path.suffix.lstrip(".")))
        return path

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return {"application/vnd.vegalite.v6+json": self.spec, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<Figure {self.name}: {self.title}>"
