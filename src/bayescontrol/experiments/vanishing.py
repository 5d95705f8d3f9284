"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.theory.vanishing import experiment as experiment
