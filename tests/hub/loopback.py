"""A Hugging Face Hub on loopback: the routes that its client calls, over repositories that are kept
in memory.

It answers as the Hub does to `huggingface_hub` 2.4 and `evaluate` 0.4.6. It has no Xet storage, no
CDN and no gated repositories, and it builds no Spaces."""

import base64
import contextlib
import hashlib
import json
import re
import socket
import threading
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import anyio
import uvicorn
import yaml
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mtmetrics.io.checksums import git_blob_sha1

TOKENS = {"hf_test": {"someone", "org"}}
_KINDS = {"models": "", "datasets": "datasets/", "spaces": "spaces/"}
_LARGE = (".safetensors", ".whl")


@dataclass(frozen=True)
class Content:
    """A file in a commit; `sha256` where it is a large one."""

    data: bytes
    sha256: str | None = None

    @property
    def etag(self) -> str:
        return self.sha256 or git_blob_sha1(self.data)


@dataclass
class Repository:
    """Commits, branches and tags of a repository."""

    kind: str
    name: str
    private: bool = False
    commits: dict[str, dict[str, Content]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def commit(self, branch: str, files: dict[str, Content]) -> str:
        text = (
            f"{self.name} {len(self.commits)} "
            f"{sorted((path, content.etag) for path, content in files.items())}"
        )
        oid = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        self.commits[oid] = files
        self.branches[branch] = oid
        return oid

    def oid(self, revision: str) -> str | None:
        own = revision if revision in self.commits else None
        return self.branches.get(revision) or self.tags.get(revision) or own

    def files(self, revision: str = "main") -> dict[str, bytes]:
        return {path: content.data for path, content in self.commits[self.oid(revision)].items()}


class RefusedError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str, code: str = "", **headers: str) -> None:
        headers |= {"X-Error-Message": message, "X-Error-Code": code}
        self.response = JSONResponse({"error": message}, status, headers)


class LoopbackHub:
    """The server."""

    def __init__(self) -> None:
        self.repositories: dict[
            tuple[str, str], Repository
        ] = {}  # by kind (``models``, ...) and name
        self.large: dict[str, bytes] = {}  # contents of large files that were uploaded, by sha256
        self.requests: list[str] = []  # method and path of each
        self.stall: str | None = (
            None  # part of a path: uploads to it get no answer, downloads from it stop half-way
        )
        self.stalled = threading.Event()  # set when that has happened
        self.tampered: str | None = None  # end of a path whose content is changed on its way out
        self.url = ""

    def __getitem__(self, name: str) -> Repository:
        kind, _, rest = name.partition("/")
        return (
            self.repositories[(kind, rest)]
            if kind in _KINDS
            else self.repositories[("models", name)]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; the path is split before it is decoded, since names of branches may
        hold slashes."""
        request = Request(scope, receive)
        parts = [urllib.parse.unquote(part) for part in scope["raw_path"].decode().split("/")[1:]]
        self.requests.append(f"{request.method} {scope['raw_path'].decode()}")
        try:
            response = await self._route(request, parts)
        except RefusedError as refused:
            response = refused.response
        await response(scope, receive, send)

    async def _route(self, request: Request, parts: list[str]) -> Response:
        match request.method, parts:
            case "GET", ["api", "whoami-v2"]:
                orgs = [{"name": name} for name in self._writable(request) - {"someone"}]
                return JSONResponse({"type": "user", "name": "someone", "orgs": orgs})
            case "POST", ["api", "validate-yaml"]:
                return _validated((await request.json())["content"])
            case "POST", ["api", "repos", "create"]:
                return self._create(request, await request.json())
            case "PUT", ["lfs", sha256]:
                return await self._upload(request, sha256)
            case "POST", ["lfs", sha256, "verify"]:
                return JSONResponse({}, 200 if sha256 in self.large else 404)
            case method, ["api", kind, owner, name, *rest] if kind in _KINDS:
                repository = self._repository(request, kind, f"{owner}/{name}")
                if method == "GET":
                    return self._read(repository, rest)
                self._require_write(request, repository.name)
                return await self._write(request, repository, rest)
        path = "/".join(parts)
        kind = next(
            (kind for kind, prefix in _KINDS.items() if prefix and path.startswith(prefix)),
            "models",
        )
        owner, name, *rest = parts[1:] if _KINDS[kind] else parts
        repository = self._repository(request, kind, f"{owner}/{name.removesuffix('.git')}")
        match request.method, rest:
            case "POST", ["info", "lfs", "objects", "batch"]:
                self._require_write(request, repository.name)
                return self._batch((await request.json())["objects"])
            case "HEAD" | "GET", ["resolve", revision, *file]:
                return self._resolve(request, repository, revision, "/".join(file))
        raise RefusedError(404, f"no such route: {request.method} {path}")

    def _read(self, repository: Repository, rest: list[str]) -> Response:
        match rest:
            case []:
                return self._info(repository, "main")
            case ["revision", revision]:
                return self._info(repository, revision)
            case ["refs"]:
                branches, tags = (
                    [
                        {"name": name, "ref": f"refs/{where}/{name}", "targetCommit": oid}
                        for name, oid in refs.items()
                    ]
                    for where, refs in (("heads", repository.branches), ("tags", repository.tags))
                )
                return JSONResponse({"branches": branches, "tags": tags, "converts": []})
            case ["tree", revision]:
                _, files = self._commit(repository, revision)
                return JSONResponse(
                    [_tree_row(path, content) for path, content in sorted(files.items())]
                )
        raise RefusedError(404, f"no such route: GET {rest}")

    async def _write(self, request: Request, repository: Repository, rest: list[str]) -> Response:
        match rest:
            case ["preupload", revision]:
                _, files = self._commit(repository, revision)
                rows = []
                for path in [asked["path"] for asked in (await request.json())["files"]]:
                    mode = "lfs" if path.endswith(_LARGE) else "regular"
                    oid = files[path].etag if path in files else None
                    rows.append(
                        {"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid}
                    )
                return JSONResponse({"files": rows})
            case ["commit", revision]:
                lines = (await request.body()).splitlines()
                return self._commit_files(repository, revision, list(map(json.loads, lines)))
            case ["tag", revision]:
                oid, _ = self._commit(repository, revision)
                name = (await request.json())["tag"]
                if name in repository.tags:
                    raise RefusedError(409, f"Tag reference {name} already exists")
                repository.tags[name] = oid
                return JSONResponse({})
        raise RefusedError(404, f"no such route: {request.method} {rest}")

    def _create(self, request: Request, asked: dict) -> Response:
        name = f"{asked.get('organization') or 'someone'}/{asked['name']}"
        self._require_write(request, name)
        kind = f"{asked.get('type') or 'model'}s"
        url = f"{self.url}/{_KINDS[kind]}{name}"
        if (kind, name) in self.repositories:
            return JSONResponse({"error": "You already created this repo", "url": url}, 409)
        # The second is what clients before 1 say.
        private = asked.get("visibility") == "private" or bool(asked.get("private"))
        repository = self.repositories[kind, name] = Repository(kind, name, private)
        repository.commit(
            "main",
            {".gitattributes": Content(b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n")},
        )
        return JSONResponse({"url": url})

    async def _upload(self, request: Request, sha256: str) -> Response:
        data = await request.body()
        if self.stall and self.stall in request.url.path:
            await self._wait_for_the_end(request)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise RefusedError(400, "the content is not what was announced")
        self.large[sha256] = data
        return Response()

    def _batch(self, objects: list[dict]) -> Response:
        rows = []
        for row in objects:
            href = f"{self.url}/lfs/{row['oid']}"
            actions = {"upload": {"href": href}, "verify": {"href": f"{href}/verify"}}
            rows.append(row if row["oid"] in self.large else row | {"actions": actions})
        return JSONResponse({"transfer": "basic", "objects": rows})

    def _commit_files(self, repository: Repository, revision: str, lines: list[dict]) -> Response:
        head, before = self._commit(repository, revision)
        files = dict(before)
        for line in lines:
            value = line["value"]
            match line["key"]:
                case "header":
                    if value.get("parentCommit", head) != head:
                        raise RefusedError(
                            412, "A commit has happened since. Please refresh and try again."
                        )
                case "file":
                    files[value["path"]] = Content(base64.b64decode(value["content"]))
                case "lfsFile":
                    if value["oid"] not in self.large:
                        raise RefusedError(400, f"{value['path']}: its content was not uploaded")
                    files[value["path"]] = Content(self.large[value["oid"]], value["oid"])
                case "deletedFile":
                    del files[value["path"]]
                case other:
                    raise RefusedError(400, f"{other}: unknown")
        oid = repository.commit(revision, files)
        return JSONResponse(
            {"commitOid": oid, "commitUrl": f"{self.url}/{repository.name}/commit/{oid}"}
        )

    def _info(self, repository: Repository, revision: str) -> Response:
        oid, files = self._commit(repository, revision)
        about = {"id": repository.name, "sha": oid, "private": repository.private, "tags": []}
        return JSONResponse(about | {"siblings": [{"rfilename": path} for path in files]})

    def _resolve(
        self, request: Request, repository: Repository, revision: str, path: str
    ) -> Response:
        oid, files = self._commit(repository, revision)
        if path not in files:
            raise RefusedError(404, "Entry not found", "EntryNotFound", **{"X-Repo-Commit": oid})
        content = files[path]
        data = content.data
        headers = {
            "X-Repo-Commit": oid,
            "ETag": f'"{content.etag}"',
            "Content-Length": str(len(data)),
        }
        headers["Accept-Ranges"] = "bytes"
        if content.sha256:
            headers |= {"X-Linked-Etag": headers["ETag"], "X-Linked-Size": str(len(data))}
        if request.method == "HEAD":
            return Response(headers=headers)
        if self.tampered and path.endswith(self.tampered):
            data = data[:-1] + bytes([data[-1] ^ 1])
        status, span = 200, re.fullmatch(r"bytes=(\d+)-", request.headers.get("range", ""))
        if span:
            start, whole = int(span[1]), len(data)
            status, data = 206, data[start:]
            headers |= {
                "Content-Range": f"bytes {start}-{whole - 1}/{whole}",
                "Content-Length": str(len(data)),
            }
        if self.stall and self.stall in request.url.path:
            return StreamingResponse(self._half(request, data), status, headers)
        return Response(data, status, headers)

    async def _half(self, request: Request, data: bytes) -> AsyncIterator[bytes]:
        yield data[: len(data) // 2]
        await self._wait_for_the_end(request)

    async def _wait_for_the_end(self, request: Request) -> None:
        """Until the client goes away."""
        self.stalled.set()
        while not await request.is_disconnected():
            await anyio.sleep(0.05)

    def _commit(self, repository: Repository, revision: str) -> tuple[str, dict[str, Content]]:
        oid = repository.oid(revision)
        if oid is None:
            raise RefusedError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return oid, repository.commits[oid]

    def _repository(self, request: Request, kind: str, name: str) -> Repository:
        repository = self.repositories.get((kind, name))
        if repository is None or (
            repository.private and name.split("/")[0] not in self._writable(request)
        ):
            raise RefusedError(404, "Repository not found", "RepoNotFound")
        return repository

    def _require_write(self, request: Request, name: str) -> None:
        if name.split("/")[0] not in self._writable(request):
            raise RefusedError(403, f"You don't have the rights to write to {name}")

    def _writable(self, request: Request) -> set[str]:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in TOKENS:
            wrong = "credentials in Authorization header" if token else "username or password."
            raise RefusedError(401, f"Invalid {wrong}")
        return TOKENS[token]


def _validated(card: str) -> Response:
    block = re.match(r"---\n(.*?)\n---\n", card, flags=re.DOTALL)
    try:
        data = yaml.safe_load(block[1]) if block else None
    except yaml.YAMLError as error:
        return JSONResponse({"errors": [{"message": str(error)}], "warnings": []}, 400)
    warnings = [] if data else [{"message": "empty or missing yaml metadata in repo card"}]
    return JSONResponse({"errors": [], "warnings": warnings})


def _tree_row(path: str, content: Content) -> dict:
    row = {
        "type": "file",
        "path": path,
        "size": len(content.data),
        "oid": git_blob_sha1(content.data),
    }
    if content.sha256:
        # Git itself knows a large file by a pointer to it.
        size = len(content.data)
        about = (
            f"version https://git-lfs.github.com/spec/v1\noid sha256:{content.sha256}\nsize "
            f"{size}\n"
        )
        large = {"oid": content.sha256, "size": size, "pointerSize": len(about)}
        row |= {"oid": git_blob_sha1(about.encode()), "lfs": large}
    return row


@contextlib.contextmanager
def serving() -> Iterator[LoopbackHub]:
    """An empty Hub that listens on a free port of loopback."""
    hub = LoopbackHub()
    server = uvicorn.Server(
        uvicorn.Config(hub, log_level="warning", timeout_graceful_shutdown=1, lifespan="off")
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        hub.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield hub
        server.should_exit = True
        thread.join(10)
