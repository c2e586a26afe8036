"""Translations by any model of `transformers`, of which a function chooses the best."""

from collections.abc import Callable, Sequence
from typing import Any

from mtmetrics.checks import as_texts, positive
from mtmetrics.errors import InputError


def generate(
    model: Any,
    tokenizer: Any,
    sources: Sequence[str],
    *,
    rerank: Callable[..., list[Any]],
    batch: int = 8,
    **options: Any,
) -> list[str]:
    """The chosen output of a model's ``generate`` for each of n texts.

    Args:
        model: with ``generate``, an encoder and decoder, or a decoder alone (its outputs are then
            taken without the prompt; have the tokenizer pad on the left).
        tokenizer: of the model.
        sources: n texts, as the model reads them.
        rerank: chooses among the outputs: a `Reranker`, or a function that is called as
            ``rerank(candidates, sources, scores=...)`` and returns for each source something with
            the attribute ``text``. ``scores`` holds the model's own under the name ``model`` where
            it gives any, as beam search does.
        batch: texts per call of ``generate``.
        **options: of ``generate``, with ``num_return_sequences``, or ``num_beams``, all of which
            are then returned.

    Raises:
        InputError: `sources` is no list of strings, only one output per text is asked for, or as
            `rerank`.

    Example:
        The bundled translation model translates; of its eight beams the one is taken that is most
        like all:

        >>> import mtmetrics
        >>> from mtmetrics.artifacts.models import model_folder
        >>> from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        >>> folder = model_folder("mini-mbart-de-en")
        >>> tokenizer = AutoTokenizer.from_pretrained(folder)
        >>> model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype="float32")
        >>> reranker = mtmetrics.Reranker({"chrf": mtmetrics.load("chrf")}, mbr=True)
        >>> mtmetrics.generate(model, tokenizer, ["Das Haus ist klein."], rerank=reranker, num_beams=8)
        ['the house is small.']
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
        padded = {"return_tensors": "pt", "padding": True, "truncation": True}
        # Which decoders do not know, and transformers 4 refuses.
        inputs = tokenizer(block, return_token_type_ids=False, **padded).to(model.device)
        with torch.inference_mode():
            made = model.generate(
                **inputs, **options, return_dict_in_generate=True, output_scores=True
            )
        prompt = 0 if model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
        written = [
            text.strip()
            for text in tokenizer.batch_decode(made.sequences[:, prompt:], skip_special_tokens=True)
        ]
        own = getattr(made, "sequences_scores", None)
        candidates, scores = (
            None
            if column is None
            else [column[row : row + count] for row in range(0, len(column), count)]
            for column in (written, None if own is None else own.tolist())
        )
        chosen += [
            choice.text for choice in rerank(candidates, block, scores=scores and {"model": scores})
        ]
    return chosen
