"""How long tests wait for a process, a thread or an answer."""

from typing import Final

#: Seconds after which something counts as hanging. Tests that pass need a small part of it, also
#: on a busy machine.
TIMEOUT: Final = 600.0
