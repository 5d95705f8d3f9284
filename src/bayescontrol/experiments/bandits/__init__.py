"""Bandits with Bernoulli levers."""
