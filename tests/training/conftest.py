"""Little invented texts, and an interruption of a training run."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

WORDS = {
    "the": "das",
    "house": "haus",
    "dog": "hund",
    "cat": "katze",
    "tree": "baum",
    "garden": "garten",
    "bread": "brot",
    "water": "wasser",
    "book": "buch",
    "street": "strasse",
    "river": "fluss",
    "child": "kind",
    "mother": "mutter",
    "evening": "abend",
    "winter": "winter",
    "bridge": "bruecke",
    "sees": "sieht",
    "needs": "braucht",
    "likes": "mag",
    "small": "klein",
    "old": "alt",
    "new": "neu",
}


@pytest.fixture(scope="session")
def toy_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 sentences of random words and their translation word by word, in random order."""
    rng = random.Random(7)
    rows = []
    for _ in range(400):
        words = rng.sample(sorted(WORDS), 5)
        translated = [WORDS[word] for word in rng.sample(words, 5)]
        rows.append({"source": " ".join(translated), "target": " ".join(words), "origin": "toy-news"})
    path = tmp_path_factory.mktemp("text") / "de-en.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def toy_lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 400 sentences of one pattern: article, adjective, noun, verb, article, noun."""
    rng = random.Random(5)
    nouns = ["house", "dog", "cat", "tree", "garden", "book", "river", "child"]
    lines = []
    for _ in range(900):
        first, second = rng.sample(nouns, 2)
        lines.append(f"The {rng.choice(['small', 'old', 'new'])} {first} {rng.choice(['sees', 'needs', 'likes'])} the {second}.")
    path = tmp_path_factory.mktemp("text") / "en.txt"
    path.write_text("\n".join(dict.fromkeys(lines)) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def interrupt_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
    """Makes trainings stop with KeyboardInterrupt after a step; None lets them run again."""
    from transformers import TrainerCallback

    from mtmetrics.training.loop import Run

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
