"""Fixtures of all tests: an environment of their own, no network, and tiny models that are built
here."""

import gc
import hashlib
import http.server
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import caches
import pytest
from tally import (  # noqa: F401 (pytest finds them here in every process)
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
)

# What the shell says about networks and Ctrl-C must not decide what passes; the libraries read it
# when imported.
for name in (
    "HF_HUB_OFFLINE",
    "HF_EVALUATE_OFFLINE",
    "HF_DATASETS_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "HF_ENDPOINT",
):
    os.environ.pop(name, None)
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
# Tiny models gain nothing from several threads, which beside other work wait for each other fifty
# times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")
signal.signal(signal.SIGINT, signal.default_int_handler)

MANY_OBJECTS = 100_000
WORDS = (  # noqa: SIM905 (a list would fill forty lines)
    "das haus ist klein groß der hund schläft nicht ich sehe die katze und ein baum steht dort "
    "the house is small large dog sleeps not i see cat and a tree stands there 1 2 3 . , ! ?"
).split()


def pytest_collection_finish() -> None:
    """Leaves what is imported out of all collections of garbage, which are slow with it."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Leaves out what the tests of a file have imported, too, where it is much."""
    yield
    is_last = nextitem is None or nextitem.path != item.path
    if is_last and len(gc.get_objects()) > MANY_OBJECTS:
        gc.collect()
        gc.freeze()


def pytest_unconfigure() -> None:
    """Removes the caches of the libraries."""
    caches.FOLDER.cleanup()


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> object:
        host = address[0] if isinstance(address, tuple) else "localhost"
        if host not in {"127.0.0.1", "::1", "localhost"}:
            raise OSError(f"tests must not open a connection to {host}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def mtmetrics(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in process: arguments -> exit code, standard output, standard error."""
    from mtmetrics.cli.main import main

    def run(*argv: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(argument) for argument in argv])
        return (code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with 3 layers of width 16, random but fixed weights, and a WordPiece vocabulary with
    letters as fallback."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "tiny-encoder"
    letters = sorted(
        {letter for word in WORDS for letter in word} | set("abcdefghijklmnopqrstuvwxyz")
    )
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        *WORDS,
        *letters,
        *("##" + letter for letter in letters),
    ]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    )
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep")}
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=64, **special
    ).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    config = BertConfig(
        vocab_size=len(vocabulary), max_position_embeddings=64, initializer_range=0.4, **sizes
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 with 2 layers of width 16, random but fixed weights, and a byte-level vocabulary."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "tiny-lm"
    pieces = ["<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({piece: number for number, piece in enumerate(pieces)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=128, **special
    ).save_pretrained(folder)
    torch.manual_seed(1)
    sizes = {"vocab_size": len(pieces), "n_positions": 128, "n_embd": 16, "n_layer": 2, "n_head": 2}
    config = GPT2Config(**sizes, bos_token_id=0, eos_token_id=1, initializer_range=0.3)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def evaluate_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives `evaluate` empty caches of its own, told to be offline; returns the module cache."""
    import evaluate

    folder = tmp_path / "evaluate-cache"
    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", folder / "modules")
    monkeypatch.setattr(evaluate.config, "HF_METRICS_CACHE", folder / "metrics")
    monkeypatch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.split(".")[0] == "evaluate_modules"]:
        monkeypatch.delitem(sys.modules, name)
    return folder / "modules"


@pytest.fixture(scope="session")
def tiny_preset(
    tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path, tiny_lm: Path
) -> Path:
    """A preset folder for XMoverScore with the tiny models, and CLP maps for de-en and fi-en."""
    import numpy as np

    from mtmetrics.matching.remapping import Remapping
    from mtmetrics.matching.remapping_files import map_file_name
    from mtmetrics.models.token_encoder import TokenEncoder

    folder = tmp_path_factory.mktemp("tiny-preset")
    encoder = TokenEncoder(tiny_encoder)
    generator = np.random.default_rng(0)
    for pair in ("de-en", "fi-en"):
        meta = {
            "encoder": encoder.name,
            "encoder_fingerprint": encoder.fingerprint,
            "layer": "3",
            "lp": pair,
        }
        vectors = generator.normal(size=(2, 50, encoder.dim))
        Remapping.fit("clp", *vectors, meta=meta).save(folder / map_file_name(pair, "clp"))
    (folder / "preset.toml").write_text(
        f'metric = "xmoverscore"\n[encoder]\nmodel = "{tiny_encoder}"\n[score]\nvariant = '
        '"acl20"\nngram = 1\n'
        f'[maps]\nartifact = "{folder}"\nkind = "clp"\n[language_models.en]\nmodel = '
        f'"{tiny_lm}"\nweight = 0.1\n'
    )
    return folder


@pytest.fixture(scope="session")
def comet_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of artifacts with converted checkpoints of COMET, which have random weights; one has
    a usual name."""
    from helpers import converting_here

    from mtmetrics.artifacts.convert import convert_model

    root, goldens = tmp_path_factory.mktemp("artifacts"), Path(__file__).parent / "parity" / "comet"
    kinds = {"regression": "XLM-RoBERTa", "unified-source": "XLM-RoBERTa", "unified-bert": "BERT"}
    with converting_here():
        for model, kind in (kinds | {"xcomet": "XLM-RoBERTa-XL"}).items():
            convert_model(
                goldens / "models" / model, root / model, encoder=goldens / "encoders" / kind
            )
    (root / "Unbabel").mkdir()
    (root / "Unbabel" / "wmt22-comet-da").symlink_to(root / "regression")
    return root


@pytest.fixture
def four_metrics(
    comet_checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Metrics of four kinds by their names, for the three systems of the page's example, nine times
    over: one of this package, COMET, stored scores, and a program that counts characters; the
    working folder holds their files."""
    import json

    from mtmetrics.reports.example import example

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MTMETRICS_ARTIFACTS", str(comet_checkpoints))
    program = "import sys; [print(len(line)) for line in sys.stdin]"
    Path("commands.toml").write_text(
        f"[counts]\ncommand = [{json.dumps(sys.executable)}, '-c', '{program}']\n"
    )
    rows = [
        f"{name}\t{len(text) / 100}\n"
        for name, texts in example().systems.items()
        for text in texts * 9
    ]
    Path("other.seg.score").write_text("".join(rows))
    return ["xmoverscore:mini", "comet:regression", "scores:other.seg.score", "cmd:counts"]


class Origin(http.server.ThreadingHTTPServer):
    """A server of matrices on loopback.

    Attributes:
        files: path -> content.
        requests: paths that were asked for, in order.
        faults: what to do wrong in the next answers, first one first; see `_Answer`.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.faults: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Answer(http.server.BaseHTTPRequestHandler):
    server: Origin
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        data = self.server.files.get(self.path)
        self.send_response(404 if data is None else 200)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        data = self.server.files.get(self.path)
        fault = self.server.faults.pop(0) if self.server.faults else ""
        if data is None or fault.isdigit():
            return self._send(b"nothing here", status=int(fault or 404))
        half = len(data) // 2
        if fault == "html":
            return self._send(b"<!DOCTYPE html><html><body>Please log in.</body></html>")
        if fault == "short":
            return self._send(data[:half])
        if fault == "tampered":
            return self._send(data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :])
        if fault in ("closed", "interrupt"):
            self._send(data[:half], length=len(data))
            if fault == "interrupt":
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            self.close_connection = True
            return None
        return self._send(data)

    def _send(self, data: bytes, status: int = 200, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def origin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Origin]:
    """A server without files; downloads do not wait between their attempts."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Origin()
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def published(origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Origin:
    """A catalog whose ``xmoverscore-published`` holds matrices of width 16 on a loopback server,
    and an empty cache (``assets``)."""
    folder = authors_catalog(origin, tmp_path / "catalog")
    for module in ("catalog", "places"):
        monkeypatch.setattr(f"mtmetrics.artifacts.{module}.bundled_artifacts", lambda: folder)
    monkeypatch.setattr("huggingface_hub.utils._cache_assets.HF_ASSETS_CACHE", tmp_path / "assets")
    return origin


def authors_catalog(origin: Origin, folder: Path, mirror: str = "") -> Path:
    """Puts matrices of width 16 on a server, and a catalog that lists them into a folder."""
    import numpy as np

    generator = np.random.default_rng(0)
    hashes = {}
    for name in (
        "layer-3/europarl-v7.de-en.2k.3",
        "layer-3/un-v1.en-ru.2k.3",
        "layer-2/europarl-v7.de-en.2k.2",
    ):
        matrix, _ = np.linalg.qr(generator.normal(size=(16, 16)))
        for suffix, array in ((".BAM", matrix), (".GBDD", matrix[0])):
            stream = io.BytesIO()
            np.save(stream, np.ascontiguousarray(array, dtype=np.float32))
            data = stream.getvalue()
            origin.files[f"/c0ffee/mapping/{name}{suffix}"] = data
            blob = b"blob %d\0" % len(data) + data
            hashes[f"mapping/{name}{suffix}"] = hashlib.sha1(
                blob, usedforsecurity=False
            ).hexdigest()
    folder.mkdir(parents=True)
    (folder / "catalog.toml").write_text(
        f'[xmoverscore-published]\nkind = "maps"\nbundled = false\n{mirror}'
        f'[xmoverscore-published.origin]\nurl = "{origin.url}"\ncommit = "c0ffee"\nlicence = "Apache-2.0"\n'
        "[xmoverscore-published.files]\n"
        + "".join(f'"{file}" = "{git_blob}"\n' for file, git_blob in hashes.items())
    )
    return folder


@pytest.fixture
def wmt99(tmp_path: Path) -> Path:
    """A test set in the folder layout of mt-metrics-eval, with human scores for de-en alone.

    It has 2 segments, the systems A and B.0, the reference refA also as a system, MQM for segments
    and systems, and a metric."""
    files = {
        "sources/de-en.txt": "das Haus\nder Hund\n",
        "references/de-en.refA.txt": "the house\nthe dog\n",
        "references/de-en.refB.txt": "a house\na dog\n",
        "system-outputs/de-en/A.txt": "house\ndog\n",
        "system-outputs/de-en/B.0.txt": "horse\n\n",
        "system-outputs/de-en/refA.txt": "the house\nthe dog\n",
        "human-scores/de-en.mqm.seg.score": "B.0\t-5.0\nB.0\tNone\nA 0\nA\t-1\nrefA\t0\nrefA\t0\n",
        "human-scores/de-en.wmt-raw.seg.score": "A\t90\nA\tNone\n",
        "human-scores/de-en.mqm.sys.score": "A\t-0.5\nB.0\t-5\nrefA\tNone\n",
        "metric-scores/de-en/chrF-refA.seg.score": "A\t0.5\nA\t0.25\nB.0\t0.125\nB.0\tnan\n",
        "sources/en-fi.txt": "house\n",
        "system-outputs/en-fi/A.txt": "talo\n",
    }
    root = tmp_path / "wmt99"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def no_plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Plug-ins of one test are not known in the next; files are written in a folder of its own."""
    from mtmetrics.cli import options
    from mtmetrics.scorers import registry

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MTMETRICS_PLUGINS", "")
    known = dict(registry.METRICS)
    cached = (
        registry.installed_plugins,
        options.settings_with_flags,
    )
    for one in cached:
        one.cache_clear()
    yield
    registry.METRICS.clear()
    registry.METRICS.update(known)
    for one in cached:
        one.cache_clear()
