"""What loaded models have in common, and how the pool and the command line have them run."""

import argparse
import dataclasses
from pathlib import Path

import pytest

from mtmetrics.cli.options import add_model_options, pool_options
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.runner import Running
from mtmetrics.models.token_encoder import TokenEncoder


def test_a_pool_runs_encoders_as_it_is_told_and_generating_models_in_their_own_batches(
    tiny_encoder: Path, tiny_lm: Path, tmp_path: Path
) -> None:
    pool = ModelPool(batch_tokens=64, dtype="bfloat16", embedding_cache=tmp_path)
    encoder, model = pool.encoder(str(tiny_encoder), layer=1), pool.language_model(str(tiny_lm))
    assert (encoder._network._runner.batch_tokens, encoder.dtype, encoder.stores) == (64, "bfloat16", True)
    assert (model._runner.batch_tokens, model.dtype) == (2048, "bfloat16")
    assert LanguageModel(tiny_lm, batch_tokens=64)._runner.batch_tokens == 64


def test_means_are_an_encoder_of_sentences_and_leave_the_words_as_they_are(tiny_encoder: Path) -> None:
    words = TokenEncoder(tiny_encoder)
    sentences = words.means()
    assert (words.level, sentences.level, sentences.fingerprint) == ("word", "sentence", words.fingerprint)
    assert ModelPool().sentence_encoder(str(tiny_encoder)).level == "sentence"


def test_what_nobody_knows_is_refused(tiny_encoder: Path) -> None:
    for load in (lambda: TokenEncoder(tiny_encoder, batch=64), lambda: ModelPool(batch=64)):
        with pytest.raises(TypeError, match="unexpected keyword argument 'batch'"):
            load()


def test_every_setting_is_an_option_of_the_command_line_with_the_same_default() -> None:
    parser = argparse.ArgumentParser()
    add_model_options(parser)
    assert pool_options(parser.parse_args([])) == dataclasses.asdict(Running())
    given = parser.parse_args(["--batch-tokens", "7", "--dtype", "auto", "--local-files-only"])
    changed = dataclasses.replace(Running(), batch_tokens=7, dtype="auto", local_files_only=True)
    assert pool_options(given) == dataclasses.asdict(changed)
