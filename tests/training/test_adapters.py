"""Low-rank adapters: they are trained in place of a whole encoder, are read as peft reads them, and
belong to one encoder."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import write, write_jsonl
from safetensors.torch import load_file, save_file
from toys import CONFIGS, WORDS, equal_weights, interrupted, precision, record_of
from transformers import AutoModel, AutoTokenizer

from mtmetrics.artifacts.convert import convert_model
from mtmetrics.artifacts.models import model_fingerprint, model_folder, sentence_model
from mtmetrics.artifacts.publish import artifact_kind, artifact_publication
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.training.configs import ContrastiveConfig
from mtmetrics.training.run import Run
from mtmetrics.training.sentence import train_contrastive

pytest.importorskip("peft", reason="needs the extra 'train'")

Train = Callable[..., Path]
RANK = {"adapter_rank": 2}
LEARNING = ContrastiveConfig(epochs=8, pairs_per_step=32, learning_rate=3e-2, adapter_rank=16)
TEXTS = ["the house sees the dog", "das haus", "dog", "alt hund mag brot neu winter"]


@pytest.fixture(scope="module")
def two_steps(
    models: Path, toy_pairs: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """An encoder, and adapters on it that learnt for two steps."""
    folder = tmp_path_factory.mktemp("two-steps")
    encoder = Path(shutil.copytree(models / "student", folder / "encoder"))
    rows = [json.loads(line) for line in toy_pairs.read_text(encoding="utf-8").splitlines()[:64]]
    pairs = write_jsonl(folder / "de-en.jsonl", rows)
    config = ContrastiveConfig(pairs_per_step=32, learning_rate=0.1, warmup=0.0, **RANK)
    adapters = train_contrastive(Run(folder / "adapters"), [pairs], encoder, config=config)
    assert record_of(adapters)["steps"] == 2
    return encoder, adapters


def relate_words(encoder: Path, vocabulary: dict[str, int], english: dict[str, int]) -> None:
    """Gives a word and its translation the same first half of their vectors; the rest is large and
    differs.

    Args:
        encoder: its folder.
        vocabulary: numbers of German words.
        english: numbers of English words.
    """
    tensors = load_file(encoder / "model.safetensors")
    table = tensors["embeddings.word_embeddings.weight"]
    generator = torch.Generator().manual_seed(0)
    for word, translation in WORDS.items():
        shared = torch.randn(8, generator=generator)
        for row in (english[word], vocabulary[translation]):
            other = 3 * torch.randn(8, generator=generator)
            table[row] = 0.1 * torch.cat([shared, other])
    save_file(tensors, encoder / "model.safetensors", {"format": "pt"})


def vectors(model: Path, texts: list[str] = TEXTS) -> np.ndarray:
    packed = ModelPool(device="cpu").sentence_encoder(str(model)).encode(texts, "de")
    return packed.vectors[packed.index]


def merged_by_peft(encoder: Path, adapters: Path) -> np.ndarray:
    """The mean vectors of the model that peft makes of both."""
    from peft import PeftModel

    base = AutoModel.from_pretrained(encoder, add_pooling_layer=False)
    network = PeftModel.from_pretrained(base, str(adapters)).merge_and_unload().eval()
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    with torch.no_grad():
        states = [
            network(**tokenizer(text, return_tensors="pt")).last_hidden_state for text in TEXTS
        ]
    return np.concatenate([state.mean(1).numpy() for state in states])


def changed_settings(adapters: Path, made: Path, **changes: object) -> Path:
    """A copy of adapters with other settings of peft."""
    shutil.copytree(adapters, made)
    path = made / "adapter_config.json"
    write(path, json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes))
    return made


def test_vectors_are_those_of_the_model_that_peft_merges(two_steps: tuple[Path, Path]) -> None:
    encoder, adapters = two_steps
    expected = merged_by_peft(encoder, adapters)
    assert vectors(adapters) == pytest.approx(expected, abs=1e-6)
    assert np.abs(vectors(encoder) - expected).max() > 1e-2
    assert sentence_model(adapters, "cpu").encode(TEXTS) == pytest.approx(expected, abs=1e-6)
    words = TokenEncoder(adapters)
    assert words.means().encode(TEXTS).vectors == pytest.approx(expected, abs=1e-6)
    rough = ModelPool(device="cpu", dtype="bfloat16").sentence_encoder(str(adapters))
    assert rough.encode(TEXTS).vectors == pytest.approx(expected, abs=0.1)


def test_another_architecture_is_read_alike(
    two_steps: tuple[Path, Path], tmp_path: Path, toy_pairs: Path
) -> None:
    # Not a plain BERT, so `transformers` computes it.
    encoder = Path(shutil.copytree(two_steps[0], tmp_path / "roberta"))
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    from transformers import RobertaConfig, RobertaModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        intermediate_size=32,
        max_position_embeddings=70,
        pad_token_id=tokenizer.pad_token_id,
        **sizes,
    )
    RobertaModel(config, add_pooling_layer=False).save_pretrained(encoder)
    config = ContrastiveConfig(pairs_per_step=200, learning_rate=0.1, **RANK)
    adapters = train_contrastive(Run(tmp_path / "made"), [toy_pairs], encoder, config=config)
    assert vectors(adapters) == pytest.approx(merged_by_peft(encoder, adapters), abs=1e-6)


def test_translations_come_together_while_the_encoder_stays(
    models: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    encoder = Path(shutil.copytree(models / "student", tmp_path / "encoder"))
    vocabulary = AutoTokenizer.from_pretrained(encoder).get_vocab()
    relate_words(encoder, vocabulary, vocabulary)
    before = model_fingerprint(encoder)
    run = Run(tmp_path / "toy", seed=3)
    adapters = train_contrastive(run, [toy_pairs], encoder, config=LEARNING)
    assert precision(adapters, toy_pairs) > precision(encoder, toy_pairs) + 0.3
    assert model_fingerprint(encoder) == before
    weights = load_file(adapters / "adapter_model.safetensors")
    assert {str(tensor.dtype) for tensor in weights.values()} == {"torch.float16"}
    assert {path.name for path in adapters.iterdir()} == {
        "README.md",
        "adapter_config.json",
        "adapter_model.safetensors",
        "config.json",
        "training.json",
        "training_log.csv",
    }
    assert record_of(adapters)["config"]["adapter_rank"] == 16
    assert "peft" in record_of(adapters)["versions"]


def test_an_interrupted_training_ends_with_the_same_adapters(train: Train, tmp_path: Path) -> None:
    whole = train("contrastive", Run(tmp_path / "whole", seed=3), **RANK)
    with interrupted(34):
        train("contrastive", Run(tmp_path / "toy", seed=3), **RANK)
    checkpoint = tmp_path / "toy.work" / "checkpoints" / "checkpoint-30"
    assert (checkpoint / "adapter_model.safetensors").is_file()
    resumed = train("contrastive", Run(tmp_path / "toy", seed=3), **RANK)
    assert equal_weights(whole, resumed)
    assert record_of(whole) == record_of(resumed)


def test_adapters_learn_on(train: Train, tmp_path: Path, toy_pairs: Path) -> None:
    first = train("contrastive", Run(tmp_path / "first"), **RANK)
    config = ContrastiveConfig(learning_rate=1e-9, pairs_per_step=200, **RANK)
    second = train_contrastive(Run(tmp_path / "second"), [toy_pairs], first, config=config)
    assert vectors(second) == pytest.approx(vectors(first), abs=1e-4)
    other = ContrastiveConfig(adapter_rank=3)
    with pytest.raises(InputError, match="adapter_rank 3: .*first holds adapters of rank 2"):
        train_contrastive(Run(tmp_path / "third"), [toy_pairs], first, config=other)


def test_adapters_are_bound_to_their_encoder(two_steps: tuple[Path, Path], tmp_path: Path) -> None:
    encoder = Path(shutil.copytree(two_steps[0], tmp_path / "encoder"))
    adapters = changed_settings(
        two_steps[1], tmp_path / "adapters", base_model_name_or_path=str(encoder)
    )
    assert model_folder(adapters) == adapters
    # The fingerprint does not depend on where the encoder lies.
    assert model_fingerprint(adapters) == model_fingerprint(two_steps[1])
    stored = load_file(encoder / "model.safetensors")
    stored["embeddings.word_embeddings.weight"][5] += 1
    save_file(stored, encoder / "model.safetensors", {"format": "pt"})
    fingerprints = model_fingerprint(two_steps[0]), model_fingerprint(encoder)
    with pytest.raises(ArtifactError, match=f"encoder#{fingerprints[0]}, but .*#{fingerprints[1]}"):
        ModelPool().sentence_encoder(str(adapters))
    shutil.rmtree(encoder)
    with pytest.raises(ArtifactError, match="an adapter of .*encoder#.* was not found"):
        TokenEncoder(adapters, local_files_only=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"use_dora": True}, "use_dora is set"),
        ({"use_rslora": True}, "use_rslora is set"),
        ({"peft_type": "IA3"}, "peft_type is 'IA3'"),
        ({"r": 3}, "neither A nor B of a low-rank adapter of rank 3"),
        ({"init_lora_weights": "pissa"}, "'pissa' changes the encoder"),
        ({"base_model_name_or_path": None}, "does not name an encoder"),
    ],
)
def test_adapters_of_another_kind_are_refused(
    two_steps: tuple[Path, Path], tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    adapters = changed_settings(two_steps[1], tmp_path / "adapters", **changes)
    with pytest.raises(ArtifactError, match=message):
        TokenEncoder(adapters)


def test_adapters_that_pin_no_encoder_are_refused(
    two_steps: tuple[Path, Path], tmp_path: Path
) -> None:
    adapters = changed_settings(two_steps[1], tmp_path / "adapters")
    write(adapters / "config.json", "{}")
    with pytest.raises(ArtifactError, match="encoder_fingerprint is missing"):
        TokenEncoder(adapters)
    write(adapters / "config.json", '{"encoder_fingerprint": "00000000"}')
    settings = {"base_model_name_or_path": str(adapters)}
    own = changed_settings(adapters, tmp_path / "own", **settings)
    with pytest.raises(ArtifactError, match="this is an adapter itself"):
        TokenEncoder(own)


def test_a_pipeline_of_sentence_transformers_gets_no_adapters(
    models: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    config = ContrastiveConfig(**RANK)
    with pytest.raises(ArtifactError, match="a pipeline of sentence-transformers"):
        train_contrastive(Run(tmp_path / "x"), [toy_pairs], models / "sentences", config=config)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="adapter_rank -1: must be at least 0"):
        ContrastiveConfig(adapter_rank=-1)


def test_the_converted_folder_loads_in_sentence_transformers(
    two_steps: tuple[Path, Path], tmp_path: Path, mtmetrics: Callable[..., tuple[int, str, str]]
) -> None:
    from sentence_transformers import SentenceTransformer

    encoder, adapters = two_steps
    code, printed, _ = mtmetrics("artifacts", "convert", adapters, "--out", tmp_path / "merged")
    assert code == 0
    assert json.loads(printed)["merged"] == 6
    model = SentenceTransformer(str(tmp_path / "merged"), device="cpu", local_files_only=True)
    assert model.encode(TEXTS) == pytest.approx(merged_by_peft(encoder, adapters), abs=1e-5)
    assert vectors(tmp_path / "merged") == pytest.approx(vectors(adapters), abs=1e-5)
    record = json.loads((tmp_path / "merged" / "conversion.json").read_text(encoding="utf-8"))
    assert record["encoder"] == f"encoder#{model_fingerprint(encoder)}"
    assert not (tmp_path / "merged" / "adapter_config.json").exists()
    with pytest.raises(InputError, match="merged exists already"):
        convert_model(adapters, tmp_path / "merged")


def test_list_verify_and_push_know_the_kind(two_steps: tuple[Path, Path], tmp_path: Path) -> None:
    adapters = changed_settings(
        two_steps[1], tmp_path / "adapters", base_model_name_or_path="mini-encoder"
    )
    assert artifact_kind(adapters) == "adapter"
    with pytest.raises(ArtifactError, match="license is missing"):
        artifact_publication(adapters, "org")
    for folder in (adapters, two_steps[1]):
        card = folder / "README.md"
        write(card, card.read_text(encoding="utf-8").replace("---\n", "---\nlicense: mit\n", 1))
    files = artifact_publication(adapters, "org").files
    assert {"adapter_config.json", "adapter_model.safetensors", "config.json"} <= set(files)
    with pytest.raises(ArtifactError, match="others would not find the encoder .*encoder"):
        artifact_publication(two_steps[1], "org")


@pytest.fixture(scope="module")
def two_vocabularies(
    two_steps: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """An encoder that reads English with a vocabulary in which every word has another number."""
    folder = tmp_path_factory.mktemp("encoders") / "two-vocabularies"
    shutil.copytree(two_steps[0], folder)
    table = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = table["model"]["vocab"]
    words = sorted(WORDS.keys() - set(WORDS.values()))
    turned = dict(zip(words, [vocabulary[word] for word in reversed(words)], strict=True))
    table["model"]["vocab"] = vocabulary | turned
    relate_words(folder, vocabulary, vocabulary | turned)
    write(folder / "languages" / "en" / "tokenizer.json", json.dumps(table))
    about = (folder / "tokenizer_config.json").read_text(encoding="utf-8")
    write(folder / "languages" / "en" / "tokenizer_config.json", about)
    return folder


def test_each_language_is_read_with_its_vocabulary(
    two_vocabularies: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    whole = CONFIGS["contrastive"]
    with pytest.raises(ArtifactError, match="vocabulary of its own, .*--adapter-rank"):
        train_contrastive(Run(tmp_path / "whole"), [toy_pairs], two_vocabularies, config=whole)
    run = Run(tmp_path / "adapters", seed=3)
    adapters = train_contrastive(run, [toy_pairs], two_vocabularies, config=LEARNING)
    rows = [json.loads(line) for line in toy_pairs.read_text(encoding="utf-8").splitlines()[:100]]

    def right_matches(model: Path) -> float:
        encoder = TokenEncoder(model).means()
        units = []
        for side, language in (("source", "de"), ("target", "en")):
            packed = encoder.encode([row[side] for row in rows], language)
            rows_of_texts = packed.vectors[packed.index]
            units.append(rows_of_texts / np.linalg.norm(rows_of_texts, axis=1, keepdims=True))
        return float(((units[0] @ units[1].T).argmax(1) == np.arange(100)).mean())

    assert right_matches(adapters) > right_matches(two_vocabularies) + 0.3
    mined = shutil.copyfile(toy_pairs, tmp_path / "mined.jsonl")
    with pytest.raises(InputError, match="--parallel mined: the encoder reads en with"):
        train_contrastive(Run(tmp_path / "b"), [mined], two_vocabularies, config=LEARNING)
    # The merged folder keeps both vocabularies for us; sentence-transformers reads one.
    convert_model(adapters, tmp_path / "merged")
    assert vectors(tmp_path / "merged") == pytest.approx(vectors(adapters), abs=1e-4)


PROGRAM = """
import socket, sys

def refuse(*_):
    raise OSError("no network")

socket.socket.connect = refuse
sys.modules["peft"] = None
from mtmetrics.scorers.registry import load_scorer

for metric, preset in zip(sys.argv[1::2], sys.argv[2::2]):
    scorer = load_scorer(metric, preset=preset, lang_pair="de-en")
    result = scorer.score(["the house sees the dog"], sources=["das haus sieht das hund"])
    print(scorer.signature, result.segments[0])
"""


def test_a_preset_with_adapters_needs_neither_network_nor_peft(
    two_steps: tuple[Path, Path], tmp_path: Path
) -> None:
    encoder, adapters = two_steps
    tables = {
        "uscore": f'[sentences]\nmodel = "{adapters}"\n[score]\nparts = "snt"\n',
        "sentsim": f'[src-mt]\nwords = "{encoder}"\nsentences = "{adapters}"\n',
    }
    presets = {
        metric: write(tmp_path / metric / "preset.toml", f'metric = "{metric}"\n{table}').parent
        for metric, table in tables.items()
    }
    program = [sys.executable, "-c", PROGRAM]
    for metric, preset in presets.items():
        program += [metric, str(preset)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    scores = {}
    for line, (metric, preset) in zip(done.stdout.splitlines(), presets.items(), strict=True):
        signature, scores[metric] = line.split()
        assert f"adapters#{model_fingerprint(adapters)}" in signature
        assert load_scorer(metric, preset=str(preset), lang_pair="de-en").signature == signature
    first, second = vectors(adapters, ["the house sees the dog", "das haus sieht das hund"])
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert float(scores["uscore"]) == pytest.approx(cosine, abs=1e-6)
