import math

import pytest

import skyhaul
from skyhaul import video


def film(frames=2400):
    """Sizes that rise and fall over 40 groups of pictures."""
    for n in range(frames):
        kind, base = ("I", 3000) if n % 12 == 0 else ("P", 1500) if n % 3 == 1 else ("B", 900)
        wave = 1 + 0.4 * math.sin(n / 75)
        noise = 0.95 + (n * 2654435761 % 2**32 >> 24) / 2560
        yield f"{n} {kind} {40 * n} {int(base * wave * noise)}"


def test_fit(tmp_path):
    trace = tmp_path / "film.txt"
    trace.write_text("\n".join(film()))
    found = video.fit(trace, flow="film")
    assert [t.type for t in found.types] == ["I", "P", "B"]
    assert found.trace.frames == 2400
    assert found.played.mean_bytes == pytest.approx(found.trace.mean_bytes, rel=0.3)
    assert "[flows.film.app.movie]" in found.scenario
    path = 'duration = "20 s"\n[links.sat]\nrate = "2 Mbit/s"\ndelay = "250 ms"\n'
    path += '[flows.film]\ntransport = "udp"\n'
    result = skyhaul.run("film.toml", text=path + found.scenario)
    assert result.flows["decodable"][0] == 1.0


def test_a_trace_that_is_none(tmp_path):
    trace = tmp_path / "film.txt"
    trace.write_text("1 I 0 100\n2 P 40 -3\n")
    with pytest.raises(skyhaul.ScenarioError, match=r"film\.txt:2: .*is not a frame size"):
        video.fit(trace)
    with pytest.raises(OSError, match="cannot read"):
        video.fit(tmp_path / "missing.txt")


@pytest.mark.parametrize("flow", ["", "a b", "a.b", "a]", '"a"', "é"])
def test_a_name_that_would_break_the_lines_is_refused(tmp_path, flow):
    trace = tmp_path / "film.txt"
    trace.write_text("\n".join(film()))
    with pytest.raises(skyhaul.ScenarioError, match=r"flow: .*write letters, digits, - and _"):
        video.fit(trace, flow=flow)
