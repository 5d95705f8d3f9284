"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.theory.core import experiment as experiment
