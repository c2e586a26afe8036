import json
import os
import random
import shutil
import subprocess
import sys
import time
import tomllib
import unittest.mock
from pathlib import Path

import layouts
import numpy as np
import pytest
from helpers import converting_here, write, write_jsonl
from huggingface_hub.errors import LocalEntryNotFoundError
from transformers import AutoTokenizer

from mtmetrics.artifacts.cards import check_model_card
from mtmetrics.artifacts.convert import convert_model
from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.matching.remapping_files import load_map
from mtmetrics.mining.sides import encode_side
from mtmetrics.mining.word_level import mine_words
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.models.translator import Translation
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.training.run import Run
from mtmetrics.uscore import Request, UScoreConfig, production
from mtmetrics.uscore.preset import check_models, read_start
from mtmetrics.uscore.production import produce_uscore

pytest.importorskip("faiss", reason="needs the extra 'mining'")
pytest.importorskip("accelerate", reason="needs the extra 'train'")

NOUNS = {"haus": "house", "hund": "dog", "baum": "tree", "katze": "cat"}
VERBS = {
    "schläft": "sleeps",
    "steht dort": "stands there",
    "ist klein": "is small",
    "ist groß": "is large",
}
CHANGED = {
    "contrastive_rounds": 1,
    "contrastive_batch": 4,
    "translation_share": 0.5,
    "translation_epochs": 1,
}
CHANGED |= {"denoising_steps": 4, "remap_share": 0.5}
SETTINGS = UScoreConfig(**CHANGED)
MEASURED = {"held_back": "de-en.jsonl", "judged": ["judged.jsonl", "other/judged.jsonl"]}
BOTH = ["sentences", "translation"]
SWAPPED = {"lang_pair": "en-de", "without": ["sentences"], "judged": MEASURED["judged"]}


def sentences(count, seed):
    generator = random.Random(seed)
    found = {}
    while len(found) < count:
        (a, b), (does, other) = generator.sample(list(NOUNS), 2), generator.sample(list(VERBS), 2)
        english = (
            f"the {NOUNS[a]} {VERBS[does]} and the {NOUNS[b]} not {VERBS[other]} {len(found)} ."
        )
        found[f"der {a} {does} und der {b} {other} nicht {len(found)} ."] = english
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_encoder, tiny_lm):
    """A preset to start from, and text."""
    folder = tmp_path_factory.mktemp("uscore")
    pairs = sentences(40, 1)
    (folder / "de.txt").write_text("\n".join([*pairs, "", "kurz"]), encoding="utf-8")
    write(folder / "en.txt", "\n".join(random.Random(2).sample(sorted(pairs.values()), len(pairs))))
    held_back = [{"source": source, "target": target} for source, target in list(pairs.items())[:5]]
    write_jsonl(folder / "de-en.jsonl", held_back)
    rows = []
    for number, (source, target) in enumerate(list(pairs.items())[:8]):
        translation, human = target if number % 2 else "i see 1", number % 2 + number / 100
        rows.append({"lp": "de-en", "source": source, "translation": translation, "human": human})
    write_jsonl(folder / "judged.jsonl", rows)
    write_jsonl(folder / "other" / "judged.jsonl", [*rows[:6], {**rows[6], "human": None}])
    encoder = shutil.copytree(tiny_encoder, folder / "encoder")
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)
    tokenizer.mask_token = "?"
    tokenizer.save_pretrained(encoder)
    models = (
        f'[encoder]\nmodel = "{encoder}"\nlayer = 2\n[language_models.en]\nmodel = "{tiny_lm}"\n'
    )
    start = f'[start]\nsentences = "{tiny_encoder}"\ntranslation = "small"\n'
    write(folder / "preset" / "preset.toml", f'metric = "uscore"\n{models}{start}')
    return folder


def produce(
    folder, out, config=SETTINGS, lang_pair="de-en", identify=False, preset="preset", **options
):
    given = {"source_text": "de.txt", "target_text": "en.txt", **options}
    run = {name: given.pop(name) for name in ("pool", "threads") if name in given}
    for field in {"source_text", "target_text", "parallel", "held_back", "judged"} & {*given}:
        files = given[field]
        given[field] = (
            [folder / path for path in files] if isinstance(files, list) else folder / files
        )
    request = Request(
        lang_pair, preset=str(folder / preset), config=config, identify=identify, **given
    )
    return produce_uscore(out, request, **run)


def pairs_of(stage):
    rows = (stage / "de-en.jsonl").read_text(encoding="utf-8").splitlines()
    return [(row["source"], row["target"]) for row in map(json.loads, rows)]


def logged(out):
    return [json.loads(line)["stage"] for line in (out / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(folder):
    """A production with everything."""
    settings = UScoreConfig(**CHANGED | {"contrastive_rounds": 2})
    return produce(
        folder, folder / "whole", settings, parallel="de-en.jsonl", licence="cc-by-4.0", **MEASURED
    )


def test_the_folder_is_a_preset_that_can_be_moved(whole, folder, tmp_path):
    moved = tmp_path / "elsewhere"
    (whole / "work").rename(tmp_path / "work")
    whole.rename(moved)
    try:
        scorer = load_scorer("uscore", preset=str(moved), lang_pair="de-en")
        result = scorer.score(["the dog sleeps"], sources=["der hund schläft"])
        assert set(result.parts) == {"wmd", "pseudo", "lm", "wrd", "snt"}
        assert "map:clp#" in result.signature
    finally:
        moved.rename(whole)
        (tmp_path / "work").rename(whole / "work")


def test_no_text_leaves_the_work_folder(whole):
    for path in whole.rglob("*"):
        published = path.is_file() and "work" not in path.relative_to(whole).parts
        if published and path.suffix in (".json", ".md", ".toml", ".jsonl", ".csv"):
            assert "stands there" not in path.read_text(encoding="utf-8").replace("##", ""), path


def test_card_and_configuration_tell_what_was_made_and_can_be_published(whole):
    assert check_model_card(whole)["license"] == "cc-by-4.0"
    config = json.loads((whole / "config.json").read_text())
    assert config["counts"]["prepare-de"]["too few tokens"] == 1
    assert config["counts"]["prepare-de"]["held back"] == 5
    assert config["counts"]["words-1-pairs"]["sources"] == 35
    card = (whole / "README.md").read_text()
    assert "-judged (8) | other-judged (6) |" in card
    assert "| start |" in card
    assert "| round 2 |" in card
    for row in (
        "words, start",
        "words, round 1",
        "sentences, round 2",
        "part pseudo",
        "wrd+snt, tuned",
        "wrd+snt, ++",
    ):
        assert f"| {row} |" in card
    assert (whole / "precision.png").read_bytes().startswith(b"\x89PNG")
    preset = tomllib.loads((whole / "preset.toml").read_text())
    assert (preset["lang_pair"], preset["maps"]["kind"]) == ("de-en", "clp")


def test_each_round_mines_with_the_map_of_the_one_before(folder, tmp_path):
    settings = UScoreConfig(**CHANGED | {"remap_rounds": 2, "map": "clp"})
    work = produce(folder, tmp_path / "out", settings, without=BOTH) / "work"
    encoder = TokenEncoder(folder / "encoder", layer=2)
    texts = [
        (work / f"prepare-{language}" / "sentences.txt").read_text() for language in ("de", "en")
    ]
    sides = [encode_side(text.splitlines(), encoder) for text in texts]
    pairs = []
    for number, maps in ((1, None), (2, "words-1-maps")):
        remapping = maps and load_map(work / maps, "de-en", "clp", encoder)
        pairs.append(pairs_of(work / f"words-{number}-pairs"))
        assert pairs[-1] == mine_words(*sides, remapping, k=20, share=0.5).pairs()
    assert pairs[0] != pairs[1]


@pytest.mark.parametrize("base", ["encoder", "other"])
def test_adapters_of_the_sentence_encoder(folder, tiny_encoder, tmp_path, base):
    models = (folder / "preset" / "preset.toml").read_text().partition("[start]")[0]
    # The encoder of the words, which the preset has in any case, or another one.
    model = folder / "encoder" if base == "encoder" else tiny_encoder
    start = f'[start]\nsentences = {{ model = "{model}", adapter_rank = 2 }}\n'
    score = '[score]\npieces = "all"\nmasses = "norm"\n'
    write(folder / f"adapters-{base}" / "preset.toml", models + start + score)
    options = {"preset": f"adapters-{base}", "without": ["translation"]}
    config = UScoreConfig(**CHANGED | {"contrastive_rounds": 2})
    made = produce(folder, tmp_path / "out", config, parallel="de-en.jsonl", **options)
    assert {"sentences-1-model", "sentences-2-model", "parallel-sentences-model"} <= {*logged(made)}
    preset = tomllib.loads((made / "preset.toml").read_text())
    assert preset["sentences"] == {"model": "sentences"}
    assert preset["score"] == {"pieces": "all", "masses": "norm", "without": ["translation"]}
    record = json.loads((made / "sentences" / "training.json").read_text())
    assert (record["config"]["adapter_rank"], record["config"]["learning_rate"]) == (2, 1e-3)
    place = {"encoder": "../encoder", "other": "base"}[base]
    settings = json.loads((made / "sentences" / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == place
    assert (made / "sentences" / place / "model.safetensors").is_file()
    here = load_scorer("uscore", preset=str(made), lang_pair="de-en")
    moved = made.rename(tmp_path / "moved")
    there = load_scorer("uscore", preset=str(moved), lang_pair="de-en")
    assert there.signature == here.signature
    assert "|without:translation|" in there.signature
    assert "|layer:2|pieces:all|mass:norm|map:" in there.signature
    segments = there.score(["the dog sleeps"], sources=["der hund schläft"]).segments
    assert np.isfinite(segments).all()
    # Without a licence that somebody states, the card has none, and is not published.
    with pytest.raises(ArtifactError, match="license is missing"):
        check_model_card(moved)
    # Nothing was measured, so the card claims nothing.
    card = (moved / "README.md").read_text()
    assert "metrics: []\n" in card
    assert "model-index" not in card


@pytest.mark.parametrize(
    ("preset", "lang_pair"), [("mini", "de-en"), ("mini-de-en", "de-en"), ("mini-et-en", "et-en")]
)
def test_the_bundled_presets_have_all_that_a_production_needs(preset, lang_pair):
    start = read_start(Request(lang_pair, "xx.txt", "en.txt", preset), local_files_only=True)
    check_models(start, lang_pair, ModelPool(local_files_only=True))
    assert start.adapter_rank == 12
    assert Path(start.sentences).name == "mini-encoder"
    assert start.translation


def test_another_language_model_is_recorded(whole, folder, tiny_lm, tmp_path):
    def language_model(out, **options):
        made = produce(folder, tmp_path / out, without=BOTH, lang_pair="en-de", **options)
        return tomllib.loads((made / "preset.toml").read_text()), json.loads(
            (made / "config.json").read_text()
        )

    preset, config = language_model("own", lm=str(tiny_lm))
    assert preset["language_models"] == {"de": {"model": "language_model"}}
    assert preset["score"]["without"] == BOTH
    assert config["preset"]["language_models.de"] == {"model": "language_model"}
    assert (tmp_path / "own" / "language_model" / "model.safetensors").is_file()
    models = (
        (folder / "preset" / "preset.toml")
        .read_text()
        .replace("[language_models.en]", "[language_models.de]")
    )
    table = '\nstart_token = "always"\nend_token = true\nlength_power = 0.5\n[start]'
    write(folder / "kept-lm" / "preset.toml", models.replace("\n[start]", table))
    preset, _ = language_model("same-way", lm=str(tiny_lm), preset="kept-lm")
    scored = {"start_token": "always", "end_token": True, "length_power": 0.5}
    assert preset["language_models"] == {"de": {"model": "language_model", **scored}}
    preset, _ = language_model("none", lm="none")
    assert preset["score"]["without"] == [*BOTH, "language_model"]
    with pytest.raises(ArtifactError, match="my-gpt"):
        produce(folder, tmp_path / "missing", lm="my-gpt")
    assert not (tmp_path / "missing").exists()


def test_a_second_call_repeats_nothing(whole, folder):
    before = logged(whole)
    assert {"parallel-maps", "parallel-sentences-model", "parallel-translation-model"} <= set(
        before
    )
    settings = UScoreConfig(**CHANGED | {"contrastive_rounds": 2})
    produce(folder, whole, settings, parallel="de-en.jsonl", licence="cc-by-4.0", **MEASURED)
    assert logged(whole) == before


def test_what_is_no_longer_part_of_the_preset_leaves_the_folder(folder, tmp_path, monkeypatch):
    out = tmp_path / "out"
    for name in ("sentences/x", "translation/x", "agreement-old.png", "LICENSE"):
        write(out / name, "x")
    produce(folder, out, without=BOTH)
    made = {
        "README.md",
        "config.json",
        "encoder",
        "language_model",
        "log.jsonl",
        "maps",
        "preset.toml",
        "work",
    }
    assert {path.name for path in out.iterdir()} == made | {"LICENSE"}
    preset = tomllib.loads((out / "preset.toml").read_text())
    assert (preset["score"]["without"], preset["maps"]["kind"]) == (BOTH, "umd")
    scorer = load_scorer("uscore", preset=str(out), lang_pair="de-en")
    assert "without:sentences+translation" in scorer.signature
    # Nothing was mined with a map, so another one changes the preset alone.
    first = logged(out)
    produce(folder, out, UScoreConfig(**CHANGED | {"map": "clp"}), without=BOTH)
    assert logged(out)[len(first) :] == ["preset", "card"]
    monkeypatch.setattr(
        "shutil.copytree", unittest.mock.Mock(side_effect=OSError(28, "No space left on device"))
    )
    with pytest.raises(
        MTMetricsError, match="out: No space left on device; finished stages are kept"
    ):
        produce(folder, out, UScoreConfig(**CHANGED | {"map": "clp"}), without=BOTH)
    assert not (out / "preset.toml").exists()


def test_a_changed_setting_repeats_what_depends_on_it_and_a_card_of_the_users_stays(
    folder, tmp_path, monkeypatch, caplog
):
    devices = []
    monkeypatch.setattr(
        production,
        "Run",
        lambda *place, **options: devices.append(options["device"]) or Run(*place, **options),
    )

    def repeated(**changes):
        before = logged(tmp_path / "out") if changes else []
        settings = UScoreConfig(**CHANGED | changes)
        produce(
            folder,
            tmp_path / "out",
            settings,
            without=["translation"],
            pool=ModelPool(device="cpu"),
        )
        return logged(tmp_path / "out")[len(before) :]

    assert repeated()[-3:] == ["sentences-1-model", "preset", "card"]
    assert devices == ["cpu"]  # trainings run where models do
    card = tmp_path / "out" / "README.md"
    first = card.read_text()
    assert repeated(remap_share=0.1) == ["words-1-pairs", "words-1-maps", "preset", "card"]
    assert card.read_text() != first  # our own is replaced
    card.write_text("mine")
    changes = {"remap_share": 0.1, "contrastive_learning_rate": 1e-3}
    assert repeated(**changes) == ["sentences-1-model", "preset", "card"]
    assert card.read_text() == "mine"
    assert "README.md was changed, so it stays; the new card is" in caplog.text


def test_a_second_translation_model_learns_from_the_translations_of_the_first(
    folder, tmp_path, monkeypatch, caplog
):
    made = {}

    class FixedTranslator:
        """Leaves the first sentence as it is, has nothing for the second, and turns the words of
        the others."""

        def translate(self, texts):
            turned = [" ".join(reversed(text.split())) for text in texts]
            made.update(zip(texts[2:], turned[2:], strict=True))
            return [Translation(text, False) for text in (texts[0], "", *turned[2:])]

    monkeypatch.setattr(ModelPool, "translator", lambda *_, **__: FixedTranslator())
    out = produce(
        folder,
        tmp_path / "out",
        UScoreConfig(**CHANGED | {"translation_rounds": 2}),
        without=["sentences"],
    )
    pairs = pairs_of(out / "work" / "translation-2-pairs")
    assert dict(pairs) == made
    assert len(pairs) == 38
    assert logged(out)[-4:] == ["translation-2-pairs", "translation-2-model", "preset", "card"]
    (out / "preset.toml").unlink()
    monkeypatch.setattr(
        FixedTranslator, "translate", lambda _, texts: [Translation("", False) for _ in texts]
    )
    settings = UScoreConfig(**CHANGED | {"translation_rounds": 2, "translation_epochs": 2})
    produce(folder, out, settings, without=["sentences"])
    assert logged(out)[-4:] == ["translation-model", "translation-2-pairs", "preset", "card"]
    assert "translation-2: nothing was translated, or only copied" in caplog.text
    assert (out / "preset.toml").exists()


def test_text_that_is_of_no_use(folder, tmp_path):
    with pytest.raises(InputError, match=r"empty\.txt: empty"):
        produce(folder, tmp_path / "out", target_text=write(tmp_path / "empty.txt", ""))
    assert logged(tmp_path / "out") == ["prepare-de"]
    with pytest.raises(InputError, match="none of its 1 lines can be used"):
        produce(
            folder, tmp_path / "out2", source_text=write(tmp_path / "giant.txt", "ein haus " * 5000)
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"without": ["pseudo"]}, "without 'pseudo': must be one of sentences, translation"),
        ({"config": UScoreConfig(remap_rounds=0)}, "remap_rounds 0: must be"),
        (
            {"config": UScoreConfig(translation_share=5.0)},
            "translation_share 5.0: must be above 0 and at most 1",
        ),
        ({"target_text": "none.txt"}, r"none\.txt: no such file"),
        ({"parallel": "empty.txt"}, "empty"),
        (SWAPPED, "its language pair is de-en, not en-de"),
        ({"lang_pair": "de-xx", "identify": True}, "'xx': py3langid does not know it"),
        ({"lang_pair": "de-de"}, "two different languages"),
        ({"preset": "no-start"}, r"\[start\] names no model for 'sentences'"),
        ({"preset": "kept"}, r"\[start\] names no model for 'sentences'; .*--without sentences"),
    ],
)
def test_what_cannot_be_used_is_refused_before_the_work(folder, tmp_path, options, message):
    write(
        folder / "no-start" / "preset.toml",
        'metric = "uscore"\n[encoder]\nmodel = "mini-encoder"\n',
    )
    sentences = '[sentences]\nmodel = "mini-encoder"\n[start]\ntranslation = "small"\n'
    encoder = (folder / "no-start" / "preset.toml").read_text()
    write(folder / "kept" / "preset.toml", encoder + sentences)
    write(folder / "empty.txt", "")
    with pytest.raises((InputError, ArtifactError), match=message):
        produce(folder, tmp_path / "out", **options)
    assert not (tmp_path / "out" / "log.jsonl").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lm": "cut"}, "tiny-lm: cannot be loaded as AutoModelForCausalLM, damaged or incomplete"),
        (
            {"sentences": '{model = "mini-encoder", branch = "main"}'},
            "must be a name, or a table of model and revision",
        ),
        ({"sentences": '{model = "no/such", revision = "v9"}'}, r"no/such \(revision v9\)"),
        ({"sentences": '"mini-encoder"'}, "vocabulary of its own, .* pass --without sentences"),
        ({"sentences": '{model = "mini-encoder", adapter_rank = 0}'}, "adapter_rank, a number of"),
        (
            {"sentences": '{model = "mini-encoder", adapter_rank = 2}', "layer": 9},
            "layer in .encoder. is 9, and .*encoder has the layers 0 to 3",
        ),
        (
            {"sentences": '{model = "mini-encoder", adapter_rank = 2}', "aligner_layer": 4},
            "aligner_layer is 4, and .*encoder has the layers 0 to 3",
        ),
    ],
)
def test_what_would_fail_later_is_refused_before_the_work(
    folder, tiny_encoder, tiny_lm, tmp_path, change, message
):
    lm = shutil.copytree(tiny_lm, tmp_path / "tiny-lm")
    if "lm" in change:
        weights = lm / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-100])
    models = {
        "encoder": folder / "encoder",
        "lm": lm,
        "sentences": change.get("sentences", f'"{tiny_encoder}"'),
    }
    if "encoder" in change:
        models["encoder"] = tiny_encoder
    write(
        tmp_path / "preset" / "preset.toml",
        f'metric = "uscore"\n[encoder]\nmodel = "{models["encoder"]}"\n'
        f"layer = {change.get('layer', 2)}\n"
        f'[language_models.en]\nmodel = "{models["lm"]}"\n'
        f'[start]\nsentences = {models["sentences"]}\ntranslation = "small"\n'
        f"aligner_layer = {change.get('aligner_layer', 1)}\n",
    )
    with pytest.raises(MTMetricsError, match=message):
        produce(folder, tmp_path / "out", preset=tmp_path / "preset")
    assert not (tmp_path / "out" / "log.jsonl").exists()


def test_a_missing_package_is_told_before_the_work(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name in ("faiss", "jieba") else name
    )
    with pytest.raises(MTMetricsError, match=r"needs faiss and jieba; pip install .*\[mining\]'"):
        produce(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def command(folder, out, *options):
    files = [
        "--source-text",
        folder / "de.txt",
        "--target-text",
        folder / "en.txt",
        "--preset",
        folder / "preset",
    ]
    common = [
        "--lp",
        "de-en",
        *files,
        "--out",
        out,
        "--no-language-filter",
        "--device",
        "cpu",
        "--remap-share",
        "0.5",
    ]
    return ["train", "uscore", *map(str, common), *options]


def lines_of(lines, end):
    """The numbers of the lines that end so; a progress bar may stand before it."""
    return [number for number, line in enumerate(lines) if line.rstrip().endswith(end)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")
def test_a_killed_production_ends_with_the_same_files(folder, tmp_path):
    options = (
        "".join(f"--{name.replace('_', '-')} {value} " for name, value in CHANGED.items())
        + "--workers 1"
    )
    # tests/training goes on with every kind of training.
    training = "translation-model"
    driver = [
        sys.executable,
        Path(__file__).with_name("kill_driver.py"),
        tmp_path / "whole",
        training,
    ]
    driver += command(folder, tmp_path / "killed", *options.split())
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.run(
        [*map(str, driver)], env=environment, capture_output=True, text=True, timeout=900
    )
    assert process.returncode == 0, process.stderr[-2000:]
    said = process.stderr.splitlines()
    # The random kill may hit it once more.
    began, *_, again = lines_of(said, f"{training}: starting")
    assert began < lines_of(said, f"killed at {training} by signal -9")[0] < again
    assert [line for line in said if "going on from checkpoint-" in line]
    stages = logged(tmp_path / "killed")
    assert len(stages) == len(set(stages)), "a finished stage was repeated"

    def files(out):
        return {path.relative_to(out): path for path in sorted(out.rglob("*")) if path.is_file()}

    whole, resumed = files(tmp_path / "whole"), files(tmp_path / "killed")
    kinds, with_times = (
        (".safetensors", ".jsonl", ".json", ".toml", ".txt", ".md"),
        ("log.jsonl", "state.json"),
    )
    compared = [name for name in whole if name.suffix in kinds and name.name not in with_times]
    assert len(compared) > 20
    assert compared == [
        name for name in resumed if name.suffix in kinds and name.name not in with_times
    ]
    assert [
        name for name in compared if whole[name].read_bytes() != resumed[name].read_bytes()
    ] == []


@pytest.fixture(scope="module")
def paper(tmp_path_factory, folder):
    """Small models under the names and in the layouts of those that the preset `paper` of uscore
    names."""
    artifacts = tmp_path_factory.mktemp("artifacts")
    pickled = layouts.bert_multilingual(artifacts / "pickled", folder / "encoder")
    with converting_here():
        convert_model(pickled, artifacts / "google-bert" / "bert-base-multilingual-cased")
    shutil.rmtree(pickled)
    layouts.xlm_roberta(artifacts / "FacebookAI" / "xlm-roberta-base")
    layouts.mbart_cc25(artifacts / "facebook" / "mbart-large-cc25")
    lm = tomllib.loads((folder / "preset" / "preset.toml").read_text())["language_models"]["en"][
        "model"
    ]
    shutil.copytree(lm, artifacts / "openai-community" / "gpt2")
    return artifacts


def test_the_preset_of_the_paper(folder, paper, tmp_path, monkeypatch, mtmetrics):
    monkeypatch.setenv("MTMETRICS_ARTIFACTS", str(paper))
    asked = unittest.mock.Mock(side_effect=LocalEntryNotFoundError("not cached"))
    monkeypatch.setattr("huggingface_hub.snapshot_download", asked)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in CHANGED.items()]
    options += ["--preset", "paper", "--workers", "1"]
    call = command(folder, tmp_path / "out", *options)
    began = time.perf_counter()
    code, _, error = mtmetrics(*call)
    model = "facebook/mbart-large-cc25"
    assert code == 1
    assert "mbart-large-cc25: no *.safetensors weights" in error
    assert f"'mtmetrics artifacts convert {model} --out DIR'" in error
    assert time.perf_counter() - began < 10
    assert not (tmp_path / "out").exists()
    with converting_here():
        convert_model(paper / model, paper / "converted")
    assert mtmetrics(*call, "--translation-start", "no/such", "--local-files-only")[0] == 1
    assert mtmetrics(*call, "--without", "pseudo")[0] == 2
    assert [call.kwargs["local_files_only"] for call in asked.mock_calls] == [True]

    call += ["--translation-start", paper / "converted"]
    assert mtmetrics(*call)[:2] == (0, f"{tmp_path / 'out'}\n")
    scorer = load_scorer("uscore", preset=str(tmp_path / "out"), lang_pair="de-en")
    assert "|beams:5|" in scorer.signature
    assert np.isfinite(
        scorer.score(["the dog sleeps"], sources=["der hund schläft"]).segments
    ).all()
    record = json.loads((tmp_path / "out" / "config.json").read_text())["start"]
    assert record["translation"].startswith("converted#")
    # Beams are chosen again without a training.
    first = logged(tmp_path / "out")
    assert mtmetrics(*call, "--beams", "2")[0] == 0
    assert logged(tmp_path / "out")[len(first) :] == ["preset", "card"]
    assert (
        "|beams:2|"
        in load_scorer("uscore", preset=str(tmp_path / "out"), lang_pair="de-en").signature
    )
