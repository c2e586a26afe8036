"""Trains one small multilingual encoder from parallel text alone: counted vectors first, then contrastive training."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.files import atomic_path, new_folder
from mtmetrics.artifacts.models import model_folder
from mtmetrics.errors import InputError
from mtmetrics.training import corpus
from mtmetrics.training import run as recording
from mtmetrics.training.pair_batches import Teach
from mtmetrics.training.settings import EncoderConfig
from mtmetrics.training.teacher import LANGUAGE, SentenceTeacher

log = logging.getLogger(__name__)


def train_encoder(
    run: recording.Run,
    parallel: Sequence[str | Path],
    *,
    exclude: Sequence[str] = (),
    caps: dict[str, int] | None = None,
    start: str | Path | None = None,
    teacher: str | Path | None = None,
    config: EncoderConfig | None = None,
) -> Path:
    """Trains an encoder of the BERT architecture with a lower-casing vocabulary and writes its artifact folder.

    Args:
        run: where the artifact and the checkpoints go, and the seed.
        parallel: JSON Lines of sentence pairs and ``.tsv`` word lists, see `corpus.read_pairs`; each file's name begins
            with its language pair, e.g. ``de-en.jsonl.gz``.
        exclude: origins to leave out.
        caps: at most that many rows per file of an origin.
        start: an encoder made here earlier, of the same size or with fewer layers; its vocabulary and weights are where
            training begins.
        teacher: an English sentence encoder that is taught from, besides, where the target language of a pair is
            English; see `mtmetrics.training.teacher.SentenceTeacher`.
        config: size and schedule.

    Returns:
        The artifact folder.

    Raises:
        InputError: files or settings cannot be used.
        ArtifactError: the teacher cannot be found or loaded.
    """
    config = config or EncoderConfig()
    if start and not (Path(start) / "config.json").is_file():
        raise InputError(f"{start} is no encoder folder: it has no config.json")
    settings = {"exclude": sorted(exclude), "caps": caps or {}, "start": str(start) if start else None}
    settings["teacher"] = recording.pinned(teacher, model_folder(teacher)) if teacher else None
    run.open(config, {"parallel": parallel}, **settings)
    work, seed = run.work, run.seed
    pairs, counts = corpus.read_pairs(parallel, exclude, caps, seed)
    train, words, held = corpus.training_split(pairs, config.held_back_per_mille, config.held_back_per_pair, seed)
    log.info("%d sentence pairs and %d word pairs for training, %d held back", len(train), len(words), len(held))

    tokenizer = _vocabulary(work, train, config, seed, start)
    train += words
    data = _tokenised(work / "tokens.npz", train, tokenizer, config)
    held_data = _tokenised(work / "held-back-tokens.npz", held, tokenizer, config)
    if start:
        encoder = load_encoder(start, config)
    else:
        vectors = _vectors(work, train, data, len(tokenizer), config, seed)
        encoder = build_encoder(config, len(tokenizer), vectors, tokenizer.pad_token_id, seed)
    # A continued training meets the pairs in another order than the one before it.
    seed = seed + 1 if start else seed
    teach = None
    if teacher:
        taught = [pair.target for pair in train if _is_taught(pair)]
        school = SentenceTeacher(teacher, taught, config.width, work / "teacher.npz", seed=seed, bf16=config.bf16)
        teach = _teaching(school, train, tokenizer)
    trainer = _trainer(config, tokenizer, encoder, data, held_data, work, seed, teach)
    before = run.once("before", trainer.evaluate)
    run.train(trainer)
    result = trainer.evaluate()
    record = {
        "start": Path(start).name if start else None,
        "started_from": recording.read_record(Path(start)) if start else None,
        "data": counts.as_dict(),
        "pairs": {"train": len(train) - len(words), "words": len(words), "held_back": len(held)},
        "before_training": before,
        "result": result,
    }
    with run.artifact("multilingual encoder", "mtmetrics train encoder", **record) as folder:
        recording.save_model(trainer.model.encoder, tokenizer, folder)
    return run.output


def _vocabulary(
    work: Path, train: Sequence[corpus.Pair], config: EncoderConfig, seed: int, start: str | Path | None
) -> Any:
    from transformers import PreTrainedTokenizerFast

    from mtmetrics.training import vocabulary

    folder = Path(start) if start else work / "tokenizer"
    if not folder.exists():
        texts: dict[str, dict[str, None]] = {}
        for pair in train:
            source, _, target = pair.group.partition("-")
            texts.setdefault(source, {})[pair.source] = None
            texts.setdefault(target, {})[pair.target] = None
        by_language = {language: list(unique) for language, unique in texts.items()}
        trained = vocabulary.train_wordpiece(
            vocabulary.balanced(by_language, config.characters, seed), config.vocabulary
        )
        with new_folder(folder) as temporary:
            vocabulary.save_tokenizer(vocabulary.as_pretrained(trained, config.positions), temporary)
    return PreTrainedTokenizerFast.from_pretrained(folder)


def _tokenised(path: Path, pairs: Sequence[corpus.Pair], tokenizer: Any, config: EncoderConfig) -> Any:
    """The tokenised pairs; kept in the work folder, since tokenising takes minutes."""
    from mtmetrics.training.pair_batches import TokenisedPairs, tokenise

    if not path.exists():
        arrays = {}
        for side in ("source", "target"):
            texts = [getattr(pair, side) for pair in pairs]
            arrays[f"{side}_ids"], arrays[f"{side}_offsets"] = tokenise(texts, tokenizer, config.max_pieces)
        with atomic_path(path) as temporary, open(temporary, "wb") as stream:
            np.savez(stream, **arrays)
    with np.load(path, allow_pickle=False) as saved:
        sides = tuple((saved[f"{side}_ids"], saved[f"{side}_offsets"]) for side in ("source", "target"))
    return TokenisedPairs(pairs, sides)


def _vectors(
    work: Path, pairs: Sequence[corpus.Pair], data: Any, size: int, config: EncoderConfig, seed: int
) -> np.ndarray:
    from mtmetrics.training import factorize

    path = work / "vectors.npy"
    if not path.exists():
        table = factorize.count_table(data.sides, factorize.pivot_columns(pairs), size)
        log.info("factorising %d subwords x %d sentences, %d entries", *table.shape, table.nnz)
        vectors = factorize.subword_vectors(table, config.width, seed)
        with atomic_path(path) as temporary, open(temporary, "wb") as stream:
            np.save(stream, vectors)
    return np.load(path, allow_pickle=False)


def load_encoder(folder: str | Path, config: EncoderConfig) -> Any:
    """Loads an encoder to train on, in float32; layers that it lacks are added on top, and change little at first.

    Raises:
        InputError: it has more layers than `config`, or differs from it in another size.
    """
    import torch
    from transformers import BertModel

    found = BertModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False, local_files_only=True)
    size = found.config
    sizes = (size.hidden_size, size.num_attention_heads, size.intermediate_size, size.max_position_embeddings)
    if sizes != (config.width, config.heads, config.inner, config.positions) or size.num_hidden_layers > config.layers:
        raise InputError(
            f"{folder} has another size than this training: pass its width, heads, inner and positions, and at least "
            f"{size.num_hidden_layers} layers"
        )
    model = build_encoder(config, size.vocab_size, pad=size.pad_token_id)
    model.load_state_dict({**model.state_dict(), **found.state_dict()})
    with torch.no_grad():
        for layer in model.encoder.layer[size.num_hidden_layers :]:
            # Normalising again what was normalised like this changes nothing but the scale of some dimensions.
            for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
                norm.load_state_dict(found.encoder.layer[-1].output.LayerNorm.state_dict())
    return model


def build_encoder(
    config: EncoderConfig, size: int, vectors: np.ndarray | None = None, pad: int = 0, seed: int = 1
) -> Any:
    """A new BERT encoder whose layers pass the subword vectors through unchanged at first.

    The output projections of attention and feed-forward parts and the position vectors begin at zero.

    Args:
        config: sizes.
        size: of the vocabulary.
        vectors: of the subwords, `(size, width)`; random ones if not given.
        pad: token id of [PAD].
        seed: of the other weights.
    """
    import torch
    from transformers import BertConfig, BertModel, set_seed

    set_seed(seed)
    model = BertModel(
        BertConfig(
            vocab_size=size,
            hidden_size=config.width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=config.inner,
            max_position_embeddings=config.positions,
            type_vocab_size=2,
            hidden_dropout_prob=config.dropout,
            attention_probs_dropout_prob=0.0,
            pad_token_id=pad,
            # On CPUs, the gradient of the fused attention is slow for texts as short as these.
            attn_implementation="eager",
        ),
        add_pooling_layer=False,
    )
    with torch.no_grad():
        if vectors is not None:
            model.embeddings.word_embeddings.weight.copy_(torch.from_numpy(vectors))
        model.embeddings.position_embeddings.weight.zero_()
        model.embeddings.token_type_embeddings.weight.zero_()
        for layer in model.encoder.layer:
            layer.attention.output.dense.weight.zero_()
            layer.output.dense.weight.zero_()
    return model


def _is_taught(pair: corpus.Pair) -> bool:
    return pair.group.endswith(f"-{LANGUAGE}")


def _teaching(teacher: SentenceTeacher, pairs: Sequence[corpus.Pair], tokenizer: Any) -> Teach:
    def teach(indices: np.ndarray, worsened: list[np.ndarray]) -> np.ndarray | None:
        if not _is_taught(pairs[indices[0]]):
            return None
        texts = [pairs[index].target for index in indices]
        return teacher.vectors([*texts, *tokenizer.batch_decode(worsened, skip_special_tokens=True)])

    return teach


def _trainer(
    config: EncoderConfig,
    tokenizer: Any,
    encoder: Any,
    data: Any,
    held: Any,
    work: Path,
    seed: int,
    teach: Teach | None,
) -> Any:
    from transformers import Trainer, set_seed

    from mtmetrics.training import pair_batches, pair_model
    from mtmetrics.training.optimizer import MuonAdamW

    class PairTrainer(Trainer):
        """Takes whole batches from the plan, in its order, and evaluates by matching accuracy."""

        def _get_train_sampler(self, *args: Any, **kwargs: Any) -> Any:
            from torch.utils.data import SequentialSampler

            return SequentialSampler(self.train_dataset)

        def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
            self.model.eval()
            found = pair_model.matching_accuracy(self.model, held, held.groups)
            metrics = {f"eval_{name}": value for name, value in found.items()}
            self.log(metrics)
            return found

    set_seed(seed)
    model = pair_model.PairModel(
        encoder, config.pooled_temperature, config.token_temperature, config.teacher_weight, config.teacher_margin
    )
    plan = pair_batches.plan_batches(
        data.groups, data.lengths(), config.pairs_per_step, config.steps, seed, config.words
    )
    table, begins = pair_batches.word_starts(tokenizer), pair_batches.word_beginnings(tokenizer)
    batches = pair_batches.BatchDataset(data, plan, table, begins, config.positions, seed, config.corrupted, teach)
    arguments = recording.trainer_settings(work, config, config.matrix_lr, seed, evaluate_every=config.evaluate_every)
    return PairTrainer(
        model=model,
        args=arguments,
        train_dataset=batches,
        eval_dataset=held,
        data_collator=lambda batches: batches[0],
        optimizers=(MuonAdamW(model, config.matrix_lr, config.other_lr, config.weight_decay), None),
    )
