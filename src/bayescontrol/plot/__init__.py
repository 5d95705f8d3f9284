"""Figures: plots of a run, and charts that describe the figures of an experiment."""
