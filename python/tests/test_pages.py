"""Pages that are read from top to bottom: files, commands and Python blocks work as a reader types them."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Makes Python import only the packages of the lock file that `make demo` installs: no page needs another one.
GUARD = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"{{name}} is not in requirements.lock", name=name)

sys.meta_path.insert(0, Absent())
"""


def locked(name):
    """The packages of a lock file."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return {n.lower().replace("_", "-") for n in re.findall(r"^([\w.-]+)==", text, re.M)}


def absent():
    """The modules that are installed here and not in the environment of `make demo`."""
    there = locked("requirements.lock") | {"skyhaul", "pip", "setuptools"}
    return {
        module
        for module, owners in metadata.packages_distributions().items()
        if not {o.lower().replace("_", "-") for o in owners} & there
    }


def blocks(page):
    """The blocks of a page in order, each with its language and what the text before it ends with."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w+)\n(.*?)^```", text, re.M | re.S):
        yield found[1], found[2], text[: found.start()].rstrip().rpartition("\n\n")[2]


class Session:
    """A reader: a folder, the program, and a Python process for each block."""

    def __init__(self, folder):
        self.folder = folder
        self.env = {
            **os.environ,
            "SKYHAUL_CACHE": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join(
                [str(folder / "guard"), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
        }
        guard = folder / "guard"
        guard.mkdir(exist_ok=True)
        (guard / "sitecustomize.py").write_text(GUARD.format(absent=sorted(absent())), encoding="utf-8")

    def command(self, line):
        args = [sys.executable, "-m", "skyhaul", *shlex.split(line)[1:]]
        done = subprocess.run(
            args, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
        )
        errors = [text for text in done.stderr.splitlines() if not text.startswith("skyhaul: warning: ")]
        assert (done.returncode, errors) == (0, []), line
        return done.stdout

    def python(self, block):
        args = [sys.executable, "-c", block]
        done = subprocess.run(
            args, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def follow(page, folder, elsewhere=()):
    """Does what the page says, and returns what was printed; skips lines that begin with `elsewhere`."""
    reader = Session(folder)
    printed = []
    for language, block, before in blocks(ROOT / "docs" / page):
        match language:
            case "toml":
                names = re.findall(r"`([\w-]+\.toml)`", before)
                assert names, f"{page} does not say where to save {block[:40]}"
                (folder / names[0]).write_text(block, encoding="utf-8")
            case "sh":
                joined = re.sub(r"\\\n\s*", " ", block)
                for line in filter(None, joined.splitlines()):
                    if line.startswith(elsewhere):
                        continue
                    assert line.startswith("skyhaul "), line
                    printed.append(reader.command(line))
            case "python":
                printed.append(reader.python(block))
    return printed


def test_the_guard_keeps_other_packages_away(tmp_path):
    if "pandas" not in absent():
        pytest.skip("pandas is not installed")
    reader = Session(tmp_path)
    code = (
        "import skyhaul as sh; r = sh.run('preset:peach-geo', set={'duration': '1 s'}); r.flows.to_pandas()"
    )
    with pytest.raises(AssertionError, match=r"pip install 'pandas>=2\.2'"):
        reader.python(code)


def test_the_tutorial_works_from_top_to_bottom(tmp_path):
    pytest.importorskip("vl_convert")
    # What make demo does once everything is built is the last line of its recipe.
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)[1]
    assert recipe.splitlines()[-1].strip() == "$(BIN)/skyhaul demo"
    printed = follow("tutorial.md", tmp_path, elsewhere=("make demo", ". .venv/bin/activate"))
    assert len(printed) == 6
    assert (tmp_path / "results/geo/flows.parquet").is_file()
    assert (tmp_path / "results/start/report.html").is_file()
    assert (tmp_path / "cwnd.png").read_bytes().startswith(b"\x89PNG")
    # "Now strengthen the claim".
    text = (tmp_path / "start.toml").read_text(encoding="utf-8")
    (check,) = re.findall(r"^check = .*\}$", text, re.M)
    stronger = check.removesuffix("}") + ", by = 0.5 }"
    (tmp_path / "start.toml").write_text(text.replace(check, stronger), encoding="utf-8")
    cells = sorted((tmp_path / "cache").rglob("*.json"))
    again = Session(tmp_path).command("skyhaul study report start.toml --out results/start")
    assert "sooner" in again
    assert sorted((tmp_path / "cache").rglob("*.json")) == cells


@pytest.mark.timeout(900)  # Hundreds of runs of 550 s.
def test_make_demo_prints_and_draws(tmp_path):
    pytest.importorskip("vl_convert")
    shown = Session(tmp_path).command("skyhaul demo")
    assert "Picture: results/demo/figures/" in shown
    page = (tmp_path / "results/demo/report.html").read_text(encoding="utf-8")
    # The figure that the tutorial describes.
    assert "fig11-gain" in page


@pytest.mark.parametrize(
    ("page", "elsewhere"),
    [("from-pantheon.md", ("src/",)), ("from-flent.md", ("flent ",))],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_pages_for_users_of_other_programs(page, elsewhere, tmp_path):
    pytest.importorskip("vl_convert")
    printed = follow(page, tmp_path, elsewhere)
    assert "goodput" in printed[1]
    assert "no claims" in printed[-1 if page == "from-pantheon.md" else -3]


def test_the_extras_are_those_of_the_package():
    from skyhaul import _optional

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: sorted(modules.values()) for name, modules in _optional.EXTRAS.items()}
    assert extras == {name: sorted(r) for name, r in project["optional-dependencies"].items()}
    # The command names the same requirement.
    (plot,) = project["optional-dependencies"]["plot"]
    assert f"pip install '{plot}'" in (ROOT / "crates/lab/src/picture.rs").read_text(encoding="utf-8")


def test_nothing_is_installed_by_the_name_of_this_package():
    """An index may have another package of that name: pip installs a file or the checkout."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("python/skyhaul/*.py")]
    files += [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("site/lab/src/*.ts")]
    assert len(files) > 100
    wrong = re.compile(r"pip install (?:-\S+ )*['\"]?skyhaul(?:\[|['\"`\s]|$)", re.M)
    for file in files:
        assert not wrong.search(file.read_text(encoding="utf-8")), file
