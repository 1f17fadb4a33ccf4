"""Licences of dependencies, the version to cite, and the source archive."""

import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("licenses", ROOT / "tools/licenses.py")
licenses = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(licenses)

FREE = {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-3-Clause"}


@pytest.mark.parametrize(
    ("expression", "met"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("MIT/Apache-2.0", True),
        # AND binds closer than OR (SPDX 2.3, annex D).
        ("MIT OR Apache-2.0 AND GPL-3.0-only", True),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", False),
        ("(Apache-2.0 OR MIT) AND BSD-3-Clause", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT WITH LLVM-exception", False),
    ],
)
def test_expressions_of_licences(expression, met):
    assert licenses.accepted(expression, FREE) is met


@pytest.mark.parametrize("expression", ["", "MIT OR", "(MIT", "MIT Apache-2.0", "AND MIT"])
def test_what_is_no_expression_is_refused(expression):
    package = {"name": "a", "version": "1.0.0", "license": expression, "source": None}
    (line,) = licenses.refused([package], FREE)
    assert line.startswith(f"a 1.0.0: {expression} cannot be read")


def test_sources_and_missing_licences_are_refused():
    packages = [
        {"name": "a", "version": "1", "license": "MIT", "source": licenses.REGISTRY},
        {"name": "b", "version": "1", "license": None, "source": licenses.REGISTRY},
        {"name": "c", "version": "1", "license": "MIT", "source": "git+https://example.org/c"},
        {"name": "d", "version": "1", "license": "GPL-3.0-only", "source": None},
    ]
    assert [line[0] for line in licenses.refused(packages, FREE)] == ["b", "c", "d"]


def test_the_version_to_cite_is_that_of_the_program():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.M)


def test_the_source_archive_holds_what_the_crates_embed():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["maturin"]
    packed = {Path(i["path"]).parts[0] for i in config["include"] if i["format"] == "sdist"}
    embedded = set()
    for file in [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("crates/*/build.rs")]:
        text = file.read_text(encoding="utf-8").split("#[cfg(test)]")[0]
        paths = re.findall(r'include_\w+!\("((?:\.\./)+[^"]+)"', text)
        if file.name == "build.rs":
            paths += [f"src/{p}" for p in re.findall(r'join\("([^"]+)"\)', text)]
        for path in paths:
            place = (file.parent / path).resolve()
            if place.is_relative_to(ROOT) and not place.is_relative_to(ROOT / "crates"):
                embedded.add(place.relative_to(ROOT).parts[0])
    assert "presets" in embedded
    assert embedded <= packed, embedded - packed


def test_make_help_says_of_the_soak_what_its_page_says():
    page = (ROOT / "docs/soak.md").read_text(encoding="utf-8")
    duration = re.search(r"make soak +# the long form, ([a-z ]+);", page)
    text = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    line = next(line for line in text.splitlines() if line.startswith("make soak "))
    assert duration.group(1) in line
