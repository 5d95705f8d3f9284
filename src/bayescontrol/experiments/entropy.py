"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.interventions.entropy import experiment as experiment
