"""Verified downloads: what is transient is tried again, and nothing but the expected bytes is returned."""

import pytest

from mtmetrics.artifacts.download import fetch, http_client, is_offline
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
    with pytest.raises(ArtifactError, match=r"thing\.BAM: cannot be fetched, 3 attempts failed, the last with RemoteProtocol") as error:
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


def test_settings_of_the_environment(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "nonsense://127.0.0.1:1")
    with pytest.raises(ArtifactError, match=r"proxy settings of the environment \(HTTPS_PROXY, ALL_PROXY\)"), http_client():
        pass
    assert is_offline(local_files_only=True)
    for value in (False, True):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", value)
        assert is_offline() == value
