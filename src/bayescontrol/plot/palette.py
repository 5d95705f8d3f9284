"""Colours of figures and pages: Okabe and Ito's palette, and a variant for dark pages.

On a dark page the deep colours are lightened until each has a contrast of at least 4.5 to 1 with
the background, and ink turns from black to white.
"""

from collections.abc import Mapping
from typing import Final

from bayescontrol.plot.chart import Colour

#: Each colour on a light and on a dark page.
_COLOURS: Final[Mapping[Colour, tuple[str, str]]] = {
    "blue": ("#0072b2", "#3391db"),
    "vermillion": ("#d55e00", "#ec7326"),
    "green": ("#009e73", "#17b58a"),
    "orange": ("#e69f00", "#f0b030"),
    "sky": ("#56b4e9", "#8fd3f8"),
    "purple": ("#cc79a7", "#dc92bb"),
    "ink": ("#000000", "#f2f2f2"),
    "yellow": ("#f0e442", "#f4ea5a"),
}
LIGHT: Final[Mapping[Colour, str]] = {name: light for name, (light, _) in _COLOURS.items()}
DARK: Final[Mapping[Colour, str]] = {name: dark for name, (_, dark) in _COLOURS.items()}
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
