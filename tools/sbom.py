#!/usr/bin/env python3
"""What is inside the program, as a CycloneDX document: make sbom

Components, licences, hashes and dependencies come from Cargo, for the platform at hand, without what only
tests need. The CycloneDX library writes the document and validates it against the schema of the format.
"""

import json
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = "skyhaul-cli"


def needed(metadata: dict) -> dict[str, list[str]]:
    """Packages that the program is made of, each with those it needs; not what only tests need."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(p["id"] for p in metadata["packages"] if p["name"] == PROGRAM)
    found: dict[str, list[str]] = {}
    todo = [root]
    while todo:
        package = todo.pop()
        if package in found:
            continue
        deps = nodes[package]["deps"]
        found[package] = [d["pkg"] for d in deps if any(k["kind"] != "dev" for k in d["dep_kinds"])]
        todo += found[package]
    return found


def main(out: str) -> int:
    host = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    platform = next(line.split()[1] for line in host.splitlines() if line.startswith("host:"))
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", platform]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    hashes = {(p["name"], p["version"]): p.get("checksum") for p in lock}
    graph = needed(metadata)
    components: dict[str, Component] = {}
    for package in metadata["packages"]:
        if package["id"] not in graph:
            continue
        name, version = package["name"], package["version"]
        checksum = hashes.get((name, version))
        licence = (package["license"] or "NOASSERTION").replace("/", " OR ")
        components[package["id"]] = Component(
            name=name,
            version=version,
            type=ComponentType.APPLICATION if name == PROGRAM else ComponentType.LIBRARY,
            description=package["description"],
            bom_ref=f"pkg:cargo/{name}@{version}",
            purl=PackageURL("cargo", None, name, version),
            licenses=[LicenseExpression(licence)],
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=checksum)] if checksum else [],
        )
    root = next(c for c in components.values() if c.name == PROGRAM)
    # The serial number follows from the lock file, so that the same lock file gives the same document.
    number = uuid.uuid5(uuid.NAMESPACE_URL, (ROOT / "Cargo.lock").read_text())
    bom = Bom(serial_number=number, components=[c for c in components.values() if c is not root])
    bom.metadata.component = root
    for package, deps in graph.items():
        bom.register_dependency(components[package], [components[d] for d in deps])
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        print(f"sbom: {error}", file=sys.stderr)
        return 1
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text(text + "\n", encoding="utf-8")
    print(f"sbom: {len(components)} components in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
