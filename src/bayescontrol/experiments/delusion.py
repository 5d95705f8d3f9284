"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.interventions.delusion import experiment as experiment
