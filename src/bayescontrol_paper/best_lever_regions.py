"""The figure of the space of biases [0, 1]^N, divided into N regions by the best lever.

    region i   {m : m_i = max_j m_j}        two levers: a triangle;  three: a pyramid over the
                                            face m_i = 1, with its apex at the origin
    drawn      u = (m_1 - m_2) cos 30°,  v = (m_1 + m_2) / 2 + m_3

The cube is viewed from the origin and from above: the faces m_1 = 0, m_2 = 0 and m_3 = 1 are
visible, and the third pyramid is nearest.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.plot.chart import Chart, Colour, Panel, Region, Series, Word

_COLOURS: Final[tuple[Colour, ...]] = ("blue", "orange", "green")
#: The visible faces of the pyramids: number of the pyramid, shade, corners.
_FACES: Final[tuple[tuple[int, float, tuple[tuple[float, ...], ...]], ...]] = (
    (0, 0.30, ((0, 0, 0), (1, 0, 1), (1, 1, 1))),  # m_1 = m_3, visible when the pyramids are apart
    (0, 0.62, ((0, 0, 0), (1, 0, 0), (1, 0, 1))),
    (1, 0.30, ((0, 0, 0), (0, 1, 1), (1, 1, 1))),
    (1, 0.62, ((0, 0, 0), (0, 1, 0), (0, 1, 1))),
    (2, 0.62, ((0, 0, 0), (1, 0, 1), (0, 0, 1))),
    (2, 0.48, ((0, 0, 0), (0, 1, 1), (0, 0, 1))),
    (2, 0.30, ((0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))),
)
#: Distance by which each pyramid is moved along its axis.
_APART: Final = 0.42
_NAMES: Final = ("m₁ ≥ m₂, m₃", "m₂ ≥ m₁, m₃", "m₃ ≥ m₁, m₂")
#: Positions of labels: on the edges and regions of the cube, and beside the pyramids.
_ON_CUBE: Final = {
    "m₁": (0.55, 0.0, -0.09),
    "m₂": (0.0, 0.55, -0.09),
    "m₃": (0.09, 0.0, 0.62),
    "lever 1": (0.7, 0.0, 0.3),
    "lever 2": (0.0, 0.7, 0.3),
    "lever 3": (0.5, 0.5, 1.0),
}
_ON_PYRAMIDS: Final = {
    _NAMES[0]: (1.15, 0.0, -0.36),
    _NAMES[1]: (0.0, 1.15, -0.36),
    _NAMES[2]: (0.5, 0.5, 1.0 + _APART),
}


def project(m: object) -> FloatArray:
    """Return (u, v) of the point m, or of an array of points: an isometric projection."""
    m1, m2, m3 = np.moveaxis(np.asarray(m, np.float64), -1, 0)
    return np.stack([(m1 - m2) * np.sqrt(0.75), (m1 + m2) / 2 + m3], axis=-1)


def chart() -> Chart:
    """Draw two levers, three levers, and three levers with the pyramids apart."""
    return Chart(
        "The space of biases, by best lever",
        [
            _two_levers(),
            _three_levers("Three levers", 0.0, _ON_CUBE),
            _three_levers("Three levers, apart", _APART, _ON_PYRAMIDS),
        ],
        "Each point is a bandit, each colour its best lever: knowing the best lever means knowing "
        "the region, and no more. With three levers each region is a pyramid over one face of the "
        "cube, and all meet where the levers are equal.",
        columns=3,
        paper={9: "panel a: two levers; panel b: three levers"},
    )


def _two_levers() -> Panel:
    triangles = np.array([[[0, 1, 1], [0, 0, 1]], [[0, 1, 0], [0, 1, 1]]])
    return Panel(
        "Two levers", "bias of lever 1, m₁", "bias of lever 2, m₂",
        [Series("m₁ = m₂", np.array([0, 1]), np.array([0, 1]), colour="ink", in_legend=False)],
        xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1],
        regions=[
            Region(f"lever {i + 1} is best", x, y, colour, 0.45, in_legend=False)
            for i, ((x, y), colour) in enumerate(zip(triangles, _COLOURS, strict=False))
        ],
        words=[Word("m₁ ≥ m₂", 0.68, 0.32), Word("m₂ ≥ m₁", 0.32, 0.68)], equal=True,
    )  # fmt: skip


def _three_levers(title: str, apart: float, words: Mapping[str, tuple[float, ...]]) -> Panel:
    shift = apart * np.eye(3)
    regions = []
    for i, shade, corners in _FACES:
        u, v = project(np.array(corners) + shift[i]).T
        name = f"lever {i + 1} is best: {_NAMES[i]}"
        regions.append(Region(name, u, v, _COLOURS[i], shade, in_legend=False))
    return Panel(
        title, "(m₁ − m₂) cos 30°", "(m₁ + m₂) / 2 + m₃", [],
        xlim=(-1.5, 1.5) if apart else (-1.1, 1.1), regions=regions,
        words=[Word(text, *project(place)) for text, place in words.items()], equal=True,
        framed=False,
    )  # fmt: skip
