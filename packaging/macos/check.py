"""Checks a program or a Python module for macOS without running it: check.py FILE

It may load only libraries that every macOS has, must be content with macOS 11, and on Apple's
processors needs a signature.
"""

import pathlib
import sys

from macholib.mach_o import LC_BUILD_VERSION, LC_CODE_SIGNATURE, LC_VERSION_MIN_MACOSX
from macholib.MachO import MachO

ARM64 = 0x0100000C  # CPU_TYPE_ARM64 of <mach/machine.h>.
OLDEST = 11 << 16  # X.Y.Z is encoded as xxxx.yy.zz in hexadecimal digits.

for header in MachO(sys.argv[1]).headers:
    loaded = [name for _, _, name in header.walkRelocatables()]
    foreign = [name for name in loaded if not name.startswith(("/usr/lib/", "/System/Library/"))]
    if foreign:
        sys.exit(f"{sys.argv[1]}: loads {', '.join(foreign)}")
    signed = any(command.cmd == LC_CODE_SIGNATURE for command, _, _ in header.commands)
    if header.header.cputype == ARM64 and not signed:
        sys.exit(f"{sys.argv[1]}: is not signed")
    commands = [(command.cmd, data) for command, data, _ in header.commands]
    needs = [int(data.minos) for kind, data in commands if kind == LC_BUILD_VERSION]
    needs += [int(data.version) for kind, data in commands if kind == LC_VERSION_MIN_MACOSX]
    if not needs or max(needs) > OLDEST:
        versions = " and ".join(f"{n >> 16}.{n >> 8 & 0xFF}" for n in needs) or "of any version"
        sys.exit(f"{sys.argv[1]}: needs macOS {versions}, not 11")
    print(pathlib.Path(sys.argv[1]).name, *loaded)
