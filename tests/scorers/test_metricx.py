"""The worked example of a plug-in, MetricX-24, on a tiny mT5 with random weights."""

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import MT5Config, MT5ForConditionalGeneration, PreTrainedTokenizerFast

import mtmetrics as package
from mtmetrics.layout import source_tree
from mtmetrics.scorers.plugins import load_plugin

pytestmark = pytest.mark.usefixtures("no_plugins")
SOURCES, TEXTS = (
    ["das haus", "der hund schläft", "die katze"],
    ["the house", "the dog sleeps here", "a cat"],
)
REFERENCES = ["the house", "the dog sleeps", "the cat"]
WORDS = sorted({word for text in (*SOURCES, *TEXTS, *REFERENCES) for word in text.split()})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metricx")
    vocabulary = {
        word: number
        for number, word in enumerate(["<pad>", "</s>", "<unk>", "source", "candidate", *WORDS])
    }
    tokenizer = Tokenizer(
        models.WordLevel(vocabulary | {"reference": len(vocabulary)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 250112,
        "d_model": 8,
        "d_kv": 4,
        "d_ff": 16,
        "num_heads": 2,
        "num_layers": 1,
    }
    model = MT5ForConditionalGeneration(
        MT5Config(**sizes, num_decoder_layers=1, tie_word_embeddings=False)
    )
    with torch.no_grad():
        given = {
            "input_ids": torch.tensor([[3, 4, 5]]),
            "decoder_input_ids": torch.zeros(1, 1, dtype=torch.long),
        }
        [*_, state] = model.eval()(**given, output_hidden_states=True).decoder_hidden_states
        # Of a text like this the score is about 8, so that no version of torch draws one beyond 0
        # to 25.
        model.lm_head.weight[250089] = state[0, 0]
    model.save_pretrained(folder)
    return folder


@torch.no_grad()
def published(folder: Path, texts: list[str]) -> list[float]:
    """The score that the authors' command computes: without the end of the sequence, one decoder step, one
    logit."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = MT5ForConditionalGeneration.from_pretrained(folder).eval()
    found = []
    for text in texts:
        ids = torch.tensor([tokenizer(text)["input_ids"][:-1]])
        states = model.encoder(input_ids=ids).last_hidden_state
        last = model.decoder(
            input_ids=torch.zeros(1, 1, dtype=torch.long), encoder_hidden_states=states
        ).last_hidden_state
        found.append(float(model.lm_head(last)[0, 0, 250089].clamp(0, 25)))
    return found


def test_scores_are_those_of_the_command_turned_round(
    folder: Path, mtmetrics, tmp_path: Path
) -> None:
    plugin = source_tree() / "tools" / "examples" / "metricx24.py"
    assert load_plugin(plugin) == ["metricx24"]
    options = {"model": str(folder), "vocabulary": str(folder)}
    both = package.load("metricx24", lang_pair="de-en", lines=2, **options).score(
        TEXTS, sources=SOURCES, references=REFERENCES
    )
    rows = zip(SOURCES, TEXTS, REFERENCES, strict=True)
    expected = published(folder, [f"source: {s} candidate: {t} reference: {r}" for s, t, r in rows])
    assert len(set(expected)) > 1
    assert both.segments == pytest.approx([-value for value in expected], abs=1e-4)
    assert "|against:both|" in both.signature
    assert "|sign:turned|" in both.signature
    alone = package.load("metricx24", against="source", **options)
    expected = published(
        folder, [f"source: {s} candidate: {t}" for s, t in zip(SOURCES, TEXTS, strict=True)]
    )
    assert alone.score(TEXTS, sources=SOURCES).segments == pytest.approx(
        [-value for value in expected], abs=1e-4
    )
    assert alone.score([""], sources=["das haus"]).segments.tolist() == [-25.0]
    short = package.load("metricx24", against="source", length=4, **options)
    with pytest.warns(UserWarning, match="metricx24: 3 segments are longer than 4 tokens, and cut"):
        short.score(TEXTS, sources=SOURCES)
    for name, lines in {
        "s.de": SOURCES,
        "r.en": REFERENCES,
        "a.en": TEXTS,
        "b.en": REFERENCES,
    }.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = [
        "-s",
        tmp_path / "s.de",
        "-r",
        tmp_path / "r.en",
        "-t",
        tmp_path / "a.en",
        tmp_path / "b.en",
    ]
    metric = f"metricx24::model={folder},vocabulary={folder}"
    code, out, _ = mtmetrics(
        "compare",
        "--plugin",
        plugin,
        "--metric",
        metric,
        "--metric",
        "chrf",
        "--lp",
        "de-en",
        *files,
    )
    assert (code, "metricx24" in out) == (0, True)
