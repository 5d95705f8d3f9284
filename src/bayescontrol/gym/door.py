"""The only door to Gymnasium, which is an extra."""

from bayescontrol.errors import MissingExtra

try:
    import gymnasium as gymnasium
    import gymnasium.vector
    import gymnasium.vector.utils  # noqa: F401 - loads the submodule
except ImportError as error:
    raise MissingExtra(
        f"bayescontrol.gym needs Gymnasium ({error}): pip install 'bayescontrol[gym]'"
    ) from error
