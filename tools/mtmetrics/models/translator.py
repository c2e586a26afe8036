"""Machine translation with mBART. UScore uses the translations of sources as pseudo-references:
texts that stand in for references.

`Translator` translates. The functions above it prepare a tokenizer and a network for a language pair;
trainings use them too.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mtmetrics.artifacts.models import (
    Network,
    NetworkConfig,
    Tokenizer,
    model_config,
    pretrained,
    pretrained_tokenizer,
    read_record,
)
from mtmetrics.checks import language_pair, positive
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.devices import torch_dtype
from mtmetrics.models.loaded import LoadedModel
from mtmetrics.models.text_cache import TextCache

if TYPE_CHECKING:
    import torch
    from transformers import GenerationConfig

# Language codes of mBART, such as de_DE.
_CODE = re.compile(r"([a-z]{2,3})_[A-Z]{2}")
_CACHED_TEXTS = 100_000


class Translation(NamedTuple):
    """A translation.

    Attributes:
        text: the translated text.
        is_truncated: whether the source was truncated at the model's limit.
    """

    text: str
    is_truncated: bool


class DecoderPrefix(NamedTuple):
    """Tokens that the decoder reads or writes before the text of a translation.

    Attributes:
        start: id of the token that the decoder reads first.
        forced: id of the token that it must write first; None for no such token.
    """

    start: int
    forced: int | None


def set_languages(tokenizer: Tokenizer, lang_pair: str) -> None:
    """Sets the source and target language of a tokenizer with language codes, such as ``de_DE``.

    A tokenizer without language codes stays as it is: its model translates a single language pair.

    Raises:
        InputError: the tokenizer has language codes, but lacks one of these two languages.
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


def target_prefix(tokenizer: Tokenizer, end_token: int) -> DecoderPrefix:
    """Returns the tokens before the text, as in the training of mBART: the decoder starts with the
    last token of the tokenised target.

    mBART-50 tokenises a target as ``[code, text, </s>]``: the decoder starts with ``</s>`` and must
    write the language code before the text. mBART-cc25 has ``[text, </s>, code]``: the decoder
    starts with the code and writes the text at once.

    Args:
        tokenizer: tokenizer with the target language set.
        end_token: id of ``</s>``.
    """
    ids = tokenizer(text_target="")["input_ids"]
    before_end = ids[: ids.index(end_token)]
    return DecoderPrefix(ids[-1], before_end[0] if before_end else None)


def open_mbart(folder: Path, lang_pair: str, dtype: str = "float32") -> tuple[Tokenizer, Network]:
    """Loads the tokenizer and the network of an mBART model for a language pair.

    Raises:
        InputError: the tokenizer lacks the code of a language, see `set_languages`.
        ArtifactError: the model cannot be loaded, or is not an mBART model.
    """
    tokenizer, network = pretrained("AutoModelForSeq2SeqLM", folder, torch_dtype(dtype))
    _require_mbart_type(folder, network.config)
    set_languages(tokenizer, lang_pair)
    return tokenizer, network


def require_mbart(folder: Path, lang_pair: str) -> None:
    """Checks that `open_mbart` can load a model, without loading the weights.

    Raises:
        InputError, ArtifactError: see `open_mbart`.
    """
    _require_mbart_type(folder, model_config(folder, "AutoModelForSeq2SeqLM"))
    set_languages(pretrained_tokenizer(folder), lang_pair)


def _require_mbart_type(folder: Path, config: NetworkConfig) -> None:
    if config.model_type != "mbart":
        raise ArtifactError(
            f"{folder}: a model of the kind {config.model_type!r}; an MBart is needed to translate"
        )


def _require_direction(description: str, folder: Path, lang_pair: str) -> None:
    """Raises an error if the record of the training, in the model's folder, names another language
    pair: the translations would be in the wrong language."""
    trained_pair = (read_record(folder) or {}).get("lp")
    wanted_pair = "-".join(language_pair(lang_pair))
    if trained_pair not in (None, wanted_pair):
        raise InputError(
            f"{description}: translates {trained_pair}, but {wanted_pair} is needed; name a model "
            "that was trained for it"
        )


def configured_beams(network: Network) -> int:
    """Returns the beam size that the files of a model set, 1 if they set none.

    The beam size is the number of hypotheses in beam search. generation_config.json sets it, or
    config.json for older models: 5 for mBART-cc25 and mBART-50.
    """
    return network.generation_config.num_beams or 1


def generation_config(
    config: NetworkConfig, prefix: DecoderPrefix, *, beams: int = 1, max_length: int | None = None
) -> "GenerationConfig":
    """Returns a configuration that replaces the one of the model's folder.

    Args:
        config: configuration of the model.
        prefix: tokens before the text.
        beams: beam size.
        max_length: highest number of tokens of a translation, special tokens included. The default
            is the model's number of positions, which is also the upper limit.
    """
    from transformers import GenerationConfig

    positions = config.max_position_embeddings
    return GenerationConfig(
        num_beams=beams,
        max_length=min(max_length or positions, positions),
        do_sample=False,
        decoder_start_token_id=prefix.start,
        forced_bos_token_id=prefix.forced,
        eos_token_id=config.eos_token_id,
        forced_eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
        use_cache=True,
    )


class Translator(LoadedModel):
    """Translates with an mBART model, greedily or by beam search; nothing is random.

    Args:
        model: folder, name of a bundled artifact, or Hub repository.
        lang_pair: language pair, such as ``"de-en"``.
        beams: beam size; 1 is greedy search, None the beam size of the model's files, see
            `configured_beams`.
        max_length: highest number of tokens of a translation, special tokens included; a longer
            translation ends there. None for the model's number of positions, as in UScore's published
            code.
        revision: Hub revision.
        **run_options: keywords of `mtmetrics.models.running.Running`. `batch_tokens`, by default
            2,048 here, bounds the padded tokens of the sources in a batch times the beam size.

    Raises:
        InputError: an unknown option, a language for which the model has no code, or a model that
            was trained for another language pair.
        ArtifactError: the model cannot be found or loaded, or is not an mBART model.
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
        **run_options: Any,
    ) -> None:
        if beams is not None:
            positive("beams", beams)
        if max_length is not None:
            positive("max_length", max_length)
        super().__init__("translation model", model, revision, {"batch_tokens": 2048} | run_options)
        self.lang_pair = lang_pair
        _require_direction(self.description, self.folder, lang_pair)
        self.tokenizer, network = open_mbart(self.folder, lang_pair, self.dtype)
        self.beams = configured_beams(network) if beams is None else beams
        prefix = target_prefix(self.tokenizer, network.config.eos_token_id)
        network.generation_config = generation_config(
            network.config, prefix, beams=self.beams, max_length=max_length
        )
        self.max_length: int = network.generation_config.max_length
        self._max_source_tokens = min(
            network.config.max_position_embeddings, self.tokenizer.model_max_length
        )
        batch_tokens = max(1, self.run_options.batch_tokens // self.beams)
        self._runner = self.on_devices(network, network.config.pad_token_id, batch_tokens)
        self._cache: TextCache[str, Translation] = TextCache(_CACHED_TEXTS)

    def translate(self, texts: Sequence[str]) -> list[Translation]:
        """Translates N texts. Translations are cached. A blank text has a blank translation."""
        return self._cache.values(texts, self._translate)

    def _translate(self, texts: list[str]) -> list[Translation]:
        encoded = self.tokenizer(texts, truncation=True, max_length=self._max_source_tokens)
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
            for index, translation in zip(indices, decoded, strict=True):
                translations[index] = translation.strip()

        self._runner.run(rows, compute)
        return [
            Translation(translation, bool(encoding.overflowing))
            for translation, encoding in zip(translations, encoded.encodings, strict=True)
        ]
