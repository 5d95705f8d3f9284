"""Contextual bandits: linear and logistic arms whose rewards depend on features."""
