"""How the pool has models run."""

from pathlib import Path

from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.pool import ModelPool


def test_a_pool_runs_encoders_as_it_is_told_and_generating_models_in_their_own_batches(
    tiny_encoder: Path, tiny_lm: Path
) -> None:
    pool = ModelPool(batch_tokens=64, dtype="bfloat16")
    encoder, model = pool.encoder(str(tiny_encoder), layer=1), pool.language_model(str(tiny_lm))
    assert (encoder._network._runner.batch_tokens, encoder.dtype) == (64, "bfloat16")
    assert (model._runner.batch_tokens, model.dtype) == (2048, "bfloat16")
    assert LanguageModel(tiny_lm, batch_tokens=64)._runner.batch_tokens == 64
