"""Requests to servers: many at once, repeated where that can help, counted; knows nothing about prompts.

A server that fails rests: as long as it asks for (Retry-After), else half a second, twice as long after every failure
in a row. Meanwhile the others are asked. When a request has used up its attempts and nothing was answered since it was
made, the servers count as down: until one answers again, each further request is tried once at most and never waits, so
that a run whose server is gone ends soon, with its errors counted.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import anyio
import httpx
from anyio.from_thread import start_blocking_portal

from baer_utils.backbones.base import Failure

KEY = "BAER_API_KEY"
CONCURRENCY = 32  # requests on their way at one time
ATTEMPTS = 6
TIMEOUT = httpx.Timeout(600.0, connect=10.0)  # seconds; a long text on a busy server takes minutes
FIRST_REST, LONGEST_REST = 0.5, 60.0  # seconds
WORTH_REPEATING = {408, 409, 425, 429}  # and every 5xx
LONGEST_REASON = 300  # characters of what a server says


@dataclass(frozen=True)
class Refused(Failure):
    """A failure that repeating would not mend: the server says that the request itself is at fault."""

    status: int = 0


@dataclass
class _Server:
    url: str
    ready_at: float = 0.0
    failures: int = 0  # in a row


class Transport:
    """The way to one server, or to several that serve the same.

    The key in the environment variable BAER_API_KEY, if there is one, goes along as a bearer token. It is read when a
    request is made, kept nowhere, and taken out of whatever a server says back.

    Parameters
    ----------
    urls : addresses, with or without ``/v1`` at the end.

    Attributes
    ----------
    repeated : how many attempts failed and were made again, by reason; whoever reads it may clear it.
    """

    def __init__(self, urls: Sequence[str]):
        self._servers = [_Server(base_of(url)) for url in urls]
        if not self._servers:
            raise ValueError("a server needs an address, like http://localhost:8000; none is given.")
        self._turn = 0
        self._certificates = httpx.create_ssl_context()  # a tenth of a second, once
        self._down, self._last, self._answered_at = False, "", -1.0
        self.repeated: Counter[str] = Counter()

    def get(self, path: str) -> dict[str, dict | Failure]:
        """What every server answers to a plain request, by address; nothing is repeated."""

        async def look() -> dict[str, dict | Failure]:
            async with self._client() as client:
                found = {s.url: await self._try(client, s, "GET", path) for s in self._servers}
            return {url: answer if isinstance(answer, dict) else answer[0] for url, answer in found.items()}

        with start_blocking_portal() as portal:
            return portal.call(look)

    def post(self, path: str, bodies: Sequence[dict]) -> list[dict | Failure]:
        """Answers in the order of the bodies. Ctrl-C stops what is on its way."""
        if not bodies:
            return []
        answers: list[dict | Failure] = [Failure("not asked")] * len(bodies)

        async def ask(client: httpx.AsyncClient, gate: anyio.Semaphore, n: int) -> None:
            async with gate:
                answers[n] = await self._ask(client, path, bodies[n])

        async def ask_all() -> None:
            gate = anyio.Semaphore(CONCURRENCY)
            async with self._client() as client, anyio.create_task_group() as group:
                for n in range(len(bodies)):
                    group.start_soon(ask, client, gate, n)

        with start_blocking_portal() as portal:
            portal.call(ask_all)
        return answers

    def _client(self) -> httpx.AsyncClient:
        key = os.environ.get(KEY, "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.AsyncClient(timeout=TIMEOUT, headers=headers, verify=self._certificates)

    async def _ask(self, client: httpx.AsyncClient, path: str, body: dict) -> dict | Failure:
        began, failure = time.monotonic(), Failure(self._last)
        for attempt in range(ATTEMPTS):
            server = await self._ready()
            if server is None:
                break
            answer = await self._try(client, server, "POST", path, body, attempt)
            if isinstance(answer, dict):
                server.failures, self._down, self._answered_at = 0, False, time.monotonic()
                return answer
            failure, kind = answer
            if isinstance(failure, Refused) or self._down:
                break
            if attempt + 1 < ATTEMPTS:
                self.repeated[kind] += 1
            elif self._answered_at < began:
                self._down = True
        self._last = failure.reason
        return failure

    async def _ready(self) -> _Server | None:
        """The next server in turn that does not rest; waits for one unless all are down."""
        while True:
            now = time.monotonic()
            self._turn += 1
            in_turn = [self._servers[(self._turn + k) % len(self._servers)] for k in range(len(self._servers))]
            ready = [server for server in in_turn if server.ready_at <= now]
            if ready or self._down:
                return ready[0] if ready else None
            await anyio.sleep(min(server.ready_at for server in in_turn) - now)

    async def _try(self, client, server: _Server, method: str, path: str, body: dict | None = None, earlier: int = 0):
        """One attempt, after so many earlier ones: the answer, or the failure and its kind."""
        began = time.monotonic()
        wait = 0.0
        try:
            response = await client.request(method, server.url + path, json=body)
            status = response.status_code
            if status == 200:
                answer = response.json()
                if isinstance(answer, dict):
                    return answer
                raise ValueError("not an object")
            kind, said = str(status), _message(response)
            if status < 500 and status not in WORTH_REPEATING:
                hint = f" The key is taken from the environment variable {KEY}." if status in (401, 403) else ""
                return Refused(_plain(f"{server.url} answers {status}: {said}{hint}"), status), kind
            wait = _retry_after(response)
        except httpx.TimeoutException as error:
            kind, said = "timeout", f"no answer in time ({type(error).__name__})"
        except httpx.HTTPError as error:
            kind, said = "connection", f"no connection ({type(error).__name__}: {error})"
        except ValueError as error:
            kind, said = "malformed", f"an answer that is not JSON ({error})"
        if began >= server.ready_at:  # requests that fail together are one failure
            server.failures += 1
        rest = wait or FIRST_REST * 2 ** max(server.failures - 1, earlier)
        server.ready_at = max(server.ready_at, time.monotonic() + min(rest, LONGEST_REST))
        return Failure(_plain(f"{server.url} gives {said}" if not kind.isdigit() else
                              f"{server.url} answers {kind}: {said}")), kind  # fmt: skip


def base_of(url: str) -> str:
    """An address without ``/v1`` at its end.

    Raises
    ------
    ValueError : for what is no http address, or holds a password or a query, which would end up in results.
    """
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query:
        raise ValueError(f"an address must hold neither a password nor a query; one has. Keys belong into {KEY}.")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"an address must be like http://localhost:8000; it is {url!r}.")
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


def _message(response: httpx.Response) -> str:
    """What a server says about its refusal: the message of an error object, else the text."""
    try:
        said = response.json()
        said = said.get("error", said) if isinstance(said, dict) else said
        said = said.get("message", said) if isinstance(said, dict) else said
        return str(said)
    except ValueError:
        return " ".join(response.text.split()) or response.reason_phrase


def _plain(text: str) -> str:
    """A reason of bounded length without the key, which some servers repeat."""
    key = os.environ.get(KEY, "")
    return (text.replace(key, f"<{KEY}>") if key else text)[:LONGEST_REASON]


def _retry_after(response: httpx.Response) -> float:
    """Seconds that the server wants to be left alone, given as a number or as a date; 0 where it does not say."""
    text = response.headers.get("Retry-After", "")
    try:
        return max(0.0, float(text))
    except ValueError:
        try:
            return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
        except (ValueError, TypeError):
            return 0.0
