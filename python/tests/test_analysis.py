import inspect
import math

import pytest

from skyhaul import _core, analysis


def near(x, tolerance=1e-3):
    return pytest.approx(x, rel=tolerance)


def test_slow_start_and_transfers():
    assert analysis.slow_start_time(0.55, 155e6) == near(7.909)
    assert analysis.slow_start_rounds(50) == 6
    assert analysis.transfer_time(50, 0.55, w1=4) == near(2.20)
    assert analysis.transfer_time(50, 0.55, handshake=True) == near(3.85)
    assert analysis.transfer_time(50, 0.55, growth=1.5) == near(4.95)
    assert analysis.transient_rate(20, 55, 0.55) == near(70 / 0.55)


def test_arguments_have_the_names_of_the_closed_forms():
    """An error names the argument: the parameter of the function has this name, too."""
    checked = 0
    for name, arguments, _ in _core.closed_forms():
        function = getattr(analysis, name, None)
        if function is None:
            continue
        parameters = inspect.signature(function).parameters
        missing = set(arguments) - set(parameters)
        assert missing == set(), f"{name}({', '.join(arguments)}) against ({', '.join(parameters)})"
        checked += 1
    assert checked > 20
    with pytest.raises(ValueError, match=r"^size is -1"):
        analysis.transfer_floor(-1, 65536, 0.5)
    with pytest.raises(ValueError, match=r"^size is -1"):
        analysis.packet_loss(1e-5, -1)


def test_limits():
    assert analysis.window_limit(8 * 65535, 0.5) == near(1.04856e6)
    assert analysis.window_knee(4e6, 0.508) == near(254e3)
    assert analysis.transfer_floor(50e6, 65536, 0.508) == near(387.6)
    assert analysis.return_cap(256e3) == 800
    assert analysis.asymmetry(10e6, 50e3) == near(8)


def test_throughput():
    assert analysis.pftk(1e-2, 0.55, 1.0) == near(21.117)
    assert analysis.pftk(1e-4, 0.55, 1.0, wm=64) == near(110.01)
    assert analysis.pftk_approximate(1e-2, 0.55, 1.0, b=2) == near(15.125)
    assert analysis.mathis(1e-2, 0.55, analysis.MATHIS_PERIODIC) == near(22.268)
    assert analysis.mathis(1e-2, 0.55, analysis.MATHIS_PERIODIC_DELAYED) == near(15.746)
    assert analysis.tfrc(1e-2, 0.55) == near(20.424)
    assert analysis.aimd_timeouts(1e-2, 0.55, 1.0, 0.31, 0.875) == near(26.371)
    assert analysis.aimd(1e-2, 0.55, 1, 0.5) == near(22.268)
    assert analysis.friendly_alpha(0.875) == 0.3125
    assert analysis.friendly_alpha_without_timeouts(0.875) == near(0.2)
    assert analysis.pftk(0, 0.55, 1.0) == math.inf


def test_utilization():
    assert analysis.clean_utilization(715, 50) == near(0.79880)
    assert analysis.sawtooth_period(20, 0.55, 700, 0) == near(350 / 20 * 0.55)
    assert analysis.lossy_utilization(20, 65, 0.01, 1300) == near(0.99)
    assert analysis.critical_loss(715) == near(2.934e-6)
    assert analysis.rtt_bias(0.26, 0.78) == (near(3), near(9))
    with pytest.raises(ValueError, match=r"long is 0\.1"):
        analysis.rtt_bias(0.2, 0.1)
    with pytest.raises(ValueError, match="short is 0"):
        analysis.rtt_bias(0, 0.1)


def test_losses_and_fairness():
    assert analysis.packet_loss(1e-5, 1000) == near(0.0769)
    assert analysis.two_or_more(64, 1e-2) == near(0.1346)
    assert analysis.no_fast_retransmit(10, 0.5) == near(0.0898)
    assert analysis.tail_cost(1e-2, 0.55, 1.0) == near(0.0045)
    assert analysis.steady_run(1e-3, 65) == near(769.2)
    assert analysis.jain([1, 1, 1, 1, 0.5]) == near(0.95294)
    assert analysis.normalized_throughput(300e3, 10e6, 25) == near(0.75)
    for bad in ([], [1, math.nan], [-1], [1e200]):
        with pytest.raises(ValueError, match="values"):
            analysis.jain(bad)


def test_transmission_periods():
    path = analysis.AsymmetricPath(forward=10e6, reverse=256e3, propagation=0.27)
    plain = path.period(800)
    assert (plain.data, plain.acks, plain.length, plain.governs) == (near(0.64), near(1.0), near(1.0), "acks")
    assert path.rate(240) == near(3.542e6)
    acks = path.delayed_acks(800, 2, 0.1)
    assert acks == 400
    delayed = path.period(800, acks, 0.1)
    assert (delayed.length, delayed.governs) == (near(0.64205), "rtt")
    assert path.data_time_after_loss(800, 0.875) == near(0.56)
    assert path.acks_by_timer(240, 0.1) == 2
    with pytest.raises(ValueError, match="beta is 1"):
        path.data_time_after_loss(800, 1)


def test_the_active_limit():
    loss = analysis.pftk(1e-2, 0.55, 1.0, wm=64)
    assert analysis.predict(fair_share=65, window=64 / 0.55, loss=loss) == (near(21.117), "loss")
    assert analysis.predict() == (math.inf, "none")


def test_what_is_outside_of_the_domain_is_an_error_not_nan():
    with pytest.raises(ValueError, match=r"p is 1\.5: a probability lies from 0 to 1"):
        analysis.pftk(1.5, 0.55, 1.0)
    with pytest.raises(ValueError, match="rtt is NaN"):
        analysis.slow_start_time(math.nan, 1e6)
    with pytest.raises(ValueError, match="no closed form"):
        _core.closed_form("nonsense")
    with pytest.raises(TypeError, match=r"mathis\(p, rtt, c\)"):
        _core.closed_form("mathis", 1e-3)


def test_every_form_of_expressions_is_documented():
    names = [name for name, _, _ in _core.closed_forms()]
    assert names == sorted(names)
    # Forms that the class AsymmetricPath has as methods.
    of_a_path = {"ack_period", "ack_time", "acks_by_timer", "data_time", "period", "rtt_of_period"}
    assert set(names) - of_a_path <= set(analysis.__all__)
