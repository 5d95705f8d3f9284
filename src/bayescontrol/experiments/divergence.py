"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.theory.divergence import experiment as experiment
