"""Which runs were made with what, after they were joined.

made(run) = what the last file that holds it says, else what an earlier manifest says
"""

from collections.abc import Iterable, Sequence

import msgspec

from bayescontrol.lab.assembly import progressions, span
from bayescontrol.lab.manifest import Making
from bayescontrol.lab.pieces import File
from bayescontrol.lab.provenance import Made


def makings(
    wanted: Sequence[int], files: Iterable[File], known: Iterable[Making]
) -> tuple[Making, ...]:
    """The wanted runs, those of one making together, as few progressions.

    >>> first, then = Made({"numpy": "1.26"}, {}, ""), Made({"numpy": "2.0"}, {}, "")
    >>> known = [Making(((0, 4, 1),), first), Making(((4, 6, 1),), then)]
    >>> [making.runs for making in makings(range(1, 6), [], known)]
    [((1, 4, 1),), ((4, 6, 1),)]
    """
    made = {run: making.made for making in known for one in making.runs for run in range(*one)}
    for file in files:
        if file.note.made is not None:
            made.update(dict.fromkeys(file.runs, file.note.made))
    together: dict[bytes, list[int]] = {}
    nothing = Made({}, {}, "")
    for run in wanted:
        together.setdefault(msgspec.json.encode(made.get(run, nothing)), []).append(run)
    return tuple(
        Making(
            tuple(span(runs) for runs in progressions(of_one)), msgspec.json.decode(text, type=Made)
        )
        for text, of_one in together.items()
    )
