"""Models that bring code are refused before anything could run it, whatever stands on standard
input."""

import ast
import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import refused, write

from mtmetrics.artifacts.convert import convert_model
from mtmetrics.artifacts.models import model_size, pretrained_tokenizer, sentence_model
from mtmetrics.errors import ArtifactError
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.sentence_encoder import SentenceTransformerEncoder
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.models.translator import Translator
from mtmetrics.scorers.registry import load_scorer

TOOLS = Path(__file__).parents[2] / "tools"
CLASSES = {
    name: f"foreign.{name}"
    for name in ("AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoTokenizer")
}
CLASSES["AutoModelForSeq2SeqLM"] = "foreign.AutoModelForSeq2SeqLM"
MODULES = [{"idx": 0, "name": "0", "path": "", "type": "foreign.Module"}]
# File of a model -> what makes it name code.
NAMING: dict[str, dict] = {
    "config.json": {"auto_map": CLASSES},
    "tokenizer_config.json": {"auto_map": {"AutoTokenizer": ["foreign.AutoTokenizer", None]}},
    "generation_config.json": {"auto_map": CLASSES},
    "sentence_bert_config.json": {"model_args": {"trust_remote_code": True}},
    "0_Transformer/config.json": {"auto_map": CLASSES},
    "2_Dense/config.json": {"activation_function": "foreign.Module"},
    "router_config.json": {"types": {"query_0": "foreign.Module"}},
    "config.json of a repository": {"auto_map": {"AutoModel": "someone/else--foreign.AutoModel"}},
    "config.json of kernels": {"attn_implementation": "someone/kernels"},
}


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that the code of a folder writes where it runs; standard input says yes to
    everything."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 20))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "ran"


def with_code(folder: Path, copy: Path, ran: Path, file: str = "config.json") -> Path:
    """A copy of a model whose configuration names code that lies beside it, and in the path of
    Python."""
    shutil.copytree(folder, copy)
    code = f"from pathlib import Path\nPath({str(ran)!r}).touch()\nclass Module: ...\n"
    write(copy / "foreign.py", code)
    write(ran.with_name("foreign.py"), code)
    path = copy / file.partition(" of ")[0]
    before = json.loads(path.read_text()) if path.is_file() else {}
    write(path, json.dumps(before | NAMING[file]))
    return copy


@pytest.mark.parametrize("file", NAMING)
def test_every_file_that_may_name_code(
    tiny_encoder: Path, tmp_path: Path, ran: Path, file: str
) -> None:
    folder = with_code(tiny_encoder, tmp_path / "model", ran, file)
    message = (
        f"model/{file.partition(' of ')[0]}: names code of its own, which would run on this machine"
    )
    for load in (TokenEncoder, SentenceTransformerEncoder, LanguageModel):
        with pytest.raises(ArtifactError, match=message):
            load(folder)
    for read in (pretrained_tokenizer, model_size, lambda path: sentence_model(path, "cpu")):
        with pytest.raises(ArtifactError, match=message):
            read(folder)
    assert not ran.exists()


def test_modules_of_sentence_transformers(tiny_encoder: Path, tmp_path: Path, ran: Path) -> None:
    folder = with_code(tiny_encoder, tmp_path / "model", ran, "config.json of kernels")
    shutil.copy(tiny_encoder / "config.json", folder / "config.json")
    write(folder / "modules.json", json.dumps(MODULES))
    for load in (SentenceTransformerEncoder, lambda path: sentence_model(path, "cpu")):
        with pytest.raises(
            ArtifactError, match="modules.json: names code of its own.*foreign.Module"
        ):
            load(folder)
    assert not ran.exists()


@pytest.mark.parametrize("load", [LanguageModel, lambda folder: Translator(folder, "de-en")])
def test_language_and_translation_models(
    tiny_lm: Path, tmp_path: Path, ran: Path, load: Callable[[Path], object]
) -> None:
    for file in ("config.json", "tokenizer_config.json", "generation_config.json"):
        folder = with_code(tiny_lm, tmp_path / file, ran, file)
        with pytest.raises(ArtifactError, match=f"{file}: names code of its own"):
            load(folder)
    assert not ran.exists()


def test_comet(comet_checkpoints: Path, tmp_path: Path, ran: Path) -> None:
    folder = with_code(comet_checkpoints / "regression", tmp_path / "model", ran)
    with pytest.raises(ArtifactError, match="config.json: names code of its own"):
        load_scorer("comet", str(folder), lang_pair="de-en")
    encoder = with_code(
        comet_checkpoints / "regression", tmp_path / "encoder", ran, "tokenizer_config.json"
    )
    goldens = Path(__file__).parents[1] / "parity" / "comet" / "models" / "regression"
    for model, used in ((goldens, encoder), (encoder, None)):
        with pytest.raises(
            ArtifactError, match="encoder/tokenizer_config.json: names code of its own"
        ):
            convert_model(model, tmp_path / "made", encoder=used)
    assert not ran.exists()


def test_the_command_line(
    mtmetrics: Callable, tiny_preset: Path, tiny_encoder: Path, tmp_path: Path, ran: Path
) -> None:
    folder = with_code(tiny_encoder, tmp_path / "model", ran)
    rows = write(tmp_path / "rows.tsv", "das haus\tthe house\n")
    for argv in (
        [
            "score",
            "--metric",
            "xmoverscore",
            "--preset",
            tiny_preset,
            "--encoder",
            folder,
            "--lp",
            "de-en",
            rows,
        ],
        [
            "score",
            "--metric",
            "distilscore:mini",
            "--encoder",
            folder,
            "--lp",
            "de-en",
            "--against",
            "source",
            rows,
        ],
        [
            "train",
            "idf",
            "--encoder",
            folder,
            "--text",
            rows,
            "--out",
            tmp_path / "idf.safetensors",
        ],
    ):
        refused(mtmetrics(*argv), "config.json: names code of its own", code=1)
    assert not ran.exists()


def test_models_without_code_are_loaded(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_encoder, tmp_path / "model")
    SentenceTransformerEncoder(folder)
    write(
        folder / "config.json",
        json.dumps(json.loads((folder / "config.json").read_text()) | {"auto_map": {}}),
    )
    TokenEncoder(folder)


def test_every_load_says_that_no_code_is_to_run() -> None:
    for path in TOOLS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("from_pretrained", "SentenceTransformer"):
                words = {word.arg: ast.unparse(word.value) for word in node.keywords}
                assert words.get("trust_remote_code") == "False", f"{path}, line {node.lineno}"
