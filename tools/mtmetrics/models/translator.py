"""Machine translation by MBart, which gives a metric its pseudo-references."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mtmetrics.artifacts.models import loading, pretrained, read_record
from mtmetrics.checks import language_pair, positive
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.devices import torch_dtype
from mtmetrics.models.loaded import LoadedModel
from mtmetrics.models.text_cache import TextCache

if TYPE_CHECKING:
    import torch

_CODE = re.compile(r"([a-z]{2,3})_[A-Z]{2}")
_CACHED_TEXTS = 100_000


class Translation(NamedTuple):
    """A translation, and whether its source was cut at the model's limit."""

    text: str
    cut: bool


class Frame(NamedTuple):
    """The token id that the decoder is given first, and the one that it has to answer before the
    text comes, if any."""

    start: int
    forced: int | None


def use_languages(tokenizer: Any, lang_pair: str) -> None:
    """Tells a tokenizer with language codes, such as ``de_DE``, what the source and the target
    language are.

    A tokenizer without any, such as that of a model for a single language pair, is left as it is.

    Raises:
        InputError: it has codes, but none for one of the two languages.
    """
    codes = {
        found[1]: found[0]
        for token in tokenizer.all_special_tokens
        if (found := _CODE.fullmatch(token))
    }
    pair = language_pair(lang_pair)
    for language in pair:
        if codes and language not in codes:
            what = (
                f"language pair {lang_pair}: the translation model has no language code for "
                f"{language!r}"
            )
            raise InputError(f"{what}; it has: {' '.join(sorted(codes))}")
    if codes:
        tokenizer.src_lang, tokenizer.tgt_lang = (codes[language] for language in pair)


def target_frame(tokenizer: Any, end: int) -> Frame:
    """The frame in which MBart was trained: the last token of a target moves to its front and
    starts the decoder.

    For mBART-50 that is ``</s>`` (`end`), answered by the language code; for mBART-cc25 it is the
    language code, answered by the text."""
    ids = tokenizer(text_target="")["input_ids"]
    before = ids[: ids.index(end)]
    return Frame(ids[-1], before[0] if before else None)


def open_mbart(folder: Path, lang_pair: str, dtype: str = "float32") -> tuple[Any, Any]:
    """Tokenizer and weights of an MBart, set to a language pair.

    Raises:
        InputError: as `use_languages`.
        ArtifactError: it cannot be loaded, or is no MBart.
    """
    tokenizer, network = pretrained("AutoModelForSeq2SeqLM", folder, torch_dtype(dtype))
    _prepare(folder, network.config, tokenizer, lang_pair)
    return tokenizer, network


def require_mbart(folder: Path, lang_pair: str) -> None:
    """Refuses what `open_mbart` would refuse, by configuration and tokenizer alone."""
    import transformers

    with loading(folder, "AutoModelForSeq2SeqLM"):
        config = transformers.AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    _prepare(folder, config, tokenizer, lang_pair)


def _prepare(folder: Path, config: Any, tokenizer: Any, lang_pair: str) -> None:
    if config.model_type != "mbart":
        raise ArtifactError(
            f"{folder}: a model of the kind {config.model_type!r}; an MBart is needed to translate"
        )
    use_languages(tokenizer, lang_pair)


def _require_direction(described: str, folder: Path, lang_pair: str) -> None:
    """Refuses a model whose record names another language pair: it would answer in the wrong
    language, silently."""
    trained = (read_record(folder) or {}).get("lp")
    wanted = "-".join(language_pair(lang_pair))
    if trained not in (None, wanted):
        raise InputError(
            f"{described}: translates {trained}, but {wanted} is needed; name a model that was "
            "trained for it"
        )


def own_beams(network: Any) -> int:
    """The hypotheses of beam search that a model's folder asks for, 1 where it says nothing.

    generation_config.json says so, or the config.json of older models: 5 for mBART-cc25 and
    mBART-50."""
    return network.generation_config.num_beams or 1


def generation(config: Any, frame: Frame, *, beams: int = 1, max_length: int | None = None) -> Any:
    """All that decides what a model generates, so that nothing else is left to what its folder may
    say; at most as many tokens as it has positions."""
    from transformers import GenerationConfig

    longest: int = config.max_position_embeddings

    return GenerationConfig(
        num_beams=beams,
        max_length=min(max_length or longest, longest),
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
            `own_beams`.
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
        for name, given in (("beams", beams), ("max_length", max_length)):
            if given is not None:
                positive(name, given)
        super().__init__("translation model", model, revision, {"batch_tokens": 2048} | running)
        self.lang_pair = lang_pair
        _require_direction(self.described, self.folder, lang_pair)
        self.tokenizer, network = open_mbart(self.folder, lang_pair, self.dtype)
        self.beams = own_beams(network) if beams is None else beams
        frame = target_frame(self.tokenizer, network.config.eos_token_id)
        network.generation_config = generation(
            network.config, frame, beams=self.beams, max_length=max_length
        )
        self.max_length: int = network.generation_config.max_length
        self._limit = min(network.config.max_position_embeddings, self.tokenizer.model_max_length)
        room = max(1, self.running.batch_tokens // self.beams)
        self._runner = self.on_devices(network, network.config.pad_token_id, room)
        self._recent: TextCache[str, Translation] = TextCache(_CACHED_TEXTS)

    def translate(self, texts: Sequence[str]) -> list[Translation]:
        """Translates N texts; those that were translated lately only once. A blank text has a blank
        translation."""
        return self._recent.values(texts, self._compute)

    def _compute(self, texts: list[str]) -> list[Translation]:
        encoded = self.tokenizer(texts, truncation=True, max_length=self._limit)
        rows = [
            ids if text.strip() else []
            for text, ids in zip(texts, encoded["input_ids"], strict=True)
        ]
        written = [""] * len(texts)

        def compute(
            network: Any, batch: "torch.Tensor", mask: "torch.Tensor", numbers: list[int]
        ) -> None:
            ids = network.generate(input_ids=batch, attention_mask=mask)
            for number, text in zip(
                numbers, self.tokenizer.batch_decode(ids, skip_special_tokens=True), strict=True
            ):
                written[number] = text.strip()

        self._runner.run(rows, compute)
        return [
            Translation(text, bool(encoded.encodings[number].overflowing))
            for number, text in enumerate(written)
        ]
