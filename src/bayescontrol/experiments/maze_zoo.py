"""Temporary: the target of an installed entry point."""

from benchmarks.arena.maze_zoo import experiment as experiment
