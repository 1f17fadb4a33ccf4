"""Checks a program for macOS without running it: check.py PROGRAM

A program may load only libraries that every macOS has, and on Apple's processors a program needs a signature.
"""

import pathlib
import sys

from macholib.mach_o import LC_CODE_SIGNATURE
from macholib.MachO import MachO

ARM64 = 0x0100000C  # CPU_TYPE_ARM64 of <mach/machine.h>.

for header in MachO(sys.argv[1]).headers:
    loaded = [name for _, _, name in header.walkRelocatables()]
    foreign = [name for name in loaded if not name.startswith(("/usr/lib/", "/System/Library/"))]
    if foreign:
        sys.exit(f"{sys.argv[1]}: loads {', '.join(foreign)}")
    signed = any(command.cmd == LC_CODE_SIGNATURE for command, _, _ in header.commands)
    if header.header.cputype == ARM64 and not signed:
        sys.exit(f"{sys.argv[1]}: is not signed")
    print(pathlib.Path(sys.argv[1]).name, *loaded)
