"""Translation by any model of `transformers`, with a function that chooses among its outputs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mtmetrics.checks import as_texts, positive
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

T = TypeVar("T")


def generate(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    sources: Sequence[str],
    *,
    rerank: Callable[..., Sequence[Any]],
    batch: int = 8,
    **options: Any,
) -> list[str]:
    """Has a model generate several outputs for each of n texts, and chooses one of them.

    Args:
        model: an encoder and decoder, or a decoder alone; then the prompt is cut off its outputs,
            and the tokenizer must pad on the left.
        tokenizer: of the model.
        sources: n texts, as the model reads them.
        rerank: chooses among the outputs: a `Reranker`, or a function that is called as
            ``rerank(candidates, sources, scores=...)`` and returns for each source an object with
            the attribute ``text``. ``scores`` holds the model's own scores under the name
            ``model``, for each source one for each candidate; None where there are none, as in
            sampling.
        batch: texts per call of ``generate``.
        **options: of ``generate``. ``num_return_sequences`` is the number of outputs, by default
            ``num_beams``.

    Returns:
        The n chosen outputs.

    Raises:
        InputError: `sources` is no list of strings, there is only one output per text, or an error
            of `rerank`.

    Example:
        The bundled translation model translates. Of its eight beams, the one that is most like all
        others is taken:

        >>> import mtmetrics
        >>> from mtmetrics.artifacts.models import model_folder
        >>> from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        >>> folder = model_folder("mini-mbart-de-en")
        >>> tokenizer = AutoTokenizer.from_pretrained(folder)
        >>> model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype="float32")
        >>> reranker = mtmetrics.Reranker({"chrf": mtmetrics.load("chrf")}, mbr=True)
        >>> mtmetrics.generate(model, tokenizer, ["Das Haus ist klein."], rerank=reranker, num_beams=8)
        ['The house is small.']
    """
    import torch

    texts = as_texts("sources", sources)
    count = positive(
        "num_return_sequences",
        options.setdefault("num_return_sequences", options.get("num_beams", 1)),
    )
    if count < 2:
        raise InputError(
            "num_return_sequences: at least 2 are needed to choose from; num_beams or do_sample "
            "brings them"
        )
    chosen: list[str] = []
    for first in range(0, len(texts), positive("batch", batch)):
        block = texts[first : first + batch]
        inputs = tokenizer(
            block,
            return_tensors="pt",
            padding=True,
            truncation=True,
            # Decoders have no token types, and transformers 4 refuses them there.
            return_token_type_ids=False,
        ).to(model.device)
        with torch.inference_mode():
            output = model.generate(
                **inputs, **options, return_dict_in_generate=True, output_scores=True
            )
        prompt = 0 if model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
        texts_of_outputs = tokenizer.batch_decode(
            output.sequences[:, prompt:], skip_special_tokens=True
        )
        candidates = _groups([text.strip() for text in texts_of_outputs], count)
        model_scores = getattr(output, "sequences_scores", None)
        scores = None
        if model_scores is not None:
            scores = {"model": _groups(model_scores.tolist(), count)}
        chosen += [choice.text for choice in rerank(candidates, block, scores=scores)]
    return chosen


def _groups(values: list[T], size: int) -> list[list[T]]:
    """Splits values into groups of one size."""
    return [values[first : first + size] for first in range(0, len(values), size)]
