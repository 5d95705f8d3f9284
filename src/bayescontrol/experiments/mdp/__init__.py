"""Markov decision processes: chains and mazes."""
