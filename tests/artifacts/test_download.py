"""Verified downloads: what is transient is tried again, and nothing but the expected bytes is returned."""

import hashlib

import pytest

from mtmetrics.artifacts.download import fetch, fetch_file, http_client, is_offline
from mtmetrics.artifacts.files import git_blob_sha1
from mtmetrics.errors import ArtifactError

DATA = bytes(range(256)) * 40


@pytest.fixture
def url(origin):
    origin.files["/folder/thing.BAM"] = DATA
    return f"{origin.url}/folder/thing.BAM"


def get(url, git_blob=None):
    with http_client() as client:
        return fetch(client, url, git_blob or git_blob_sha1(DATA))


def test_git_blob_hashes():
    # `printf 'hello\n' | git hash-object --stdin` and the empty file, known from any git repository.
    assert git_blob_sha1(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert git_blob_sha1(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


@pytest.mark.parametrize("faults", [[], ["closed"], ["503", "closed"], ["429", "500"]])
def test_what_is_transient_is_tried_again(origin, url, faults):
    origin.faults = list(faults)
    assert get(url) == DATA
    assert len(origin.requests) == len(faults) + 1


def test_the_last_attempt_is_the_last(origin, url):
    origin.faults = ["closed"] * 3
    with pytest.raises(
        ArtifactError, match=r"thing\.BAM: cannot be fetched, 3 attempts failed, the last with RemoteProtocol"
    ) as error:
        get(url)
    assert "'mtmetrics artifacts import'" in str(error.value)
    assert len(origin.requests) == 3
    origin.faults = ["503"] * 3
    with pytest.raises(ArtifactError, match="the last with 503 Service Unavailable"):
        get(url)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("short", "damaged or not the file: 5120 bytes with the git blob hash .*, expected " + git_blob_sha1(DATA)),
        ("tampered", "damaged or not the file: 10240 bytes with the git blob hash"),
        ("html", r"the answer is a web page \(of a proxy or a login\?\)"),
        ("404", "cannot be fetched, the server answered 404 Not Found"),
        ("403", "cannot be fetched, the server answered 403 Forbidden"),
    ],
)
def test_anything_else_is_refused_at_once(origin, url, fault, message):
    origin.faults = [fault]
    with pytest.raises(ArtifactError, match=message) as error:
        get(url)
    assert "thing.BAM" in str(error.value)
    assert "\n" not in str(error.value)
    assert len(origin.requests) == 1


def test_a_server_that_is_not_there(origin, url):
    origin.shutdown()
    origin.server_close()
    with pytest.raises(ArtifactError, match="3 attempts failed, the last with ConnectError"):
        get(url)


SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.mark.parametrize("sha256", [SHA256, None])
@pytest.mark.parametrize("faults", [[], ["closed"], ["503", "closed"]])
def test_a_file_is_written_when_it_is_whole(origin, url, tmp_path, sha256, faults):
    origin.faults = list(faults)
    pieces = []
    with http_client() as client:
        assert fetch_file(client, url, tmp_path / "thing", sha256, on_bytes=pieces.append) == SHA256
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]
    assert (tmp_path / "thing").read_bytes() == DATA
    assert sum(pieces) >= len(DATA)


@pytest.mark.parametrize(
    ("fault", "sha256", "message"),
    [
        (
            "tampered",
            SHA256,
            f"damaged or not the file: 10240 bytes with the sha256 .*, expected {SHA256}; nothing was kept",
        ),
        ("html", SHA256, r"the answer is a web page \(of a proxy or a login\?\)"),
        ("html", None, r"the answer is a web page \(of a proxy or a login\?\).*, expected data"),
        ("404", None, "the server answered 404 Not Found; try again later, or get thing.BAM in another way$"),
    ],
)
def test_nothing_is_written_of_anything_else(origin, url, tmp_path, fault, sha256, message):
    origin.faults = [fault]
    with http_client() as client, pytest.raises(ArtifactError, match=message):
        fetch_file(client, url, tmp_path / "thing", sha256)
    assert list(tmp_path.iterdir()) == []


def test_settings_of_the_environment(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "nonsense://127.0.0.1:1")
    with (
        pytest.raises(ArtifactError, match=r"proxy settings of the environment \(HTTPS_PROXY, ALL_PROXY\)"),
        http_client(),
    ):
        pass
    assert is_offline(local_files_only=True)
    for value in (False, True):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", value)
        assert is_offline() == value
