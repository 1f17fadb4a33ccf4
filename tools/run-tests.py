#!/usr/bin/env python3
"""Builds the tests of the Rust crates and runs their programs side by side: many of them mostly wait.

    tools/run-tests.py [--jobs N] [WORD ...]

With words, only the programs whose `package::target` contains one of them run.
The output of a program is shown if it fails.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

# Without examples, which the lints compile.
SELECTION = ["--workspace", "--exclude", "skyhaul-py", "--locked", "--lib", "--bins", "--tests"]


def built() -> list[tuple[str, pathlib.Path, pathlib.Path]]:
    """Each test program: `package::target`, its file, and the folder where Cargo would start it."""
    command = ["cargo", "test", *SELECTION, "--no-run", "--message-format", "json-render-diagnostics"]
    cargo = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if cargo.returncode:
        sys.exit(cargo.returncode)
    programs = []
    for line in cargo.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            folder = pathlib.Path(message["manifest_path"]).parent
            name = f"{folder.name}::{message['target']['name']}"
            programs.append((name, pathlib.Path(message["executable"]), folder))
    return programs


def run(program: tuple[str, pathlib.Path, pathlib.Path]) -> tuple[str, int, str, float]:
    name, file, folder = program
    started = time.monotonic()
    done = subprocess.run(
        [file, "--quiet"],
        cwd=folder,
        env={**os.environ, "CARGO_MANIFEST_DIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return name, done.returncode, done.stdout, time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--jobs", type=int, default=2 + (os.cpu_count() or 1), help="programs at a time")
    chosen = parser.parse_args()
    programs = [p for p in built() if not chosen.words or any(w in p[0] for w in chosen.words)]
    # The longest first: those that wait for real time, in namespaces of their own.
    waits = ("cli::", "net::", "gateway::")
    programs.sort(key=lambda p: (not p[0].startswith(waits), p[0]))
    failed = []
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        runs = [pool.submit(run, p) for p in programs]
        for each in concurrent.futures.as_completed(runs):
            name, status, output, seconds = each.result()
            passed = sum(int(n) for n in re.findall(r"^test result: \w+\. (\d+) passed", output, re.M))
            print(f"{'ok' if status == 0 else 'FAILED'} {name}: {passed} tests, {seconds:.1f} s", flush=True)
            if status:
                failed.append(name)
                print(output, flush=True)
    if failed:
        sys.exit(f"run-tests: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
