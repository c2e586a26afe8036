"""Downloads from other places than the Hub, with checks of the content.

`fetch` reads a file into memory, `fetch_file` writes it to disk. Both try again where the network
fails.
"""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mtmetrics.errors import ArtifactError
from mtmetrics.io.atomic import atomic_path
from mtmetrics.io.checksums import git_blob_sha1, git_blob_sha1_of_file

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
# Not by pooch: it does not know git's own hash, by which files of git hosts are pinned, and does not
# tell a web page from a file.
_PAUSES = (0.0, 0.5, 2.0, 5.0)  # seconds before each attempt
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
_START = 1000  # bytes that tell a web page


def is_offline(local_files_only: bool = False) -> bool:
    """Whether the network must not be asked: by the argument, or by ``HF_HUB_OFFLINE=1``."""
    from huggingface_hub import constants

    return local_files_only or constants.HF_HUB_OFFLINE


def assets_folder(group: str, name: str) -> Path:
    """Returns a folder in the assets cache of `huggingface_hub`, for files that do not come from the
    Hub."""
    from huggingface_hub import cached_assets_path

    try:
        return cached_assets_path("mtmetrics", group, name)
    except (OSError, ValueError) as error:
        advice = "set HF_HOME to a folder that can be written"
        raise ArtifactError(f"the cache for {group} cannot be made ({error}); {advice}") from error


def http_client() -> "httpx2.Client":
    """Opens a client for `fetch` that keeps connections open and uses the proxies of the
    environment. The caller closes it."""
    import httpx2

    try:
        return httpx2.Client(timeout=httpx2.Timeout(30, connect=10), follow_redirects=True)
    except (ImportError, ValueError) as error:
        settings = "the proxy settings of the environment (HTTPS_PROXY, ALL_PROXY)"
        raise ArtifactError(f"{settings} cannot be used: {error}") from error


def fetch(client: "httpx2.Client", url: str, git_blob: str) -> bytes:
    """Fetches one file into memory, with a few attempts where the network fails, and checks its git
    blob hash.

    Raises:
        ArtifactError: it could not be fetched, or is not the file that was expected.
    """
    name = url.rpartition("/")[2]
    advice = (
        f"try again later, or get {name} in another way and pass it to 'mtmetrics artifacts import'"
    )
    data = _attempted(client, url, lambda response: response.read(), advice)
    blob = git_blob_sha1(data)
    if blob != git_blob:
        raise _unexpected(
            url,
            data,
            f"{len(data)} bytes with the git blob hash {blob}, expected {git_blob}",
            advice,
        )
    return data


def fetch_file(
    client: "httpx2.Client",
    url: str,
    path: Path,
    sha256: str | None = None,
    git_blob: str | None = None,
    *,
    on_bytes: Callable[[int], object] = lambda _: None,
) -> str:
    """Fetches one file to disk, whole or not at all, and returns its hexadecimal sha256.

    It is refused if it has another hash than the expected ones. Without an expected hash, a web page
    is refused.

    Args:
        client: from `http_client`.
        url: where the file is served.
        path: where to write it.
        sha256: expected hash of the content.
        git_blob: expected hash by which git knows the content.
        on_bytes: called with the number of bytes of every piece that arrives.

    Raises:
        ArtifactError: it could not be fetched, or is not the file that was expected.
        MTMetricsError: the place cannot be written.
    """
    advice = f"try again later, or get {url.rpartition('/')[2]} in another way"

    def receive(response: "httpx2.Response") -> str:
        digest = hashlib.sha256()
        start = b""
        size = 0
        with atomic_path(path) as temporary:
            with open(temporary, "wb") as stream:
                for piece in response.iter_bytes():
                    stream.write(piece)
                    digest.update(piece)
                    on_bytes(len(piece))
                    size += len(piece)
                    start = start or piece[:_START]
            checksum = digest.hexdigest()
            if git_blob:
                blob = git_blob_sha1_of_file(temporary)
                if blob != git_blob:
                    content = f"{size} bytes with the git blob hash {blob}, expected {git_blob}"
                    raise _unexpected(url, start, content, advice)
            is_other_file = sha256 is not None and checksum != sha256
            is_unpinned = sha256 is None and git_blob is None
            if is_other_file or (is_unpinned and _is_web_page(start)):
                content = f"{size} bytes with the sha256 {checksum}, expected {sha256 or 'data'}"
                raise _unexpected(url, start, content, advice)
        return checksum

    return _attempted(client, url, receive, advice)


def remote_size(client: "httpx2.Client", url: str) -> int | None:
    """Returns the size of a file in bytes, None where its server does not say it."""
    import httpx2

    try:
        answer = client.head(url)
    except httpx2.HTTPError:
        return None
    length = answer.headers.get("content-length", "") if answer.is_success else ""
    return int(length) if length.isdecimal() else None


def _attempted(
    client: "httpx2.Client", url: str, receive: Callable[["httpx2.Response"], T], advice: str
) -> T:
    """Requests a file, and returns the result of `receive` for the answer. Tries again after a
    failure that may pass."""
    import httpx2

    failure = ""
    for pause in _PAUSES:
        time.sleep(pause)
        try:
            with client.stream("GET", url) as response:
                if response.status_code == httpx2.codes.OK:
                    return receive(response)
        except httpx2.TransportError as error:
            failure = f"{type(error).__name__}: {error}"
            continue
        except httpx2.HTTPError as error:
            raise ArtifactError(
                f"{url}: cannot be fetched ({type(error).__name__}: {error}); {advice}"
            ) from error
        failure = f"{response.status_code} {response.reason_phrase}".strip()
        if response.status_code not in _TRANSIENT:
            raise ArtifactError(
                f"{url}: cannot be fetched, the server answered {failure}; {advice}"
            )
    raise ArtifactError(
        f"{url}: cannot be fetched, {len(_PAUSES)} attempts failed, the last with {failure}; "
        f"{advice}"
    )


def _unexpected(url: str, start: bytes, content: str, advice: str) -> ArtifactError:
    """Makes the error for an answer that is not the file.

    Args:
        url: of the file.
        start: first bytes of the answer.
        content: size and hash of the answer, and the expected hash.
        advice: how to get the file.
    """
    kind = "damaged or not the file"
    if _is_web_page(start):
        kind = "a web page (of a proxy or a login?)"
    return ArtifactError(f"{url}: the answer is {kind}: {content}; nothing was kept; {advice}")


def _is_web_page(start: bytes) -> bool:
    return start[:_START].lstrip().lower().startswith((b"<!doctype", b"<html"))
