"""Other libraries on the paper's bench, each as its documentation shows it.

They are no dependency of ours: each has an environment of its own (`environments`).
"""
