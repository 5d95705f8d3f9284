"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.control.lqr import experiment as experiment
