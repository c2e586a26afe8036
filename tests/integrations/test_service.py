"""A metric behind HTTP: right answers, one line for wrong requests, and bounds of sizes and of those who wait."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import refused

import mtmetrics
from mtmetrics.errors import InputError
from mtmetrics.integrations.service import Service
from mtmetrics.scorers.baselines import PredictionLength
from mtmetrics.scorers.registry import load_scorer

pytest.importorskip("starlette")
from starlette.testclient import TestClient

ROWS = [{"source": "das Haus", "translation": "the house"}, {"source": "ja", "translation": ""}]


@pytest.fixture
def client() -> Iterator[TestClient]:
    scorer = load_scorer("source_length", lang_pair="de-en")
    with TestClient(Service(scorer, threshold=-3.0, most_segments=4, most_bytes=2000).app()) as client:
        yield client


def post(client: TestClient, content: Any) -> tuple[int, dict[str, Any]]:
    sent = content if isinstance(content, bytes | str) else json.dumps(content)
    answer = client.post("/score", content=sent)
    return answer.status_code, answer.json()


def test_segments_are_scored_as_by_the_metric_itself(client: TestClient) -> None:
    scorer = load_scorer("source_length", lang_pair="de-en")
    wanted = scorer.score([row["source"] for row in ROWS], [row["translation"] for row in ROWS])
    status, found = post(client, {"segments": ROWS})
    accepted = [bool(score >= -3.0) for score in wanted.segments]
    assert (status, found) == (200, {**wanted.as_dict(), "accepted": accepted})
    assert found["report"]["blank"] == 1
    status, one = post(client, {**ROWS[0], "threshold": 5})
    assert (status, one["scores"], one["accepted"]) == (200, found["scores"][:1], [False])
    assert post(client, {"segments": ROWS[:1], "threshold": None})[1].keys() == one.keys() - {"accepted"}


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
        ({"segments": [{"source": None, "translation": "x"}]}, 400, "segments[0].source: a string is needed, got None"),
        ({"segments": ROWS, "metric": "x"}, 400, "unknown key 'metric'; there are: segments, threshold"),
        ({"segments": ROWS, "threshold": "x"}, 400, "threshold 'x': must be a number"),
        ({"segments": ROWS * 3}, 413, "segments: 6 of them, at most 4 are taken at once"),
        ({"source": "x" * 3000, "translation": ""}, 413, "the request is larger than 2,000 bytes"),
        (b"x" * 10_000_000, 413, "the request is larger than 2,000 bytes"),
    ],
)
def test_wrong_requests_get_one_line(client: TestClient, content: Any, status: int, message: str) -> None:
    found, answer = post(client, content)
    assert (found, list(answer)) == (status, ["error"])
    assert answer["error"].startswith(message)
    assert "\n" not in answer["error"]
    assert post(client, {"segments": ROWS})[0] == 200


def test_other_ways_and_places(client: TestClient) -> None:
    assert client.get("/score").status_code == 405
    assert client.get("/").status_code == 404
    health = client.get("/health").json()
    assert (health["status"], health["waiting"], health["version"]) == ("ok", 0, mtmetrics.__version__)


def test_no_more_wait_than_may() -> None:
    released, begun = threading.Event(), threading.Event()

    class Slow(PredictionLength):
        def _score_chunk(self, others: list[Any], systems: list[list[str]]) -> Any:
            begun.set()
            released.wait(10)
            return super()._score_chunk(others, systems)

    with TestClient(Service(Slow(), most_waiting=2).app()) as client:
        answers: list[tuple[int, dict[str, Any]]] = []
        waiting = [threading.Thread(target=lambda: answers.append(post(client, ROWS[0]))) for _ in range(2)]
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


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--port", "65536", "--port 65536: must be from 0, for any that is free, to 65535"),
        ("--most-segments", "0", "--most-segments 0: must be a whole number of at least 1"),
        ("--most-waiting", "-1", "--most-waiting -1: must be a whole number of at least 1"),
    ],
)
def test_limits_that_cannot_be(mtmetrics, option: str, value: str, message: str) -> None:
    refused(mtmetrics("serve", "--metric", "prediction_length", option, value), message)


def test_on_the_command_line_until_ctrl_c(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "mtmetrics", "serve", "--metric", "prediction_length", "--port", "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        address, signature = running.stdout.readline().split()
        assert signature.startswith("prediction_length|")
        for number in range(200):
            sent = json.dumps({"source": "x", "translation": "y" * number}).encode()
            with urllib.request.urlopen(urllib.request.Request(address, sent), timeout=10) as answer:
                assert len(json.load(answer)["scores"]) == 1
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(urllib.request.Request(address, b"{"), timeout=10)
        # Somebody goes away in the middle of a request.
        with socket.create_connection(("127.0.0.1", int(address.split(":")[2].split("/")[0]))) as broken:
            broken.sendall(b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        with urllib.request.urlopen(address.replace("score", "health"), timeout=10) as answer:
            assert json.load(answer)["status"] == "ok"
        os.kill(running.pid, signal.SIGINT)
        assert (running.wait(20), running.stderr.read()) == (130, "mtmetrics: interrupted\n")
