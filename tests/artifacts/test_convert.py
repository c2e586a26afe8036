"""Pickled weights in the layouts of public repositories become safetensors, tensor by tensor, and
run no code."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import layouts
import pytest
import torch
import transformers
from helpers import converting_here
from safetensors.torch import load_file

from mtmetrics.artifacts import convert
from mtmetrics.artifacts.models import model_folder
from mtmetrics.errors import ArtifactError
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.sentence_encoder import SentenceTransformerEncoder
from mtmetrics.models.token_encoder import TokenEncoder

TEXTS = ["the house is small", "das haus"]


@pytest.fixture(scope="module")
def pickled(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path, tiny_lm: Path) -> Path:
    """Folders of models whose weights are pickles alone."""
    root = tmp_path_factory.mktemp("pickled")
    layouts.bert_multilingual(root / "bert", tiny_encoder, 2)
    layouts.gpt2(root / "gpt2", tiny_lm)
    layouts.mbart_cc25(root / "mbart")
    return root


@pytest.fixture
def here() -> Iterator[None]:
    """Files are converted in this process; those of the first and the last conversion here are in
    others."""
    with converting_here():
        yield


def test_gamma_and_beta_load_as_they_were_meant(
    pickled: Path, tmp_path: Path, mtmetrics: Callable
) -> None:
    code, out, _ = mtmetrics("artifacts", "convert", pickled / "bert", "--out", tmp_path / "bert")
    record = json.loads(out)
    assert (code, record["model"], record.pop("folder")) == (0, "bert", str(tmp_path / "bert"))
    assert record == json.loads((tmp_path / "bert" / "conversion.json").read_text())
    file = record["files"]["pytorch_model.bin"]
    assert file["tied"] == {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }
    weights = torch.load(pickled / "bert" / "pytorch_model.bin", weights_only=True)
    written = load_file(tmp_path / "bert" / "model.safetensors")
    assert file["tensors"] == len(weights)
    assert "bert.embeddings.LayerNorm.gamma" in written
    assert all(torch.equal(weights[name], written[name]) for name in weights.keys() - file["tied"])
    plain = {
        name.replace("gamma", "weight").replace("beta", "bias"): value
        for name, value in weights.items()
    }
    config = transformers.AutoConfig.from_pretrained(pickled / "bert")
    network = transformers.BertModel(config, add_pooling_layer=False).eval()
    own = {
        name.removeprefix("bert."): value
        for name, value in plain.items()
        if name.startswith("bert.e")
    }
    network.load_state_dict(own)
    encoder = TokenEncoder(tmp_path / "bert")
    with torch.no_grad():
        inputs = encoder.tokenizer(TEXTS[0], return_tensors="pt")
        wanted = network(**inputs).last_hidden_state[0].numpy()
    assert encoder.encode(TEXTS[:1]).vectors == pytest.approx(wanted, abs=1e-5)


@pytest.mark.usefixtures("here")
def test_a_language_model_without_prefix_in_the_old_format(
    pickled: Path, tiny_lm: Path, tmp_path: Path
) -> None:
    convert.convert_model(pickled / "gpt2", tmp_path / "gpt2")
    scores = [LanguageModel(folder).score(TEXTS) for folder in (tmp_path / "gpt2", tiny_lm)]
    assert list(scores[0][0]) == pytest.approx(list(scores[1][0]), abs=1e-6)


@pytest.mark.usefixtures("here")
def test_word_vectors_that_three_names_share_are_written_once(
    pickled: Path, tmp_path: Path
) -> None:
    file = convert.convert_model(pickled / "mbart", tmp_path / "mbart")["files"][
        "pytorch_model.bin"
    ]
    assert file["tied"] == {
        f"model.{side}.embed_tokens.weight": "model.shared.weight"
        for side in ("encoder", "decoder")
    }
    weights = torch.load(pickled / "mbart" / "pytorch_model.bin", weights_only=True)
    network = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "mbart")
    loaded = network.state_dict()
    assert all(torch.equal(loaded[name], value) for name, value in weights.items())
    assert torch.equal(loaded["lm_head.weight"], weights["model.shared.weight"])


@pytest.mark.usefixtures("here")
def test_parts_and_shared_memory_that_no_architecture_ties(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    parted = tmp_path / "parted"
    network = transformers.AutoModel.from_pretrained(tiny_encoder)
    transformers.AutoTokenizer.from_pretrained(tiny_encoder).save_pretrained(parted)
    network.config.save_pretrained(parted)
    weights = network.state_dict()
    # Two names of one memory, and a part of a larger one.
    query, key = (f"encoder.layer.0.attention.self.{name}." for name in ("query", "key"))
    weights[key + "weight"] = weights[query + "weight"]
    weights[key + "bias"] = torch.arange(32.0)[8:24]
    numbers = {name: int(not name.startswith(query)) for name in weights}
    numbers[key + "weight"] = 0
    files = [f"pytorch_model-0000{number}-of-00002.bin" for number in (1, 2)]
    for number, file in enumerate(files):
        torch.save(
            {name: weights[name] for name in weights if numbers[name] == number}, parted / file
        )
    index = {
        "metadata": {},
        "weight_map": {name: files[number] for name, number in numbers.items()},
    }
    (parted / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    convert.convert_model(parted, tmp_path / "out")
    loaded = transformers.AutoModel.from_pretrained(tmp_path / "out").state_dict()
    assert all(torch.equal(loaded[name], value) for name, value in weights.items())


@pytest.mark.usefixtures("here")
def test_a_sentence_encoder_of_modules(tiny_encoder: Path, tmp_path: Path) -> None:
    old, module = tmp_path / "old", tmp_path / "old" / "0_Transformer"
    shutil.copytree(tiny_encoder, module)
    torch.save(load_file(module / "model.safetensors"), module / "pytorch_model.bin")
    (module / "model.safetensors").unlink()
    (module / "sentence_bert_config.json").write_text(
        '{"max_seq_length": 64, "do_lower_case": false}'
    )
    (old / "1_Pooling").mkdir()
    (old / "1_Pooling" / "config.json").write_text(
        '{"word_embedding_dimension": 16, "pooling_mode_mean_tokens": true}'
    )
    kinds = {"0_Transformer": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, (path, kind) in enumerate(kinds.items())
    ]
    (old / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ArtifactError, match="artifacts convert"):
        SentenceTransformerEncoder(old)
    convert.convert_model(old, tmp_path / "new")
    found = SentenceTransformerEncoder(tmp_path / "new").encode(TEXTS)
    assert found.vectors == pytest.approx(
        TokenEncoder(tiny_encoder).encode(TEXTS).means(), abs=1e-5
    )


def test_what_might_run_code_does_not_and_nothing_is_kept(
    pickled: Path, tmp_path: Path, mtmetrics: Callable
) -> None:
    folder, ran = shutil.copytree(pickled / "gpt2", tmp_path / "bad"), tmp_path / "ran"
    torch.save(layouts.Attack(f"touch {ran}"), folder / "pytorch_model.bin")
    code, _, error = mtmetrics("artifacts", "convert", folder, "--out", tmp_path / "out")
    assert code == 1
    assert (
        f"{folder}/pytorch_model.bin: cannot be converted (it holds more than tensors, which "
        "might run code"
    ) in error
    assert "unsupported GLOBAL posix.system" in error
    assert "nothing was kept" in error
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


def test_what_is_no_table_of_tensors_or_damaged(pickled: Path, tmp_path: Path) -> None:
    file, target = tmp_path / "pytorch_model.bin", tmp_path / "model.safetensors"
    torch.save({"model": {}}, file)
    with pytest.raises(TypeError, match="no plain table of tensors"):
        convert.convert_file(file, target)
    file.write_bytes((pickled / "gpt2" / "pytorch_model.bin").read_bytes()[:-500])
    with pytest.raises((RuntimeError, ValueError, EOFError)):
        convert.convert_file(file, target)


def test_a_tensor_that_was_written_in_another_type_is_noticed(
    pickled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = convert.save_tensors

    def altered(tensors: dict, path: Path) -> None:
        save(tensors | {"ln_f.weight": tensors["ln_f.weight"].half()}, path)

    monkeypatch.setattr(convert, "save_tensors", altered)
    with pytest.raises(ValueError, match="other tensors were written than were read"):
        convert.convert_file(pickled / "gpt2" / "pytorch_model.bin", tmp_path / "model.safetensors")


def test_what_cannot_begin(
    pickled: Path, tiny_encoder: Path, tmp_path: Path, mtmetrics: Callable
) -> None:
    code, _, error = mtmetrics("artifacts", "convert", tiny_encoder, "--out", tmp_path / "a")
    assert code == 2
    assert (
        "nothing to convert, it holds no pytorch_model.bin that has no *.safetensors beside it"
        in error
    )
    (tmp_path / "b").mkdir()
    assert (
        "exists already"
        in mtmetrics("artifacts", "convert", pickled / "gpt2", "--out", tmp_path / "b")[2]
    )
    _, _, error = mtmetrics(
        "artifacts", "convert", "no/such", "--out", tmp_path / "c", "--local-files-only"
    )
    assert "the Hub repository no/such" in error


def test_who_finds_pickles_alone_names_the_command(
    pickled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MTMETRICS_ARTIFACTS", str(pickled))
    command = r"no \*\.safetensors weights; .* 'mtmetrics artifacts convert mbart --out DIR', and pass DIR instead"
    with pytest.raises(ArtifactError, match=command):
        model_folder("mbart")
