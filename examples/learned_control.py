#!/usr/bin/env python3
"""A learned congestion control: python examples/learned_control.py

The policy is linear: the action is a weighted sum of the observations. The weights are found with the
cross-entropy method (Rubinstein, Kroese 2004): sample, keep the best, sample again around them. Training
takes a few seconds; `skyhaul.rl.SatelliteEnv` works with the agents of any Gymnasium library.
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
"""A single connection over a slow geostationary channel that loses one segment in 1000."""


def act(weights, observation):
    """The action of the agent: a number from -1 to 1."""
    return np.tanh(weights[:-1] @ observation + weights[-1]).reshape(1)


def episode(env, weights, seed):
    """Mean reward per decision, and the result of the run."""
    observation, _ = env.reset(seed=seed)
    rewards = []
    while True:
        observation, reward, _, truncated, info = env.step(act(weights, observation))
        rewards.append(reward)
        if truncated:
            return float(np.mean(rewards)), info["result"]


def train(env, generations, candidates, seeds, rng):
    """Weights of the agent, and the mean reward of the kept candidates of each generation."""
    size = env.observation_space.shape[0] + 1
    mean, deviation = np.zeros(size), np.ones(size)
    kept = max(2, candidates // 4)
    progress = []
    for _ in range(generations):
        drawn = mean + deviation * rng.standard_normal((candidates, size))
        scores = np.array([np.mean([episode(env, weights, s)[0] for s in seeds]) for weights in drawn])
        best = drawn[np.argsort(-scores)[:kept]]
        # A minimum deviation keeps the search from converging too early.
        mean, deviation = best.mean(axis=0), best.std(axis=0) + 0.05
        progress.append(float(np.sort(scores)[-kept:].mean()))
    return mean, progress


def main(generations=8, candidates=16):
    env = SatelliteEnv("preset:peach-geo", set=GEO)
    weights, progress = train(env, generations, candidates, seeds=(1, 2), rng=np.random.default_rng(1))
    for number, reward in enumerate(progress, 1):
        print(f"generation {number}: reward {reward:.3f}")
    # Seeds not used in training.
    for name, chosen in (("untrained", np.zeros_like(weights)), ("trained", weights)):
        scores, runs = zip(*(episode(env, chosen, seed) for seed in (101, 102, 103)), strict=True)
        goodput = np.mean([r.summary["goodput_bit_s"] for r in runs]) / 1e6
        print(f"{name}: reward {np.mean(scores):.3f}, {goodput:.2f} Mbit/s")
    for name in ("sack", "peach"):
        settings = {**GEO, "flows.bulk.count": 1, "flows.bulk.cc": name}
        runs = [sh.run("preset:peach-geo", set=settings, seed=seed) for seed in (101, 102, 103)]
        print(f"{name}: {np.mean([r.summary['goodput_bit_s'] for r in runs]) / 1e6:.2f} Mbit/s")
    env.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
