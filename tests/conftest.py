"""Property tests are the same on every machine and every day, and do not race a clock."""

from hypothesis import settings

settings.register_profile("house", derandomize=True, deadline=None, database=None)
settings.load_profile("house")
