"""Verified downloads: what is transient is tried again, and nothing but the expected bytes is
returned."""

import hashlib

import pytest

from mtmetrics.artifacts.download import fetch, fetch_file, http_client, is_offline
from mtmetrics.errors import ArtifactError
from mtmetrics.io.checksums import git_blob_sha1

DATA = bytes(range(256)) * 40
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def url(origin):
    origin.files["/folder/thing.BAM"] = DATA
    return f"{origin.url}/folder/thing.BAM"


@pytest.fixture
def get(url, tmp_path):
    """Fetches by one of the two ways; returns what came."""

    def called(way, sha256=SHA256):
        with http_client() as client:
            if way == "memory":
                return fetch(client, url, git_blob_sha1(DATA))
            pieces = []
            expected = (None, git_blob_sha1(DATA)) if way == "file of git" else (sha256,)
            assert (
                fetch_file(client, url, tmp_path / "thing", *expected, on_bytes=pieces.append)
                == SHA256
            )
            assert sum(pieces) >= len(DATA)
            assert [path.name for path in tmp_path.iterdir()] == ["thing"]
            return (tmp_path / "thing").read_bytes()

    return called


@pytest.mark.parametrize("way", ["memory", "file", "file of git", "unknown checksum"])
@pytest.mark.parametrize("faults", [[], ["closed"], ["503", "closed"], ["429", "500"]])
def test_what_is_transient_is_tried_again(origin, get, way, faults):
    origin.faults = list(faults)
    assert get(way, None if way == "unknown checksum" else SHA256) == DATA
    assert len(origin.requests) == len(faults) + 1


@pytest.mark.parametrize(
    ("fault", "last"), [("closed", "RemoteProtocol"), ("503", "503 Service Unavailable")]
)
def test_the_last_attempt_is_the_last(origin, get, fault, last):
    origin.faults = [fault] * 4
    message = rf"thing\.BAM: cannot be fetched, 4 attempts failed, the last with {last}.*'mtmetrics artifacts import'"
    with pytest.raises(ArtifactError, match=message):
        get("memory")
    assert len(origin.requests) == 4


def test_a_server_that_is_not_there(origin, get):
    origin.shutdown()
    origin.server_close()
    with pytest.raises(ArtifactError, match="4 attempts failed, the last with ConnectError"):
        get("memory")


WEB_PAGE = r"the answer is a web page \(of a proxy or a login\?\)"
UNEXPECTED = "damaged or not the file: {} bytes with the {} .*, expected {}; nothing was kept"


@pytest.mark.parametrize(
    ("way", "fault", "message"),
    [
        ("memory", "short", UNEXPECTED.format(5120, "git blob hash", git_blob_sha1(DATA))),
        ("memory", "tampered", UNEXPECTED.format(10240, "git blob hash", git_blob_sha1(DATA))),
        ("memory", "html", WEB_PAGE),
        ("memory", "404", "cannot be fetched, the server answered 404 Not Found"),
        ("memory", "403", "cannot be fetched, the server answered 403 Forbidden"),
        ("file", "tampered", UNEXPECTED.format(10240, "sha256", SHA256)),
        ("file", "html", WEB_PAGE),
        ("file of git", "tampered", UNEXPECTED.format(10240, "git blob hash", git_blob_sha1(DATA))),
        ("file of git", "html", WEB_PAGE),
        ("unknown checksum", "html", WEB_PAGE + ".*, expected data"),
        (
            "file",
            "404",
            "the server answered 404 Not Found; try again later, or get thing.BAM in another way$",
        ),
    ],
)
def test_anything_else_is_refused_at_once_and_not_written(
    origin, get, tmp_path, way, fault, message
):
    origin.faults = [fault]
    with pytest.raises(ArtifactError, match=message) as error:
        get(way, None if way == "unknown checksum" else SHA256)
    assert "thing.BAM" in str(error.value)
    assert "\n" not in str(error.value)
    assert len(origin.requests) == 1
    assert list(tmp_path.iterdir()) == []


def test_settings_of_the_environment(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "nonsense://127.0.0.1:1")
    with pytest.raises(
        ArtifactError, match=r"proxy settings of the environment \(HTTPS_PROXY, ALL_PROXY\)"
    ):
        http_client()
    assert is_offline(local_files_only=True)
    for value in (False, True):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", value)
        assert is_offline() == value
