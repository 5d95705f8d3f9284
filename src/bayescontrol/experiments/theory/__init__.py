"""Convergence: when the control rule settles on the true mode, and when it does not."""
