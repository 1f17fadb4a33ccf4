import pytest

import skyhaul as sh


@pytest.fixture(scope="module")
def result():
    return sh.run("preset:peach-geo", set={"duration": "5 s", "flows.bulk.count": 4})


def test_pyarrow(result):
    pyarrow = pytest.importorskip("pyarrow")
    table = result.flows.to_arrow()
    assert table.num_rows == 4
    assert table.schema.field("retransmissions").type == pyarrow.uint64()
    assert table.schema.field("finished_s").nullable
    assert table.column("finished_s").null_count == 4  # Bulk flows are never done.
    assert pyarrow.table(result.series).num_rows == len(result.series)


def test_pandas(result):
    pytest.importorskip("pandas")
    frame = result.flows.to_pandas()
    assert frame["group"].tolist() == ["bulk"] * 4
    assert frame["finished_s"].isna().all()
    assert frame["goodput_bit_s"].sum() == pytest.approx(result.summary["goodput_bit_s"])


def test_polars(result):
    polars = pytest.importorskip("polars")
    frame = result.series.to_polars()
    assert frame.schema["value"] == polars.Float64
    last = frame.filter((polars.col("object") == "flows.bulk[0]") & (polars.col("series") == "cwnd"))
    assert last["value"].max() > 1


def test_parquet_reads_back(result, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    result.save(tmp_path)
    for name in ["flows", "links", "series"]:
        assert parquet.read_table(tmp_path / f"{name}.parquet").equals(getattr(result, name).to_arrow())


def test_without_any_library(result):
    assert result.flows["index"] == [0, 1, 2, 3]
    assert result.flows["finished_s"] == [None] * 4
    assert list(result.links)[:2] == ["link", "direction"]
    assert "rows" in repr(result.links)
    with pytest.raises(KeyError):
        result.flows["colour"]


def test_a_table_may_be_read_often_and_outlive_its_result():
    table = sh.run("preset:peach-geo", set={"duration": "2 s"}).flows
    pyarrow = pytest.importorskip("pyarrow")
    first = pyarrow.table(table)
    assert first.equals(pyarrow.table(table))
    del table
    assert first.num_rows == 20
