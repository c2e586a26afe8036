"""Fetches files from elsewhere than the Hub, whose content is known beforehand by its git blob hash."""

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mtmetrics.artifacts.files import git_blob_sha1
from mtmetrics.errors import ArtifactError

if TYPE_CHECKING:
    import httpx2

_PAUSES = (0.0, 0.5, 2.0, 5.0)  # seconds before each attempt
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}


def is_offline(local_files_only: bool = False) -> bool:
    """Whether the network must not be asked: by the argument, or by ``HF_HUB_OFFLINE=1``."""
    from huggingface_hub import constants

    return local_files_only or constants.HF_HUB_OFFLINE


@contextlib.contextmanager
def http_client() -> Iterator["httpx2.Client"]:
    """Yields a client for `fetch` that keeps its connections open and uses the proxies of the environment.

    Raises:
        ArtifactError: the proxy settings of the environment cannot be used.
    """
    import httpx2

    try:
        client = httpx2.Client(timeout=httpx2.Timeout(30, connect=10), follow_redirects=True)
    except (ImportError, ValueError) as error:
        raise ArtifactError(f"the proxy settings of the environment (HTTPS_PROXY, ALL_PROXY) cannot be used: {error}") from error
    with client:
        yield client


def fetch(client: "httpx2.Client", url: str, git_blob: str) -> bytes:
    """Fetches one file, with a few attempts where the network fails, and checks its content.

    Nothing is written here, so an interruption leaves nothing behind.

    Args:
        client: from `http_client`.
        url: where the file is served.
        git_blob: the hash that git gives to its content, see `mtmetrics.artifacts.files.git_blob_sha1`.

    Raises:
        ArtifactError: it could not be fetched, or is not the file that was expected.
    """
    import httpx2

    failure = ""
    for pause in _PAUSES:
        time.sleep(pause)
        try:
            response = client.get(url)
        except httpx2.TransportError as error:
            failure = f"{type(error).__name__}: {error}"
            continue
        except httpx2.HTTPError as error:
            raise ArtifactError(f"{url}: cannot be fetched ({type(error).__name__}: {error}); {_advice(url)}") from error
        failure = f"{response.status_code} {response.reason_phrase}".strip()
        if response.status_code not in _TRANSIENT:
            break
    else:
        raise ArtifactError(f"{url}: cannot be fetched, {len(_PAUSES)} attempts failed, the last with {failure}; {_advice(url)}")
    if response.status_code != httpx2.codes.OK:
        raise ArtifactError(f"{url}: cannot be fetched, the server answered {failure}; {_advice(url)}")
    return _checked(url, response.content, git_blob)


def _checked(url: str, data: bytes, git_blob: str) -> bytes:
    found = git_blob_sha1(data)
    if found != git_blob:
        page = data[:1000].lstrip().lower()
        what = "a web page (of a proxy or a login?)" if page.startswith((b"<!doctype", b"<html")) else "damaged or not the file"
        raise ArtifactError(
            f"{url}: the answer is {what}: {len(data)} bytes with the git blob hash {found}, expected {git_blob}; nothing was kept; "
            f"{_advice(url)}"
        )
    return data


def _advice(url: str) -> str:
    name = url.rsplit("/", 1)[-1]
    return f"try again later, or get {name} in another way and pass it to 'mtmetrics artifacts import'"
