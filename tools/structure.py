"""Writes docs/structure.md: the crates, what each depends on, and their lines, at two commits.

python3 tools/structure.py                      644eaab9 and 279ef3da
python3 tools/structure.py BEFORE AFTER         any two
"""

import io
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "structure.md"
BEGIN, END = "<!-- tools/structure.py: begin -->\n", "<!-- end -->\n"
TESTS = re.compile(r"/tests?(/|\.rs$)|/(benches|examples)/")


def crates_at(revision):
    """Of each crate the dependencies, the lines of its code and its tests, and the number of code files."""
    packed = subprocess.run(
        ["git", "archive", revision, "crates"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    crates = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        for file in files:
            if not file.isfile():
                continue
            name = file.name.split("/")[1]
            crate = crates.setdefault(name, {"uses": [], "code": 0, "tests": 0, "files": 0})
            if file.name.endswith(".rs"):
                lines = files.extractfile(file).read().count(b"\n")
                test = bool(TESTS.search(file.name))
                crate["tests" if test else "code"] += lines
                crate["files"] += not test
            elif re.fullmatch(r"crates/\w+/Cargo.toml", file.name):
                manifest = tomllib.loads(files.extractfile(file).read().decode())
                tables = [manifest, *manifest.get("target", {}).values()]
                names = {n for table in tables for n in table.get("dependencies", {})}
                crate["uses"] = sorted(n.removeprefix("skyhaul-") for n in names if n.startswith("skyhaul-"))
    return crates


def drawing(crates):
    """The graph without the edges that follow from others, in the notation of Mermaid."""

    def reaches(name):
        return {r for used in crates[name]["uses"] for r in (used, *reaches(used))}

    lines = ["```mermaid", "flowchart BT"]
    for name, crate in sorted(crates.items()):
        direct = [u for u in crate["uses"] if not any(u in reaches(o) for o in crate["uses"] if o != u)]
        lines += [f"  {name} --> {used}" for used in direct]
    return "\n".join([*lines, "```"])


def table(before, after):
    lines = [
        "| crate | code before | after | tests before | after | files of code before | after |",
        "|---|---|---|---|---|---|---|",
    ]
    none = {"code": 0, "tests": 0, "files": 0}
    names = sorted({*before, *after})
    for name in [*names, None]:
        row = []
        for key in ("code", "tests", "files"):
            for side in (before, after):
                row.append(sum(c[key] for c in side.values()) if name is None else side.get(name, none)[key])
        lines.append(f"| {'all' if name is None else f'`{name}`'} | {' | '.join(f'{n:,}' for n in row)} |")
    return "\n".join(lines)


def main():
    revisions = sys.argv[1:] or ["644eaab9", "279ef3da"]
    if len(revisions) != 2:
        sys.exit(__doc__.strip())
    before, after = map(crates_at, revisions)
    parts = []
    edges = [{name: crate["uses"] for name, crate in side.items()} for side in (before, after)]
    if edges[0] == edges[1]:
        parts += ["Before and after, the crates and their dependencies are the same:", drawing(after)]
    else:
        parts += ["Before:", drawing(before), "After:", drawing(after)]
    parts += [
        "An arrow means *uses*; what follows from other arrows is left out.",
        table(before, after),
    ]
    text = PAGE.read_text()
    try:
        head, rest = text.split(BEGIN)
        _, tail = rest.split(END)
    except ValueError:
        sys.exit(f"{PAGE}: needs a line {BEGIN.strip()} and, below, a line {END.strip()}")
    body = "\n\n".join(parts)
    PAGE.write_text(f"{head}{BEGIN}\n{body}\n\n{END}{tail}")


if __name__ == "__main__":
    main()
