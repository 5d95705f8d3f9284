"""Make property tests deterministic, and disable their deadlines."""

from hypothesis import settings

settings.register_profile("house", derandomize=True, deadline=None, database=None)
settings.load_profile("house")
