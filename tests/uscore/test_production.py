import json
import os
import random
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from mtmetrics.artifacts.cards import check_model_card
from mtmetrics.cli.main import main
from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.maps.files import load_map
from mtmetrics.mining.words import encode_side, mine_words
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.models.translator import Translation
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.uscore import UScoreConfig
from mtmetrics.uscore.production import Material, produce_uscore

pytest.importorskip("faiss", reason="needs the extra 'mining'")
pytest.importorskip("accelerate", reason="needs the extra 'train'")

NOUNS = {"haus": "house", "hund": "dog", "baum": "tree", "katze": "cat"}
VERBS = {"schläft": "sleeps", "steht dort": "stands there", "ist klein": "is small", "ist groß": "is large"}
SETTINGS = UScoreConfig(
    remap_share=0.5,
    contrastive_rounds=2,
    contrastive_batch=4,
    translation_epochs=1,
    translation_share=0.5,
    denoising_steps=10,
)


def sentences(count, seed):
    generator = random.Random(seed)
    found = {}
    while len(found) < count:
        nouns, verbs = generator.sample(list(NOUNS), 2), generator.sample(list(VERBS), 2)
        german = f"der {nouns[0]} {verbs[0]} und der {nouns[1]} {verbs[1]} nicht {len(found)} ."
        english = (
            f"the {NOUNS[nouns[0]]} {VERBS[verbs[0]]} and the {NOUNS[nouns[1]]} not {VERBS[verbs[1]]} {len(found)} ."
        )
        found[german] = english
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_encoder, tiny_lm):
    """A preset to start from, and text."""
    folder = tmp_path_factory.mktemp("uscore")
    pairs = sentences(40, 1)
    (folder / "de.txt").write_text("\n".join([*pairs, "", "kurz"]), encoding="utf-8")
    (folder / "en.txt").write_text(
        "\n".join(random.Random(2).sample(sorted(pairs.values()), len(pairs))), encoding="utf-8"
    )
    held_back = [{"source": source, "target": target} for source, target in list(pairs.items())[:5]]
    (folder / "de-en.jsonl").write_text("".join(json.dumps(row) + "\n" for row in held_back))
    rows = [
        {
            "lp": "de-en",
            "source": source,
            "translation": target if number % 2 else "i see 1",
            "human": number % 2 + number / 100,
        }
        for number, (source, target) in enumerate(list(pairs.items())[:8])
    ]
    (folder / "other").mkdir()
    (folder / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "other" / "judged.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in [*rows[:6], {**rows[6], "human": None}])
    )
    encoder = shutil.copytree(tiny_encoder, folder / "encoder")
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)
    tokenizer.mask_token = "?"
    tokenizer.save_pretrained(encoder)
    (folder / "preset").mkdir()
    (folder / "preset" / "preset.toml").write_text(
        f'metric = "uscore"\n[encoder]\nmodel = "{encoder}"\nlayer = 2\n[language_models.en]\nmodel = "{tiny_lm}"\n'
        f'[start]\nsentences = "{tiny_encoder}"\ntranslation = "small"\n'
    )
    return folder


def produce(folder, out, config=SETTINGS, **options):
    files = {"source_text": folder / "de.txt", "target_text": folder / "en.txt"}
    given = {
        name: options.pop(name)
        for name in ("source_text", "target_text", "parallel", "held_back", "judged")
        if name in options
    }
    return produce_uscore(
        out, "de-en", Material(**files | given), str(folder / "preset"), config=config, identify=False, **options
    )


def judged(folder):
    return [folder / "judged.jsonl", folder / "other" / "judged.jsonl"]


def logged(out):
    return [json.loads(line)["stage"] for line in (out / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(folder):
    """A production with everything."""
    return produce(folder, folder / "whole", held_back=folder / "de-en.jsonl", judged=judged(folder))


def test_the_folder_is_a_preset_that_can_be_moved(whole, folder, tmp_path):
    moved = tmp_path / "elsewhere"
    (whole / "work").rename(tmp_path / "work")
    whole.rename(moved)
    try:
        scorer = load_scorer("uscore", preset=str(moved), lang_pair="de-en")
        result = scorer.score(["der hund schläft"], ["the dog sleeps"])
        assert set(result.parts) == {"wmd", "pseudo", "lm", "wrd", "snt"}
        assert "map:umd#" in result.signature
    finally:
        moved.rename(whole)
        (tmp_path / "work").rename(whole / "work")


def test_no_text_leaves_the_work_folder(whole):
    for path in whole.rglob("*"):
        if (
            path.is_file()
            and "work" not in path.relative_to(whole).parts
            and path.suffix in (".json", ".md", ".toml", ".jsonl", ".csv")
        ):
            assert "stands there" not in path.read_text(encoding="utf-8").replace("##", ""), path


def test_card_and_configuration_tell_what_was_made(whole):
    config = json.loads((whole / "config.json").read_text())
    assert config["counts"]["prepare-de"]["too few tokens"] == 1
    assert config["counts"]["prepare-de"]["held back"] == 5
    assert config["counts"]["words-1-pairs"]["sources"] == 35
    card = (whole / "README.md").read_text()
    assert "-judged (8) | other-judged (6) |" in card
    assert "| start |" in card
    assert "| round 2 |" in card
    for row in ("words, start", "words, round 1", "sentences, round 2", "part pseudo", "wrd+snt, tuned", "wrd+snt, ++"):
        assert f"| {row} |" in card
    assert (whole / "precision.png").read_bytes().startswith(b"\x89PNG")
    assert tomllib.loads((whole / "preset.toml").read_text())["lang_pair"] == "de-en"


def test_each_round_mines_with_the_map_of_the_one_before(folder, tmp_path):
    settings = UScoreConfig(**{**vars(SETTINGS), "remap_rounds": 2, "map": "clp"})
    out = produce(folder, tmp_path / "out", settings, without=["sentences", "translation"])
    encoder = TokenEncoder(folder / "encoder", layer=2)
    sides = [
        encode_side((out / "work" / f"prepare-{language}" / "sentences.txt").read_text().splitlines(), encoder)
        for language in ("de", "en")
    ]
    pairs = []
    for number, maps in ((1, None), (2, "words-1-maps")):
        remapping = maps and load_map(out / "work" / maps, "de-en", "clp", encoder)
        rows = (out / "work" / f"words-{number}-pairs" / "de-en.jsonl").read_text().splitlines()
        pairs.append([(row["source"], row["target"]) for row in map(json.loads, rows)])
        assert pairs[-1] == mine_words(*sides, remapping, k=20, share=0.5).pairs()
    assert pairs[0] != pairs[1]


def test_the_folder_can_be_published(whole):
    check_model_card(whole)


def test_a_second_call_repeats_nothing(whole, folder):
    before = logged(whole)
    produce(folder, whole, held_back=folder / "de-en.jsonl", judged=judged(folder))
    assert logged(whole) == before


@pytest.mark.parametrize(
    ("without", "changed", "repeated"),
    [
        (
            ["translation"],
            {"contrastive_learning_rate": 1e-3},
            ["sentences-1-model", "sentences-2-pairs", "sentences-2-model", "preset", "card"],
        ),
        (["sentences", "translation"], {"map": "clp"}, ["preset", "card"]),  # nothing was mined with a map
    ],
)
def test_a_changed_setting_repeats_what_depends_on_it(folder, tmp_path, without, changed, repeated):
    out = produce(folder, tmp_path / "out", without=without)
    first = logged(out)
    produce(folder, out, UScoreConfig(**{**vars(SETTINGS), **changed}), without=without)
    assert logged(out)[len(first) :] == repeated


def test_what_is_no_longer_part_of_the_preset_leaves_the_folder(folder, tmp_path, monkeypatch):
    out = tmp_path / "out"
    for name in ("sentences", "translation"):
        (out / name).mkdir(parents=True)
    for name in ("agreement-old.png", "LICENSE"):
        (out / name).write_text("x")
    produce(folder, out, without=["sentences", "translation"])
    made = {"README.md", "config.json", "encoder", "language_model", "log.jsonl", "maps", "preset.toml", "work"}
    assert {path.name for path in out.iterdir()} == made | {"LICENSE"}
    preset = tomllib.loads((out / "preset.toml").read_text())
    assert preset["score"]["without"] == ["sentences", "translation"]
    scorer = load_scorer("uscore", preset=str(out), lang_pair="de-en")
    assert "without:sentences+translation" in scorer.signature
    monkeypatch.setattr("shutil.copytree", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(MTMetricsError, match="out: No space left on device; finished stages are kept"):
        produce(folder, out, without=["sentences", "translation"])
    assert not (out / "preset.toml").exists()


def test_parallel_text_is_learnt_from_at_the_end(folder, tmp_path):
    out = produce(folder, tmp_path / "out", parallel=folder / "de-en.jsonl")
    assert tomllib.loads((out / "preset.toml").read_text())["maps"]["kind"] == "clp"
    assert {"parallel-maps", "parallel-sentences-model", "parallel-translation-model"} <= set(logged(out))


def test_a_second_translation_model_learns_from_the_translations_of_the_first(folder, tmp_path, monkeypatch):
    made = {}

    class FixedTranslator:
        """Leaves the first sentence as it is, has nothing for the second, and turns the words of the others."""

        def translate(self, texts):
            turned = [" ".join(reversed(text.split())) for text in texts]
            made.update(zip(texts[2:], turned[2:], strict=True))
            return [Translation(text, False) for text in (texts[0], "", *turned[2:])]

    monkeypatch.setattr(ModelPool, "translator", lambda *_, **__: FixedTranslator())
    settings = UScoreConfig(**{**vars(SETTINGS), "translation_rounds": 2})
    out = produce(folder, tmp_path / "out", settings, without=["sentences"])
    rows = [json.loads(line) for line in (out / "work/translation-2-pairs/de-en.jsonl").read_text().splitlines()]
    assert {row["source"]: row["target"] for row in rows} == made
    assert len(rows) == 38
    assert logged(out)[-4:] == ["translation-2-pairs", "translation-2-model", "preset", "card"]


def test_bad_input(folder, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(InputError, match=r"empty\.txt: empty"):
        produce(folder, tmp_path / "out", target_text=tmp_path / "empty.txt")
    assert logged(tmp_path / "out") == ["prepare-de"]
    (tmp_path / "giant.txt").write_text("ein haus " * 5000)
    with pytest.raises(InputError, match="none of its 1 lines can be used"):
        produce(folder, tmp_path / "out2", source_text=tmp_path / "giant.txt")
    with pytest.raises(InputError, match="without 'pseudo': must be one of sentences, translation"):
        produce(folder, tmp_path / "out3", without=["pseudo"])
    with pytest.raises(InputError, match="remap_rounds 0: must be"):
        produce(folder, tmp_path / "out3", UScoreConfig(remap_rounds=0))
    with pytest.raises(InputError, match="translation_share 5.0: must be above 0 and at most 1"):
        produce(folder, tmp_path / "out3", UScoreConfig(translation_share=5.0))
    with pytest.raises(InputError, match=r"none\.txt: no such file"):
        produce(folder, tmp_path / "out3", target_text=tmp_path / "none.txt")
    with pytest.raises(InputError, match="empty"):
        produce(folder, tmp_path / "out3", parallel=tmp_path / "empty.txt")
    material = Material(folder / "de.txt", folder / "en.txt", judged=judged(folder))
    with pytest.raises(InputError, match="its language pair is de-en, not en-de"):
        produce_uscore(tmp_path / "out3", "en-de", material, str(folder / "preset"), without=["sentences"])
    assert not (tmp_path / "out3" / "log.jsonl").exists()
    with pytest.raises(InputError, match="'xx': py3langid does not know it"):
        produce_uscore(
            tmp_path / "out4", "de-xx", Material(folder / "de.txt", folder / "en.txt"), str(folder / "preset")
        )
    assert not (tmp_path / "out4" / "log.jsonl").exists()
    with pytest.raises(InputError, match="two different languages"):
        produce_uscore(tmp_path / "o", "de-de", Material(folder / "de.txt", folder / "en.txt"), str(folder / "preset"))
    (tmp_path / "preset.toml").write_text('metric = "uscore"\n[encoder]\nmodel = "mini-encoder"\n')
    with pytest.raises(ArtifactError, match=r"\[start\] names no model for 'sentences'"):
        produce_uscore(tmp_path / "o", "de-en", Material(folder / "de.txt", folder / "en.txt"), str(tmp_path))


def test_a_missing_package_is_told_before_the_work(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in ("faiss", "jieba") else name)
    with pytest.raises(MTMetricsError, match=r"needs faiss and jieba; pip install 'mtmetrics\[mining\]'"):
        produce(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def command(folder, out, *options):
    files = ["--source-text", folder / "de.txt", "--target-text", folder / "en.txt", "--preset", folder / "preset"]
    common = ["--lp", "de-en", *files, "--out", out, "--no-language-filter", "--device", "cpu", "--remap-share", "0.5"]
    return ["uscore", *map(str, common), *options]


def test_command(folder, tmp_path, capsys):
    assert main(command(folder, tmp_path / "out", "--without", "translation", "--contrastive-rounds", "1")) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out'}\n"
    assert (tmp_path / "out" / "preset.toml").is_file()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")
def test_a_killed_production_ends_with_the_same_files(folder, tmp_path):
    options = "--contrastive-rounds 2 --contrastive-batch 4 --translation-share 0.5 --translation-epochs 1"
    options += " --denoising-steps 10 --threads 1"
    outs = {kills: tmp_path / f"killed-{kills}" for kills in (0, 3)}
    for kills, out in outs.items():
        driver = [sys.executable, str(Path(__file__).with_name("kill_driver.py")), str(kills), "7"]
        process = subprocess.run(
            [*driver, *command(folder, out, *options.split())],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert process.returncode == 0, process.stderr[-2000:]
    stages = logged(outs[3])
    assert len(stages) == len(set(stages)), "a finished stage was repeated"
    whole, resumed = (
        {path.relative_to(out): path for path in sorted(out.rglob("*")) if path.is_file()} for out in outs.values()
    )
    kinds, with_times = (".safetensors", ".jsonl", ".json", ".toml", ".txt", ".md"), ("log.jsonl", "state.json")
    compared = [name for name in whole if name.suffix in kinds and name.name not in with_times]
    assert len(compared) > 20
    assert compared == [name for name in resumed if name in set(compared)]
    assert [name for name in compared if whole[name].read_bytes() != resumed[name].read_bytes()] == []
