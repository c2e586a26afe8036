"""MetricX-24 (Juraska et al., 2024) as a metric of mtmetrics: an example of a plug-in.

    mtmetrics compare --plugin metricx24.py --metric metricx24 --metric esim --lp de-en \\
        -s source.de -r reference.en -t a.en b.en

The network is an mT5 whose decoder takes one step: the logit of ``<extra_id_10>`` is how bad a
translation is, from 0 to 25, as the errors of MQM are counted. mtmetrics turns it round, so that
higher is better. With source and reference it compares with both, with a source alone it estimates.
What is here computes what the authors' command does; texts that are longer than the limit are cut
by it unseen, here with a warning. """

import dataclasses
import warnings
from collections.abc import Sequence

import torch
from transformers import AutoTokenizer, MT5ForConditionalGeneration

import mtmetrics
from mtmetrics.artifacts.models import loading, model_folder

# <extra_id_10> of the vocabulary of mT5.
_ANSWER = 250089
_WORST = 25.0


class MetricX24(mtmetrics.PluginMetric):
    """An mT5 that predicts the errors of a translation; minus their weight, from -25 to 0."""

    metric = "metricx24"
    sides = ("source", "both")
    usual = "both"
    lower_is_better = True
    floor = _WORST

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(mtmetrics.Settings):
        """The options."""

        model: str = mtmetrics.option(
            "google/metricx-24-hybrid-large-v2p6",
            "folder or Hub repository with safetensors (mtmetrics artifacts convert makes them)",
            usage="MODEL",
            signed="model",
        )
        vocabulary: str = mtmetrics.option(
            "google/mt5-xl", "where its tokenizer lies", usage="MODEL"
        )
        length: int = mtmetrics.option(
            1536, "tokens of a text at most; 1,024 is usual without a reference", signed="length"
        )
        lines: int = mtmetrics.option(8, "segments that are computed together")

    def open(self) -> None:
        """Loads the network; an `ArtifactError` names what is missing."""
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        folder = model_folder(self.settings.model)
        with loading(folder, "MT5ForConditionalGeneration"):
            self.tokenizer = AutoTokenizer.from_pretrained(
                self.settings.vocabulary, trust_remote_code=False
            )
            model = MT5ForConditionalGeneration.from_pretrained(
                folder, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
            )
        self.network = model.eval().to(self.device)

    def segment_scores(
        self,
        predictions: list[str],
        sources: list[str] | None = None,
        references: list[str] | None = None,
    ) -> Sequence[float]:
        """Weights of errors, 0 to 25, of n translations."""
        texts = [
            f"source: {source} candidate: {text}"
            for source, text in zip(sources or (), predictions, strict=True)
        ]
        if references is not None:
            rows = zip(texts, references, strict=True)
            texts = [f"{text} reference: {reference}" for text, reference in rows]
        ids = self.tokenizer(texts)["input_ids"]
        cut = sum(len(row) > self.settings.length for row in ids)
        if cut:
            warnings.warn(
                f"metricx24: {cut} segments are longer than {self.settings.length} tokens, and cut",
                stacklevel=2,
            )
        # The end of the sequence is not read; a text that is cut loses its last token, too.
        rows = [
            row[: self.settings.length - 1] if len(row) > self.settings.length else row[:-1]
            for row in ids
        ]
        order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        scores = [0.0] * len(rows)
        for first in range(0, len(order), self.settings.lines):
            numbers = order[first : first + self.settings.lines]
            for number, score in zip(
                numbers, self._predicted([rows[number] for number in numbers]), strict=True
            ):
                scores[number] = score
        return scores

    @torch.inference_mode()
    def _predicted(self, rows: list[list[int]]) -> list[float]:
        batch = self.tokenizer.pad({"input_ids": rows}, return_tensors="pt").to(self.device)
        start = torch.zeros(len(rows), 1, dtype=torch.long, device=self.device)
        logits = self.network(**batch, decoder_input_ids=start, use_cache=False).logits
        return logits[:, 0, _ANSWER].clamp(0.0, _WORST).tolist()
