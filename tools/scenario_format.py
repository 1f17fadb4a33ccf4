"""Writes docs/scenario-format.md: every key of a scenario file, from its JSON Schema.

python3 tools/scenario_format.py           writes the page
python3 tools/scenario_format.py --check   fails if the page is not what the schema says
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "scenario-format.md"

HEAD = """# The scenario format

A scenario is a TOML file. This page lists every key; it is generated from [the
schema](https://github.com/skyhaul/skyhaul/blob/main/schema/scenario.json), which editors can use, too:
`skyhaul schema scenario` prints it.

```toml
schema   = 1
title    = "Two controls behind one satellite"
duration = "60 s"
seed     = 1

[links.sat]
rate    = "10 Mbit/s"
delay   = "275 ms"
packet  = "1500 B"
queue   = { kind = "codel", limit = "1 BDP" }
error   = { kind = "per", p = 1e-3 }
reverse = { rate = "2 Mbit/s", error = "none" }

[flows.ours]
path  = ["sat"]
cc    = "cubic"
count = 4

[flows.theirs]
path  = ["sat"]
cc    = { name = "peach", rapid-recovery = false }
start = "10 s"

[record]
sample = "100 ms"
series = ["cwnd", "queue"]
```

`skyhaul check FILE` says what follows from a scenario, and `skyhaul run FILE` runs it. What is wrong is said
in one line that names file, line and key. A key that does not exist is refused.

## Short forms

Where a table has one key that matters most, its value may stand for the table: `queue = "50 packets"` is
`queue = { kind = "drop-tail", limit = "50 packets" }`, `cc = "peach"` is `cc = { name = "peach" }`. The lists
below say which.

## Building on another scenario

`extends = "preset:peach-geo"`, or a path relative to the file, takes everything from there. Keys of the file
replace those keys; tables are merged key by key. A table whose `kind` or `name` differs is replaced as a
whole, so that no key of another kind is left; of a queue the limit stays. `delay` and `orbit` replace each
other. `skyhaul run FILE --set KEY=VALUE` changes one key in the same way.

```toml
schema  = 1
extends = "preset:peach-geo"
links.sat.delay = "25 ms"
flows.bulk.cc   = "cubic"
```

## Units

An amount is a text with its unit, never a bare number.

"""


# Where an example made from the type says too little.
EXAMPLES = {
    "duration": '"550 s"',
    "event": '[{ at = "100 s", set = { "links.sat.rate" = "5 Mbit/s" } }]',
    "extends": '"preset:peach-geo"',
    "flows": '{ bulk = { path = ["sat"], cc = "peach" } }',
    "links": '{ sat = { rate = "10 Mbit/s", delay = "275 ms", queue = "1 BDP" } }',
    "sample": '"100 ms"',
    "series": '["acked", "cwnd", "queue"]',
    "title": '"TCP-Peach over GEO"',
    "set": '{ "links.sat.rate" = "5 Mbit/s" }',
    "cc": '"peach"',
    "endpoint": '{ preset = "modern", receive-autotuning = true }',
}


def words(text):
    """A description in one line of a table."""
    text = re.sub(r"\s+", " ", text or "").strip()
    # Links of the API's documentation lead nowhere here.
    text = re.sub(r"\[([^\]]+)\]\(\w+::[^)]*\)", r"\1", text)
    return text.replace("\\[", "[").replace("\\]", "]").replace("|", "\\|")


def toml(value):
    """A value as in a file."""
    if isinstance(value, dict):
        inner = ", ".join(f"{k} = {toml(v)}" for k, v in value.items() if v is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)


class Schema:
    def __init__(self, schema):
        self.schema = schema
        self.defs = schema["$defs"]

    def target(self, node):
        """The definition that a node refers to, with its name, or the node itself."""
        name = None
        while "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            node = self.defs[name]
        return name, node

    def is_amount(self, node):
        return node.get("type") == "string" and "examples" in node and "pattern" in node

    def tables(self, node):
        """The tables that a node may be: (what selects it, the table)."""
        _, node = self.target(node)
        if "properties" in node and "oneOf" not in node:
            return [node]
        return [t for n in node.get("oneOf", []) + node.get("anyOf", []) for t in self.tables(n)]

    def section(self, node):
        """The name of the definition of the tables that a node may be; several names share one definition."""
        name, target = self.target(node)
        if name and ("properties" in target or any("properties" in n for n in target.get("oneOf", []))):
            return name
        for n in target.get("anyOf", []):
            found = self.section(n)
            if found:
                return found
        return None

    def example(self, node, depth=0):
        if "default" in node and node["default"] not in (None, [], {}):
            return node["default"]
        if node.get("examples"):
            return node["examples"][0]
        _, target = self.target(node)
        if target is not node:
            return self.example(target, depth)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return next((v for v in node["enum"] if v is not None), None)
        for key in ("oneOf", "anyOf"):
            for n in node.get(key, []):
                if n.get("type") != "null":
                    return self.example(n, depth)
        kind = node.get("type")
        kind = next((k for k in kind if k != "null"), None) if isinstance(kind, list) else kind
        if kind == "boolean":
            return True
        if kind == "integer":
            return max(1, node.get("minimum", 1))
        if kind == "number":
            top = node.get("maximum")
            return 0.5 if top == 1 else 1.0
        if kind == "array":
            return [self.example(node.get("items", {}), depth + 1)]
        if "pattern" in node and "segments" in node["pattern"]:
            return "10 segments"
        if kind == "object" or "properties" in node:
            keys = [k for k in node.get("required", [])] or list(node.get("properties", {}))[:1]
            return (
                {}
                if depth > 3
                else {
                    k: self.example(node["properties"][k], depth + 1)
                    for k in keys
                    if k in node.get("properties", {})
                }
            )
        return "sat"

    def kinds(self, node):
        """What a value may be, in words."""
        _, target = self.target(node)
        if "const" in target:
            return [f"`{toml(target['const'])}`"]
        if "enum" in target:
            return [f"`{toml(v)}`" for v in target["enum"] if v is not None]
        if self.is_amount(target):
            return ["an amount"]
        parts = target.get("oneOf", []) + target.get("anyOf", [])
        if parts:
            found = [w for n in parts for w in self.kinds(n)]
            return list(dict.fromkeys(found))
        kind = target.get("type")
        kind = next((k for k in kind if k != "null"), None) if isinstance(kind, list) else kind
        if "properties" in target or kind == "object":
            return ["a table"]
        if kind == "array":
            return ["a list"]
        if kind == "null":
            return []
        return {"boolean": ["`true`, `false`"], "integer": ["an integer"], "number": ["a number"]}.get(
            kind, ["a text"]
        )

    def constants(self, node):
        """Words that a value may be, with what they mean."""
        _, target = self.target(node)
        if "const" in target and "description" in target:
            return [(target["const"], words(target["description"]))]
        return [c for n in target.get("oneOf", []) + target.get("anyOf", []) for c in self.constants(n)]


def row(schema, key, node, required):
    says = words(node.get("description") or schema.target(node)[1].get("description"))
    meant = schema.constants(node)
    section = schema.section(node)
    if meant and not section:
        says += (
            " "
            + "; ".join(
                f"`{toml(v)}`: {w[0].lower() + w[1:] if w[1:2].islower() else w}".rstrip(".")
                for v, w in meant
            )
            + "."
        )
    elif section:
        says += f" [Keys](#{section.lower()})."
    short = [k for k in schema.kinds(node) if k not in ("a table",)]
    may = ", ".join(short[:14]) + (", …" if len(short) > 14 else "")
    if section:
        may = f"{may}; or a table" if may else "a table"
    default = (
        toml(node["default"]) if node.get("default") not in (None, {}, []) else ("needed" if required else "")
    )
    default = f"`{default}`" if default and default != "needed" else default
    example = f"`{key} = {EXAMPLES.get(key) or toml(schema.example(node))}`"
    return f"| `{key}` | {says} | {may} | {default} | {example} |"


def table(schema, node):
    lines = ["| key | what it says | values | default | example |", "|---|---|---|---|---|"]
    for key, value in node.get("properties", {}).items():
        lines.append(row(schema, key, value, key in node.get("required", [])))
    return lines


def page():
    schema = Schema(json.loads((ROOT / "schema" / "scenario.json").read_text()))
    out = [HEAD.rstrip(), ""]
    out += ["| amount | how it is written | examples |", "|---|---|---|"]
    for name, node in schema.defs.items():
        if schema.is_amount(node):
            examples = ", ".join(f"`{toml(e)}`" for e in node["examples"])
            label = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
            out.append(f"| {label} | {words(node.get('description'))} | {examples} |")
    out += ["", "## The file", "", *table(schema, schema.schema), ""]
    # In the order in which they are met, each once.
    waiting = [schema.section(v) for v in schema.schema["properties"].values()]
    for value in schema.schema["properties"].values():
        for key in ("additionalProperties", "items"):
            if isinstance(value.get(key), dict):
                waiting.append(schema.section(value[key]))
    done = set()
    while waiting:
        name = waiting.pop(0)
        if not name or name in done:
            continue
        done.add(name)
        node = schema.defs[name]
        title = re.sub(r"Spec$", "", name)
        title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", title)
        out += [
            f'<a id="{name.lower()}"></a>',
            "",
            f"## {title[0].upper() + title[1:].lower()}",
            "",
            words(node.get("description")),
            "",
        ]
        parts = schema.tables(node)
        for part in parts:
            selects = [
                f"{k} = {toml(v['const'])}" for k, v in part.get("properties", {}).items() if "const" in v
            ]
            if len(parts) > 1 or selects:
                chosen = ", ".join(selects) or next(iter(part.get("properties", {})), "")
                out += [
                    f"**`{chosen}`** {words(part.get('description'))}",
                    "",
                ]
            rest = {
                **part,
                "properties": {k: v for k, v in part.get("properties", {}).items() if "const" not in v},
            }
            if rest["properties"]:
                out += [*table(schema, rest), ""]
            for value in rest["properties"].values():
                waiting.append(schema.section(value))
                _, target = schema.target(value)
                for key in ("items", "additionalProperties"):
                    if isinstance(target.get(key), dict):
                        waiting.append(schema.section(target[key]))
        if not parts:
            out += [
                "| value | what it says |",
                "|---|---|",
                *[f"| `{toml(v)}` | {w} |" for v, w in schema.constants(node)],
                "",
            ]
    return "\n".join(out).rstrip() + "\n"


def main():
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != text:
            sys.exit(
                "docs/scenario-format.md is not what the schema says: run python3 tools/scenario_format.py"
            )
        return
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
