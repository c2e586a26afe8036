"""Settings that make an encoder in a second."""

from mtmetrics.training.settings import EncoderConfig

TINY = EncoderConfig(
    evaluate_every=30,
    vocabulary=120,
    english_pieces=40,
    layer=1,
    max_pieces=24,
    pairs_per_step=32,
    candidates=16,
    steps=60,
    warmup_steps=3,
    decay_steps=20,
    vector_lr=1e-2,
    body_lr=1e-3,
    english=0.2,
    characters=20_000,
    held_back_per_mille=150,
    held_back_per_pair=60,
    checkpoint_every=30,
)
