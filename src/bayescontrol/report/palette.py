"""The colours of figures: Okabe & Ito's on paper, and their kin on a dark screen.

Eight colours that colour-blind eyes tell apart. In the dark the deep ones are lifted until
each stands out from the ground by 4.5 to 1, and ink turns from black to white.
"""

from collections.abc import Mapping
from typing import Final

from bayescontrol.lab.marks import Colour

#: On paper, and on a page in the light.
LIGHT: Final[Mapping[Colour, str]] = {
    "blue": "#0072b2",
    "vermillion": "#d55e00",
    "green": "#009e73",
    "orange": "#e69f00",
    "sky": "#56b4e9",
    "purple": "#cc79a7",
    "ink": "#000000",
    "yellow": "#f0e442",
}
#: On a page in the dark.
DARK: Final[Mapping[Colour, str]] = {
    "blue": "#3391db",
    "vermillion": "#ec7326",
    "green": "#17b58a",
    "orange": "#f0b030",
    "sky": "#8fd3f8",
    "purple": "#dc92bb",
    "ink": "#f2f2f2",
    "yellow": "#f4ea5a",
}
#: What lies under and around the series: ground, text, axes and grid.
LIGHT_GROUND: Final = {"ground": "#ffffff", "text": "#1a1a1a", "axis": "#5b6570", "grid": "#e3e6e9"}
DARK_GROUND: Final = {"ground": "#15181c", "text": "#e8e8e8", "axis": "#a3adb8", "grid": "#2c3138"}


def in_the_dark() -> dict[str, str]:
    """Each colour of a light page and the one that takes its place on a dark page.

    >>> in_the_dark()["#000000"], len(in_the_dark())
    ('#f2f2f2', 12)
    """
    return {
        **{LIGHT[name]: DARK[name] for name in LIGHT},
        **{LIGHT_GROUND[name]: DARK_GROUND[name] for name in LIGHT_GROUND},
    }
