"""Skipped tests are listed beside those of Rust, and are failures with SKYHAUL_REQUIRE=all.

Tests marked `optional` are only listed.
"""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    lines = [f"SKIPPED {r.nodeid}: {r.longrepr[2].removeprefix('Skipped: ')}\n" for r in skipped]
    if not lines:
        return
    folder = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    folder.mkdir(exist_ok=True)
    with (folder / "skipped.txt").open("a") as f:
        f.writelines(lines)
    required = [r for r in skipped if "optional" not in r.keywords]
    if required and os.environ.get("SKYHAUL_REQUIRE") == "all" and session.exitstatus == 0:
        session.exitstatus = 1
