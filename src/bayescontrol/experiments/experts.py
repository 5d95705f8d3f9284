"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.control.experts import experiment as experiment
