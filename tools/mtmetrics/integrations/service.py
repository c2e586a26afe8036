"""A metric behind HTTP, for programs in any language: a request holds segments, the answer scores.

Needs the extra ``serve``."""

import functools
import ipaddress
import json
import urllib.parse
from collections.abc import Collection, Mapping

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mtmetrics._version import __version__
from mtmetrics.checks import as_text, number, shown
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.lines import JsonObject
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch

_SECONDS_TO_WAIT = 1
# Of a request; more are refused (413), without reading them.
_MOST_BYTES = 4 * 2**20
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def host_names(host: str, address: str) -> frozenset[str] | None:
    """Names by which clients may call a server.

    Args:
        host: name or address that the server was told to listen on.
        address: IP address that its socket is bound to.

    Returns:
        The names that the header ``Host`` may hold, in lower case and without a port; None stands
        for any name.
    """
    bound_address = ipaddress.ip_address(address.partition("%")[0])
    # The socket listens on every interface, and other machines may call this one by any name.
    if bound_address.is_unspecified:
        return None
    names = frozenset({host.lower(), str(bound_address)})
    return names | _LOOPBACK if bound_address.is_loopback else names


class Service:
    """Answers requests with one metric, one at a time, in the order in which they come.

    ``POST /score`` takes ``{"segments": [{"source": ..., "translation": ...}, ...]}``, with
    ``reference`` where the metric compares with it; or such a segment alone. The answer is
    `MetricResult.as_dict`. With a threshold, which the request can set as ``threshold``, the answer
    holds ``accepted``, for each segment whether its score reaches the threshold. ``GET /health``
    answers the signature of the metric and the number of requests that wait. Every answer is a JSON
    object. The answer to a request that cannot be served is ``{"error": ...}``, with a status from
    400 up.

    Args:
        scorer: of the metric; the score of a segment must not depend on other segments.
        threshold: lowest score that is good enough; None for none.
        hosts: names that the header ``Host`` may hold, see `host_names`; None for any name. Other
            names are refused (421). Otherwise a web page could reach a service on the visitor's own
            machine, by a domain name that leads to that machine.
        most_segments: of a request; more are refused (413).
        most_waiting: requests that may wait or be answered; more are refused (503).

    Raises:
        InputError: the score of a segment depends on other segments.
    """

    def __init__(
        self,
        scorer: Scorer,
        *,
        threshold: float | None = None,
        hosts: Collection[str] | None = None,
        most_segments: int = 1024,
        most_waiting: int = 64,
    ) -> None:
        if not scorer.has_independent_segments:
            raise InputError(
                "normalize: scores depend on the other segments of a request; use normalize=fixed",
                mentions=["normalize=fixed"],
            )
        self.scorer = scorer
        self.threshold = threshold
        self.hosts = hosts
        self.most_segments = most_segments
        self.most_waiting = most_waiting
        self._waiting = 0
        self._keys = [*scorer.side.fields, "translation"]

    def app(self) -> Starlette:
        """Makes the application, for any ASGI server."""
        routes = [
            Route("/score", self._answer, methods=["POST"]),
            Route("/health", self._health, methods=["GET"]),
        ]
        app = Starlette(
            routes=routes,
            middleware=[Middleware(BaseHTTPMiddleware, dispatch=self._check_host)],
            exception_handlers={HTTPException: _no_such_call, Exception: _internal_error},
        )
        app.router.redirect_slashes = False  # a redirection is no JSON
        return app

    async def _check_host(self, request: Request, answer: RequestResponseEndpoint) -> Response:
        """Refuses requests whose header ``Host`` holds another name than `hosts`.

        The port is not compared, since a tunnel may lead from any port to this one. Starlette's own
        middleware answers in plain text, not in JSON.
        """
        header = request.headers.get("host", "")
        if self.hosts is None or _host_name(header) in self.hosts:
            return await answer(request)
        names = ", ".join(sorted(self.hosts))
        error = (
            f"Host {shown(header)}: this service answers to {names}; --host says what it listens on"
        )
        return JSONResponse({"error": error}, 421)

    async def _health(self, _request: Request) -> JSONResponse:
        return JSONResponse(
            {
                "status": "ok",
                "version": __version__,
                "signature": self.scorer.signature,
                "reads": self._keys,
                "waiting": self._waiting,
            }
        )

    async def _answer(self, request: Request) -> JSONResponse:
        if self._waiting >= self.most_waiting:
            message = f"{self._waiting} requests wait already; try again"
            return JSONResponse({"error": message}, 503, {"Retry-After": str(_SECONDS_TO_WAIT)})
        self._waiting += 1
        try:
            body = await self._body(request)
            columns, threshold = self._read(body)
            result = await anyio.to_thread.run_sync(
                self._score, columns, limiter=self._one_at_a_time
            )
        except ClientDisconnect:
            return JSONResponse({"error": "the client went away"}, 400)  # nobody reads it
        except _TooMuchError as error:
            return JSONResponse({"error": str(error)}, 413)
        except InputError as error:
            return JSONResponse({"error": str(error)}, 400)
        except MTMetricsError as error:
            return JSONResponse({"error": str(error)}, 500)
        finally:
            self._waiting -= 1
        if threshold is not None:
            result["accepted"] = [score >= threshold for score in result["scores"]]
        return JSONResponse(result)

    @functools.cached_property
    def _one_at_a_time(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(1)

    async def _body(self, request: Request) -> bytes:
        """Reads the body of a request, up to the largest size that it may have."""
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                raise _TooMuchError(f"the request is larger than {_MOST_BYTES:,} bytes")
        return body

    def _read(self, body: bytes) -> tuple[list[list[str]], float | None]:
        """Returns the texts of a request, a list for each of `_keys`, and its threshold."""
        try:
            content = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the request is no JSON ({error})") from None
        if not isinstance(content, dict):
            raise InputError("the request is no JSON object")
        threshold = content.pop("threshold", self.threshold)
        if threshold is not None:
            threshold = number("threshold", threshold)
        segments = content.pop("segments", None)
        if segments is None:
            segments, content = [content], {}
        if content:
            raise InputError(
                f"unknown key {shown(next(iter(content)))}; there are: segments, threshold"
            )
        if not isinstance(segments, list) or not segments:
            raise InputError("segments: a list of objects is needed")
        if len(segments) > self.most_segments:
            raise _TooMuchError(
                f"segments: {len(segments):,} of them, at most {self.most_segments:,} are taken "
                "at once"
            )
        columns = [
            [_text(segment, key, place) for place, segment in enumerate(segments)]
            for key in self._keys
        ]
        return columns, threshold

    def _score(self, columns: list[list[str]]) -> JsonObject:
        *compared, predictions = columns
        texts = dict(zip(self.scorer.side.columns, compared, strict=True))
        [[result]] = self.scorer.score_batches([Batch({"": predictions}, **texts)])
        return result.as_dict()


class _TooMuchError(MTMetricsError):
    """A request that is larger than it may be."""


def _host_name(header: str) -> str | None:
    """Returns the name in a header ``Host``, in lower case, without brackets, port and final dot;
    None where there is none."""
    try:
        name = urllib.parse.urlsplit(f"//{header}").hostname
    except ValueError:  # half a pair of brackets
        return None
    return name and name.removesuffix(".")


async def _no_such_call(request: Request, error: HTTPException) -> JSONResponse:
    """Answers a request for a path or a method that the service does not have."""
    call = f"{request.method} {shown(request.url.path)}"
    text = f"{call}: {error.detail}; there are: POST /score, GET /health"
    return JSONResponse({"error": text}, error.status_code, error.headers)


async def _internal_error(_request: Request, error: Exception) -> JSONResponse:
    """Answers where the service itself is at fault; the server logs the traceback."""
    text = f"internal error ({type(error).__name__}); the log of the service says more"
    return JSONResponse({"error": text}, 500)


def _text(segment: object, key: str, place: int) -> str:
    """Returns a text of the segment at a place of a request."""
    if not isinstance(segment, Mapping) or key not in segment:
        raise InputError(f"segments[{place}]: no {key}")
    return as_text(f"segments[{place}].{key}", segment[key])
