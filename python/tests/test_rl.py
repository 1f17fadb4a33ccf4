"""The environment of Gymnasium."""

import importlib.util
import threading
import warnings
from pathlib import Path

import pytest

import skyhaul as sh

gym = pytest.importorskip("gymnasium")
np = pytest.importorskip("numpy")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from skyhaul.rl import OBSERVATION, SatelliteEnv  # noqa: E402

SHORT = {"duration": "12 s", "links.sat.rate": "2 Mbit/s"}


def episode(env, action, seed=1):
    """Observations, rewards and the last information of an episode."""
    observation, _ = env.reset(seed=seed)
    observations, rewards = [observation], []
    while True:
        observation, reward, terminated, truncated, info = env.step(np.array([action], dtype=np.float32))
        observations.append(observation)
        rewards.append(reward)
        assert not terminated
        if truncated:
            return np.array(observations), rewards, info


def test_gymnasium_finds_nothing_wrong():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(SatelliteEnv(set=SHORT), skip_render_check=True)


def test_it_is_registered():
    env = gym.make("skyhaul/Satellite-v0", set=SHORT)
    observation, _ = env.reset(seed=1)
    assert observation.shape == (len(OBSERVATION),)
    env.close()


def test_an_episode_is_a_function_of_the_seed():
    env = SatelliteEnv(set={**SHORT, "links.sat.error.p": 0.02})
    first, again, other = (episode(env, 0.5, seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_action_sets_the_window():
    env = SatelliteEnv(set={**SHORT, "links.sat.error": "none", "flows.bulk.rwnd": "64 segments"})
    _, info = env.reset(seed=1)
    windows = [info["cwnd"]]
    for action in (1.0, 1.0, 0.0, -1.0, -5.0):
        *_, info = env.step(np.array([action], dtype=np.float32))
        windows.append(info["cwnd"])
    # Factors of two; the action -5 counts as -1.
    first = windows[0]
    assert windows == [first, 2 * first, 4 * first, 4 * first, 2 * first, first]
    for _ in range(8):
        *_, info = env.step(np.array([1.0], dtype=np.float32))
    assert info["cwnd"] == 64
    env.close()


def test_observation_and_reward_are_what_is_documented():
    env = SatelliteEnv(set={**SHORT, "duration": "30 s"}, delay_weight=0.5, loss_weight=2.0)
    observations, rewards, info = episode(env, 0.6)
    for row, reward in zip(observations[1:], rewards, strict=True):
        goodput, delay, loss, *_ = (float(x) for x in row)
        assert reward == pytest.approx(goodput - 0.5 * delay - 2.0 * loss)
    # On average, goodput is below the rate.
    assert 0.1 < observations[:, 0].mean() < 1.0
    # 50 packets of 1000 bytes wait at most; the RTT without them is twice 275 ms and one packet.
    assert 0 < observations[:, 1].max() <= 50 * 8000 / 2e6 / (0.55 + 8000 / 2e6)
    r = info["result"]
    assert isinstance(r, sh.Result)
    # The observed goodputs add up to the result of the run, except for the time after the last decision.
    delivered = observations[:, 0].sum() * env.interval * 2e6 / 8
    assert delivered == pytest.approx(r.flows["bytes_acked"][0], rel=0.1)


def test_a_run_that_nobody_waits_for_ends():
    before = threading.active_count()
    env = SatelliteEnv(set=SHORT)
    for seed in range(3):
        env.reset(seed=seed)
    assert threading.active_count() == before + 1
    env.close()
    assert threading.active_count() == before
    with pytest.raises(gym.error.ResetNeeded):
        env.step(np.zeros(1, dtype=np.float32))


def test_other_flows_keep_their_controls():
    scenario = """
schema = 1
extends = "preset:peach-geo"
duration = "10 s"
[flows.rival]
count = 2
cc = "sack"
path = ["sat"]
endpoint = "ns2-2001"
"""
    env = SatelliteEnv("rival", text=scenario)
    *_, info = episode(env, 0.3)
    flows = info["result"].flows
    assert flows["group"] == ["bulk", "rival", "rival"]
    assert all(g > 0 for g in flows["goodput_bit_s"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"flow": "web"}, r"there is no flows.web \(known: bulk\)"),
        ({"set": {"flows.bulk.count": 3}}, r"flows.bulk.count: an agent controls one connection"),
        ({"interval": 0.0}, r"interval: 0: write a number above 0"),
        ({"set": {"links.sat.rate": "unlimited"}}, r"rate: the scenario does not determine it"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(options, words):
    with pytest.raises(sh.ScenarioError, match=words):
        SatelliteEnv(**options)


def test_an_agent_learns(capsys):
    path = Path(__file__).parents[2] / "examples/learned_control.py"
    spec = importlib.util.spec_from_file_location("learned_control", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    env = SatelliteEnv(set=example.GEO)
    weights, progress = example.train(env, 5, 12, seeds=(1, 2), rng=np.random.default_rng(1))
    assert progress[-1] > progress[0]
    # A seed that was not trained on.
    untrained, trained = (example.episode(env, w, seed=50)[0] for w in (0 * weights, weights))
    assert trained > untrained + 0.3
    assert example.main(1, 4) == 0
    assert "trained: reward" in capsys.readouterr().out
