"""Fetches files from elsewhere than the Hub, and checks their content where it is known
beforehand."""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mtmetrics.errors import ArtifactError
from mtmetrics.io.atomic import atomic_path, git_blob_file, git_blob_sha1

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
# Not by pooch, which does not know git's own hash, by which files of git hosts are pinned, nor
# tells a web page from a file.
_PAUSES = (0.0, 0.5, 2.0, 5.0)  # seconds before each attempt
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
_START = 1000  # bytes that tell a web page


def is_offline(local_files_only: bool = False) -> bool:
    """Whether the network must not be asked: by the argument, or by ``HF_HUB_OFFLINE=1``."""
    from huggingface_hub import constants

    return local_files_only or constants.HF_HUB_OFFLINE


def assets_folder(group: str, name: str) -> Path:
    """A folder of the assets cache of `huggingface_hub`, for what is fetched from elsewhere than
    the Hub."""
    from huggingface_hub import cached_assets_path

    try:
        return cached_assets_path("mtmetrics", group, name)
    except (OSError, ValueError) as error:
        advice = "set HF_HOME to a folder that can be written"
        raise ArtifactError(f"the cache for {group} cannot be made ({error}); {advice}") from error


def http_client() -> "httpx2.Client":
    """A client for `fetch` that keeps its connections open and uses the proxies of the environment;
    to be closed."""
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
    on_bytes: Callable[[int], Any] = lambda _: None,
) -> str:
    """Fetches one file to disk as `fetch` does, where it is whole or absent, and returns its
    hexadecimal sha256.

    Args:
        client: from `http_client`.
        url: where the file is served.
        path: where to write it.
        sha256: of its content, where it is known.
        git_blob: the hash by which git knows it, where that is known. Without either, whatever is
            no web page is taken.
        on_bytes: called with the number of bytes of every piece that arrives.

    Raises:
        ArtifactError: it could not be fetched, or is not the file that was expected.
        MTMetricsError: the place cannot be written.
    """
    advice = f"try again later, or get {url.rpartition('/')[2]} in another way"

    def receive(response: "httpx2.Response") -> str:
        digest, start, size = hashlib.sha256(), b"", 0
        with atomic_path(path) as temporary:
            with open(temporary, "wb") as stream:
                for piece in response.iter_bytes():
                    stream.write(piece)
                    digest.update(piece)
                    on_bytes(len(piece))
                    start, size = start or piece[:_START], size + len(piece)
            checksum = digest.hexdigest()
            if git_blob and (blob := git_blob_file(temporary)) != git_blob:
                what = f"{size} bytes with the git blob hash {blob}, expected {git_blob}"
                raise _unexpected(url, start, what, advice)
            is_other_file = sha256 is not None and checksum != sha256
            is_unpinned = sha256 is None and git_blob is None
            if is_other_file or (is_unpinned and _is_web_page(start)):
                what = f"{size} bytes with the sha256 {checksum}, expected {sha256 or 'data'}"
                raise _unexpected(url, start, what, advice)
        return checksum

    return _attempted(client, url, receive, advice)


def remote_size(client: "httpx2.Client", url: str) -> int | None:
    """Bytes of a file, None where its server does not say it."""
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
    """Returns the result of `receive` for the answer; tries again where the failure may pass."""
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


def _unexpected(url: str, start: bytes, what: str, advice: str) -> ArtifactError:
    kind = (
        "a web page (of a proxy or a login?)" if _is_web_page(start) else "damaged or not the file"
    )
    return ArtifactError(f"{url}: the answer is {kind}: {what}; nothing was kept; {advice}")


def _is_web_page(start: bytes) -> bool:
    return start[:_START].lstrip().lower().startswith((b"<!doctype", b"<html"))
