"""The settings of the trainings; a field's `help` is also its description on the command line.

A class checks its values when it is made, and raises an InputError for one that cannot be used."""

from dataclasses import dataclass, field, fields
from typing import ClassVar, TypeVar

from mtmetrics.checks import positive
from mtmetrics.errors import InputError

Value = TypeVar("Value", bool, int, float, str)


def setting(default: Value, text: str, *, may_be_zero: bool = False) -> Value:
    """A field with a default and a description; a whole number is at least 1, unless it may be
    zero."""
    return field(default=default, metadata={"help": text, "may_be_zero": may_be_zero})


@dataclass(frozen=True)
class TrainingConfig:
    """The base of all settings: whole numbers are positive."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if type(value) is int and not option.metadata["may_be_zero"]:
                positive(option.name, value)


@dataclass(frozen=True)
class Schedule(TrainingConfig):
    """The settings of every training with checkpoints."""

    weight_decay: float = setting(0.01, "weight decay of the matrices")
    checkpoint_every: int = setting(250, "steps between checkpoints")
    bf16: bool = setting(
        False, "compute in bfloat16 where it is safe; faster on processors that support it"
    )
    # Steps between evaluations; None for a training that evaluates only at its end.
    evaluate_every: ClassVar[int | None] = None


@dataclass(frozen=True)
class Steps(Schedule):
    """A training of a number of steps."""

    steps: int = setting(2000, "training steps")
    warmup_steps: int = setting(100, "steps in which learning rates rise", may_be_zero=True)
    decay_steps: int = setting(
        600,
        "steps at the end in which learning rates fall to 0",
        may_be_zero=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps < self.warmup_steps + self.decay_steps:
            rates = f"{self.warmup_steps} of warm-up and {self.decay_steps} of decay"
            raise InputError(f"{self.steps} steps are fewer than {rates}")


@dataclass(frozen=True)
class Epochs(Schedule):
    """A training of several passes over pairs of texts."""

    epochs: int = setting(1, "passes over the pairs")
    warmup: float = setting(
        0.1, "share of the steps in which learning rates rise; then they fall to 0"
    )
    max_pieces: int = setting(128, "texts are cut at that many subwords in training")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.warmup < 1.0:
            needed = "a share of the steps is needed, at least 0 and below 1"
            raise InputError(f"warmup {self.warmup}: {needed}", option="warmup")


def check_temperature(temperature: float) -> None:
    """Refuses a temperature that is not above 0."""
    if temperature <= 0:
        raise InputError(f"temperature {temperature}: must be above 0", option="temperature")


@dataclass(frozen=True)
class EncoderConfig(Steps):
    """Vocabulary and schedule of an encoder that is cut out of a larger one."""

    steps: int = setting(4000, "training steps")
    decay_steps: int = setting(
        1000,
        "steps at the end in which learning rates fall to 0",
        may_be_zero=True,
    )
    vocabulary: int = setting(84000, "entries of the vocabulary")
    layers: int = setting(6, "the lowest layers of the original, which are kept and trained")
    target_layer: int = setting(9, "the layer of the original whose vectors are taught")
    max_pieces: int = setting(64, "texts are cut at that many subwords in training")
    pairs_per_step: int = setting(64, "sentence pairs per step")
    negatives: int = setting(256, "words of other sentences that a word is told apart from")
    learning_rate: float = setting(1e-4, "peak learning rate of AdamW for the layers")
    vector_lr: float = setting(
        0.0, "peak learning rate of AdamW for the word vectors; 0 keeps those of the original"
    )
    temperature: float = setting(0.05, "temperature of the similarities that are told apart")
    distance_weight: float = setting(
        2.0, "weight of the distances between source words and their translations"
    )
    english_weight: float = setting(
        4.0, "weight of the distances between English words and those of the original"
    )
    english: float = setting(0.1, "share of the steps in which there are English texts alone")
    worsened: float = setting(
        0.5, "share of the texts of these steps that are worsened, as bad translations are"
    )
    words: float = setting(0.1, "how often word lists are drawn, relative to text")
    outputs_share: float = setting(
        0.5, "share of the steps that read outputs of systems, where there are any"
    )
    characters: int = setting(
        3_000_000, "characters per language from which the vocabulary is made"
    )
    held_back_per_mille: int = setting(
        6,
        "of thousand sentences so many are kept out of training",
        may_be_zero=True,
    )
    held_back_per_pair: int = setting(
        100, "of the held-back pairs of a language pair at most so many are evaluated on"
    )
    evaluate_every: int = setting(400, "steps between evaluations")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_temperature(self.temperature)


@dataclass(frozen=True)
class LMConfig(Steps):
    """Size and schedule of a language model; the defaults are those of the bundled English one."""

    checkpoint_every: int = setting(125, "steps between checkpoints")
    steps: int = setting(2300, "training steps")
    warmup_steps: int = setting(80, "steps in which learning rates rise", may_be_zero=True)
    decay_steps: int = setting(
        700,
        "steps at the end in which learning rates fall to 0",
        may_be_zero=True,
    )
    vocabulary: int = setting(5000, "entries of the byte-level BPE vocabulary")
    width: int = setting(256, "width of the model")
    layers: int = setting(3, "number of layers")
    heads: int = setting(4, "attention heads")
    context: int = setting(128, "longest text that the model reads, in subwords")
    rows_per_step: int = setting(32, "packed rows of full context length per step")
    matrix_lr: float = setting(5e-3, "peak learning rate of Muon, for the matrices of the layers")
    other_lr: float = setting(3e-3, "peak learning rate of AdamW, for everything else")
    dropout: float = setting(0.0, "dropout of hidden states and attention")
    held_back: int = setting(2000, "sentences kept out of training, for the perplexity")

    @property
    def evaluate_every(self) -> int:
        """Every checkpoint is evaluated."""
        return self.checkpoint_every


@dataclass(frozen=True)
class DistilConfig(Steps):
    """Schedule of a distillation; the defaults suit a large pretrained student (Reimers and
    Gurevych, 2020)."""

    checkpoint_every: int = setting(500, "steps between checkpoints")
    steps: int = setting(10_000, "training steps")
    warmup_steps: int = setting(500, "steps in which learning rates rise", may_be_zero=True)
    decay_steps: int = setting(
        5000,
        "steps at the end in which learning rates fall to 0",
        may_be_zero=True,
    )
    max_pieces: int = setting(128, "texts are cut at that many subwords of the student in training")
    pairs_per_step: int = setting(64, "sentence pairs per step")
    learning_rate: float = setting(
        2e-5, "peak learning rate of AdamW; small students learn well with 1e-3"
    )
    words: float = setting(0.4, "how often word lists are drawn, relative to text")
    held_back_per_mille: int = setting(
        12,
        "of thousand sentences so many are kept out of training",
        may_be_zero=True,
    )
    held_back_per_pair: int = setting(
        100, "of the held-back pairs of a language pair at most so many are matched"
    )
    evaluate_every: int = setting(500, "steps between evaluations")


@dataclass(frozen=True)
class ContrastiveConfig(Epochs):
    """Schedule of contrastive learning; the defaults are those of UScore (Belouadi and Eger,
    2023)."""

    checkpoint_every: int = setting(100, "steps between checkpoints")
    pairs_per_step: int = setting(
        256, "sentence pairs per step; all others of a step are what a pair is told apart from"
    )
    temperature: float = setting(0.05, "temperature of the similarity")
    learning_rate: float = setting(
        5e-5, "peak learning rate of AdamW; adapters learn well with 1e-3"
    )
    adapter_rank: int = setting(
        0,
        "train low-rank adapters of that rank, such as 12, on the encoder, which stays as it is; "
        "with 0 the whole encoder is trained",
        may_be_zero=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_temperature(self.temperature)
        if self.adapter_rank < 0:
            raise InputError(
                f"adapter_rank {self.adapter_rank}: must be at least 0", option="adapter_rank"
            )


@dataclass(frozen=True)
class TranslationConfig(Epochs):
    """Schedule of learning to translate; the defaults are those of UScore (Belouadi and Eger,
    2023)."""

    weight_decay: float = setting(0.0, "weight decay of the matrices")
    checkpoint_every: int = setting(1000, "steps between checkpoints")
    epochs: int = setting(3, "passes over the pairs")
    warmup: float = setting(
        0.0, "share of the steps in which learning rates rise; then they fall to 0"
    )
    pairs_per_step: int = setting(4, "sentence pairs per step")
    learning_rate: float = setting(
        5e-5,
        "peak learning rate of AdamW; of a new small model that of Muon, three times AdamW's, "
        "such as 3e-3",
    )


@dataclass(frozen=True)
class DenoisingConfig(Steps):
    """Size and schedule of a small MBart that learns to restore text; the noise is that of mBART
    (Liu et al., 2020)."""

    checkpoint_every: int = setting(200, "steps between checkpoints")
    vocabulary: int = setting(6000, "entries of the WordPiece vocabulary of both languages")
    encoder_layers: int = setting(2, "layers of the encoder")
    decoder_layers: int = setting(1, "layers of the decoder")
    heads: int = setting(4, "attention heads")
    inner: int = setting(384, "width of the feed-forward parts")
    positions: int = setting(256, "longer texts are cut at that many subwords")
    dropout: float = setting(0.1, "dropout of hidden states")
    masked: float = setting(0.35, "share of the subwords that are masked")
    span: float = setting(3.5, "mean length of a masked span, in subwords; each becomes one mask")
    max_pieces: int = setting(64, "sentences are cut at that many subwords in training")
    rows_per_step: int = setting(64, "sentences per step")
    matrix_lr: float = setting(2e-3, "peak learning rate of Muon, for the matrices of the layers")
    other_lr: float = setting(7e-4, "peak learning rate of AdamW, for everything else")


@dataclass(frozen=True)
class RegressorConfig(TrainingConfig):
    """Network and schedule of a regressor; the defaults are those of Mathur et al. (2019) and their
    code."""

    architecture: str = setting("esim", "bilstm, bilstm_attention or esim")
    against: str = setting(
        "reference",
        "compare translations with the reference, the source, or both, one behind the other",
    )
    hidden: int = setting(300, "width of the LSTM states, per direction")
    dropout: float = setting(
        0.5, "dropout of LSTM inputs and of the regressor over the pooled states"
    )
    max_pieces: int = setting(100, "texts are cut at that many word pieces")
    features: str = setting(
        "none",
        "what the regressor reads beside the vectors: some of precision, recall, f1, cosine, "
        "length, joined by +",
    )
    feature_layers: str = setting("last", "layers that features are computed from, such as 2+4+6")
    ranking: float = setting(
        0.0, "weight of a hinge loss over the pairs of a batch, beside the squared error"
    )
    standardise: bool = setting(False, "give the judgements of each file mean 0 and deviation 1")
    batch: int = setting(32, "pairs per step")
    learning_rate: float = setting(
        4e-4, "of Adam; halved after every epoch in which the validation does not get better"
    )
    gradient_norm: float = setting(10.0, "gradients are cut at that norm")
    epochs: int = setting(75, "at most so many passes over the data")
    patience: int = setting(4, "stop after so many epochs without a better validation")
    held_back_per_mille: int = setting(
        100,
        "of thousand texts to compare with, so many are kept for validation, where no --valid "
        "is given",
        may_be_zero=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.dropout < 1:
            raise InputError(
                f"dropout {self.dropout}: must be at least 0 and below 1", option="dropout"
            )


@dataclass(frozen=True)
class CompositionConfig(Epochs):
    """Network and schedule of an ESIM that is composed by transformer layers."""

    epochs: int = setting(2, "passes over the pairs")
    warmup: float = setting(
        0.06, "share of the steps in which learning rates rise; then they fall to 0"
    )
    max_pieces: int = setting(100, "texts are cut at that many subwords in training")
    architecture: str = setting("esim", "no other one is composed")
    against: str = setting(
        "source",
        "compare translations with the source, the reference, both together, either (a row "
        "each), or any (all three)",
    )
    layer: int = setting(4, "the encoder's layer that the network reads")
    begun_from: str = setting(
        "5+6+6", "the encoder's layers from which those of the composition begin"
    )
    hidden: int = setting(256, "width of the regressor over the pooled states")
    dropout: float = setting(
        0.1, "dropout of the layers and of the regressor over the pooled states"
    )
    standardise: bool = setting(False, "give the judgements of each file mean 0 and deviation 1")
    lowest: float = setting(-4.0, "lower judgements count as this")
    highest: float = setting(3.0, "higher judgements count as this")
    difference_weight: float = setting(
        0.0,
        "weight of the loss of differences between translations of one source, beside that of "
        "the scores",
    )
    worse_weight: float = setting(
        0.3, "weight of the loss of worsened copies, where rows have them"
    )
    margin: float = setting(0.5, "a worsened copy should score that much less than its original")
    batch: int = setting(32, "pairs per step")
    layer_lr: float = setting(
        1.5e-4, "peak learning rate of AdamW for the layers that begin as the encoder's"
    )
    other_lr: float = setting(4e-4, "peak learning rate of AdamW for everything else")
    held_back_per_mille: int = setting(
        30,
        "of thousand texts to compare with, so many are kept for validation, where no --valid "
        "is given",
        may_be_zero=True,
    )
    evaluate_every: int = setting(500, "steps between evaluations")
