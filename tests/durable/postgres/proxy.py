"""A proxy that cuts the connection to the server at a chosen moment.

question    the next message of the client does not arrive
half        half of it arrives
answer      it arrives and is executed, but the answer of the server does not return
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
    """A proxy between a client and the server, on a Unix socket in a separate folder."""

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
        """Close the socket and remove its folder."""
        self._listening.close()
        shutil.rmtree(self.folder)

    def arm(self, cut: str) -> None:
        """Cut the connection at the next message."""
        self._cut = cut

    def url(self, schema: str) -> str:
        """The address of the server through this proxy."""
        return f"postgresql://postgres@/postgres?host={self.folder}&schema={schema}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server))
                for forward in (self._forward_questions, self._forward_answers):
                    threading.Thread(target=forward, args=(client, server), daemon=True).start()

    def _forward_questions(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while message := client.recv(2**16):
                if self._cut == "question":
                    break
                if self._cut == "half":
                    server.sendall(message[: len(message) // 2])
                    break
                server.sendall(message)
        self._end(client, server, "question", "half")

    def _forward_answers(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while message := server.recv(2**16):
                if self._cut == "answer":
                    break
                client.sendall(message)
        self._end(client, server, "answer")

    def _end(self, client: socket.socket, server: socket.socket, *cuts: str) -> None:
        if self._cut in cuts:
            self._cut, self.cuts = "", self.cuts + 1
        for side in (client, server):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
        time.sleep(0.05)  # until the other thread has noticed
        for side in (client, server):
            side.close()
