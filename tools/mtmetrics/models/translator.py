"""Machine translation by MBart; its translations serve a metric as pseudo-references.

`Translator` translates. The functions before it set a tokenizer and the generation of a network to a
language pair; trainings use them too.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mtmetrics.artifacts.models import (
    Network,
    NetworkConfig,
    Tokenizer,
    loading,
    pretrained,
    read_record,
)
from mtmetrics.checks import language_pair, positive
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.devices import torch_dtype
from mtmetrics.models.loaded import LoadedModel
from mtmetrics.models.text_cache import TextCache

if TYPE_CHECKING:
    import torch

# Language codes of MBart, such as de_DE.
_CODE = re.compile(r"([a-z]{2,3})_[A-Z]{2}")
_CACHED_TEXTS = 100_000


class Translation(NamedTuple):
    """A translation.

    Attributes:
        text: of the translation.
        cut: whether its source was cut at the model's limit.
    """

    text: str
    cut: bool


class Frame(NamedTuple):
    """Tokens of the decoder before the text of a translation.

    Attributes:
        start: token id that the decoder reads first.
        forced: token id that it must write first, if any.
    """

    start: int
    forced: int | None


def use_languages(tokenizer: Tokenizer, lang_pair: str) -> None:
    """Sets source and target language of a tokenizer with language codes, such as ``de_DE``.

    A tokenizer without language codes stays as it is: its model translates a single language pair.

    Raises:
        InputError: it has codes, but none for one of the two languages.
    """
    source, target = language_pair(lang_pair)
    codes: dict[str, str] = {}
    for token in tokenizer.all_special_tokens:
        match = _CODE.fullmatch(token)
        if match:
            codes[match[1]] = token
    if not codes:
        return
    for language in (source, target):
        if language not in codes:
            raise InputError(
                f"language pair {lang_pair}: the translation model has no language code for "
                f"{language!r}; it has: {' '.join(sorted(codes))}"
            )
    tokenizer.src_lang, tokenizer.tgt_lang = codes[source], codes[target]


def target_frame(tokenizer: Tokenizer, end: int) -> Frame:
    """Returns the frame in which MBart was trained: the last token of a target moves to its front
    and starts the decoder.

    In mBART-50 the last token is ``</s>`` (`end`), and the decoder must write the language code
    first. In mBART-cc25 it is the language code, and the decoder writes the text at once.
    """
    ids = tokenizer(text_target="")["input_ids"]
    before_end = ids[: ids.index(end)]
    return Frame(ids[-1], before_end[0] if before_end else None)


def open_mbart(folder: Path, lang_pair: str, dtype: str = "float32") -> tuple[Tokenizer, Network]:
    """Loads tokenizer and network of an MBart, and sets them to a language pair.

    Raises:
        InputError: the tokenizer lacks the code of a language, see `use_languages`.
        ArtifactError: it cannot be loaded, or is no MBart.
    """
    tokenizer, network = pretrained("AutoModelForSeq2SeqLM", folder, torch_dtype(dtype))
    _prepare(folder, network.config, tokenizer, lang_pair)
    return tokenizer, network


def require_mbart(folder: Path, lang_pair: str) -> None:
    """Raises the errors of `open_mbart`, without loading the weights."""
    import transformers

    with loading(folder, "AutoModelForSeq2SeqLM"):
        config = transformers.AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    _prepare(folder, config, tokenizer, lang_pair)


def _prepare(folder: Path, config: NetworkConfig, tokenizer: Tokenizer, lang_pair: str) -> None:
    if config.model_type != "mbart":
        raise ArtifactError(
            f"{folder}: a model of the kind {config.model_type!r}; an MBart is needed to translate"
        )
    use_languages(tokenizer, lang_pair)


def _require_direction(described: str, folder: Path, lang_pair: str) -> None:
    """Refuses a model that was trained for another language pair, by the record of the training:
    its translations would be in the wrong language."""
    trained = (read_record(folder) or {}).get("lp")
    wanted = "-".join(language_pair(lang_pair))
    if trained not in (None, wanted):
        raise InputError(
            f"{described}: translates {trained}, but {wanted} is needed; name a model that was "
            "trained for it"
        )


def configured_beams(network: Network) -> int:
    """Returns the number of hypotheses of beam search in the files of a model, 1 where they hold
    none.

    It stands in generation_config.json, or in the config.json of older models: 5 for mBART-cc25 and
    mBART-50.
    """
    return network.generation_config.num_beams or 1


def generation(
    config: NetworkConfig, frame: Frame, *, beams: int = 1, max_length: int | None = None
) -> Any:
    """Returns a ``GenerationConfig`` that replaces the one of the model's folder.

    Args:
        config: of the model.
        frame: tokens before the text.
        beams: hypotheses of the beam search.
        max_length: tokens of a translation; at most, and by default, the model's positions.
    """
    from transformers import GenerationConfig

    positions = config.max_position_embeddings
    return GenerationConfig(
        num_beams=beams,
        max_length=min(max_length or positions, positions),
        do_sample=False,
        decoder_start_token_id=frame.start,
        forced_bos_token_id=frame.forced,
        eos_token_id=config.eos_token_id,
        forced_eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
        use_cache=True,
    )


class Translator(LoadedModel):
    """Translates with an MBart model, greedily or by beam search, so that equal texts have equal
    translations.

    Args:
        model: folder, name of a bundled artifact, or Hub repository.
        lang_pair: such as ``"de-en"``.
        beams: hypotheses of the beam search; 1 is greedy, None takes the model's own number, see
            `configured_beams`.
        max_length: tokens that a translation may have, with those around the text; it is cut there.
            None for as many as the model has positions, as published.
        revision: Hub revision.
        **running: keywords of `mtmetrics.models.running.Running`; by default 2,048 padded tokens of
            the sources in a batch of each beam.

    Raises:
        InputError: an unknown option, a language for which the model has no code, or a model that
            was trained for another language pair.
        ArtifactError: the model cannot be found or loaded, or is no MBart.
        MTMetricsError: the model does not fit into memory.
    """

    def __init__(
        self,
        model: str | Path,
        lang_pair: str,
        *,
        beams: int | None = None,
        max_length: int | None = None,
        revision: str | None = None,
        **running: Any,
    ) -> None:
        if beams is not None:
            positive("beams", beams)
        if max_length is not None:
            positive("max_length", max_length)
        super().__init__("translation model", model, revision, {"batch_tokens": 2048} | running)
        self.lang_pair = lang_pair
        _require_direction(self.described, self.folder, lang_pair)
        self.tokenizer, network = open_mbart(self.folder, lang_pair, self.dtype)
        self.beams = configured_beams(network) if beams is None else beams
        frame = target_frame(self.tokenizer, network.config.eos_token_id)
        network.generation_config = generation(
            network.config, frame, beams=self.beams, max_length=max_length
        )
        self.max_length: int = network.generation_config.max_length
        self._limit = min(network.config.max_position_embeddings, self.tokenizer.model_max_length)
        batch_tokens = max(1, self.running.batch_tokens // self.beams)
        self._runner = self.on_devices(network, network.config.pad_token_id, batch_tokens)
        self._recent: TextCache[str, Translation] = TextCache(_CACHED_TEXTS)

    def translate(self, texts: Sequence[str]) -> list[Translation]:
        """Translates N texts. Recent texts are not translated again; a blank text has a blank
        translation."""
        return self._recent.values(texts, self._compute)

    def _compute(self, texts: list[str]) -> list[Translation]:
        encoded = self.tokenizer(texts, truncation=True, max_length=self._limit)
        rows = [
            ids if text.strip() else []
            for text, ids in zip(texts, encoded["input_ids"], strict=True)
        ]
        translations = [""] * len(texts)

        def compute(
            network: Network, batch: "torch.Tensor", mask: "torch.Tensor", indices: list[int]
        ) -> None:
            ids = network.generate(input_ids=batch, attention_mask=mask)
            decoded = self.tokenizer.batch_decode(ids, skip_special_tokens=True)
            for index, text in zip(indices, decoded, strict=True):
                translations[index] = text.strip()

        self._runner.run(rows, compute)
        return [
            Translation(text, bool(encoding.overflowing))
            for text, encoding in zip(translations, encoded.encodings, strict=True)
        ]
