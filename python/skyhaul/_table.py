"""Tables in Arrow memory, which pandas, polars and pyarrow read."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _core, _html
from ._optional import needed

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class _Columns:
    """The contents of a pickled table."""

    def __init__(self, values: dict[str, list[Any]]) -> None:
        self._values = values

    def __len__(self) -> int:
        return max(map(len, self._values.values()), default=0)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        pyarrow = needed("a table that was pickled", "frames", "pyarrow")
        return pyarrow.table(self._values).__arrow_c_stream__(requested_schema)

    @property
    def column_names(self) -> list[str]:
        return list(self._values)

    def column(self, name: str) -> list[Any]:
        return self._values[name]


class Table:
    """Named columns of equal length, in Arrow memory.

    Anything that accepts Arrow tables accepts this one: `polars.DataFrame(table)`, `pyarrow.table(table)`.
    """

    def __init__(self, core: "_core.Table | _Columns") -> None:
        self._core = core

    def __reduce__(self) -> "tuple[type[Table], tuple[_Columns]]":
        return Table, (_Columns({name: self[name] for name in self}),)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._core)

    def __getitem__(self, name: str) -> list[Any]:
        """The values of a column as a list."""
        return self._core.column(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.column_names)

    def _repr_html_(self) -> str:
        names = self.column_names
        rows = zip(*(self[name] for name in names), strict=True)
        return _html.head(f"{len(self)} rows", f"{len(names)} columns") + _html.table(names, rows)

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.column_names)}>"

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return self._core.column_names

    def to_arrow(self) -> "pyarrow.Table":
        """The table as a pyarrow table. Without pyarrow an `ImportError` says what to install."""
        table: pyarrow.Table = needed("to_arrow()", "frames", "pyarrow").table(self)
        return table

    def to_pandas(self) -> "pandas.DataFrame":
        """The table as a pandas data frame. It needs pyarrow too; an `ImportError` says what to install."""
        frames = needed("to_pandas()", "frames", "pandas", "pyarrow").DataFrame
        frame: pandas.DataFrame = (
            frames.from_arrow(self) if hasattr(frames, "from_arrow") else self.to_arrow().to_pandas()
        )
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """The table as a polars data frame. Without polars an `ImportError` says what to install."""
        frame: polars.DataFrame = needed("to_polars()", "frames", "polars").DataFrame(self)
        return frame
