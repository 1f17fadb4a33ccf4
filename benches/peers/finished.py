"""Finished runs, one file each, so that an interrupted comparison goes on where it stopped.

The key is a hash of the simulator, its version, the hash of the files that drive it, and all parameters:
whatever could give another result has another key.
"""

import hashlib
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

from peers.simulators import Result


def key(simulator, run):
    """Name under which the result of `run` is kept."""
    what = {
        "simulator": simulator.name,
        "version": simulator.version,
        "package": simulator.package,
        "files": simulator.files,
        **run.parameters(),
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]


class Finished:
    """A folder of results."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def get(self, simulator, run):
        """The result, or None: a file that cannot be read is as good as none."""
        try:
            return Result(**json.loads((self.folder / f"{key(simulator, run)}.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def put(self, simulator, run, result):
        """Keeps a result; the file appears whole or not at all."""
        handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
        with os.fdopen(handle, "w") as file:
            json.dump(asdict(result), file)
        os.replace(name, self.folder / f"{key(simulator, run)}.json")
