"""Agents and studies beyond the paper: compared in benchmarks, not installed."""
