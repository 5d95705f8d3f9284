"""Other libraries on the paper's benchmark, used as their documentation shows.

They are not dependencies of this project: each has a separate environment (`environments`).
"""
