"""A word when kernels compile, without waiting for Numba.

Numba tells its listeners about each compilation, and says nothing when a kernel comes from
the cache on disk. But it is loaded late, by the first replica that needs it; so a thread
looks out for it and listens from then on. A run that needs no Numba never loads it.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

_LOOK_EVERY: Final = 0.01  # seconds; loading Numba takes a few hundred milliseconds


@contextmanager
def announced(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` once, when the first kernel is compiled inside the block.

    >>> said = []
    >>> with announced(lambda: said.append("compiling")):
    ...     print(2 + 2)
    4
    >>> said
    []
    """
    if _numba_can_tell():
        with _listening(tell):
            yield
        return
    left = threading.Event()
    lookout = threading.Thread(target=_look_out, args=(tell, left), daemon=True)
    lookout.start()
    try:
        yield
    finally:
        left.set()
        lookout.join()


def _numba_can_tell() -> bool:
    # The last name that `_listening` needs of a module that may be half loaded.
    return hasattr(sys.modules.get("numba.core.event"), "install_listener")


def _look_out(tell: Callable[[], None], left: threading.Event) -> None:
    while not left.wait(_LOOK_EVERY):
        if _numba_can_tell():
            with _listening(tell):
                left.wait()


@contextmanager
def _listening(tell: Callable[[], None]) -> Iterator[None]:
    events: Any = sys.modules["numba.core.event"]
    told = False

    class Word(events.Listener):  # type: ignore[misc] # untyped, and not imported here
        def on_start(self, _: object) -> None:
            nonlocal told
            if not told:
                told = True
                tell()

        def on_end(self, _: object) -> None: ...

    with events.install_listener("numba:compile", Word()):
        yield
