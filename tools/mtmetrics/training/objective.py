"""A step of the encoder's training: the pairs that meet in it, how English is worsened, and the
loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from mtmetrics.training.corpus import Pair, text_key
from mtmetrics.training.trainers import PlannedBatches

# How often a word becomes what: an untranslated or a foreign word, nothing, two, or one in another
# place.
_CHANGES = {"untranslated": 0.4, "foreign": 0.25, "missing": 0.15, "doubled": 0.1, "misplaced": 0.1}
_MOST_CHANGED = 0.5
# How fast the mean of the teacher's vectors follows them.
_MEAN_MOMENTUM = 0.99


class WorsenedText(NamedTuple):
    """A worsened translation, and which of its words the source left untranslated there."""

    words: list[str]
    is_untranslated: list[bool]


@dataclass(eq=False, repr=False)
class SentenceBatches(PlannedBatches):
    """Batches of sentence pairs, of which the student reads both sides, and the teacher the English
    one.

    In a share `english` of the steps there are English texts alone, a share `worsened` of them
    worsened as bad translations are. The teacher reads the same words, but the sign for an unknown
    word in place of each one that was left untranslated: it would understand that word.

    Attributes:
        pairs: sources, and their English translations as targets.
        tokenizers: of ``english`` texts and of ``others``, with the same numbers.
        max_pieces: texts are cut there.
        seed: of what is worsened, and how.
        english: share of the steps.
        worsened: share of the texts of these steps.
    """

    pairs: Sequence[Pair]
    tokenizers: Mapping[str, Any]
    max_pieces: int
    seed: int
    english: float = 0.0
    worsened: float = 0.0

    def __getitem__(self, step: int) -> dict[str, Tensor]:
        """The arguments of `Distillation.forward` in a step."""
        rng = np.random.default_rng((self.seed, step))
        pairs = [self.pairs[index] for index in self.plan[step]]
        if rng.random() < self.english and not pairs[0].group.endswith(".words"):
            return self._english_batch(pairs, rng)
        sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
        batch = self._read("english", targets, "target") | self._read("others", sources, "source")
        batch["teacher_ids"] = batch["target_ids"]
        keys = [
            np.unique([text_key(text) for text in side], return_inverse=True)[1]
            for side in (sources, targets)
        ]
        is_same = np.logical_or(*(side[:, None] == side for side in keys))
        np.fill_diagonal(is_same, False)
        return batch | {"same": torch.from_numpy(is_same)}

    def _english_batch(self, pairs: Sequence[Pair], rng: np.random.Generator) -> dict[str, Tensor]:
        """English texts alone, some of them worsened."""
        others = rng.permutation(len(pairs))
        texts = []
        for pair, other in zip(pairs, others, strict=True):
            words = pair.target.split()
            text = WorsenedText(words, [False] * len(words))
            if rng.random() < self.worsened:
                text = worsen(pair.source, pair.target, pairs[other].target, _MOST_CHANGED, rng)
            texts.append(text)
        batch = self._read("english", [" ".join(text.words) for text in texts], "target")
        teacher_ids = batch["target_ids"].clone()
        encodings = self.tokenizers["english"].backend_tokenizer.encode_batch(
            [" ".join(t.words) for t in texts]
        )
        for row, (text, encoding) in enumerate(zip(texts, encodings, strict=True)):
            positions = _positions_of_words(text, encoding.offsets)
            positions = positions[positions < teacher_ids.shape[1] - 1]
            teacher_ids[row, positions] = self.tokenizers["english"].unk_token_id
        return batch | {"teacher_ids": teacher_ids}

    def _read(self, reader: str, texts: list[str], side: str) -> dict[str, Tensor]:
        """Numbers of the pieces of one side, (n, t), a mask of all of them, and a mask without
        special tokens."""
        encoded = self.tokenizers[reader](
            texts,
            truncation=True,
            max_length=self.max_pieces,
            padding=True,
            return_tensors="pt",
            return_special_tokens_mask=True,
        )
        return {
            f"{side}_ids": encoded["input_ids"],
            f"{side}_mask": encoded["attention_mask"].bool(),
            f"{side}_content": ~encoded["special_tokens_mask"].bool(),
        }


def _positions_of_words(text: WorsenedText, offsets: Sequence[tuple[int, int]]) -> np.ndarray:
    """Positions of the pieces of untranslated words in a text, of whose pieces the offsets are
    given."""
    is_untranslated = np.zeros(sum(map(len, text.words)) + len(text.words), dtype=bool)
    begin = 0
    for word, untranslated in zip(text.words, text.is_untranslated, strict=True):
        is_untranslated[begin : begin + len(word)] = untranslated
        begin += len(word) + 1
    # The piece may begin with the space before it, so its last character decides.
    return np.array(
        [
            n
            for n, (first, last) in enumerate(offsets)
            if last > first and is_untranslated[last - 1]
        ],
        int,
    )


def worsen(
    source: str, target: str, other: str, share: float, rng: np.random.Generator
) -> WorsenedText:
    """Worsens a translation as bad ones are, with words of its source and of another translation.

    At least one word changes where that is possible. At most that share of the words changes, on
    average half of it.
    """
    words = target.split()
    lower_words = {word.lower() for word in words}
    untranslated, foreign = (
        [word for word in text.split() if word.lower() not in lower_words]
        for text in (source, other)
    )
    chosen = rng.random(len(words)) < share * rng.random()
    if words and not chosen.any():
        chosen[rng.integers(len(words))] = True
    result: list[str] = []
    is_untranslated: list[bool] = []
    for word, change in zip(words, chosen, strict=True):
        operation = rng.choice(list(_CHANGES), p=list(_CHANGES.values())) if change else None
        if operation == "untranslated" and untranslated:
            result.append(untranslated[rng.integers(len(untranslated))])
            is_untranslated.append(True)
            continue
        if operation in ("untranslated", "foreign") and foreign:
            result.append(foreign[rng.integers(len(foreign))])
        elif operation == "missing" and len(words) > 1:
            continue
        elif operation == "doubled":
            result += [word, word]
            is_untranslated.append(False)
        elif operation == "misplaced":
            place = int(rng.integers(len(result) + 1))
            result.insert(place, word)
            is_untranslated.insert(place, False)
            continue
        else:
            result.append(word)
        is_untranslated.append(False)
    return (
        WorsenedText(result, is_untranslated)
        if result
        else WorsenedText(words, [False] * len(words))
    )


class Distillation(nn.Module):
    """A student encoder with its loss over a batch of sentence pairs, whose English sides a teacher
    reads.

    The target of an English piece is the teacher's vector less the running mean of all of them. The
    loss is a sum of four parts:

    - every English piece of the student stays at its target (1 - cosine);
    - every source piece has a near piece among the targets of its sentence, and every target one
      among the source pieces (1 - cosine of the nearest);
    - the nearest target of a source piece is nearer than sampled targets of other sentences
      (InfoNCE);
    - so are the mean vectors of a source and of its translation, among those of the batch
      (InfoNCE).

    Args:
        student: an encoder, cut off at its last layer.
        teacher: the frozen original, cut off at the layer that teaches; its weights are no part of
            this module's state.
        temperature: of both InfoNCE losses.
        word_weight: weight of the distances between source pieces and targets.
        english_weight: weight of the distances between English pieces and targets.
        negatives: number of sampled targets of other sentences.
    """

    def __init__(
        self,
        student: nn.Module,
        teacher: nn.Module,
        *,
        temperature: float,
        word_weight: float,
        english_weight: float,
        negatives: int,
    ) -> None:
        super().__init__()
        self.student = student
        self._teacher = (teacher.eval().requires_grad_(False),)
        self.temperature, self.negatives = temperature, negatives
        self.word_weight, self.english_weight = word_weight, english_weight
        width = student.config.hidden_size
        self.target_mean = nn.Buffer(torch.zeros(width))
        self.batches = nn.Buffer(torch.zeros((), dtype=torch.int64))

    def forward(
        self,
        target_ids: Tensor,
        target_mask: Tensor,
        target_content: Tensor,
        teacher_ids: Tensor,
        source_ids: Tensor | None = None,
        source_mask: Tensor | None = None,
        source_content: Tensor | None = None,
        same: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The loss of a batch.

        Args:
            target_ids: (n, t) pieces of the English texts.
            target_mask: (n, t) which are real.
            target_content: (n, t) which are no special tokens.
            teacher_ids: (n, t) the same pieces as the teacher reads them.
            source_ids: (n, s) pieces of the sources; None in a step of English texts alone.
            source_mask: (n, s) which are real.
            source_content: (n, s) which are no special tokens.
            same: (n, n) pairs of the batch that have a side in common, but are not the same pair.
        """
        targets = self._targets(teacher_ids, target_mask)
        english = encode(self.student, target_ids, target_mask)
        cosines = functional.cosine_similarity(english, targets, dim=-1)
        loss = self.english_weight * (1 - cosines[target_mask].mean())
        if source_ids is None or source_mask is None or source_content is None or same is None:
            return {"loss": loss}
        source = encode(self.student, source_ids, source_mask)
        means = pooled(source, source_mask) @ pooled(targets, target_mask).T
        loss = loss + symmetric_loss(means / self.temperature, same)
        source, targets = (
            functional.normalize(source, dim=-1),
            functional.normalize(targets, dim=-1),
        )
        for_source, for_target = nearest(source, source_mask, targets, target_mask)
        distances = (1 - for_source[source_mask]).mean() + (1 - for_target[target_mask]).mean()
        word_loss = self._word_loss(
            for_source, source, source_content, targets, target_content, same
        )
        return {"loss": loss + self.word_weight * distances + word_loss}

    def _targets(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The teacher's vectors of pieces, (n, t, d), less their running mean."""
        with torch.no_grad():
            vectors = encode(self._teacher[0].to(ids.device), ids, mask).float()
            if self.training:
                self.batches += 1
                # Like a running mean of all batches at first, so that its start has no weight.
                share = max(1 - _MEAN_MOMENTUM, 1 / float(self.batches))
                self.target_mean += share * (vectors[mask].mean(0) - self.target_mean)
            return vectors - self.target_mean

    def _word_loss(
        self,
        for_source: Tensor,
        source: Tensor,
        source_content: Tensor,
        targets: Tensor,
        target_content: Tensor,
        same: Tensor,
    ) -> Tensor:
        """InfoNCE of the nearest target of each source piece among sampled targets of other
        sentences."""
        sentences, _ = target_content.nonzero(as_tuple=True)
        candidates = targets[target_content]
        if len(candidates) > self.negatives:
            # Evenly spread: pieces of all sentences, and the same in every run.
            chosen = torch.linspace(
                0, len(candidates) - 1, self.negatives, device=targets.device
            ).long()
            candidates, sentences = candidates[chosen], sentences[chosen]
        is_related = same | torch.eye(len(same), dtype=torch.bool, device=same.device)
        cosines = source @ candidates.T
        cosines = cosines.masked_fill(is_related[:, sentences][:, None], -1e4)
        logits = torch.cat([for_source[..., None], cosines], -1)[source_content] / self.temperature
        return functional.cross_entropy(
            logits, torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
        )


def encode(encoder: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """Token vectors, `(n, t, d)`."""
    return encoder(input_ids=ids, attention_mask=mask.long()).last_hidden_state


def pooled(states: Tensor, mask: Tensor) -> Tensor:
    """Mean over the tokens of each text, of unit length, `(n, d)` float32."""
    states, weights = states.float(), mask.float()[:, :, None]
    return functional.normalize((states * weights).sum(1) / weights.sum(1), dim=-1)


def nearest(
    source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Cosine of each token with the nearest one of the other side of its pair.

    Args:
        source: (n, s, d) vectors of unit length.
        source_mask: (n, s) which are real.
        target: (n, t, d) vectors of unit length.
        target_mask: (n, t) which are real.

    Returns:
        (n, s) and (n, t) cosines; those of padding mean nothing.
    """
    cosines = source @ target.transpose(1, 2)
    for_source = cosines.masked_fill(~target_mask[:, None], -4.0).amax(2)
    for_target = cosines.masked_fill(~source_mask[:, :, None], -4.0).amax(1)
    return for_source, for_target


def token_similarity(
    source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor
) -> Tensor:
    """Mean of the `nearest` cosines of both sides of each pair, `(n,)`; vectors may have any
    length."""
    units = functional.normalize(source, dim=-1), functional.normalize(target, dim=-1)
    for_source, for_target = nearest(units[0], source_mask, units[1], target_mask)
    forwards = (for_source * source_mask).sum(1) / source_mask.sum(1)
    backwards = (for_target * target_mask).sum(1) / target_mask.sum(1)
    return (forwards + backwards) / 2


def symmetric_loss(similarities: Tensor, same: Tensor) -> Tensor:
    """Cross-entropy of the diagonal of `(n, n)` similarities over rows and columns; `same` pairs
    are no negatives."""
    similarities = similarities.float().masked_fill(same, -1e4)
    labels = torch.arange(len(similarities), device=similarities.device)
    return (
        functional.cross_entropy(similarities, labels)
        + functional.cross_entropy(similarities.T, labels)
    ) / 2
