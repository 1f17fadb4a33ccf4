#!/usr/bin/env python3
"""Licences and sources of everything that Cargo builds, against deny.toml: python3 tools/licenses.py

It applies the same lists as `cargo deny check licenses sources`, with nothing but Cargo and Python. The other
checks of cargo-deny (advisories, several versions of a crate) are left out.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def accepted(expression: str, allowed: set[str]) -> bool:
    """Whether allowed licences satisfy an SPDX expression; in old crates `/` means OR."""
    tokens = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))
    place = 0

    def peek() -> str | None:
        return tokens[place] if place < len(tokens) else None

    def take() -> str:
        nonlocal place
        if place >= len(tokens):
            raise ValueError("it ends too early")
        place += 1
        return tokens[place - 1]

    def one() -> bool:
        token = take()
        if token == "(":
            met = either()
            if take() != ")":
                raise ValueError("a bracket is open")
            return met
        if token in (")", "AND", "OR", "WITH"):
            raise ValueError(f"{token} is in the wrong place")
        if peek() == "WITH":
            take()
            token += f" WITH {take()}"
        return token in allowed

    def both() -> bool:
        met = one()
        while peek() == "AND":
            take()
            met = one() and met
        return met

    def either() -> bool:
        met = both()
        while peek() == "OR":
            take()
            met = both() or met
        return met

    met = either()
    if place < len(tokens):
        raise ValueError(f"nothing is expected at {tokens[place]}")
    return met


def refused(packages: list[dict[str, str | None]], allowed: set[str]) -> Iterator[str]:
    """A line for each package that may not be used."""
    for package in packages:
        name = f"{package['name']} {package['version']}"
        licence = package["license"]
        if package["source"] not in (None, REGISTRY):
            yield f"{name}: {package['source']} is no source that deny.toml knows"
        if licence is None:
            yield f"{name}: no licence is stated"
            continue
        try:
            if not accepted(licence, allowed):
                yield f"{name}: {licence} is not among the licences of deny.toml"
        except ValueError as e:
            yield f"{name}: {licence} cannot be read: {e}"


def main() -> int:
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    metadata = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    packages = json.loads(metadata)["packages"]
    wrong = list(refused(packages, allowed))
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"licences: {len(packages)} packages, {len(wrong)} refused")
    return min(1, len(wrong))


if __name__ == "__main__":
    sys.exit(main())
