"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.mdp.maze import experiment as experiment
