"""Settings that make an encoder in a second."""

from mtmetrics.training.settings import EncoderConfig

TINY = EncoderConfig(
    evaluate_every=30,
    vocabulary=120,
    width=16,
    layers=1,
    heads=2,
    inner=32,
    positions=24,
    max_pieces=24,
    pairs_per_step=32,
    steps=60,
    warmup_steps=3,
    decay_steps=20,
    matrix_lr=5e-3,
    other_lr=1e-2,
    characters=20_000,
    held_back_per_mille=150,
    held_back_per_pair=60,
    checkpoint_every=30,
)
