"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.theory.consistency import experiment as experiment
