"""Counts of the pixels of PNG images, without a library, and of pages in a headless browser."""

import os
import shutil
import subprocess
import zlib
from collections import Counter


def png(data):
    """Width, height and the number of pixels of each colour, of a PNG of eight bits per channel."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(data[at : at + 4]) for at in (16, 20))
    depth, kind, interlaced = data[24], data[25], data[28]
    assert (depth, interlaced) == (8, 0)
    channels = {2: 3, 6: 4}[kind]  # Colour types: RGB, and RGB with alpha.
    packed, at = b"", 8
    while at < len(data):
        length = int.from_bytes(data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += length + 12
    raw = zlib.decompress(packed)
    stride = width * channels
    assert len(raw) == height * (1 + stride)
    above = bytes(stride)
    colours = Counter()
    for row in range(height):
        start = row * (1 + stride)
        above = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), above, channels)
        colours.update(zip(*(above[c::channels] for c in range(3)), strict=True))
    return width, height, colours


def _unfiltered(kind, line, above, channels):
    """A line of pixels without the filter `kind` (section 9 of the PNG specification)."""
    for i, value in enumerate(line) if kind else ():
        left = line[i - channels] if i >= channels else 0
        up = above[i]
        corner = above[i - channels] if i >= channels else 0
        match kind:
            case 1:
                guess = left
            case 2:
                guess = up
            case 3:
                guess = (left + up) // 2
            case 4:
                # The Paeth predictor.
                far = [abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)]
                guess = (left, up, corner)[far.index(min(far))]
        line[i] = (value + guess) & 0xFF
    return bytes(line)


def browser():
    """A browser that takes pictures of pages, or None. The variable CHROMIUM may name it."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, (shutil.which(n) for n in names if n)), None)


def screenshot(page, folder, size=(1000, 4000), wait_ms=20_000):
    """The pixels of the page at an address, as `png` counts them. The browser reaches no other host."""
    picture = folder / "page.png"
    line = [
        browser(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
        f"--user-data-dir={folder / 'browser'}",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--window-size={size[0]},{size[1]}",
        f"--virtual-time-budget={wait_ms}",
        f"--screenshot={picture}",
        page,
    ]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert picture.is_file(), done.stderr
    return png(picture.read_bytes())


def near(colours, wanted, by=10):
    """The number of pixels of almost this colour, such as "#0072B2": each channel differs by `by` at most."""
    parts = [int(wanted[i : i + 2], 16) for i in (1, 3, 5)]
    return sum(n for c, n in colours.items() if all(abs(a - b) <= by for a, b in zip(c, parts, strict=True)))
