"""Several results into one folder: each in its own, what breaks is told, the rest goes on."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from bayescontrol.cli.crew import Crew
from bayescontrol.cli.into import KEPT
from bayescontrol.cli.screen import say
from bayescontrol.files import lock_folder
from bayescontrol.lab.experiment import ExperimentFailed
from bayescontrol.lab.manifest import Manifest, NoResults, Reproduction, Sweep, read_manifest
from bayescontrol.lab.store import OtherResults
from bayescontrol.report import folder as folders

T = TypeVar("T")


@contextmanager
def owned(
    folder: Path, is_ours: Callable[[Manifest | Sweep | Reproduction], bool]
) -> Iterator[None]:
    """Be the only writer of a folder of several results, once it is seen to be free or ours.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place, owned(Path(place), lambda manifest: True):
    ...     (Path(place) / ".lock").exists()
    True
    """
    folders.prepare(folder)
    with lock_folder(folder):
        try:
            there = read_manifest(folder)
        except NoResults:
            there = None
        if there is not None and not is_ours(there):
            what = "several" if isinstance(there, Reproduction) else there.experiment
            kind = there.__struct_config__.tag
            raise OtherResults(
                f"{folder} holds something else ({kind}: {what}): name another folder, or remove it"
            )
        context = click.get_current_context(silent=True)
        if context is not None:
            context.meta[KEPT] = folder
        yield


def attempt(name: str, work: Callable[[], T], crew: Crew, broken: dict[str, str]) -> T | None:
    """What `work` gives; None if the experiment broke, which is told and noted in `broken`.

    >>> broken = {}
    >>> attempt("chain", lambda: 3, Crew(), broken), broken
    (3, {})
    """
    try:
        return work()
    except ExperimentFailed as error:
        if error.__cause__ is not None:
            say("".join(traceback.format_exception(error.__cause__)))
        say(f"Error: {error}")
        broken[name] = str(error)
        crew.renew()
        return None
