"""Temporary: the target of an installed entry point."""

from benchmarks.arena.maze_sensitivity import experiment as experiment
