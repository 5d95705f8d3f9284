"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.theory.misspecified import experiment as experiment
