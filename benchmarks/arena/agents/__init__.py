"""Agents beyond the paper, to compare with: Bayesian planning, optimism, posterior sampling."""
