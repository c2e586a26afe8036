"""What a production will need at its end, asked for before its first stage: models that load, memory, disk."""

import itertools
import logging
import math
import os
import shutil
from pathlib import Path

from mtmetrics.artifacts.models import loading, model_folder, model_size
from mtmetrics.errors import MTMetricsError
from mtmetrics.models.runner import pick_devices
from mtmetrics.models.translator import require_mbart
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.textio import iter_lines
from mtmetrics.training.translation import special_tokens
from mtmetrics.uscore.stages import SMALL, VECTOR_BYTES, Job, Start

log = logging.getLogger("mtmetrics")
_SAMPLE = 500
# Of a parameter in training: itself, its gradient, and two moments of AdamW, in float32; a checkpoint has no gradient,
# and there are three of them while the oldest is replaced.
_TRAINING_BYTES, _CHECKPOINT_BYTES, _CHECKPOINTS, _STORED_BYTES = 16, 12, 3, 2


def check_models(start: Start, lang_pair: str, pool: ModelPool) -> None:
    """Refuses models of a production that a later stage could not load.

    Raises:
        InputError: the translation model has no code for a language.
        ArtifactError: a model cannot be found, is damaged, or the translation model is no MBart.
    """
    import transformers

    folders = {start.encoder_folder: "AutoModel"}
    if start.sentences:
        folders[start.sentences] = "AutoModel"
    if start.language_model:
        table = start.language_model
        options = {"revision": table.get("revision"), "local_files_only": pool.local_files_only}
        folder = model_folder(table["model"], **options)
        with loading(folder, "AutoModelForCausalLM"):
            transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
            transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        folders[str(folder)] = "AutoModelForCausalLM"
    if start.translation == SMALL:
        folder = Path(start.encoder_folder)
        with loading(folder, "AutoModel"):
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        special_tokens(folder, tokenizer)
    elif start.translation:
        require_mbart(Path(start.translation), lang_pair)
        folders[start.translation] = "AutoModelForSeq2SeqLM"
    for folder, kind in folders.items():
        with loading(Path(folder), kind):
            _parameters(Path(folder))


def check_room(job: Job, *texts: str | Path) -> None:
    """Says how much memory and disk a production takes, and refuses one that this machine has no room for.

    The estimate is of what grows: words' and sentences' vectors, models in training, their checkpoints.

    Raises:
        MTMetricsError: there is less memory or disk.
    """
    config, start = job.config, job.start
    mined = max(config.remap_sentences, config.train_sentences if start.translation else 0)
    sides = [_words(job, text, mined) for text in texts]
    vectors = [sentences * words * job.encoder.dim * 4 for sentences, words in sides]
    in_file = sum(size for size in vectors if size > VECTOR_BYTES)
    # The means of both sides, and a copy of those of one in the index that is searched.
    means = sum(min(mined, sentences) for sentences, _ in [*sides, sides[1]]) * job.encoder.dim * 4
    memory = [sum(vectors) - in_file + 2 * VECTOR_BYTES * bool(in_file) + means]
    disk, kept = [in_file], 0.0
    models = [(start.sentences, config.contrastive_rounds), (start.translation, config.translation_rounds)]
    for model, rounds in models:
        if model:
            parameters = _parameters(Path(start.encoder_folder if model == SMALL else model))
            kept += rounds * parameters * _STORED_BYTES
            disk.append(_CHECKPOINTS * _CHECKPOINT_BYTES * parameters)
            if pick_devices(job.pool.device)[0].type == "cpu":
                memory.append(_TRAINING_BYTES * parameters)
    if start.sentences:
        number = sum(min(config.train_sentences, sentences) for sentences, _ in [*sides, sides[1]])
        memory.append(number * _width(Path(start.sentences)) * 4)
    _compare("memory", max(memory), _memory())
    work = job.stages.work
    there = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
    _compare(f"disk in {work}", max(disk) + kept, shutil.disk_usage(work).free + there)


def _words(job: Job, file: str | Path, most: int) -> tuple[int, float]:
    """Number of sentences, `most` at most, and how many words one has in the mean of the first."""
    lines = (line for line in iter_lines(file) if line.strip())
    sample = list(itertools.islice(lines, _SAMPLE))
    ids = job.encoder.tokenizer(sample, truncation=True)["input_ids"] if sample else []
    words = sum(int(job.encoder.word_table[row].sum()) for row in ids)
    rest = sum(1 for _ in itertools.islice(lines, max(0, most - len(sample))))
    return min(most, len(sample) + rest), words / max(1, len(sample))


def _compare(what: str, needed: float, there: float) -> None:
    log.info("about %.1f GB of %s are needed, there are %.0f", needed / 1e9, what, there / 1e9)
    if needed > there:
        advice = "lower --train-sentences (vectors), leave out a model (--without), or take a larger machine"
        raise MTMetricsError(f"about {needed / 1e9:.1f} GB of {what} are needed, there are {there / 1e9:.1f}; {advice}")


def _memory() -> float:
    """Bytes of memory that this process may have; infinity where the system does not say."""
    limits = [math.inf]
    if hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    group = Path("/sys/fs/cgroup/memory.max")
    if group.is_file() and (text := group.read_text(encoding="ascii").strip()).isdigit():
        limits.append(int(text))
    return min(limits)


def _parameters(folder: Path) -> int:
    """Numbers that the weights of a model hold, of which only the headers are read."""
    from safetensors import safe_open

    total = 0
    for path in (*folder.glob("*.safetensors"), *folder.glob("?_*/*.safetensors")):
        with safe_open(path, "np") as weights:
            total += sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118
    return total


def _width(folder: Path) -> int:
    inner = next(folder.glob("0_*/config.json"), folder / "config.json").parent
    return model_size(inner)[0]
