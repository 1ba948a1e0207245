"""A TCP proxy that makes the network between a client and a server slow, one-sided or dead.

It stands where no network namespace may be made, and can do what those cannot: swallow the reply to a
write that the server has carried out.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

_CHUNK = 64 * 1024


class Proxy:
    """Listens on a port of 127.0.0.1 and passes on to a port there, in a thread of its own.

    Set what it shall do at any time; connections that are open follow at once.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self.delay_s = 0.0
        """How long each piece is held, in both directions."""
        self.opened = 0
        """How many connections were made."""
        self._target = target
        self._refuses = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._gates: dict[str, asyncio.Event] = {}
        self._budget: int | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """How a client is told of the server behind it."""
        return f"redis://127.0.0.1:{self.port}/0"

    # -- what it shall do --------------------------------------------------------------------------

    def freeze(self, *, requests: bool = True, replies: bool = True) -> None:
        """Pass nothing on, as a network does that loses every packet: nobody is told of it."""
        self._do(self._freeze, requests, replies)

    def cut(self) -> None:
        """Break all connections, and every new one."""
        self._refuses = True
        self._do(self._break)

    def cut_after(self, reply_bytes: int) -> None:
        """Break all connections once so many more bytes of replies have gone through."""
        self._do(self._set_budget, reply_bytes)

    def heal(self) -> None:
        """Pass everything on at once, also what was held."""
        self.delay_s, self._refuses = 0.0, False
        self._do(self._set_budget, None)
        self._do(self._thaw)

    # -- its life ----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread.start()
        self.port = self._run(self._listen())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, doing: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(20)

    def _do(self, what: Callable[..., None], *arguments: object) -> None:
        async def doing() -> None:
            what(*arguments)

        self._run(doing())

    async def _listen(self) -> int:
        for direction in ("requests", "replies"):
            self._gates[direction] = asyncio.Event()
            self._gates[direction].set()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _end(self) -> None:
        self._server.close()
        self._break()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _freeze(self, requests: bool, replies: bool) -> None:
        for direction, frozen in (("requests", requests), ("replies", replies)):
            if frozen:
                self._gates[direction].clear()

    def _thaw(self) -> None:
        for gate in self._gates.values():
            gate.set()

    def _set_budget(self, reply_bytes: int | None) -> None:
        self._budget = reply_bytes

    def _break(self) -> None:
        for writer in list(self._writers):
            if writer.transport is not None:
                writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        self.opened += 1
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        for a_reader, a_writer, direction in (
            (reader, back, "requests"),
            (there, writer, "replies"),
        ):
            self._writers.add(a_writer)
            task = self._loop.create_task(self._pass_on(a_reader, a_writer, direction))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: str
    ) -> None:
        try:
            while piece := await reader.read(_CHUNK):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                await self._gates[direction].wait()
                if direction == "replies" and self._budget is not None:
                    piece, self._budget = piece[: self._budget], self._budget - len(piece)
                writer.write(piece)
                await writer.drain()
                if self._budget is not None and self._budget <= 0:
                    self._budget = None
                    self._break()
        except OSError:
            pass  # the other side broke it; that is passed on below
        finally:
            self._writers.discard(writer)
            writer.close()
