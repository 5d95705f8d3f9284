"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.theory.convergence import experiment as experiment
