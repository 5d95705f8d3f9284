"""One experiment over the product of some settings.

    points = { settings with k_1 = v_1, k_2 = v_2, ... :  v_1 in V_1, v_2 in V_2, ... }

`C=5,30,200` sweeps over three values of C. Where a value has commas itself, write the list as
JSON: `depths=[[1,2],[1,2,3]]`. The last setting varies fastest. Each point is a study of its
own, with a folder named for its key, so that a larger sweep finds what a smaller one has done.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bayescontrol.lab.experiment import Experiment
from bayescontrol.lab.settings import InvalidSettings, key, parse, plain


@dataclass(frozen=True)
class Point:
    """The settings of one point, its swept values, and the name of its folder.

    >>> Point(None, {"C": 5}, "5e1f").label
    'C = 5'
    """

    settings: Any
    swept: dict[str, Any]
    folder: str

    @property
    def label(self) -> str:
        """The swept settings as text."""
        return ", ".join(f"{name} = {value}" for name, value in self.swept.items())


def values_of(sweeps: Sequence[str]) -> dict[str, list[str]]:
    """The values of each swept setting, as text.

    >>> values_of(["C=5,30", "depths=[[1,2],[3]]"])
    {'C': ['5', '30'], 'depths': ['[1, 2]', '[3]']}
    """
    found: dict[str, list[str]] = {}
    for text in sweeps:
        name, equals, listed = text.partition("=")
        if not equals or not listed.strip():
            raise InvalidSettings(f"--sweep {text}: write --sweep KEY=VALUE,VALUE,...")
        if name in found:
            raise InvalidSettings(
                f"--sweep {text}: {name} is swept twice; list all its values once"
            )
        found[name] = _listed(listed)
        twice = {value for value in found[name] if found[name].count(value) > 1}
        if twice:
            raise InvalidSettings(f"--sweep {text}: {', '.join(sorted(twice))} is listed twice")
    return found


def points(
    experiment: Experiment[Any], fixed: Mapping[str, str], sweeps: Mapping[str, Sequence[str]]
) -> tuple[Point, ...]:
    """All points of the sweep, the other settings as `fixed` says; every value is checked.

    >>> from types import SimpleNamespace as Some
    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     seed: int = 0
    ...     runs: int = 10
    ...     C: float = 5.0
    >>> chosen = points(Some(name="maze", settings=Settings), {"runs": "3"}, {"C": ["5", "30"]})
    >>> [point.settings for point in chosen]
    [Settings(seed=0, runs=3, C=5.0), Settings(seed=0, runs=3, C=30.0)]
    """
    for name in sweeps:
        if name in fixed:
            raise InvalidSettings(f"{name} is both swept and set to {fixed[name]}: do one of them")
    found: list[Point] = []
    for values in itertools.product(*sweeps.values()):
        settings = parse(experiment.settings, {**fixed, **dict(zip(sweeps, values, strict=True))})
        whole = plain(settings)
        folder = key(experiment.name, settings)[:16]
        if "runs" in sweeps:  # the key does not tell them apart
            folder = f"{folder}-{whole['runs']}"
        point = Point(settings, {name: whole[name] for name in sweeps}, folder)
        if any(folder == other.folder for other in found):
            raise InvalidSettings(f"--sweep: {point.label} is listed twice")
        found.append(point)
    return tuple(found)


def axes(points: Sequence[Point]) -> dict[str, list[Any]]:
    """The values of each swept setting, in the order of the points.

    >>> axes([Point(None, {"C": 5}, ""), Point(None, {"C": 30}, "")])
    {'C': [5, 30]}
    """
    found: dict[str, list[Any]] = {}
    for point in points:
        for name, value in point.swept.items():
            values = found.setdefault(name, [])
            if value not in values:
                values.append(value)
    return found


def _listed(text: str) -> list[str]:
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if isinstance(values, list):
        return [value if isinstance(value, str) else json.dumps(value) for value in values]
    return [part.strip() for part in text.split(",")]
