"""Numbers of the pages against the commands that print them quickly: numbers.toml lists both."""

import functools
import json
import re
import shlex
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from test_docs import FILES, blocks

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = tomllib.loads(Path(__file__).with_name("numbers.toml").read_text(encoding="utf-8"))["number"]
NUMBER = r"([+\N{MINUS SIGN}-]?[\d,]*\.?\d+(?:e-?\d+)?)"


def flat(text):
    """Text without line breaks: pages may be wrapped anew."""
    return " ".join(text.replace("\\\n", " ").split())


def printed(page, says):
    """The numbers that stand on a page in place of each {} of `says`."""
    pattern = NUMBER.join(re.escape(part) for part in flat(says).split("{}"))
    found = re.findall(pattern, page)
    assert len(found) == 1, f"{len(found)} times on the page: {says}"
    groups = found[0] if isinstance(found[0], tuple) else (found[0],)
    return [float(g.replace(",", "").replace("\N{MINUS SIGN}", "-")) for g in groups]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Runs a command once: what it prints as JSON, and its folder. A block of a page is geo.toml there."""

    @functools.cache
    def run(command, page=None, block=None):
        folder = tmp_path_factory.mktemp("numbers")
        for name in ("benches", "examples"):
            (folder / name).symlink_to(ROOT / name)
        if block is not None:
            (folder / "link.toml").write_text(FILES["link.toml"], encoding="utf-8")
            text = 'schema = 1\nextends = "link.toml"\n' + blocks(ROOT / page, "toml")[block]
            (folder / "geo.toml").write_text(text, encoding="utf-8")
        args = [sys.executable, "-m", "skyhaul", *shlex.split(command)[1:], "--json"]
        done = subprocess.run(args, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), folder

    return run


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: f"{Path(n['page']).name}:{n['says'][:40]}")
def test_a_number_of_a_page_is_what_its_command_prints(number, ran):
    page = flat((ROOT / number["page"]).read_text(encoding="utf-8"))
    assert flat(number["command"]) in page, "the page does not name the command"
    says = printed(page, number["says"])
    command = number.get("run", number["command"])
    if "--worlds" in command and sys.platform != "linux":
        pytest.skip("--worlds needs Linux")
    block = number.get("block")
    out, folder = ran(command, *([] if block is None else [number["page"], block]))

    def world(*words):
        """The row of `compare --worlds` whose name has these words, with `mean`, its goodput in Mbit/s."""
        (row,) = (w for w in out["worlds"] if all(word in w["world"] for word in words))
        return {**row, "mean": statistics.fmean(row["goodput_bit_s"]) / 1e6}

    def group(name, *words):
        """A group of flows in such a row."""
        return next(g for g in world(*words)["groups"] if g["group"] == name)

    names = {"out": out, "folder": folder, "world": world, "group": group, "re": re}
    names["fmean"] = statistics.fmean
    values = [float(eval(expression, dict(names))) for expression in number["values"]]
    assert len(values) == len(says)
    tolerances = number["tolerance"]
    tolerances = tolerances if isinstance(tolerances, list) else [tolerances] * len(says)
    wrong = [(s, v) for s, v, t in zip(says, values, tolerances, strict=True) if not abs(s - v) <= t]
    assert not wrong, f"on the page, and printed by the command: {wrong}"


@pytest.mark.parametrize(
    ("says", "files", "pattern"),
    [
        ("| {}, of which", "studies/*/*.toml", r"^\[\[claim\]\]"),
        ("by our TCP and by Linux | {} |", "crates/testkit/cases/*.case", r"^case "),
    ],
)
def test_counts_of_the_readme_are_those_of_the_files(says, files, pattern):
    page = flat((ROOT / "README.md").read_text(encoding="utf-8"))
    count = sum(len(re.findall(pattern, f.read_text(encoding="utf-8"), re.M)) for f in ROOT.glob(files))
    assert printed(page, says) == [count]
