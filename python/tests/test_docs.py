"""What the documentation says works: links lead somewhere, files are accepted, commands end well."""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(page, language):
    """Blocks of code; those of a list are indented."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.M | re.S)
    return [re.sub(rf"^{indent}", "", block, flags=re.M) for indent, block in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_no_word_stands_twice_and_one_spelling_is_used(page):
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"`[^`]*`", "`", text)
    # Within a paragraph: a title may be the first word of what follows.
    assert re.findall(r"\b([A-Za-z]+)(?:[ \t]+|[ \t]*\n[ \t]*)\1\b", text) == []
    assert re.findall(r"\b[Uu]tilis\w+", text) == []


def test_paths_in_the_text_exist():
    for page in PAGES:
        for path in re.findall(
            r"`((?:crates|docs|studies|presets|schema|python|tools|benches|examples)/[\w./-]+)`",
            page.read_text(),
        ):
            assert (ROOT / path).exists(), f"{page.name}: {path}"


# How a test, or a case, is written in a file of each kind.
WRITTEN = {".rs": r"\bfn {}\(", ".py": r"^def {}\(", ".case": r"^case {}:"}


def test_reports_name_tests_that_exist():
    """Each report has a verdict of the list, and tests that exist, or the day of a trial by hand."""
    page = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    verdicts = set(re.findall(r"^\* \*\*([^*]+)\*\*:", page, re.M))
    rows = [r for r in re.findall(r"^\| (.*) \|$", page, re.M) if not r.startswith("source |")]
    assert len(rows) >= 59
    for source, *_, verdict, proof in (row.split(" | ") for row in rows):
        assert verdict.strip("*") in verdicts, source
        found = re.findall(r"((?:`[\w-]+`, )*`[\w-]+`) in `([\w./-]+)`", proof)
        assert bool(found) != bool(re.fullmatch(r"by hand, \d{4}-\d\d-\d\d", proof)), source
        for names, file in found:
            text = (ROOT / file).read_text(encoding="utf-8")
            for name in re.findall(r"`([\w-]+)`", names):
                test = WRITTEN[Path(file).suffix].format(name)
                assert re.search(test, text, re.M), f"{source}: {name} in {file}"


def test_anchors_on_the_page_of_the_scenario_format_are_unique_and_exist():
    text = (ROOT / "docs" / "scenario-format.md").read_text(encoding="utf-8")
    anchors = re.findall(r'<a id="([^"]+)"', text)
    assert len(anchors) == len(set(anchors))
    named = set(re.findall(r"\]\(#([^)]+)\)", text))
    for page in PAGES:
        named |= set(re.findall(r"scenario-format\.md#([\w-]+)", page.read_text(encoding="utf-8")))
    assert named <= set(anchors)


def test_every_example_of_the_scenario_format_is_valid(monkeypatch):
    jsonschema = pytest.importorskip("jsonschema")
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    tool = importlib.import_module("scenario_format")
    whole = json.loads((ROOT / "schema" / "scenario.json").read_text(encoding="utf-8"))
    wrong, row = [], tool.row
    count = 0

    def checked(schema, within, key, node, required):
        nonlocal count
        example = tool.example(schema, within, key, node)
        validator = jsonschema.Draft202012Validator({**node, "$defs": whole["$defs"]})
        wrong.extend(f"{example}: {e.message}" for e in validator.iter_errors(tomllib.loads(example)[key]))
        count += 1
        return row(schema, within, key, node, required)

    monkeypatch.setattr(tool, "row", checked)
    tool.page()
    assert count > 500
    assert not wrong


@pytest.mark.parametrize("name", ["README.md", "docs/command.md", "docs/algorithms/add-to-skyhaul.md"])
def test_files_and_commands_work(name, tmp_path):
    page = ROOT / name
    for file, text in zip(["geo.toml", "start.toml"], blocks(page, "toml"), strict=False):
        (tmp_path / file).write_text(text, encoding="utf-8")
    env = {**os.environ, "SKYHAUL_CACHE": str(tmp_path / "cache")}
    commands = [
        line for block in blocks(page, "sh") for line in block.splitlines() if line.startswith("skyhaul ")
    ]
    # Real time and real packets: the tests of the command run these.
    live = ("skyhaul doctor", "skyhaul emulate", "skyhaul wire")
    commands = [line for line in commands if not line.startswith(live) and "--worlds" not in line]
    assert commands
    for line in commands:
        line, _, target = line.partition(" > ")
        args = [sys.executable, "-m", "skyhaul", *shlex.split(line)[1:]]
        done = subprocess.run(args, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        errors = [text for text in done.stderr.splitlines() if not text.startswith("skyhaul: warning: ")]
        assert (done.returncode, errors) == (0, []), line
        if target:
            assert done.stdout, line


# Files that the pages name or extend: a path, and traces.
CHAIN = """schema = 1
duration = "600 s"
[links.near]
rate = "100 Mbit/s"
delay = "5 ms"
[links.sat]
rate = "10 Mbit/s"
delay = "275 ms"
[links.far]
rate = "100 Mbit/s"
delay = "5 ms"
[flows.bulk]
path = ["near", "sat", "far"]
"""
FILES = {
    "chain.toml": CHAIN,
    "link.toml": re.sub(r"\[links\.(near|far)\]\n.*\n.*\n", "", CHAIN).replace(
        '"near", "sat", "far"', '"sat"'
    ),
    "film.txt": "1000\n2000\n500\n",
    "downlink.trace": "1\n2\n3\n",
    "orbit.csv": "time_s,delay_s\n0,0.27\n10,0.28\n",
    "uplink.csv": "time_s,rate_mbit_s\n0,1\n10,2\n",
}
# The table to which a key belongs that stands alone in a block.
ALONE = {"cc": "flows.bulk", "fade": "links.sat", "reverse": "links.sat"}
# The interfaces of a gateway, which most blocks of its page leave out.
GATEWAY = '[terrestrial]\ninterface = "lan0"\n[satellite]\ninterface = "sat0"\n'


def gateway(block):
    """A block of the page on the gateway, with its interfaces, and with the rate that classes need."""
    if "interface" in block or "include" in block:
        return block
    rate = 'rate = "10 Mbit/s"\n' if "[[class]]" in block else ""
    return GATEWAY + rate + block.removeprefix("[satellite]\n")


# Blocks that leave out what the page says elsewhere.
COMPLETED = {
    # The other gateway has a satellite link of its own.
    ("splitting.md", 6): lambda block: (
        block + '\n[links.sat-b]\nrate = "10 Mbit/s"\ndelay = "250 ms"\nqueue = "50 packets"\n'
    ),
    # All types of frames are described alike.
    ("workloads.md", 2): lambda block: (
        '[flows.film.app]\nkind = "video"\n'
        + block
        + "".join(f"[flows.film.app.movie.{kind}]" + block.partition("movie.I]")[2] for kind in "PB")
    ),
}
# Pages of studies, of Rust, and those whose files run with their commands.
ELSEWHERE = {
    "study-format.md",
    "add-your-own-rust.md",
    "add-to-skyhaul.md",
    "tutorial.md",
    "from-pantheon.md",
    "from-flent.md",
}
WITH_FILES = [p for p in PAGES if p.name not in ELSEWHERE and blocks(p, "toml")]


@pytest.mark.parametrize("page", WITH_FILES, ids=lambda p: p.name)
def test_files_on_a_page_are_accepted(page, tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    base = "chain.toml" if page.name == "splitting.md" else "link.toml"
    for number, block in enumerate(blocks(page, "toml")):
        text = COMPLETED.get((page.name, number), str)(block)
        command = ["check"]
        if page.name == "gateway.md":
            # A template has values only in a file that includes it.
            if named := re.match(r"# /etc/skyhaul/(\S+)", block):
                (tmp_path / named[1]).write_text(block, encoding="utf-8")
            if "${" in block and "include" not in block:
                continue
            command, text = ["gateway", "check"], gateway(text)
        elif not re.match(r"schema\b", block):
            table = ALONE.get(block.split()[0])
            head = f"[{table}]\n" if table else ""
            text = f'schema = 1\nextends = "{base}"\n{head}{text}'
        file = tmp_path / f"{number}.toml"
        file.write_text(text, encoding="utf-8")
        if page.name == "splitting.md" and number == 0:
            # The other blocks of this page set up the legs of the same chain.
            base = "chained.toml"
            (tmp_path / base).write_text(text.partition("[flows.bulk.chain.legs")[0], encoding="utf-8")
        args = [sys.executable, "-m", "skyhaul", *command, file.name]
        done = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), block


def test_python_of_the_page_on_own_controls_works(tmp_path, monkeypatch, capsys):
    page = ROOT / "docs/algorithms/add-your-own-python.md"
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks(page, "python"):
        exec(block, names)
    assert "Broken.increase raised ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["python.md", "learned-control.md", "attack.md"])
def test_python_of_a_page_works(name, tmp_path, monkeypatch):
    for needed in ("pandas", "vl_convert", "gymnasium"):
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks(ROOT / "docs" / name, "python"):
        exec(block, names)


@pytest.mark.parametrize(
    ("page", "sources"),
    [
        ("add-your-own-rust.md", ["Cargo.toml", "src/lib.rs", "src/main.rs", "examples/evaluate.rs"]),
        ("add-to-skyhaul.md", ["alg/gaimd.rs", "registry.rs", "index.md"]),
    ],
)
def test_rust_on_a_page_is_code_of_the_repository(page, sources):
    folder = {"add-your-own-rust.md": "examples/rust-control", "add-to-skyhaul.md": "crates/cc/src"}[page]
    known = [ROOT / folder / s if s != "index.md" else ROOT / "docs/algorithms/index.md" for s in sources]
    text = "\n".join(file.read_text(encoding="utf-8") for file in known)
    page = ROOT / "docs/algorithms" / page
    found = [b for language in ("rust", "toml", "text") for b in blocks(page, language)]
    assert len(found) > 5
    for block in found:
        for part in re.split(r"^\n(?=\[)", block, flags=re.M):
            assert part in text, part


def test_the_example_in_python_works():
    example = ROOT / "examples/python_control.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 holds, 0 differ" in done.stdout


def test_options_of_peach_are_those_of_its_page():
    """Every option that the page names is accepted with each value that it names."""
    import skyhaul as sh

    rows = re.findall(r"^\| R\d+ .*\| (.*) \|$", (ROOT / "docs/algorithms/peach.md").read_text(), re.M)
    options = set()
    for cell in rows:
        for group in re.split(r"; ", cell):
            words = re.findall(r"`([^`]+)`", group)
            names = [w for w in words if not w.startswith('"')]
            where = "endpoint" if group.startswith("endpoint") else "cc"
            values = [w.strip('"') for w in words if w.startswith('"')]
            options |= {(where, n, v) for n in names for v in values}
    assert len(options) > 12
    for where, name, value in sorted(options):
        changes = {f"flows.bulk.{where}.{name}": value}
        if (name, value) == ("final-ack", "send-first"):
            # "send-first" needs an inflated window, which the default of `nackseg`, the pipe of SACK, lacks.
            changes["flows.bulk.cc.nackseg"] = "flight-size"
        sh.check("preset:peach-geo", set=changes)
