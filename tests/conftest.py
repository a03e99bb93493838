"""What holds for all tests: how long one example takes is up to the machine."""

from hypothesis import settings

settings.register_profile("arenaplan", deadline=None)
settings.load_profile("arenaplan")
