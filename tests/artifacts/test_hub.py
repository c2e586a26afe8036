"""Models from the Hub: downloaded from a loopback server, then read from the cache without a network."""

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY, COMMIT = "someone/tiny-encoder", "a" * 40
PROGRAM = """
import sys
from mtmetrics.encoders.token_encoder import TokenEncoder
from mtmetrics.errors import ArtifactError
try:
    encoder = TokenEncoder(sys.argv[1], revision=sys.argv[2] if len(sys.argv) > 2 else None)
    print(encoder.fingerprint, encoder.encode(["the dog"]).vectors.shape)
except ArtifactError as error:
    print(error)
"""


class Hub(http.server.BaseHTTPRequestHandler):
    """The routes of the Hub that a download uses, over the files of one folder."""

    folder: Path
    requests: list[str]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        path = self.path.split("?")[0]
        self.requests.append(f"{self.command} {path}")
        files = sorted(self.folder.iterdir())
        api = f"/api/models/{REPOSITORY}"
        if path in (api, f"{api}/revision/main", f"{api}/revision/{COMMIT}"):
            siblings = [{"rfilename": file.name} for file in files]
            return self._send(json.dumps({"id": REPOSITORY, "sha": COMMIT, "siblings": siblings}).encode(), body)
        if path.startswith(f"{api}/tree/"):
            tree = [{"type": "file", "path": f.name, "size": f.stat().st_size, "oid": _etag(f)} for f in files]
            return self._send(json.dumps(tree).encode(), body)
        name = path.rsplit("/", 1)[-1]
        if path.startswith(f"/{REPOSITORY}/resolve/") and (self.folder / name).is_file():
            return self._send((self.folder / name).read_bytes(), body, etag=_etag(self.folder / name))
        return self._send(b"{}", body, status=404, error="EntryNotFound" if REPOSITORY in path else "RepoNotFound")

    def _send(self, data: bytes, body: bool, status: int = 200, etag: str = "", error: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Repo-Commit", COMMIT)
        if etag:
            self.send_header("ETag", f'"{etag}"')
        if error:
            self.send_header("X-Error-Code", error)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def _etag(path: Path) -> str:
    return hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()


@pytest.fixture
def hub(tiny_encoder: Path) -> Iterator[str]:
    Hub.folder, Hub.requests = tiny_encoder, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def run(endpoint: str, home: Path, *argv: str, **environment: str) -> str:
    settings = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    source_root = str(Path(__file__).parents[2] / "tools")
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *argv],
        env=os.environ | settings | {"PYTHONPATH": source_root, "HF_UPDATE_DOWNLOAD_COUNTS": "0"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_download_then_cache_then_missing(hub: str, tmp_path: Path, tiny_encoder: Path) -> None:
    from mtmetrics.encoders.token_encoder import TokenEncoder

    fingerprint = TokenEncoder(tiny_encoder).fingerprint
    assert run(hub, tmp_path, REPOSITORY) == f"{fingerprint} (4, 16)"
    assert any(request.startswith("GET") and request.endswith("model.safetensors") for request in Hub.requests)
    Hub.requests.clear()
    assert run(hub, tmp_path, REPOSITORY, HF_HUB_OFFLINE="1") == f"{fingerprint} (4, 16)"
    assert Hub.requests == []
    missing = run(hub, tmp_path, "someone/else")
    assert "model 'someone/else' (revision main) was not found as a folder, as a bundled artifact, in the cache" in missing
    assert "\n" not in missing
