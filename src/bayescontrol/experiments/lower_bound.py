"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.theory.lower_bound import experiment as experiment
