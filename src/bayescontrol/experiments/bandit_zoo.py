"""Temporary: the target of an installed entry point."""

from benchmarks.arena.bandit_zoo import experiment as experiment
