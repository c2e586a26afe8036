"""Little invented texts, and an interruption of a training run."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from toys import rows_file

_ENGLISH = (
    "the house dog cat tree garden bread water book street river child mother evening winter bridge sees needs likes "
    "small old new"
)
_GERMAN = (
    "das haus hund katze baum garten brot wasser buch strasse fluss kind mutter abend winter bruecke sieht braucht mag "
    "klein alt neu"
)
WORDS = dict(zip(_ENGLISH.split(), _GERMAN.split(), strict=True))
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="session")
def toy_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 sentences of random words and their translation word by word, in random order."""
    rng = random.Random(7)
    rows = []
    for _ in range(400):
        words = rng.sample(sorted(WORDS), 5)
        translated = [WORDS[word] for word in rng.sample(words, 5)]
        rows.append({"source": " ".join(translated), "target": " ".join(words), "origin": "toy-news"})
    return rows_file(tmp_path_factory.mktemp("text") / "de-en.jsonl", rows)


@pytest.fixture(scope="session")
def toy_lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 400 sentences of one pattern: article, adjective, noun, verb, article, noun."""
    rng = random.Random(5)
    nouns = ["house", "dog", "cat", "tree", "garden", "book", "river", "child"]
    lines = []
    for _ in range(900):
        first, second = rng.sample(nouns, 2)
        kind, verb = rng.choice(["small", "old", "new"]), rng.choice(["sees", "needs", "likes"])
        lines.append(f"The {kind} {first} {verb} the {second}.")
    path = tmp_path_factory.mktemp("text") / "en.txt"
    path.write_text("\n".join(dict.fromkeys(lines)) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def toy_encoder() -> Callable[[Path, int, int], Path]:
    """Makes a plain BERT folder, of a width and a seed, whose vocabulary are the words of both languages."""

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
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **special).save_pretrained(folder)
        torch.manual_seed(seed)
        sizes = {"hidden_size": width, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        config = BertConfig(vocab_size=len(vocabulary), **sizes, max_position_embeddings=64, initializer_range=0.1)
        BertModel(config, add_pooling_layer=False).save_pretrained(folder)
        return folder

    return build


@pytest.fixture(scope="session")
def sentence_folder(toy_encoder: Callable[[Path, int, int], Path]) -> Callable[..., Path]:
    """Makes a sentence-transformers folder, of a width and a seed, whose vectors are means of such an encoder's."""

    def build(folder: Path, width: int, seed: int) -> Path:
        from sentence_transformers import SentenceTransformer

        toy_encoder(folder / "plain", width, seed)
        model = SentenceTransformer(str(folder / "plain"), device="cpu", local_files_only=True)
        model.save_pretrained(str(folder), create_model_card=False)
        return folder

    return build


@pytest.fixture(scope="session")
def student(toy_encoder: Callable[[Path, int, int], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such a folder of width 16."""
    return toy_encoder(tmp_path_factory.mktemp("models") / "student", 16, 2)


@pytest.fixture
def interrupt_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
    """Makes trainings stop with KeyboardInterrupt after a step; None lets them run again."""
    from transformers import TrainerCallback

    from mtmetrics.training.run import Run

    original = Run.train

    class Stop(TrainerCallback):
        def __init__(self, step: int) -> None:
            self.step = step

        def on_step_end(self, args: object, state: object, control: object, **_: object) -> None:
            if state.global_step == self.step:
                raise KeyboardInterrupt

    def set_step(step: int | None) -> None:
        def train(run: Run, trainer: object) -> list:
            if step is not None:
                trainer.add_callback(Stop(step))
            return original(run, trainer)

        monkeypatch.setattr(Run, "train", train)

    return set_step
