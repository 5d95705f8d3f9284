"""The only door to Gymnasium, which is an extra."""

from bayescontrol.errors import MissingExtra

try:
    import gymnasium
    import gymnasium.vector
    import gymnasium.vector.utils
except ImportError as error:
    raise MissingExtra(
        f"bayescontrol.gym needs Gymnasium ({error}): pip install 'bayescontrol[gym]'"
    ) from error

__all__ = ["gymnasium"]
