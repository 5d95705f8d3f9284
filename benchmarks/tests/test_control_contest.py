"""The control contest: every controller plays, and its scores are relative to the optimum."""

from pathlib import Path
from typing import Any

import pytest
from benchmarks.arena.control_contest import (
    FINAL,
    LQ,
    MOTORS,
    PLANT_NAMES,
    TRUE_PLANT,
    WORLDS,
    WORST,
    players_of,
    prepare,
)


def request(world: str, player: str, folder: Path, steps: int = 40) -> dict[str, Any]:
    return {
        "world": world, "player": player, "seed": 1, "steps": steps, "folder": str(folder)
    }  # fmt: skip


@pytest.mark.parametrize("world", MOTORS)
def test_every_controller_of_the_motor_plays_and_repeats_its_cost(
    world: str, tmp_path: Path
) -> None:
    for player in players_of(world):
        asked = request(world, player, tmp_path)
        assert prepare(asked, 1)() == prepare(asked, 1)() > 0, player


@pytest.mark.parametrize("world", MOTORS)
def test_the_true_plants_controller_of_the_motor_has_the_relative_cost_1(
    world: str, tmp_path: Path
) -> None:
    assert prepare(request(world, TRUE_PLANT, tmp_path), 0)() == 1.0


@pytest.mark.parametrize("world", PLANT_NAMES)
def test_every_linear_controller_plays_and_stores_the_excess_of_its_gain(
    world: str, tmp_path: Path
) -> None:
    for player in players_of(world):
        scores = [prepare(request(world, player, tmp_path), 1)() for _ in range(2)]
        assert 0 < scores[0] == scores[1] <= WORST
        excess = float((tmp_path / f"{world}, {player}, 1.txt").read_text())
        assert excess == pytest.approx(0.0, abs=1e-9) if player == TRUE_PLANT else excess > 0


def test_our_agent_is_near_the_optimum_of_the_servo_motor(tmp_path: Path) -> None:
    prepare(request("servo motor", LQ, tmp_path, steps=2_000), 0)()
    assert float((tmp_path / f"servo motor, {LQ}, 0.txt").read_text()) < 0.2


def test_each_linear_plant_has_a_world_for_each_score() -> None:
    names = [world.name for world in WORLDS]
    for plant in PLANT_NAMES:
        assert plant in names
        assert plant + FINAL in names
