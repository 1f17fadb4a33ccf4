"""Writes docs/scenario-format.md: every key of a scenario file, from its JSON Schema.

python3 tools/scenario_format.py           writes the page
python3 tools/scenario_format.py --check   fails if the page is not what the schema says
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "scenario-format.md"

HEAD = """# The scenario format

A scenario is a TOML file. This page lists every key. It is generated from [the
schema](https://github.com/skyhaul/skyhaul/blob/main/schema/scenario.json), which editors can use as well;
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

`skyhaul check FILE` shows what follows from a scenario, and `skyhaul run FILE` runs it. An error is one line
that names file, line and key. Unknown keys are refused.

Below, each key stands as in a file: with its default, where it says so, or with an example.

## Short forms

Some tables have a short form, the value of their most important key: `queue = "50 packets"` means
`queue = { kind = "drop-tail", limit = "50 packets" }`, and `cc = "peach"` means `cc = { name = "peach" }`.
The lists below name the short forms.

## Building on another scenario

A scenario with `extends = "preset:peach-geo"`, or with a path relative to the file, inherits all keys from
there. Its own keys replace inherited ones; tables are merged key by key. A table whose `kind` or `name`
differs is replaced as a whole, so that no key of another kind remains; so is a rate, delay or fade by a table
that names a file. A queue keeps its limit. `delay` and `orbit` replace each other. `skyhaul run FILE --set
KEY=VALUE` changes one key in the same way.

```toml
schema  = 1
extends = "preset:peach-geo"
links.sat.delay = "25 ms"
flows.bulk.cc   = "cubic"
```

## Units

An amount is a string with its unit, never a bare number.

"""


# Examples of keys for which one derived from the type would be misleading: "SECTION.KIND.KEY", "SECTION.KEY",
# or a key everywhere.
EXAMPLES = {
    "duration": '"550 s"',
    "event": '[{ at = "100 s", set = { "links.sat.rate" = "5 Mbit/s" } }]',
    "extends": '"preset:peach-geo"',
    "Scenario.flows": '{ bulk = { path = ["sat"], cc = "peach" } }',
    "Scenario.gateways": '{ ground = { behind = "lan" } }',
    "Scenario.repair": '{ pair = { links = ["sat"] } }',
    "RepairSpec.links": '["sat"]',
    "RepairSpec.pass": '["voice"]',
    "RepairSpec.retries": "2",
    "RepairSpec.resequence": '"800 ms"',
    "RepairSpec.share": "0.2",
    "RepairSpec.block": "100",
    "RepairSpec.fill-time": '"100 ms"',
    "RepairSpec.residual": "1e-3",
    "RepairSpec.outer": '"44 B"',
    "RepairSpec.mtu": '"1600 B"',
    "RepairSpec.report": '"25 ms"',
    "RepairSpec.compress": '"26 B"',
    "Scenario.links": '{ sat = { rate = "10 Mbit/s", delay = "275 ms", queue = "1 BDP" } }',
    "record": '{ sample = "100 ms" }',
    "max-memory": '"8 GB"',
    "sample": '"100 ms"',
    "series": '["acked", "cwnd", "queue"]',
    "title": '"TCP-Peach over GEO"',
    "set": '{ "links.sat.rate" = "5 Mbit/s" }',
    "cc": '"peach"',
    "endpoint": '{ preset = "modern", receive-autotuning = true }',
    "at": '"100 s"',
    "StartSpec.at": '"1 s"',
    "crash": '"ground"',
    "reroute": '"ground"',
    "EventSpec.handover": '{ from = "ground", to = "ship", backhaul = "100 Mbit/s" }',
    "GatewayHandoverSpec.from": '"ground"',
    "GatewayHandoverSpec.to": '"ship"',
    "GatewayHandoverSpec.signalling": '"50 ms"',
    "GatewayHandoverSpec.backhaul": '"100 Mbit/s"',
    "app": '{ kind = "cbr", rate = "1 Mbit/s" }',
    "chain": '{ kind = "split2", gateways = ["ground"] }',
    "count": "20",
    "AppSpec.count": "10",
    "extra-delay": '"10 ms"',
    "known-rtt": '"550 ms"',
    "stop": '"500 s"',
    "start": '{ uniform = ["0 s", "1 RTT"] }',
    "behind": '"lan"',
    "connections": "1000",
    "GatewaySpec.buffer": '"1 MB"',
    "GatewaySpec.delay": '"0.1 ms"',
    "ack-size": '"6 B"',
    "reconstruct-acks": '"1920 B"',
    "allow-reorder": "false",
    "drop-in-flight": "true",
    "arq": "{ retries = 1 }",
    "error": '{ kind = "per", p = 1e-3 }',
    "fade": '{ kind = "rain", carrier = { es-n0 = "13 dB" } }',
    "RepairSpec.fec": "false",
    "fec": '{ kind = "block", n = 20, k = 18 }',
    "LinkSpec.orbit": '{ from = "Goonhilly", to = "London", constellation = "leo550" }',
    "reverse": '{ rate = "2 Mbit/s", error = "none" }',
    "packet": '"1000 B"',
    "dscp": '"EF"',
    "QueueSpec.framing": '"atm"',
    "QueueSpec.isolation": '"flowblind"',
    "QueueSpec.mpu": '"64 B"',
    "QueueSpec.overhead": '"14 B"',
    "QueueSpec.rate": '"18 Mbit/s"',
    "QueueSpec.rtt": '"560 ms"',
    "QueueSpec.tins": '"diffserv4"',
    "AppSpec.rate": '"1 Mbit/s"',
    "AppSpec.arrivals.rate": '"2 /s"',
    "idle": '{ exponential = "10 s" }',
    "off": '{ exponential = "1.35 s" }',
    "on": '{ exponential = "1 s" }',
    "segments": "50",
    "size": '{ pareto = { min = "4 kB", max = "10 MB", shape = 1.2 } }',
    "Feedback.size": '"12 B"',
    "FeedbackSpec.size": '"12 B"',
    "AppSpec.buffer": '"64 kB"',
    "coder": '{ delay = "0.48 s" }',
    "trace": '"film.txt"',
    "text": '"…"',
    "control": '"gentle"',
    "options": "{ alpha = 0.3 }",
    "asym": "0.1",
    "encrypted": "false",
    "gateways": '["ground", "ship"]',
    "legs": '{ ground = { cc = "hybla" } }',
    "ChainSpec.kind": '"split2"',
    "abc-limit": "2",
    "dup-thresh": "3",
    "fin-timeout": '"60 s"',
    "header": '"40 B"',
    "inflate-ndup": "3",
    "initial-rto": '"1 s"',
    "initial-ssthresh": '"64 segments"',
    "EndpointSpec.initial-window": '"rfc6928"',
    "initial-window": "{ segments = 4 }",
    "keepalive-idle": '"7200 s"',
    "keepalive-interval": '"75 s"',
    "keepalive-probes": "9",
    "loss-classifier": '{ kind = "oracle", false-error = 0.01 }',
    "max-retransmissions": "15",
    "mss": '"1460 B"',
    "os": '{ name = "linux-2.4", buffers = "max" }',
    "OsSpec.name": '"linux-2.4"',
    "outage-probe": '"1 s"',
    "preset": '"modern"',
    "rto-margin": '"200 ms"',
    "rto-max": '"60 s"',
    "rto-min": '"1 s"',
    "rto-tick": '"10 ms"',
    "sack-blocks": "3",
    "EndpointSpec.sack": '"auto"',
    "time-wait": '"60 s"',
    "timestamp-tick": '"1 ms"',
    "user-timeout": '"300 s"',
    "delayed-ack": '{ every = 2, delay = "200 ms" }',
    "DelayedAckSpec.every": "2",
    "DelayedAckSpec.delay": '"200 ms"',
    "uniform": '["0 s", "1 RTT"]',
    "max-rate": '"2 Mbit/s"',
    "min-rate": '"1 packets/s"',
    "guard": '"10 ms"',
    "Config.guard": '"peach"',
    "retries": "3",
    "window": '"1.5 BDP"',
    "Config.window": "500",
    "rate-mbps": "9.0",
    "Config.tcp-real.alpha": "1.0",
    "Config.tcp-real.beta": "0.5",
    "Config.cubic.beta-ecn": "0.85",
    "sigma": '"5 ms"',
    "FadeSpec.sigma": "1.779",
    "FadeSpec.m": "-3.794",
    "jitter": '"20 ms"',
    "ber": "1e-6",
    "burst": "10",
    "ErrorSpec.burst": "5.0",
    "loss": "1e-3",
    "code": '{ kind = "bch", n = 255, k = 247, t = 1 }',
    "k-b": "1.0",
    "k-g": "0.0",
    "p-bg": "0.2",
    "p-gb": "1e-3",
    "indices": "[100, 101, 200]",
    "mtu": '"1400 B"',
    "p": "1e-3",
    "exceeded": '[{ share = 1e-2, attenuation = "5 dB" }, { share = 1e-3, attenuation = "16 dB" }]',
    "carrier": '{ es-n0 = "13 dB" }',
    "states": '[{ name = "good", mean = "3 s" }, { name = "bad", mean = "1 s", loss = 0.9 }]',
    "interleave": "4",
    "FecSpec.k": "18",
    "FecSpec.n": "20",
    "FecSpec.rate": "0.9",
    "residual": '{ kind = "per", p = 1e-5 }',
    "times": "2",
    "constellation": '"leo550"',
    "OrbitSpec.from": '"Goonhilly"',
    "OrbitSpec.to": '{ latitude = "51.51 deg", longitude = "-0.13 deg" }',
    "processing": '"1 ms"',
    "step": '"100 ms"',
    "Config.vegas.alpha": "1",
    "Config.vegas.beta": "3",
    "QueueSpec.alpha": '"0.125 /s"',
    "QueueSpec.beta": '"1.25 /s"',
    "QueueSpec.burst": '"150 ms"',
    "QueueSpec.interval": '"600 ms"',
    "ecn-threshold": "0.1",
    "QueueSpec.flows": "1024",
    "keep-every": "2",
    "low-below": "10",
    "low-max-probability": "0.1",
    "low-max-threshold": "7",
    "low-min-threshold": "2",
    "low-rate": "0.1",
    "low-room": "0.5",
    "max-probability": "0.1",
    "max-threshold": "15",
    "min-threshold": "5",
    "quantum": '"1514 B"',
    "target": '"30 ms"',
    "update": '"15 ms"',
    "weight": "0.002",
    "carrier-rate": '"8 Mbit/s"',
    "contention-rate": '"64 kbit/s"',
    "frame": '"25 ms"',
    "request": '"600 ms"',
    "RateKindSpec.rate": '"2 Mbit/s"',
    "lognormal": '{ median = "100 kB", sigma = 1.5 }',
    "list": '["10 kB", "1 MB"]',
    "SizesSpec.exponential": '"100 kB"',
    "SizesSpec.pareto": '{ min = "4 kB", max = "10 MB", shape = 1.2 }',
    "TimesSpec.exponential": '"10 s"',
    "TimesSpec.pareto": '{ mean = "10 s", shape = 1.5 }',
    "TimesSpec.constant": '"10 s"',
    "layers": '["80 kbit/s", "160 kbit/s", "320 kbit/s"]',
    "B": '{ sizes = { gamma = { shape = 4.0, scale = "300 B" } } }',
    "I": '{ sizes = { gamma = { shape = 6.25, scale = "480 B" } } }',
    "P": '{ sizes = { gamma = { shape = 4.0, scale = "350 B" } } }',
    "sizes": '{ gamma = { shape = 6.25, scale = "480 B" } }',
    "Frames.step": "0.08",
    "steps": "[[-0.1, 0.1, 1.0]]",
    "header-compression": '"vj"',
    "HeaderCompressionSpec.acks": '"12 B"',
    "HeaderCompressionSpec.data": '"16 B"',
    "LegSpec.transport": '{ kind = "xtp-like", rate = "9 Mbit/s" }',
    "LegTransportSpec.rate": '"9 Mbit/s"',
    "FeedbackSpec.time": '"300 ms"',
    "BlockCodeSpec.k": "247",
    "BlockCodeSpec.n": "255",
    "t": "1",
    "es-n0": '"13 dB"',
    "modcods": '[{ name = "QPSK 1/2", efficiency = 0.99, es-n0 = "1.0 dB" }]',
    "reaction": '"600 ms"',
    "efficiency": "0.99",
    "ModCodSpec.name": '"QPSK 1/2"',
    "ExceededSpec.share": "1e-2",
    "ExceededSpec.attenuation": '"5 dB"',
    "ShadowSpec.name": '"good"',
    "ShadowSpec.mean": '"3 s"',
    "then": "{ bad = 1.0 }",
    "file": '"satellites.tle"',
    "elevation": '"25 deg"',
    "inclination": '"53 deg"',
    "longitude": '"19.2 deg"',
    "satellites": "1584",
    "planes": "72",
    "alpha": "0.31",
    "beta": "0.875",
    "cached-ssthresh": "20",
    "cached-window": "40",
    "gamma": "1",
    "max-burst": "4",
    "probe-cap": "64",
    "pole": "0.9",
    "histogram": '{ edges = ["1 kB", "2 kB", "4 kB"], shares = [0.7, 0.3] }',
    "Marginal.gamma": '{ shape = 6.25, scale = "480 B" }',
    "Marginal.lognormal": '{ median = "3 kB", sigma = 0.4 }',
}
# Titles of sections that differ from the name of the definition.
TITLES = {
    "ArqSpec": "ARQ",
    "Config": "Congestion control",
    "FecSpec": "FEC",
    "GatewayHandoverSpec": "Handover between gateways",
    "HandoverSpec": "Handover between satellites",
    "LegTransportSpec": "Transport of a leg",
    "ModCodSpec": "ModCod",
    "OsSpec": "Operating system",
    "RecoveryMode": "Loss recovery",
    "Settings": "Viewer",
}


def anchor(name):
    """The anchor of a section: names that differ only in case have different ones."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def words(text):
    """A description in one line."""
    text = re.sub(r"\s+", " ", text or "").strip()
    # Links of the API's documentation lead nowhere here.
    text = re.sub(r"\[([^\]]+)\]\(\w+::[^)]*\)", r"\1", text)
    return text.replace("\\[", "[").replace("\\]", "]")


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
        # How often each definition is referred to.
        self.uses = Counter(re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(schema)))

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
        """The name of the definition of the tables that a node may be, or of words that many keys share."""
        name, target = self.target(node)
        if name and ("properties" in target or any("properties" in n for n in target.get("oneOf", []))):
            return name
        if name and self.uses[name] > 8 and any("const" in n for n in target.get("oneOf", [])):
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
            named = self.constants(target.get("items", {}))
            return ["a list of " + ", ".join(f"`{v}`" for v, _ in named)] if named else ["a list"]
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


def example(schema, within, key, node):
    """A line of a file with this key."""
    named = next((EXAMPLES[f"{w}.{key}"] for w in within if f"{w}.{key}" in EXAMPLES), None)
    chosen = named or (None if "default" in node else EXAMPLES.get(key))
    return f"{key} = {chosen or toml(schema.example(node))}"


def row(schema, within, key, node, required):
    """A key as it stands in a file, with its default or an example, and what it says."""
    says = words(node.get("description") or schema.target(node)[1].get("description"))
    meant = schema.constants(node)
    section = schema.section(node)
    if meant and not section:
        says += " " + "; ".join(f"`{toml(v)}`: {w}".rstrip(".") for v, w in meant) + "."
    kinds = [k for k in schema.kinds(node) if k not in ("a table",)]
    may = ", ".join(kinds[:14]) + (", …" if len(kinds) > 14 else "")
    if section:
        link = f"[{'a table' if schema.tables(node) else 'what they mean'}](#{anchor(section)})"
        may = f"{may}, {link}" if may else link
    named = [required and "required"]
    if node.get("default") not in (None, {}, []):
        line, named = f"{key} = {toml(node['default'])}", [*named, "default"]
        # That it is the default is not said twice.
        says = re.sub(r"[;:,] (`[^`]*`|\"[^\"]*\"|-?[\w.%]+) by default(?=[.;])", "", says)
        says = re.sub(r" \((default `[^`]*`|by default|default)\)", "", says)
    elif "`" in may.partition("[")[0]:
        line = key
    else:
        line = example(schema, within, key, node)
    plain = may in ("an amount", "a text", "a number", "an integer", "a list", "a table")
    # What the line or the description shows is not said again.
    if not (plain or (meant and not section) or (may == "`true`, `false`" and line != key)):
        named.append(may)
    named = "; ".join(filter(None, named))
    return f"* `{line}`{f' ({named})' if named else ''}: {says}"


def rows(schema, within, node):
    """A line for each key, by key; a key with one value selects the table."""
    return {
        key: row(schema, within, key, value, key in node.get("required", []))
        for key, value in node.get("properties", {}).items()
        if "const" not in value
    }


def tables(name, parts, titles, printed):
    """The tables of a section. `parts` are a heading, which may be empty, and lines by key. A line that three
    tables share is printed once; of a table that repeats an earlier section only the other lines are."""
    seen = Counter(line for _, lines in parts for line in lines.values())
    by_key = {}
    for line, n in seen.most_common():
        if n > 2:
            by_key.setdefault(re.match(r"\* `([\w-]+)", line)[1], line)
    shared = set(by_key.values())
    out = []
    if shared:
        common = dict.fromkeys(line for _, lines in parts for line in lines.values() if line in shared)
        out += ["Keys of several kinds, which name them below:", "", *common, ""]
    for heading, lines in parts:
        if heading:
            out += [heading, ""]
        also = [key for key, line in lines.items() if line in shared]
        same, place = max(
            (([k for k, line in lines.items() if line in there], other) for other, there in printed.items()),
            default=([], None),
            key=lambda found: len(found[0]),
        )
        if len(same) < 4 or shared:
            same = []
        own = [line for key, line in lines.items() if key not in same and key not in also]
        if own:
            out += [*own, ""]
        listed = ", ".join(f"`{key}`" for key in also or same)
        if also:
            out += [f"{'Also' if own else 'Its keys are'} {listed}.", ""]
        elif same:
            out += [f"{'Also, as' if own else 'As'} in [{titles[place]}](#{anchor(place)}): {listed}.", ""]
    printed[name] = set(seen)
    return out


def page():
    schema = Schema(json.loads((ROOT / "schema" / "scenario.json").read_text()))
    out = [HEAD.rstrip(), ""]
    out += ["| amount | examples |", "|---|---|"]
    for name, node in schema.defs.items():
        if schema.is_amount(node):
            examples = ", ".join(f"`{toml(e)}`" for e in node["examples"])
            label = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
            out.append(f"| {label} | {examples} |")
    out += ["", "## The file", "", *rows(schema, ["Scenario"], schema.schema).values(), ""]
    # In the order in which they are met, each once.
    waiting = [schema.section(v) for v in schema.schema["properties"].values()]
    for value in schema.schema["properties"].values():
        for key in ("additionalProperties", "items"):
            if isinstance(value.get(key), dict):
                waiting.append(schema.section(value[key]))
    titles, printed = {}, {}
    while waiting:
        name = waiting.pop(0)
        if not name or name in titles:
            continue
        node = schema.defs[name]
        title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"Spec$", "", name))
        titles[name] = TITLES.get(name) or title[0].upper() + title[1:].lower()
        out += [f'<a id="{anchor(name)}"></a>', "", f"## {titles[name]}", ""]
        out += [words(node.get("description")), ""]
        parts = schema.tables(node)
        found = []
        for part in parts:
            constants = {k: v["const"] for k, v in part.get("properties", {}).items() if "const" in v}
            selects = [f"{k} = {toml(v)}" for k, v in constants.items()]
            heading = ""
            if len(parts) > 1 or selects:
                chosen = ", ".join(selects) or next(iter(part.get("properties", {})), "")
                heading = f"**`{chosen}`** {words(part.get('description'))}".strip()
            lines = rows(schema, [*(f"{name}.{k}" for k in constants.values()), name], part)
            found.append((heading, lines))
            for key in lines:
                value = part["properties"][key]
                waiting.append(schema.section(value))
                _, target = schema.target(value)
                for inner in ("items", "additionalProperties"):
                    if isinstance(target.get(inner), dict):
                        waiting.append(schema.section(target[inner]))
        out += tables(name, found, titles, printed)
        if not parts:
            out += [
                *[f"* `{toml(v)}`: {w}" for v, w in schema.constants(node)],
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
