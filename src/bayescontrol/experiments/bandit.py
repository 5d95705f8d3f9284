"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.bandits.bandit import experiment as experiment
