"""Compare the arrays of every experiment with those of an older commit, byte for byte.

    make same-columns BASE=v0.1.0

Runs all experiments at quick size, once from a checkout of BASE and once from this tree, in
separate processes on one machine. Experiments are found by name, so their modules may have moved.
Only arrays are compared: name, dtype, shape and bytes. Headers and manifests may differ. Exits
with 1 if an array differs or an experiment is missing; `--dropped NAME` names one that was removed
on purpose.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
GROUP = "bayescontrol.experiments"


def experiments(tree: Path) -> dict[str, str]:
    """Return name -> what to pass to `bayescontrol reproduce`, for one tree."""
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    found = {name: name for name in project["entry-points"][GROUP]}
    arena = tree / "benchmarks" / "arena"
    for path in sorted(arena.glob("*.py")):
        if "experiment = Experiment(" in path.read_text():
            found[path.stem.replace("_", "-")] = f"{path}:experiment"
    return found


def check_out(commit: str, folder: Path) -> Path:
    """Write the files of a commit into a new folder in `folder`; return it."""
    tree = folder / "base"
    tree.mkdir()
    archive = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
    return tree


def write_metadata(tree: Path, folder: Path) -> None:
    """Write the entry points of a tree where its processes find them before the installed ones."""
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    info = folder / f"bayescontrol-{project['version']}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: bayescontrol\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines))


def run_all(tree: Path, out: Path, sources: Mapping[str, str], workers: int) -> None:
    """Run the experiments of one tree that have no columns in `out` yet."""
    missing = [s for name, s in sources.items() if not (out / name / "columns.npz").exists()]
    if not missing:
        return
    with tempfile.TemporaryDirectory() as metadata:
        write_metadata(tree, Path(metadata))
        path = os.pathsep.join([metadata, str(tree / "src"), str(tree)])
        for source in missing:
            options = ["--quick", "--workers", str(workers), "--out", str(out)]
            subprocess.run(
                [sys.executable, "-m", "bayescontrol.cli", "reproduce", source, *options],
                cwd=tree,
                env=os.environ | {"PYTHONPATH": path},
                stdout=subprocess.DEVNULL,
                check=False,  # failing claims do not matter here
            )


def differences(old: Path, new: Path) -> list[str]:
    """List the arrays of two files that are not identical."""
    if not old.exists() or not new.exists():
        return [f"no columns in {(new if old.exists() else old).parent}"]
    with np.load(old) as before, np.load(new) as after:
        found = []
        for name in sorted({*before.files, *after.files}):
            if name not in before.files or name not in after.files:
                found.append(f"{name}: only in the {'new' if name in after.files else 'old'} tree")
                continue
            a, b = before[name], after[name]
            if a.dtype != b.dtype or a.shape != b.shape:
                found.append(f"{name}: {a.dtype}{a.shape} became {b.dtype}{b.shape}")
            elif a.tobytes() != b.tobytes():
                count = int(np.sum(a != b))
                found.append(f"{name}: {count} of {a.size} values differ")
    return found


def main() -> int:
    """Run both trees and print one line for each experiment."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_columns")
    parser.add_argument("base", help="commit or tag to compare with")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="compare only these experiments")
    parser.add_argument(
        "--dropped", nargs="+", default=(), metavar="NAME", help="removed since BASE, on purpose"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--base-out", type=Path, help="keep and reuse the results of BASE here")
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        base_tree, new_out = check_out(args.base, Path(scratch)), Path(scratch) / "new"
        old_out = (args.base_out or Path(scratch) / "old").resolve()
        old, new = experiments(base_tree), experiments(ROOT)
        for name in args.dropped:
            if name not in old or name in new:
                parser.error(f"--dropped {name}: it must be in BASE, and not in this tree")
            print(f"{name:20} dropped", flush=True)
        names = args.only or sorted((old.keys() | new.keys()) - set(args.dropped))
        run_all(base_tree, old_out, {n: old[n] for n in names if n in old}, args.workers)
        for name in names:
            if name not in old or name not in new:
                found = [f"only in the {'new' if name in new else 'old'} tree"]
            else:
                run_all(ROOT, new_out, {name: new[name]}, args.workers)
                found = differences(old_out / name / "columns.npz", new_out / name / "columns.npz")
            failed += bool(found)
            print(f"{name:20} {'identical' if not found else 'DIFFERENT'}", flush=True)
            print("".join(f"    {line}\n" for line in found), end="", flush=True)
    print(f"{len(names)} experiments: {len(names) - failed} identical, {failed} different")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
