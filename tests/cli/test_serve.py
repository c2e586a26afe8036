"""``mtmetrics serve``."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from helpers import refused


def test_on_the_command_line_until_ctrl_c(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-m",
        "mtmetrics",
        "serve",
        "--metric",
        "prediction_length",
        "--port",
        "0",
    ]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as running:
        address, signature = running.stdout.readline().split()
        assert signature.startswith("prediction_length|")
        for number in range(200):
            sent = json.dumps({"source": "x", "translation": "y" * number}).encode()
            with urllib.request.urlopen(
                urllib.request.Request(address, sent), timeout=10
            ) as answer:
                assert len(json.load(answer)["scores"]) == 1
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(urllib.request.Request(address, b"{"), timeout=10)
        for name in ("evil.example", "evil.example:80"):
            with pytest.raises(urllib.error.HTTPError, match="421"):
                urllib.request.urlopen(
                    urllib.request.Request(address, b"{", {"Host": name}), timeout=10
                )
        # Somebody goes away in the middle of a request.
        with socket.create_connection(
            ("127.0.0.1", int(address.split(":")[2].split("/")[0]))
        ) as broken:
            broken.sendall(b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        with urllib.request.urlopen(address.replace("score", "health"), timeout=10) as answer:
            assert json.load(answer)["status"] == "ok"
        os.kill(running.pid, signal.SIGINT)
        assert (running.wait(20), running.stderr.read()) == (130, "mtmetrics: interrupted\n")


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


def test_what_cannot_be_listened_on(mtmetrics) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = mtmetrics("serve", "--metric", "prediction_length", "--port", port)
    refused(answer, f"127.0.0.1:{port}: cannot be listened on", code=1)
