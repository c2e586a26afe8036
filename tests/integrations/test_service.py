"""A metric behind HTTP: right answers, one line for wrong requests, and bounds of sizes and of
those who wait."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mtmetrics
from mtmetrics.errors import InputError
from mtmetrics.scorers.baselines import PredictionLength
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.registry import load_scorer

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from mtmetrics.integrations.service import Service, host_names

ROWS = [{"source": "das Haus", "translation": "the house"}, {"source": "ja", "translation": ""}]


@pytest.fixture
def client() -> Iterator[TestClient]:
    scorer = load_scorer("source_length", lang_pair="de-en")
    with TestClient(Service(scorer, threshold=-3.0, most_segments=4).app()) as client:
        yield client


def post(client: TestClient, content: Any) -> tuple[int, dict[str, Any]]:
    sent = content if isinstance(content, bytes | str) else json.dumps(content)
    answer = client.post("/score", content=sent)
    return answer.status_code, answer.json()


def test_segments_are_scored_as_by_the_metric_itself(client: TestClient) -> None:
    scorer = load_scorer("source_length", lang_pair="de-en")
    wanted = scorer.score(
        [row["translation"] for row in ROWS], sources=[row["source"] for row in ROWS]
    )
    status, found = post(client, {"segments": ROWS})
    accepted = [bool(score >= -3.0) for score in wanted.segments]
    assert (status, found) == (200, {**wanted.as_dict(), "accepted": accepted})
    assert found["report"]["blank"] == 1
    status, one = post(client, {**ROWS[0], "threshold": 5})
    assert (status, one["scores"], one["accepted"]) == (200, found["scores"][:1], [False])
    assert post(client, {"segments": ROWS[:1], "threshold": None})[1].keys() == one.keys() - {
        "accepted"
    }


def test_references_and_both_sides() -> None:
    with TestClient(Service(load_scorer("chrf")).app()) as client:
        row = {"source": "das Haus", "reference": "the house", "translation": "the house"}
        assert post(client, row)[1]["scores"] == [1.0]
        assert client.get("/health").json()["reads"] == ["reference", "translation"]


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (b"", 400, "the request is no JSON"),
        (b"\xff", 400, "the request is no JSON"),
        ("[1]", 400, "the request is no JSON object"),
        ("[" * 1500, 400, "the request is no JSON"),
        ({}, 400, "segments[0]: no source"),
        ({"segments": []}, 400, "segments: a list of objects is needed"),
        ({"segments": {}}, 400, "segments: a list of objects is needed"),
        ({"segments": ["x"]}, 400, "segments[0]: no source"),
        ({"segments": [ROWS[0], {"source": "x"}]}, 400, "segments[1]: no translation"),
        (
            {"segments": [{"source": None, "translation": "x"}]},
            400,
            "segments[0].source: a string is needed, got None",
        ),
        (
            {"segments": ROWS, "metric": "x"},
            400,
            "unknown key 'metric'; there are: segments, threshold",
        ),
        ({"segments": ROWS, "threshold": "x"}, 400, "threshold 'x': must be a finite number"),
        (
            '{"source": "a", "translation": "a", "threshold": NaN}',
            400,
            "threshold nan: must be a finite number",
        ),
        ({"segments": ROWS, "threshold": 10**400}, 400, "threshold 1000"),
        (
            r'{"source": "\ud800", "translation": "a"}',
            400,
            "segments[0].source: holds a lone surrogate",
        ),
        (
            r'{"source": "a", "translation": "a\udc80"}',
            400,
            "segments[0].translation: holds a lone surrogate",
        ),
        (
            b'{"source": "\xed\xa0\x80", "translation": "a"}',
            400,
            "segments[0].source: holds a lone surrogate",
        ),
        (r'{"\ud800": "a", "segments": []}', 400, r"unknown key '\ud800'"),
        (
            r'{"source": "a", "translation": ["\ud800"]}',
            400,
            "segments[0].translation: a string is needed",
        ),
        (
            r'{"source": "a\u0000", "translation": "a"}',
            400,
            "segments[0].source: holds a NUL character",
        ),
        ({"segments": ROWS * 3}, 413, "segments: 6 of them, at most 4 are taken at once"),
        (
            {"source": "x" * 5_000_000, "translation": ""},
            413,
            "the request is larger than 4,194,304 bytes",
        ),
        (b"x" * 10_000_000, 413, "the request is larger than 4,194,304 bytes"),
    ],
)
def test_wrong_requests_get_one_line(
    client: TestClient, content: Any, status: int, message: str
) -> None:
    found, answer = post(client, content)
    assert (found, list(answer)) == (status, ["error"])
    assert answer["error"].startswith(message)
    assert "\n" not in answer["error"]
    assert post(client, {"segments": ROWS})[0] == 200


def test_text_outside_the_basic_plane_is_scored(client: TestClient) -> None:
    assert post(client, r'{"source": "\ud83d\ude00", "translation": "\ud83d\ude00"}')[1][
        "scores"
    ] == [-1.0]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/score", 405),
        ("PUT", "/score", 405),
        ("DELETE", "/health", 405),
        ("POST", "/health", 405),
        ("GET", "/", 404),
        ("POST", "/score/", 404),
        ("POST", "/no%0Asuch%20place", 404),
    ],
)
def test_other_ways_and_places_get_one_line_of_json(
    client: TestClient, method: str, path: str, status: int
) -> None:
    answer = client.request(method, path, follow_redirects=False)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert answer.headers["content-type"] == "application/json"
    assert "\n" not in answer.json()["error"]
    assert ("Allow" in answer.headers) == (status == 405)


def test_health(client: TestClient) -> None:
    health = client.get("/health").json()
    assert (health["status"], health["waiting"], health["version"]) == (
        "ok",
        0,
        mtmetrics.__version__,
    )


def test_a_fault_of_the_service_is_json_too() -> None:
    class Broken(PredictionLength):
        def score_segment(self, compared: str, prediction: str) -> float:
            raise RuntimeError("broken")

    with TestClient(Service(Broken()).app(), raise_server_exceptions=False) as client:
        status, answer = post(client, ROWS[0])
        assert (status, list(answer)) == (500, ["error"])
        assert "RuntimeError" in answer["error"]
        assert client.get("/health").json()["waiting"] == 0


@pytest.mark.parametrize(
    ("host", "address", "answered", "refused"),
    [
        (
            "127.0.0.1",
            "127.0.0.1",
            ["127.0.0.1:8765", "localhost:8765", "LOCALHOST.", "localhost:9000", "[::1]:8765"],
            [
                "evil.example",
                "evil.example:8765",
                "localhost.evil.example",
                "127.0.0.1.evil.example",
                "",
                "[::1",
                "0",
            ],
        ),
        ("::1", "::1", ["[::1]:8765", "localhost"], ["evil.example:8765", "[::2]:8765"]),
        (
            "mt.example",
            "192.0.2.1",
            ["mt.example:8765", "MT.example", "192.0.2.1:8765"],
            ["localhost", "evil.example"],
        ),
        ("0.0.0.0", "0.0.0.0", ["evil.example", "mt:8765"], []),
        ("::", "::", ["evil.example", "mt:8765"], []),
    ],
)
def test_the_host_is_one_that_it_listens_on(
    host: str, address: str, answered: list[str], refused: list[str]
) -> None:
    service = Service(PredictionLength(), hosts=host_names(host, address))
    with TestClient(service.app()) as client:
        for name in answered:
            assert client.get("/health", headers={"Host": name}).status_code == 200, name
        for name in refused:
            for method, path in (("GET", "/health"), ("POST", "/score"), ("GET", "/elsewhere")):
                answer = client.request(method, path, headers={"Host": name})
                assert (answer.status_code, list(answer.json())) == (421, ["error"]), name


def test_no_more_wait_than_may() -> None:
    released, begun = threading.Event(), threading.Event()

    class Slow(PredictionLength):
        def compute(self, batch: Batch) -> Any:
            begun.set()
            released.wait(10)
            return super().compute(batch)

    with TestClient(Service(Slow(), most_waiting=2).app()) as client:
        answers: list[tuple[int, dict[str, Any]]] = []
        waiting = [
            threading.Thread(target=lambda: answers.append(post(client, ROWS[0]))) for _ in range(2)
        ]
        for thread in waiting:
            thread.start()
        begun.wait(10)
        while client.get("/health").json()["waiting"] < 2:
            time.sleep(0.01)
        refused = client.post("/score", content=json.dumps(ROWS[0]))
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert refused.json() == {"error": "2 requests wait already; try again"}
        released.set()
        for thread in waiting:
            thread.join()
        assert [status for status, _ in answers] == [200, 200]
        assert post(client, ROWS[0])[0] == 200


def test_scores_that_depend_on_others_are_refused(tiny_encoder: Path) -> None:
    scorer = load_scorer("sentsim", "mini", setting="src-mt", normalize="batch", lang_pair="de-en")
    with pytest.raises(InputError, match="use normalize=fixed"):
        Service(scorer)
