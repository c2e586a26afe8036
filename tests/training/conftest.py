"""Little invented texts and models, and a tiny training of every kind."""

import dataclasses
import functools
import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import write, write_jsonl
from toys import CONFIGS, WORDS, unigram_pieces

from mtmetrics.training import configs
from mtmetrics.training.run import Run

_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="session")
def toy_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 sentences of random words and their translation word by word, in random order."""
    rng = random.Random(7)
    rows = []
    for _ in range(400):
        words = rng.sample(sorted(WORDS), 5)
        translated = [WORDS[word] for word in rng.sample(words, 5)]
        rows.append(
            {"source": " ".join(translated), "target": " ".join(words), "origin": "toy-news"}
        )
    return write_jsonl(tmp_path_factory.mktemp("text") / "de-en.jsonl", rows)


@pytest.fixture(scope="session")
def two_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sentences of two of five words and their translation word by word."""
    pairs = itertools.permutations(["book", "bread", "cat", "child", "dog"], 2)
    lines = [f"{WORDS[a]} {WORDS[b]}\t{a} {b}\n" for a, b in pairs]
    return write(tmp_path_factory.mktemp("pairs") / "mined.tsv", "".join(lines))


@pytest.fixture(scope="session")
def toy_lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 400 sentences of one pattern: article, adjective, noun, verb, article, noun."""
    rng = random.Random(5)
    nouns = ["house", "dog", "cat", "tree", "garden", "book", "river", "child"]
    lines = {}
    for _ in range(900):
        first, second = rng.sample(nouns, 2)
        kind, verb = rng.choice(["small", "old", "new"]), rng.choice(["sees", "needs", "likes"])
        lines[f"The {kind} {first} {verb} the {second}.\n"] = None
    return write(tmp_path_factory.mktemp("text") / "en.txt", "".join(lines))


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [
        ("das haus", "the house"),
        ("hund mag brot", "dog likes bread"),
        ("alt", "old"),
        ("neu buch", "the river"),
    ]
    rows = [
        {"lp": "de-en", "source": s, "translation": t, "human": 1.0 - n}
        for n, (s, t) in enumerate(texts)
    ]
    rows.append({"lp": "de-en", "source": "fluss", "translation": "bread", "human": None})
    return write_jsonl(tmp_path_factory.mktemp("judged") / "de-en.jsonl", rows)


@pytest.fixture(scope="session")
def toy_encoder() -> Callable[[Path, int, int], Path]:
    """Makes a plain BERT folder, of a width and a seed, whose vocabulary are the words of both
    languages."""

    def build(folder: Path, width: int, seed: int) -> Path:
        import torch
        from tokenizers import Tokenizer, models, pre_tokenizers, processors
        from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

        words = sorted({*WORDS, *WORDS.values()})
        vocabulary = {piece: number for number, piece in enumerate([*_SPECIAL, *words])}
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        special = {f"{piece.strip('[]').lower()}_token": piece for piece in _SPECIAL}
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, model_max_length=64, **special
        ).save_pretrained(folder)
        torch.manual_seed(seed)
        sizes = {
            "hidden_size": width,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 32,
        }
        config = BertConfig(
            vocab_size=len(vocabulary), **sizes, max_position_embeddings=64, initializer_range=0.1
        )
        BertModel(config, add_pooling_layer=False).save_pretrained(folder)
        return folder

    return build


@pytest.fixture(scope="session")
def models(
    toy_encoder: Callable[[Path, int, int], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with two such encoders of width 16, ``teacher`` and ``student``, the first also as a
    sentence-transformers model of width 12, ``sentences``, and a small MBart that learnt nothing
    yet, ``mbart``."""
    import torch
    from sentence_transformers import SentenceTransformer

    from mtmetrics.training.translation import small_mbart

    folder = tmp_path_factory.mktemp("models")
    toy_encoder(folder / "teacher", 16, 1)
    toy_encoder(folder / "student", 16, 2)
    plain = str(toy_encoder(folder / "plain", 12, 1))
    model = SentenceTransformer(plain, device="cpu", local_files_only=True)
    model.save_pretrained(str(folder / "sentences"), create_model_card=False)
    torch.manual_seed(0)
    config = configs.DenoisingConfig(
        encoder_layers=1, decoder_layers=1, heads=2, inner=64, positions=64, dropout=0.0
    )
    texts = {"de": list(WORDS) * 2, "en": list(WORDS.values()) * 2}
    tokenizer, network = small_mbart(
        Run(folder / "made"), toy_encoder(folder / "wide", 32, 1), texts, config
    )
    network.save_pretrained(folder / "mbart")
    tokenizer.save_pretrained(folder / "mbart")
    return folder


@pytest.fixture(scope="session")
def multilingual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of three layers whose Unigram vocabulary has the words of both languages; those of
    French are unused."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("models") / "multilingual"
    tokenizer = unigram_pieces(*sorted({*WORDS, *WORDS.values(), "maison", "chien"}))
    tokenizer.save_pretrained(folder)
    torch.manual_seed(4)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    config = BertConfig(
        vocab_size=len(tokenizer),
        **sizes,
        max_position_embeddings=64,
        initializer_range=0.1,
        pad_token_id=1,
    )
    model = BertModel(config, add_pooling_layer=False)
    with torch.no_grad():  # a translation begins near its original
        numbers = tokenizer.get_vocab()
        vectors = model.embeddings.word_embeddings.weight
        for english, german in WORDS.items():
            vectors[numbers[f"▁{german}"]] = vectors[numbers[f"▁{english}"]] + 0.1 * torch.randn(16)
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file of text, in a folder of its own."""
    return write(tmp_path / "text" / "de-en.jsonl", "{}\n")


@pytest.fixture(scope="session")
def train(
    toy_pairs: Path,
    two_words: Path,
    toy_lines: Path,
    models: Path,
    multilingual: Path,
    judged: Path,
) -> Callable[..., Path]:
    """Trains something of a kind on a run with tiny settings, some of which may be changed."""
    from mtmetrics.training import encoder, lm, sentence, translation
    from mtmetrics.training.corpus import ParallelText

    measured = {"judged": [judged]}
    teachers = {name: models / name for name in ("teacher", "student", "sentences", "mbart")}
    known: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
        "encoder": (encoder.train_encoder, (ParallelText([toy_pairs]), multilingual), measured),
        "lm": (lm.train_lm, ([str(toy_lines)],), {}),
        "distil": (
            sentence.train_distil,
            (ParallelText([toy_pairs]), teachers["sentences"], teachers["student"]),
            measured,
        ),
        "contrastive": (sentence.train_contrastive, ([toy_pairs], teachers["student"]), {}),
        "translation": (
            translation.train_translation,
            (ParallelText([two_words]), teachers["mbart"], "de-en"),
            {},
        ),
        "denoising": (translation.train_denoising, ({"en": toy_lines}, teachers["student"]), {}),
    }

    def training(kind: str, run: Run, **changes: Any) -> Path:
        function, given, options = known[kind]
        return function(
            run, *given, **options, config=dataclasses.replace(CONFIGS[kind], **changes)
        )

    return training


@pytest.fixture(scope="session")
def trained(
    train: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """The artifact of a kind of training, which runs once."""
    return functools.cache(
        lambda kind: train(kind, Run(tmp_path_factory.mktemp(kind) / "toy", seed=3))
    )
