"""The page of the leaderboard against docs/leaderboard.json, from which the page is written."""

import importlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NUMBER = {"mean": 57.4815, "ci95": 1.63, "n": 10}


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("leaderboard")


@pytest.fixture
def record(tool):
    return json.loads(tool.RECORD.read_text(encoding="utf-8"))


def test_the_page_is_that_of_the_record(tool, record):
    text = tool.PAGE.read_text(encoding="utf-8")
    assert tool.page(record, text) == text, "run tools/leaderboard.py"


def test_the_record_is_whole(record):
    assert record["schema"] == "skyhaul.leaderboard/1"
    assert record["command"].startswith("skyhaul evaluate --all")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["created"])
    assert all(record[key] for key in ("version", "engine", "processor", "profile"))
    sections = {r["section"] for r in record["requirements"]}
    left = {s["section"] for s in record["not_measured"]}
    rows = re.findall(
        r'\{ id = "([\d.]+)", says', (ROOT / "evaluation/paper.toml").read_text().split("[overview]")[0]
    )
    assert sections | left == set(rows)
    assert not sections & left
    titles = {n["title"] for n in record["numbers"]}
    assert len(record["rows"]) >= 2
    for row in record["rows"]:
        assert set(row["verdicts"]) == sections | left, row["control"]
        assert set(row["numbers"]) <= titles, row["control"]
        assert row["command"].startswith("skyhaul evaluate ")


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (57.4815, 1.63, "57.5 ± 1.6"),
        (94.587, 0.0142, "94.59 ± 0.01"),
        (-3.06976, 0.000002, "−3.070"),
        (1234.56, 12.3, "1235 ± 12"),
        (0.5, None, "0.5"),
        (7.0, 0.0, "7"),
    ],
)
def test_numbers_have_the_digits_that_the_interval_justifies(tool, mean, half, text):
    assert tool.number({"mean": mean, "ci95": half, "n": 10}) == text


def test_what_is_no_table_is_refused_in_one_line(tool, tmp_path, monkeypatch, record):
    before = tool.RECORD.read_text(encoding="utf-8"), tool.PAGE.read_text(encoding="utf-8")
    (row,) = record["rows"][:1]
    own = {**record, "rows": [{k: v for k, v in row.items() if k != "command"}]}
    for content, words in [
        ("{", "no table"),
        ("[]", "no table"),
        (json.dumps({"schema": "skyhaul.evaluate/1"}), "accepted"),
        (json.dumps(own), "no command repeats"),
    ]:
        file = tmp_path / "table.json"
        file.write_text(content)
        monkeypatch.setattr("sys.argv", ["leaderboard.py", str(file)])
        with pytest.raises(SystemExit, match=words) as e:
            tool.main()
        assert "\n" not in str(e.value)
    assert before == (tool.RECORD.read_text(encoding="utf-8"), tool.PAGE.read_text(encoding="utf-8"))


def test_a_missing_number_is_a_dash(tool):
    assert tool.number(None) == "–"
    assert tool.number(NUMBER) == "57.5 ± 1.6"
