"""Temporary: the target of an installed entry point."""

from bayescontrol.experiments.mdp.chain import experiment as experiment
