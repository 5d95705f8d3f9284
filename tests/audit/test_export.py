"""The exported folder is checked and used without this package: NumPy suffices."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.audit import enumeration

from bayescontrol._arrays import FloatArray
from bayescontrol.audit import WORLDS, World, export_worlds

#: Run a script with NumPy, whose folder is the first argument, and without this package.
RUNNER = """
import runpy, sys
sys.path.append(sys.argv[1])
try:
    import bayescontrol
except ModuleNotFoundError:
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
else:
    raise SystemExit("bayescontrol can be imported")
"""
Check = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    """Run the checker of a folder in a Python that finds NumPy and the standard library only."""
    site = tmp_path_factory.mktemp("site")
    for folder in ("numpy", "numpy.libs"):
        if (source := Path(np.__file__).parents[1] / folder).exists():
            (site / folder).symlink_to(source)

    def run(folder: Path, *files: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", RUNNER, str(site), "check_world.py", *files],
            cwd=folder, env={}, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    """A copy of the exported folder."""
    for path in exported.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_the_folder_has_every_world_and_its_paths_are_returned(tmp_path: Path) -> None:
    paths = export_worlds(tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(
        path.name for path in paths
    )
    assert {path.stem for path in paths} == {*WORLDS, "README", "check_world"}
    assert export_worlds(str(tmp_path / "new")) == paths


def test_the_files_pass_their_checker_without_this_package(folder: Path, check: Check) -> None:
    files = [f"{name}.json" for name in WORLDS]
    result = check(folder, *files)
    assert (result.stderr, result.returncode) == ("", 0)
    assert result.stdout.splitlines() == [f"{file}: 40 examples are right" for file in files]


def swap(values: list[Any]) -> None:
    values[0], values[1] = values[1], values[0]


DAMAGES: dict[str, Callable[[Any], object]] = {
    "a posterior": lambda w: w["examples"][7].update(interventional=[1.0, 0.0]),
    "the other posterior": lambda w: w["examples"][7].update(observational=[1.0, 0.0]),
    "the prior": lambda w: swap(w["prior"]),
    "a policy": lambda w: swap(w["policy"]),
    "a hypothesis": lambda w: swap(w["hypothesis"]),
    "the next situations": lambda w: w.update(successor=np.zeros((2, 2, 4), int).tolist()),
    "the names": lambda w: swap(w["observations"]),
    "an event": lambda w: w["examples"][7]["events"][0].__setitem__(1, "nothing"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_does_not_pass(damage: str, folder: Path, check: Check) -> None:
    path = folder / "liar.json"
    world = json.loads(path.read_text("utf-8"))
    assert len(world["examples"][7]["events"]) > 0
    DAMAGES[damage](world)
    path.write_text(json.dumps(world), "utf-8")
    result = check(folder, "liar.json")
    assert result.returncode != 0
    assert "examples are right" not in result.stdout
    assert "Error" in result.stderr


def test_a_truncated_file_does_not_pass(folder: Path, check: Check) -> None:
    text = (folder / "chain.json").read_text("utf-8")
    (folder / "chain.json").write_text(text[: len(text) // 2], "utf-8")
    assert check(folder, "chain.json").returncode != 0


def predictions(world: World, predict: Callable[[enumeration.Node], FloatArray]) -> Iterator[str]:
    """Lines with the probabilities of a predictor after every history of two steps."""
    for node in enumeration.nodes(world, 2):
        probabilities = enumeration.answers(world, predict(node), node.a)
        yield json.dumps({"events": node.history.events, "probabilities": probabilities})


@pytest.mark.parametrize("name", ["liar", "fire-engine", "rock-paper-scissors"])
def test_the_checker_computes_the_index_of_predictions(
    name: str, folder: Path, check: Check
) -> None:
    for share in (0.0, 1.0, 0.25):
        lines = predictions(
            WORLDS[name], lambda node, s=share: (1 - s) * node.rule + s * node.naive  # type: ignore[misc]
        )  # fmt: skip
        (folder / "predictions.jsonl").write_text("\n".join(lines), "utf-8")
        result = check(folder, f"{name}.json", "predictions.jsonl")
        assert result.returncode == 0, result.stderr
        words = result.stdout.splitlines()[1].split(", ")
        assert float(words[1].removeprefix("index ")) == pytest.approx(share, abs=1e-4)
        assert float(words[2].removeprefix("residual share ")) == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([["acted", "left"]], "must take turns"),
        ([["did", "left"], ["did", "left"]], "must take turns"),
        ([["saw", "prize"]], "must take turns"),
        ([], "not identified"),
    ],
)
def test_the_checker_refuses_what_it_cannot_judge(
    events: list[list[str]], message: str, folder: Path, check: Check
) -> None:
    line = {"events": events, "probabilities": {"left": 0.5, "right": 0.5}}
    (folder / "p.jsonl").write_text(json.dumps(line), "utf-8")
    result = check(folder, "prize-or-frog.json", "p.jsonl")
    assert result.returncode != 0
    assert message in result.stderr


@pytest.mark.parametrize("p", [{"left": 0.5}, {"up": 0.5, "left": 1.0}, {"left": 2, "right": -1}])
def test_predictions_that_are_no_distribution_are_refused_with_their_line(
    p: dict[str, float], folder: Path, check: Check
) -> None:
    lines = [{"events": [], "probabilities": q} for q in ({"left": 0.5, "right": 0.5}, p)]
    (folder / "p.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    result = check(folder, "liar.json", "p.jsonl")
    assert result.returncode != 0
    assert "line 2: " in result.stderr
    assert "is not a distribution over ['left', 'right']" in result.stderr


def test_files_hold_the_values_of_plans_and_examples_of_all_three_events(exported: Path) -> None:
    for name, world in WORLDS.items():
        content = json.loads((exported / f"{name}.json").read_text("utf-8"))
        assert content["name"] == name
        kinds = {kind for e in content["examples"] for kind, _ in e["events"]}
        assert kinds == {"did", "saw", "shown"}
        if world.reward is None:
            assert content["reward"] is None
            assert content["values"] == {"steps": 6}
        else:
            assert content["values"]["optimal"] > content["values"]["rule"]
        for e in content["examples"]:
            v, w, _ = enumeration.posteriors(world, [tuple(event) for event in e["events"]])  # type: ignore[misc]
            np.testing.assert_allclose(e["interventional"], v / v.sum())
            np.testing.assert_allclose(e["observational"], w / w.sum())
