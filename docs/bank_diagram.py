"""Draw the block diagram of a bank: filters, mode probabilities, supervisor, controllers, plant."""

from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch

BLUE, ORANGE, GREY = "#dbe8f6", "#fbe6cb", "#eeeeee"

_, axes = plt.subplots(figsize=(8.6, 4.0))
axes.set(xlim=(-4, 87), ylim=(0, 40))
axes.set_axis_off()


def box(x: float, y: float, width: float, height: float, text: str, colour: str) -> None:
    """Draw a block with its lower left corner at (x, y)."""
    style = "round,pad=0,rounding_size=0.8"
    axes.add_patch(
        FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=colour, edgecolor="0.25")
    )
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=9)


def arrow(*points: tuple[float, float]) -> None:
    """Draw a line through these points, with an arrow at the last one."""
    xs, ys = zip(*points[:-1], strict=True)
    axes.plot(xs, ys, color="0.25", lw=1.2, solid_capstyle="butt")
    axes.annotate(
        "", points[-1], points[-2],
        arrowprops={"arrowstyle": "-|>", "color": "0.25", "lw": 1.2, "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip


def label(x: float, y: float, text: str) -> None:
    """Write the name of a signal."""
    axes.text(x, y, text, ha="center", va="center", fontsize=9)


# Forward path: setpoint, controllers, switch, limits, plant.
for m, y in enumerate((33.0, 28.0, 23.0), 1):
    box(10, y, 17, 4, f"controller {m}", ORANGE)
    arrow((7, y + 2), (10, y + 2))
    arrow((27, y + 2), (34, y + 2))
axes.plot([7, 7], [25, 35], color="0.25", lw=1.2)
axes.plot([-3, 7], [30, 30], color="0.25", lw=1.2)
label(1.5, 31.6, "setpoint")
box(34, 22, 12, 16, "switch", BLUE)
arrow((46, 30), (52, 30))
box(52, 27, 10, 6, "limits", GREY)
arrow((62, 30), (69, 30))
label(65.5, 31.8, "$u$")
box(69, 26, 13, 8, "plant", GREY)
arrow((82, 30), (86, 30))
label(84, 31.8, "$y$")

# Feedback path: filters, mode probabilities, supervisor.
for m, y in enumerate((12.0, 7.0, 2.0), 1):
    box(48, y, 17, 4, f"Kalman filter {m}", BLUE)
    arrow((48, y + 2), (41, y + 2))
    arrow((69, y + 2.9), (65, y + 2.9))
    arrow((73, y + 1.1), (65, y + 1.1))
axes.plot([65.5, 65.5], [30, 20], color="0.25", lw=1.2)
axes.plot([65.5, 69, 69], [20, 20, 4.9], color="0.25", lw=1.2)
axes.plot([84, 84, 73, 73], [30, 20, 20, 3.1], color="0.25", lw=1.2)
label(67.4, 21.7, "$u$")
label(78.5, 21.7, "$y$")
box(24, 2, 17, 14, "mode\nprobabilities", BLUE)
label(44.5, 17.4, "innovations")
arrow((24, 9), (19, 9))
box(5, 4, 14, 10, "supervisor", BLUE)
arrow((12, 14), (12, 19.4), (40, 19.4), (40, 22))
label(25, 20.8, "mode in charge")
