"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.theory.policy_diagram import experiment as experiment
