"""Colours of figures and pages: Okabe and Ito's palette, and a variant for dark pages.

On a dark page the deep colours are lightened until each has a contrast of at least 4.5 to 1 with
the background, and ink turns from black to white.
"""

from collections.abc import Mapping
from typing import Final

from bayescontrol.lab.chart import Colour

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
#: Colours of the background, text, axes and grid.
LIGHT_GROUND: Final = {"ground": "#ffffff", "text": "#1a1a1a", "axis": "#5b6570", "grid": "#e3e6e9"}
DARK_GROUND: Final = {"ground": "#15181c", "text": "#e8e8e8", "axis": "#a3adb8", "grid": "#2c3138"}

_LIGHT_PAGE: Final[dict[str, str]] = {**LIGHT, **LIGHT_GROUND}  # type: ignore[dict-item]
_DARK_PAGE: Final[dict[str, str]] = {**DARK, **DARK_GROUND}  # type: ignore[dict-item]
#: The CSS variable that replaces each light colour in the figures of a page.
VARIABLES: Final = {colour: f"var(--{name})" for name, colour in _LIGHT_PAGE.items()}


def style_sheet() -> str:
    """Return the CSS variables of all colours, for light and for dark pages."""
    light, dark = (
        "".join(f"--{name}:{value};" for name, value in colours.items())
        for colours in (_LIGHT_PAGE, _DARK_PAGE)
    )
    return f":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"
