"""Makes a UScore preset for a language pair from two monolingual files (Belouadi and Eger, 2023)."""

from dataclasses import dataclass

from mtmetrics.training.settings import setting


@dataclass(frozen=True)
class UScoreConfig:
    """Settings of a production; the defaults are those of Belouadi and Eger (2023, Sec. 4 and Appendix D)."""

    remap_sentences: int = setting(40_000, "sentences a side in which pairs for the remapping are mined")
    remap_candidates: int = setting(20, "candidates per source whose Word Mover's Distance is compared")
    remap_share: float = setting(0.05, "share of the sources whose pairs are kept")
    remap_rounds: int = setting(1, "rounds of mining and remapping")
    map: str = setting(
        "umd", "the map that mines in the next round and that the metric uses: umd or clp (with --parallel always clp)"
    )
    train_sentences: int = setting(4_000_000, "sentences a side in which pairs for the trainings are mined")
    contrastive_rounds: int = setting(6, "rounds of mining and training of the sentence encoder, a fresh one in each")
    contrastive_neighbours: int = setting(5, "neighbours of the ratio margin")
    contrastive_pairs: int = setting(100_000, "mined pairs that the sentence encoder learns from in a round")
    contrastive_batch: int = setting(256, "pairs per step of the sentence encoder")
    contrastive_learning_rate: float = setting(5e-5, "peak learning rate of the sentence encoder")
    denoising_steps: int = setting(
        2000, "training steps of the small translation model before it sees pairs, where one is made"
    )
    translation_candidates: int = setting(
        1, "candidates per source for the pairs that the translation model learns from"
    )
    translation_share: float = setting(0.05, "share of the sources whose pairs are kept for that")
    translation_rounds: int = setting(
        1, "trainings of the translation model; the second learns from the translations of the first, too"
    )
    translation_epochs: int = setting(3, "passes over the data of the translation model")
    translation_batch: int = setting(4, "pairs per step of the translation model")
    translation_learning_rate: float = setting(5e-5, "peak learning rate of the translation model")
    beams: int = setting(
        0, "hypotheses of the beam search of translations; 0 for as many as the translation model's configuration says"
    )
