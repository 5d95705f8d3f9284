"""Replicas of changed code are run again, and results state which code produced which replica."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module, reload
from pathlib import Path

import numpy as np
import pytest
from tests.limits import TIMEOUT

from bayescontrol.lab.discovery import find
from bayescontrol.lab.experiment import ExperimentFailed
from bayescontrol.lab.manifest import read_manifest
from bayescontrol.lab.provenance import Provenance, study_sources
from bayescontrol.lab.runner import run_replicas
from bayescontrol.lab.store import ResultStore, Study, read

STUDY = """
from dataclasses import dataclass
import numpy as np
from bayescontrol.lab import Claim, Experiment, Score
import helper

@dataclass(frozen=True)
class Settings:
    seed: int = 0
    runs: int = 4
    scale: float = 1.0

def run(settings, i):
    from package import inside
    return {"y": np.array(helper.value(i) * settings.scale)}

def score(settings, columns):
    mean = float(columns["y"].mean())
    return Score((Claim("mean", "it is finite", "ours", 0.0, mean, None, True),))

def figures(settings, columns):
    return {}

study = Experiment("mine", "my study", Settings, Settings(), Settings(), run, score, figures)
"""
FILES = {
    "my_study.py": STUDY,
    "helper.py": "import deeper\n\ndef value(i):\n    return i + deeper.OFFSET\n",
    "deeper.py": "OFFSET = 0.0\n",
    "unrelated.py": "OFFSET = 0.0\n",
    "package/__init__.py": "",
    "package/inside.py": "from . import sibling\n",
    "package/sibling.py": "",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files of a study: helpers, and a package that `run` imports when it is called."""
    for name, text in FILES.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "project"


@pytest.fixture(autouse=True)
def _forget_modules() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {Path(file).parts[0].removesuffix(".py") for file in FILES}:
            del sys.modules[name]


def shell(project: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    """Run a command in the folder of the project, in a new process."""
    command = [sys.executable, "-m", "bayescontrol.cli", *map(str, words)]
    return subprocess.run(
        command, cwd=project, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def run_study(project: Path, *words: object) -> tuple[float, str]:
    """Run the study of the project; return the mean that it found, and the messages."""
    done = shell(project, "run", "my_study.py", "--out", "results", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["claims"][0]["ours"], done.stderr


# -- in a real shell ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("my_study.py", "helper.value(i)", "(helper.value(i) + 1)"),
        ("helper.py", "return i", "return 1 + i"),
        ("deeper.py", "0.0", "1.00"),
    ],
)
def test_a_changed_study_helper_or_helper_of_a_helper_runs_all_replicas_again(
    project: Path, file: str, old: str, new: str
) -> None:
    assert run_study(project)[0] == 1.5
    path = project / file
    path.write_text(path.read_text().replace(old, new))
    mean, messages = run_study(project)
    assert mean == 2.5
    changed = f"differs from the code now (changed: {path.stem})"
    assert f"results: the code of 4 replicas {changed}. They are replaced" in messages
    assert "mine: 4 runs to do" in messages
    (part,) = read_manifest(project / "results").provenance  # type: ignore[union-attr]
    assert part.runs == ((0, 4),)
    mean, messages = run_study(project)
    assert (mean, messages) == (2.5, "mine: 4 of 4 replicas found, nothing to run\n")


def test_a_change_of_the_study_file_counts_if_its_functions_are_in_another_module(
    project: Path,
) -> None:
    (project / "helper.py").write_text(
        STUDY.replace("import helper\n", "")
        .replace("helper.value(i)", "i + offset")
        .replace("def run(settings, i)", "def run(settings, i, offset)")
        .split("study = ")[0]
    )
    (project / "my_study.py").write_text(
        "from functools import partial\nfrom helper import *\n"
        'study = Experiment("mine", "my study", Settings, Settings(), Settings(),\n'
        "                   partial(run, offset=0.0), score, figures)\n"
    )
    assert run_study(project)[0] == 1.5
    path = project / "my_study.py"
    path.write_text(path.read_text().replace("offset=0.0", "offset=1.00"))
    assert run_study(project)[0] == 2.5


def test_an_unrelated_file_and_more_runs_leave_the_replicas_valid(project: Path) -> None:
    run_study(project)
    (project / "unrelated.py").write_text("OFFSET = 1.00\n")
    mean, messages = run_study(project, "--runs", 6)
    assert mean == 2.5
    assert "mine: 4 of 6 replicas found, 2 to run" in messages
    assert "changed" not in messages


def test_keep_stale_keeps_old_replicas_and_json_page_and_report_say_so(project: Path) -> None:
    run_study(project)
    (project / "deeper.py").write_text("OFFSET = 1.00\n")
    done = shell(project, "report", "results")
    changed = "The code has changed since runs 0 to 3: deeper."
    assert f"results: {changed}" in done.stderr
    words = ("run", "my_study.py", "--out", "results", "--json", "--runs", 6, "--keep-stale")
    done = shell(project, *words)
    assert "(changed: deeper). They are used as they are" in done.stderr
    content = json.loads(done.stdout)
    assert content["claims"][0]["ours"] == (0 + 1 + 2 + 3 + 5 + 6) / 6
    old, new = content["code"]
    assert (old["runs"], new["runs"]) == ([[0, 4]], [[4, 6]])
    names = [name for name, sha256 in old["provenance"]["sources"].items()
             if new["provenance"]["sources"][name] != sha256]  # fmt: skip
    assert names == ["deeper"]
    page = (project / "results" / "index.html").read_text()
    assert changed in page
    for part in (old, new):
        assert part["provenance"]["sources"]["deeper"] in page
    assert run_study(project, "--runs", 6)[0] == 3.5
    assert "The code has changed" not in (project / "results" / "index.html").read_text()


def test_fresh_runs_everything_again_and_an_interrupted_one_continues(project: Path) -> None:
    data = project / "data.txt"  # a file of data is not seen
    helper = (
        "from pathlib import Path\n\ndef value(i):\n    return i + float(Path({!r}).read_text())"
    )
    (project / "helper.py").write_text(helper.format(str(data)))
    data.write_text("0")
    sweep = ("run", "my_study.py", "--sweep", "scale=1,2", "--out", "swept", "--json")
    shell(project, *sweep)
    data.write_text("none")
    done = shell(project, *sweep, "--fresh")
    assert done.returncode == 3
    data.write_text("1")
    done = shell(project, *sweep)
    means = [point["claims"][0]["ours"] for point in json.loads(done.stdout)["points"]]
    assert means == [2.5, 5.0]


def test_a_failed_fresh_command_says_how_to_continue(project: Path) -> None:
    run_study(project)
    (project / "helper.py").write_text("def value(i):\n    return 1 / (3 - i)\n")
    done = shell(project, "run", "my_study.py", "--out", "results", "--fresh")
    assert done.returncode == 3
    assert "Run the same command without --fresh to continue." in done.stderr


def test_worker_processes_report_the_same_code(project: Path) -> None:
    run_study(project, "--workers", 2, "--runs", 3)
    mean, messages = run_study(project)
    assert "mine: 3 of 4 replicas found, 1 to run" in messages
    assert mean == 1.5


def test_reproduce_runs_changed_code_again(project: Path) -> None:
    words = ("reproduce", "my_study.py", "--out", "report", "--workers", 1, "--json")
    shell(project, *words)
    (project / "deeper.py").write_text("OFFSET = 1.00\n")
    done = shell(project, *words, "--keep-stale")
    assert json.loads(done.stdout)["experiments"][0]["claims"][0]["ours"] == 1.5
    done = shell(project, *words)
    assert json.loads(done.stdout)["experiments"][0]["claims"][0]["ours"] == 2.5
    assert "mine: 4 of 4 replicas found" not in shell(project, *words, "--fresh").stderr


# -- the sources of a study -----------------------------------------------------------------------


def test_the_sources_are_the_study_its_local_imports_and_this_package(project: Path) -> None:
    sources = study_sources(find(str(project / "my_study.py")))
    assert list(sources) == [
        "bayescontrol", "deeper", "helper", "my_study",
        "package", "package.inside", "package.sibling",
    ]  # fmt: skip
    assert {len(digest) for digest in sources.values()} == {64}
    assert "package.inside" not in sys.modules


def test_an_edit_counts_when_the_module_is_loaded_again(project: Path) -> None:
    study = find(str(project / "my_study.py"))
    before = study_sources(study)
    (project / "helper.py").write_text("import deeper\n\ndef value(i):\n    return 7\n")
    assert study_sources(study) == before  # the process still runs the old code
    reload(sys.modules["helper"])
    changed = {name for name, digest in study_sources(study).items() if before[name] != digest}
    assert changed == {"helper"}


def test_an_experiment_of_this_package_lists_only_the_experiments_that_it_imports() -> None:
    sources = study_sources(find("chain"))
    assert "bayescontrol_paper.chain" in sources
    assert "bayescontrol_paper.bandit" not in sources
    assert not [name for name in sources if not name.startswith("bayescontrol")]


def test_an_installed_study_lists_the_modules_of_its_package_and_no_other(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site-packages"
    project.rename(site)
    (site / "package" / "study.py").write_text(STUDY)
    monkeypatch.syspath_prepend(site)
    experiment = import_module("package.study").study
    assert list(study_sources(experiment)) == [
        "bayescontrol", "package", "package.inside", "package.sibling", "package.study",
    ]  # fmt: skip


# -- stores ---------------------------------------------------------------------------------------


def study_of(code: str, runs: int = 6) -> Study:
    """A study whose helper has this digest."""
    sources = {"bayescontrol": "b", "helper": code} if code else {}
    provenance = Provenance({}, {}, sources=sources)
    return Study("mine", "mine", {"seed": 0, "runs": runs}, "5e1f", provenance)


def put(store: ResultStore, value: float, *groups: range) -> None:
    assert store.study.provenance is not None
    for runs in groups:
        store.put(runs, {"y": np.full(len(runs), value)}, store.study.provenance)


def fill(folder: Path, study: Study, value: float, **options: bool) -> list[float]:
    """Run what is missing in the folder, with this value as result; return all values."""
    with ResultStore(folder, study, **options) as store:
        put(store, value, *store.missing(range(study.runs)))
        values: list[float] = store.finish(range(study.runs))["y"].tolist()
    assert sorted(path.name for path in folder.iterdir()) == ["columns.npz", "manifest.json"]
    assert read(folder).columns["y"].tolist() == values
    return values


def test_unfinished_replicas_of_other_code_are_replaced_even_after_a_second_interruption(
    tmp_path: Path,
) -> None:
    with ResultStore(tmp_path, study_of("old")) as store:
        put(store, 1.0, range(4))
    with ResultStore(tmp_path, study_of("new")) as store:
        assert store.missing(range(6)) == [range(6)]
        put(store, 2.0, range(2), range(2, 3))
    assert fill(tmp_path, study_of("new"), 3.0) == [2.0, 2.0, 2.0, 3.0, 3.0, 3.0]


def test_an_interruption_before_the_first_new_replica_loses_no_stale_one(tmp_path: Path) -> None:
    fill(tmp_path, study_of("old"), 1.0)
    with ResultStore(tmp_path, study_of("new")) as store:
        assert store.missing(range(6)) == [range(6)]
    assert fill(tmp_path, study_of("new"), 2.0, keep_stale=True) == [1.0] * 6


def test_a_mixture_of_codes_is_recorded_and_only_its_stale_part_is_replaced(tmp_path: Path) -> None:
    fill(tmp_path, study_of("old", 4), 1.0)
    mixed = fill(tmp_path, study_of("new"), 2.0, keep_stale=True)
    assert mixed == [1.0, 1.0, 1.0, 1.0, 2.0, 2.0]
    parts = read(tmp_path).manifest.provenance
    assert {part.provenance.sources["helper"]: part.runs for part in parts} == {
        "old": ((0, 4),),
        "new": ((4, 6),),
    }
    with ResultStore(tmp_path, study_of("new")) as store:
        assert store.missing(range(6)) == [range(4)]
        put(store, 3.0, range(4))  # and interrupted before `finish`
    assert fill(tmp_path, study_of("new"), 4.0) == [3.0, 3.0, 3.0, 3.0, 2.0, 2.0]


def test_stale_replicas_that_are_not_wanted_now_are_not_used_later(tmp_path: Path) -> None:
    fill(tmp_path, study_of("old"), 1.0)
    assert fill(tmp_path, study_of("new", 2), 2.0) == [2.0, 2.0]
    assert fill(tmp_path, study_of("new"), 3.0) == [2.0, 2.0, 3.0, 3.0, 3.0, 3.0]


def test_a_run_that_is_in_no_file_is_reported(
    project: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = eval("lambda settings, i: {'y': i}", {"__name__": "no_such_module"})
    study = replace(find(str(project / "my_study.py")), run=run)
    for _ in range(2):
        assert caplog.text == ""
        with ResultStore(tmp_path / "results", Study.of(study, study.quick)) as store:
            run_replicas(study, study.quick, store=store)
    assert "results: run is in no file, changes of its code are not seen" in caplog.text


def test_changed_code_may_return_other_columns(tmp_path: Path) -> None:
    fill(tmp_path, study_of("old"), 1.0)
    with ResultStore(tmp_path, study_of("new")) as store:
        assert store.study.provenance is not None
        store.put(range(6), {"z": np.zeros((6, 2))}, store.study.provenance)
        assert list(store.finish(range(6))) == ["z"]


def test_a_worker_with_other_code_is_refused(tmp_path: Path) -> None:
    other = study_of("other").provenance
    assert other is not None
    with (
        ResultStore(tmp_path, study_of("new")) as store,
        pytest.raises(ExperimentFailed, match=r"a worker ran other code .*\(helper\)"),
    ):
        store.put(range(6), {"y": np.zeros(6)}, other)
    assert not (tmp_path / "pending").exists()


def test_kept_stale_replicas_do_not_take_the_place_of_new_ones(tmp_path: Path) -> None:
    fill(tmp_path, study_of("old"), 1.0)
    with ResultStore(tmp_path, study_of("new")) as store:
        put(store, 2.0, range(2), range(3, 4))  # and interrupted before `finish`
    kept = fill(tmp_path, study_of("new"), 3.0, keep_stale=True)
    assert kept == [2.0, 2.0, 1.0, 2.0, 1.0, 1.0]
