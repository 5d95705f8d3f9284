"""The command `bayescontrol check`: text and JSON output, settings, errors."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bayescontrol.cli.main import main

_DOCS = Path(__file__).parent.parent / "docs"


def call(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(main, ["check", *arguments])


@pytest.mark.parametrize(
    ("name", "code"),
    [("prize-or-frog", 0), ("bias-grid", 10), ("consistency", 12), ("consistency-repaired", 0)],
)
def test_the_exit_code_says_which_outcome(name: str, code: int) -> None:
    assert call(name, "--runs", "5").exit_code == code


def test_the_documentation_shows_the_current_output() -> None:
    printed = [line.rstrip() for line in call("consistency").stdout.splitlines()]
    shown = (_DOCS / "check_consistency.txt").read_text("utf-8").splitlines()
    assert shown[0] == "$ bayescontrol check consistency"
    assert printed == shown[1:]


def test_the_output_names_the_modes_the_situations_and_a_remedy() -> None:
    text = call("trap", "--runs", "5").stdout
    assert "It may never settle" in text
    assert "once it is in pit" in text
    assert "Keep the agent out of pit: m3 may lead it there" in text


def test_without_a_name_the_classes_are_listed_with_their_settings() -> None:
    listed = call()
    assert listed.exit_code == 0
    assert "bias-grid" in listed.stdout
    assert "levels=" in listed.stdout


def test_json_is_one_object_with_every_pair() -> None:
    found = json.loads(call("core", "--json", "--runs", "5").stdout)
    assert found["outcome"] == "settles"
    assert found["exit_code"] == 10
    assert len(found["pairs"]) == 6
    slow = next(p for p in found["pairs"] if (p["true"], p["other"]) == ("m2", "m1"))
    assert slow["in_core"]
    assert not slow["consistent"]
    assert slow["reason"] == "own_policy"
    assert slow["told_apart_in_by_other"] == ["B0", "B1"]
    assert slow["steps"]["horizon"] == 10_000


def test_an_infinite_rate_is_a_string_in_json() -> None:
    found = json.loads(call("chain", "--json", "--runs", "5").stdout)
    assert found["pairs"][0]["rates"][0]["bits_a_step"] == "inf"


def test_one_world_and_one_other_mode_can_be_selected() -> None:
    found = json.loads(
        call("core", "--true", "m2", "--other", "m3", "--runs", "2", "--json").stdout
    )
    assert [(p["true"], p["other"]) for p in found["pairs"]] == [("m2", "m3")]
    assert call("core", "--true", "m2", "--other", "m3", "--runs", "2").exit_code == 0


def test_settings_reach_the_class() -> None:
    found = json.loads(call("bias-grid", "--set", "levels=.1,.9", "--runs", "1", "--json").stdout)
    assert found["modes"] == ["(.1, .1)", "(.1, .9)", "(.9, .1)", "(.9, .9)"]


_FILE = """
from bayescontrol import ControlRule, DiscreteMode, FiniteBelief, NaiveMixture
from bayescontrol.schedules import Every

def lever(good):
    pays = lambda x, a: {1: 0.8, 0: 0.2} if a == good else {1: 0.3, 0: 0.7}
    return DiscreteMode(lambda x: {good: 1.0}, pays, good)

modes = [lever("left"), lever("right")]
agent = ControlRule(FiniteBelief(modes, [0.9, 0.1]))
naive = NaiveMixture(FiniteBelief(modes))
held = ControlRule(FiniteBelief(modes), schedule=Every(3))
one = modes[:1]
def several(n: int = 2):
    return [lever(str(i)) for i in range(n)]
def bare(n):
    return modes
def broken():
    return [DiscreteMode(lambda x: {"left": 1.0}, lambda x, a: {}["oops"])]
nothing = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    # A module stays imported under its name, so every test needs its own name.
    path = tmp_path / f"modes_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(_FILE)
    return path


@pytest.mark.parametrize("what", ["", ":modes", ":agent", ":several"])
def test_a_file_may_contain_modes_a_list_an_agent_or_a_function(file: Path, what: str) -> None:
    found = json.loads(call(f"{file}{what}", "--runs", "2", "--json").stdout)
    assert found["outcome"] == "theorem"
    assert found["prior"] == ([0.9, 0.1] if what == ":agent" else [0.5, 0.5])


def test_a_function_of_a_file_takes_settings(file: Path) -> None:
    found = json.loads(call(f"{file}:several", "--set", "n=3", "--runs", "2", "--json").stdout)
    assert found["modes"] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("no-such-class",), "There are:"),
        (("nowhere.py",), "there is no file nowhere.py"),
        (("bias-grid", "--set", "levels"), "expected KEY=VALUE"),
        (("bias-grid", "--set", "levels=3", "--set", "levels=5"), "levels was already set to 3"),
        (("bias-grid", "--set", "colour=red"), "there is no setting 'colour'"),
        (("core", "--true", "m9"), "no mode 'm9'"),
        (("core", "--true", "m1", "--other", "m1"), "Name two different modes"),
        (("core", "--runs", "-1"), "runs"),
    ],
)
def test_an_invalid_call_exits_with_2_and_a_remedy(arguments: tuple[str, ...], says: str) -> None:
    answer = call(*arguments)
    assert answer.exit_code == 2
    assert says in answer.output


@pytest.mark.parametrize(
    ("what", "options", "says"),
    [
        (":missing", (), "has no attribute 'missing'"),
        (":nothing", (), "modes"),
        (":naive", (), "conditions on its own actions"),
        (":bare", (), "has no default"),
        (":agent", ("--set", "p=1"), "not a function"),
        (":several", ("--set", "z=1"), "there is no setting 'z'"),
    ],
)
def test_a_file_without_modes_or_with_other_settings_raises_a_clear_error(
    file: Path, what: str, options: tuple[str, ...], says: str
) -> None:
    answer = call(f"{file}{what}", *options)
    assert answer.exit_code == 2
    assert says in answer.output


def test_an_error_in_the_modes_exits_with_3_and_shows_its_location(file: Path) -> None:
    answer = call(f"{file}:broken")
    assert answer.exit_code == 3
    assert "KeyError: 'oops'" in answer.output


def test_a_single_mode_needs_no_check(file: Path) -> None:
    answer = call(f"{file}:one")
    assert answer.exit_code == 0
    assert "nothing to check" in answer.stdout


def test_an_agent_that_holds_its_modes_is_simulated_with_holding(file: Path) -> None:
    assert "each mode held for 3 steps" in call(f"{file}:held", "--runs", "2").stdout
    assert "held" not in call(f"{file}:agent", "--runs", "2").stdout
    assert "each mode held for 2 steps" in call("chain", "--hold", "2", "--runs", "2").stdout


def test_simulated_runs_show_that_settling_can_take_long() -> None:
    slow = call("core", "--runs", "3", "--horizon", "20").stdout
    assert "Settling can take long" in slow


_DENSITIES = """
from bayescontrol import BernoulliBandit, ControlRule, FiniteBelief, ParticleBelief, stay
class Pushed:
    def __init__(self, gain): self.gain = gain
    def respond(self, a, rng): return self.gain * a + rng.normal()
class Pushes:
    def __init__(self, gain, aims=1.0): self.gain, self.aims = gain, aims
    def act(self, x, rng): return self.aims / self.gain
    def log_likelihood(self, x, a, o): return -0.5 * (o - self.gain * a) ** 2
modes = [Pushes(1.0), Pushes(-1.0), Pushes(2.0)]
stuck = [Pushes(1.0), Pushes(1.0, 2.0)]
agent = ControlRule(FiniteBelief(modes, [0.5, 0.5, 0.0]))
agent.observe(1.0, 1.2)
bandit = BernoulliBandit(2).agent()
"""


@pytest.mark.parametrize(
    ("attribute", "code", "pairs"), [("modes", 0, 6), ("stuck", 12, 2), ("agent", 0, 2)]
)
def test_modes_with_densities_are_checked_by_simulation(
    tmp_path: Path, attribute: str, code: int, pairs: int
) -> None:
    file = tmp_path / f"pushes_{attribute}.py"
    file.write_text(_DENSITIES + "world = lambda mode: Pushed(mode.gain)\n")
    arguments = f"{file}:{attribute}", "--runs", "60", "--horizon", "20"
    found = call(*arguments)
    assert found.exit_code == code, found.output
    assert f"all {pairs} pairs" in " ".join(found.stdout.split())
    assert "infinite" not in found.stdout
    assert f"simulated: {60 * pairs}/{60 * pairs} runs" in found.stderr
    note = "The agent has made 1 observation: it is checked from its prior."
    assert (note in found.stdout) == (attribute == "agent")
    rows = json.loads(call(*arguments, "--json").stdout)
    assert (rows["exit_code"], len(rows["pairs"])) == (code, pairs)
    assert {"true", "other", "outcome", "reason", "blind_starts"} <= rows["pairs"][0].keys()


@pytest.mark.parametrize("option", ["--true=a", "--other=a", "--hold=2", "--all", "--strict"])
def test_a_simulated_check_refuses_options_without_effect(tmp_path: Path, option: str) -> None:
    file = tmp_path / f"pushes_{option.strip('-')[:3]}.py"
    file.write_text(_DENSITIES + "world = lambda mode: 1 / 0\n")  # refused before it is called
    found = call(f"{file}:modes", option)
    assert (found.exit_code, found.stdout) == (2, "")
    assert f"{option.partition('=')[0]}: only for" in " ".join(found.stderr.split())


def test_a_density_without_a_world_and_an_infinite_class_say_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "no_world.py"
    file.write_text(_DENSITIES)
    found = call(f"{file}:modes")
    assert found.exit_code == 2
    assert "method environment()" in " ".join(found.output.split())
    found = call(f"{file}:bandit")
    assert found.exit_code == 2
    assert "bayescontrol.convergence.sampled_check" in " ".join(found.output.split())


def test_a_list_of_plant_models_is_checked_as_a_bank(tmp_path: Path) -> None:
    file = tmp_path / "plants.py"
    file.write_text("""
from bayescontrol.bank import PI, PlantMode
def motor(gain):
    return PlantMode(([[0.7]], [[gain]], [[1.0]]), PI(kp=0.3 / gain, ki=0.1 / gain),
                     process_noise=1.0, sensor_noise=1.0, name=f"gain {gain:+g}")
modes = [motor(4.0), motor(-4.0)]
""")
    found = json.loads(call(str(file), "--json", "--runs", "4").stdout)
    assert found["modes"] == ["gain +4", "gain -4"]


def test_an_agent_with_observations_is_checked_from_its_prior(tmp_path: Path) -> None:
    file = tmp_path / "learned.py"
    file.write_text("""
from bayescontrol.finite.examples import prize_or_frog
agent = prize_or_frog().agent()
for _ in range(3):
    agent.observe(0, 1)
new = prize_or_frog().agent()
""")
    learned, new = call(f"{file}:agent", "--runs", "5"), call(f"{file}:new", "--runs", "5")
    assert (learned.exit_code, new.exit_code) == (0, 0)
    note = "The agent has made 3 observations: it is checked from its prior."
    assert note in learned.stdout
    assert note not in new.stdout
    names, options = ("agent", "new"), ("--runs", "5", "--json")
    verdicts = [json.loads(call(f"{file}:{name}", *options).stdout) for name in names]
    assert verdicts[0]["prior"] == verdicts[1]["prior"]
    assert verdicts[0]["pairs"] == verdicts[1]["pairs"]
