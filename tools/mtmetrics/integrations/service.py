"""A metric behind HTTP: rows of JSON in, scores out; a gate for translations, for programs in any language."""

import functools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtmetrics._version import __version__
from mtmetrics.checks import compared_texts
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.metric import KEYS

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse

_SECONDS_TO_WAIT = 1


class Service:
    """Answers requests with one metric, one at a time, in the order in which they come.

    ``POST /score`` takes ``{"segments": [{"source": ..., "translation": ...}, ...]}``, with ``reference`` where the
    metric compares with it, or such a segment alone, and answers as `MetricResult.as_dict`; with a threshold, which the
    request may set as ``threshold``, it says for each segment whether its score reaches it: ``accepted``.
    ``GET /health`` says what the service scores with and how many requests wait. What is wrong with a request is said
    in a line, ``{"error": ...}``, with a status from 400 up.

    Args:
        scorer: of the metric; a score of a segment depends on no other.
        threshold: of scores that are good enough; None says nothing of that.
        most_segments: of a request; more are refused (413).
        most_bytes: of a request; more are refused (413), unread.
        most_waiting: requests that wait or are answered; further ones are refused (503).

    Raises:
        InputError: a segment's score would depend on the others of its request.
    """

    def __init__(
        self,
        scorer: Scorer,
        *,
        threshold: float | None = None,
        most_segments: int = 1024,
        most_bytes: int = 4 * 2**20,
        most_waiting: int = 64,
    ) -> None:
        if not scorer.independent:
            raise InputError("normalize: scores depend on the other segments of a request; use normalize=fixed")
        self.scorer = scorer
        self.threshold = threshold
        self.most_segments, self.most_bytes, self.most_waiting = most_segments, most_bytes, most_waiting
        self._waiting = 0
        self._keys = [*(KEYS[column] for column in scorer.compares), "translation"]

    def app(self) -> "Starlette":
        """The application, for any server of ASGI."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        routes = [
            Route("/score", self._answer, methods=["POST"]),
            Route("/health", self._health, methods=["GET"]),
        ]
        return Starlette(routes=routes)

    async def _health(self, request: "Request") -> "JSONResponse":
        from starlette.responses import JSONResponse

        about = {"status": "ok", "version": __version__, "signature": self.scorer.signature, "reads": self._keys}
        return JSONResponse(about | {"waiting": self._waiting})

    async def _answer(self, request: "Request") -> "JSONResponse":
        import anyio
        from starlette.requests import ClientDisconnect
        from starlette.responses import JSONResponse

        if self._waiting >= self.most_waiting:
            what = f"{self._waiting} requests wait already; try again"
            return JSONResponse({"error": what}, 503, {"Retry-After": str(_SECONDS_TO_WAIT)})
        self._waiting += 1
        try:
            body = await self._body(request)
            columns, threshold = self._read(body)
            found = await anyio.to_thread.run_sync(self._score, columns, limiter=self._one_at_a_time)
        except ClientDisconnect:
            return JSONResponse({"error": "the client went away"}, 400)  # which nobody reads
        except _TooMuchError as error:
            return JSONResponse({"error": str(error)}, 413)
        except InputError as error:
            return JSONResponse({"error": str(error)}, 400)
        except MTMetricsError as error:
            return JSONResponse({"error": str(error)}, 500)
        finally:
            self._waiting -= 1
        if threshold is not None:
            found["accepted"] = [score >= threshold for score in found["scores"]]
        return JSONResponse(found)

    @functools.cached_property
    def _one_at_a_time(self) -> Any:
        import anyio

        return anyio.CapacityLimiter(1)

    async def _body(self, request: "Request") -> bytes:
        """The body of a request, of which no more is read than it may have."""
        whole = b""
        async for part in request.stream():
            whole += part
            if len(whole) > self.most_bytes:
                raise _TooMuchError(f"the request is larger than {self.most_bytes:,} bytes")
        return whole

    def _read(self, body: bytes) -> tuple[list[list[Any]], float | None]:
        """The columns of a request, and its threshold."""
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the request is no JSON ({error})") from None
        if not isinstance(asked, dict):
            raise InputError("the request is no JSON object")
        threshold = asked.pop("threshold", self.threshold)
        if isinstance(threshold, bool) or not isinstance(threshold, int | float | None):
            raise InputError(f"threshold {threshold!r}: must be a number")
        segments = asked.pop("segments", None)
        if segments is None:
            segments, asked = [asked], {}
        if asked:
            raise InputError(f"unknown key {next(iter(asked))!r}; there are: segments, threshold")
        if not isinstance(segments, list) or not segments:
            raise InputError("segments: a list of objects is needed")
        if len(segments) > self.most_segments:
            raise _TooMuchError(
                f"segments: {len(segments):,} of them, at most {self.most_segments:,} are taken at once"
            )
        columns = [[_text(segment, key, number) for number, segment in enumerate(segments)] for key in self._keys]
        return columns, threshold

    def _score(self, columns: list[list[Any]]) -> dict[str, Any]:
        *others, predictions = columns
        compared: Any = compared_texts(others)
        [[result]] = self.scorer.score_chunks([[compared, predictions]])
        return result.as_dict()


class _TooMuchError(MTMetricsError):
    """A request that is larger than it may be."""


def _text(segment: Any, key: str, number: int) -> str:
    if not isinstance(segment, Mapping) or key not in segment:
        raise InputError(f"segments[{number}]: no {key}")
    text = segment[key]
    if not isinstance(text, str):
        raise InputError(f"segments[{number}].{key}: a string is needed, got {text!r:.60}")
    return text
