"""Fine-tunes an MBart for the translation of one language pair, and turns its translations into further training
pairs."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.files import new_folder
from mtmetrics.artifacts.models import model_folder
from mtmetrics.models.translator import generation, open_mbart, target_frame
from mtmetrics.training import corpus, loop, recording
from mtmetrics.training.config import TranslationConfig

log = logging.getLogger(__name__)


def train_translation(
    run: loop.Run,
    parallel: Sequence[str | Path],
    model: str | Path,
    lang_pair: str,
    *,
    config: TranslationConfig | None = None,
) -> Path:
    """Fine-tunes an MBart on sentence pairs, mined ones for instance (UScore, Sec. 3.1 and App. D).

    Args:
        run: where the artifact and the checkpoints go, and the seed.
        parallel: files of pairs, see `corpus.read_pairs`.
        model: mBART-cc25, mBART-50, or a small MBart without language codes; see
            `mtmetrics.artifacts.models.model_folder` for its name.
        lang_pair: such as ``"de-en"``, the direction of the pairs.
        config: schedule.

    Returns:
        The artifact folder, weights in float16; `mtmetrics.models.translator.Translator` opens it.

    Raises:
        InputError: files or settings cannot be used, or the model has no code for a language.
        ArtifactError: the model cannot be found or loaded, or is no MBart.
    """
    config = config or TranslationConfig()
    folder = model_folder(model)
    settings: dict[str, Any] = {
        "model": recording.pinned(model, folder),
        "lp": lang_pair,
        "parallel": [str(path) for path in parallel],
    }
    settings = run.open(config, settings, parallel)
    pairs, counts = corpus.read_pairs(parallel)
    schedule = loop.Passes.over(len(pairs), config)
    log.info("%d sentence pairs for training, %d steps", len(pairs), schedule.steps)
    trainer, tokenizer = _trainer(run, config, schedule, folder, pairs, lang_pair)
    history = run.train(trainer)
    network = trainer.model
    network.generation_config = generation(network.config, target_frame(tokenizer, network.config.eos_token_id))
    record = {
        "kind": "translation model",
        "command": "mtmetrics train translation",
        **settings,
        "parallel": [corpus.short_name(path) for path in parallel],
        "started_from": recording.read_record(folder),
        "data": counts.as_dict(),
        "pairs": len(pairs),
        "steps": schedule.steps,
    }
    with new_folder(run.output, run.overwrite) as temporary:
        recording.save_model(network, tokenizer, temporary)
        recording.write_record(temporary, record, history)
    return run.output


def _trainer(
    run: loop.Run,
    config: TranslationConfig,
    schedule: loop.Passes,
    folder: Path,
    pairs: Sequence[corpus.Pair],
    lang_pair: str,
) -> tuple[Any, Any]:
    from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

    set_seed(run.seed)
    tokenizer, network = open_mbart(folder, lang_pair)
    sides = ([pair.source for pair in pairs], [pair.target for pair in pairs])
    limit = min(config.max_pieces, network.config.max_position_embeddings)
    encoded = tokenizer(sides[0], text_target=sides[1], truncation=True, max_length=limit)
    names = ("input_ids", "attention_mask", "labels")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(encoded[name] for name in names), strict=True)]
    arguments = loop.trainer_settings(
        run.work,
        schedule,
        config.learning_rate,
        run.seed,
        rows_per_step=config.pairs_per_step,
        arguments=Seq2SeqTrainingArguments,
    )
    arguments.weight_decay = config.weight_decay
    collator = DataCollatorForSeq2Seq(tokenizer, model=network)
    return Seq2SeqTrainer(model=network, args=arguments, train_dataset=rows, data_collator=collator), tokenizer
