"""A wire to the server that can be cut at a chosen moment.

question    what the client says next does not arrive
half        half of it arrives
answer      it arrives whole and is done; the server's answer does not come back
"""

import shutil
import socket
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_NAME: Final = ".s.PGSQL.5432"


class Proxy:
    """Between a client and the server in a folder, on a socket in another folder."""

    def __init__(self, server: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bayescontrol-wire-"))
        self._server = server / _NAME
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.folder / _NAME))
        self._listening.listen()
        self._cut = ""
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take the wire away."""
        self._listening.close()
        shutil.rmtree(self.folder)

    def arm(self, cut: str) -> None:
        """Cut at the next chance."""
        self._cut = cut

    def url(self, schema: str) -> str:
        """The address of the server, by this wire."""
        return f"postgresql://postgres@/postgres?host={self.folder}&schema={schema}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server))
                for pump in (self._questions, self._answers):
                    threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def _questions(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while message := client.recv(2**16):
                if self._cut == "question":
                    break
                if self._cut == "half":
                    server.sendall(message[: len(message) // 2])
                    break
                server.sendall(message)
        self._end(client, server, "question", "half")

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while message := server.recv(2**16):
                if self._cut == "answer":
                    break
                client.sendall(message)
        self._end(client, server, "answer")

    def _end(self, client: socket.socket, server: socket.socket, *mine: str) -> None:
        if self._cut in mine:
            self._cut, self.cuts = "", self.cuts + 1
        for side in (client, server):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
        time.sleep(0.05)  # until the other pump has seen it
        for side in (client, server):
            side.close()
