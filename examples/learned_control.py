#!/usr/bin/env python3
"""A congestion control that is learned: python examples/learned_control.py

The agent is a straight line: the action is a weighted sum of what is seen. The cross-entropy method
(Rubinstein, Kroese 2004) finds the weights: draw some, keep the best, draw again around these. It takes some
seconds and is enough to show the way; `skyhaul.rl.SatelliteEnv` takes agents of any library for Gymnasium.
"""

import sys

import numpy as np

import skyhaul as sh
from skyhaul.rl import SatelliteEnv

GEO = {
    "duration": "40 s",
    "links.sat.rate": "2 Mbit/s",
    "links.sat.error.p": 1e-3,
    "flows.bulk.rwnd": "512 segments",
}
"""A connection alone on a slow channel over a geostationary satellite, which loses one segment in 1000."""


def act(weights, observation):
    """What the agent does: a number from -1 to 1."""
    return np.tanh(weights[:-1] @ observation + weights[-1]).reshape(1)


def episode(env, weights, seed):
    """Mean reward per decision, and what the run measured."""
    observation, _ = env.reset(seed=seed)
    rewards = []
    while True:
        observation, reward, _, truncated, info = env.step(act(weights, observation))
        rewards.append(reward)
        if truncated:
            return float(np.mean(rewards)), info["result"]


def train(env, generations, candidates, seeds, rng):
    """Weights of the agent, and the mean reward of the best of each generation."""
    size = env.observation_space.shape[0] + 1
    mean, deviation = np.zeros(size), np.ones(size)
    kept = max(2, candidates // 4)
    progress = []
    for _ in range(generations):
        drawn = mean + deviation * rng.standard_normal((candidates, size))
        scores = np.array([np.mean([episode(env, weights, s)[0] for s in seeds]) for weights in drawn])
        best = drawn[np.argsort(-scores)[:kept]]
        # Some deviation stays, so that the search does not end before it has found anything.
        mean, deviation = best.mean(axis=0), best.std(axis=0) + 0.05
        progress.append(float(np.sort(scores)[-kept:].mean()))
    return mean, progress


def main(generations=8, candidates=16):
    env = SatelliteEnv("preset:peach-geo", set=GEO)
    weights, progress = train(env, generations, candidates, seeds=(1, 2), rng=np.random.default_rng(1))
    for number, reward in enumerate(progress, 1):
        print(f"generation {number}: reward {reward:.3f}")
    # Seeds that were not trained on.
    for name, chosen in (("untrained", np.zeros_like(weights)), ("trained", weights)):
        scores, runs = zip(*(episode(env, chosen, seed) for seed in (101, 102, 103)), strict=True)
        goodput = np.mean([r.summary["goodput_bit_s"] for r in runs]) / 1e6
        print(f"{name}: reward {np.mean(scores):.3f}, {goodput:.2f} Mbit/s")
    for name in ("sack", "peach"):
        of_set = {**GEO, "flows.bulk.count": 1, "flows.bulk.cc": name}
        runs = [sh.run("preset:peach-geo", set=of_set, seed=seed) for seed in (101, 102, 103)]
        print(f"{name}: {np.mean([r.summary['goodput_bit_s'] for r in runs]) / 1e6:.2f} Mbit/s")
    env.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
