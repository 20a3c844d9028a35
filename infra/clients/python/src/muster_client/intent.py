"""Finds, joins and creates: each takes one seat, however often its request is sent."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from .api import FindLobbyResponse
from .error import MusterError
from .http import LONG_ATTEMPT, Call, Service, now

#: For how long the seat of an intent that was given up is looked for, to leave it.
GIVE_BACK = 35.0
#: Codes of a 503 after which the intent has no seat.
WITHOUT_SEAT = ("MATCHMAKER_NO_SERVER_AVAILABLE", "MATCHMAKER_LOBBY_START_TIMEOUT", "CAPTCHA_UNAVAILABLE")


class Background:
    """Tasks that nobody waits for, until `settled`."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        # The event loop itself keeps no task.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settled(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)


class Intent:
    """A call with an `Idempotency-Key`: each attempt repeats key and body, so that all of them together take one seat.

    When its task is cancelled or the deadline passes, an attempt may have taken the seat without a response. Then the
    call goes on in the background, for at most 35 seconds, until it knows, and `give_back` gets the answer.
    """

    def __init__(
        self,
        service: Service,
        call: Call,
        give_back: Callable[[FindLobbyResponse], Awaitable[object]],
        background: Background,
    ) -> None:
        self._service = service
        self._call = call
        self._give_back = give_back
        self._background = background
        self._answer: asyncio.Future[FindLobbyResponse] = asyncio.get_running_loop().create_future()
        self._end = 0.0
        self._is_given_up = False
        # Whether an attempt may have taken the seat.
        self._is_uncertain = False
        self._last: MusterError = MusterError("no response of the matchmaker before the deadline")

    async def take(self, deadline: float) -> FindLobbyResponse:
        """Raises `MusterError` where the seat is refused or the deadline passes."""
        self._end = now() + deadline
        self._background.start(self._run())
        try:
            await asyncio.wait([self._answer], timeout=deadline)
        except asyncio.CancelledError:
            self._give_up()
            if self._answer.done() and not self._answer.exception():
                self._background.start(self._leave(self._answer.result()))
            raise
        if not self._answer.done():
            self._give_up()
            raise without_frames(self._last)
        return self._answer.result()

    def _give_up(self) -> None:
        self._is_given_up = True
        self._end = now() + GIVE_BACK

    async def _run(self) -> None:
        for failures in itertools.count():
            try:
                answer = await self._service.attempt(self._call, LONG_ATTEMPT)
            except Exception as error:
                # A refusal says that no attempt took a seat.
                if not (isinstance(error, MusterError) and error.is_transient):
                    return self._fail(error)
                self._last = error
                if error.code in WITHOUT_SEAT:
                    self._is_uncertain = False
                elif error.status != 429:
                    self._is_uncertain = True
            else:
                if self._is_given_up:
                    return await self._leave(answer)
                return self._answer.set_result(answer)
            wait = self._service.delay(failures, self._last.retry_after)
            if not self._is_given_up and now() + wait >= self._end:
                self._fail(self._last)
                self._give_up()
            if self._is_given_up and (not self._is_uncertain or now() + wait >= self._end):
                return None
            await asyncio.sleep(wait)
            if self._is_given_up and not self._is_uncertain:
                return None

    def _fail(self, error: Exception) -> None:
        if not self._is_given_up:
            self._answer.set_exception(without_frames(error))

    async def _leave(self, answer: FindLobbyResponse) -> None:
        try:
            await self._give_back(answer)
        except MusterError:
            # The seat that could not be left expires.
            pass


def without_frames(error: Exception) -> Exception:
    """The error without the frame of `Intent._run`: clearing that, as `unittest` does, would end what goes on there."""
    return error.with_traceback(None)
