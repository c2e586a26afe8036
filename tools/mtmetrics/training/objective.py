"""A step of the encoder's training: its batch (`SentenceBatches`), how English texts are worsened
(`worsen`), and the loss (`Distillation`). The rest of the module are the parts of the loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from mtmetrics.training.corpus import WORD_LISTS, Pair, text_key
from mtmetrics.training.trainers import PlannedBatches

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerFast

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerFast

# How often a word that changes is replaced by a word of the source, replaced by a word of another
# translation, left out, said twice, or moved towards the beginning.
_CHANGES = {
    "untranslated": 0.4,
    "unrelated": 0.25,
    "missing": 0.15,
    "doubled": 0.1,
    "misplaced": 0.1,
}
# The greatest chance of a word of a worsened text to change.
_MOST_CHANGED = 0.5
# How fast the mean of the teacher's vectors follows them.
_MEAN_MOMENTUM = 0.99
# In place of the cosine of what does not count; below all cosines, also when a temperature divides it.
_NO_CANDIDATE = -1e4


class WorsenedText(NamedTuple):
    """A worsened translation, and which of its words the source left untranslated there."""

    words: list[str]
    is_untranslated: list[bool]


@dataclass(eq=False, repr=False)
class SentenceBatches(PlannedBatches):
    """Batches of sentence pairs, of which the student reads both sides, and the teacher the English
    one.

    Some steps have English texts alone, and some of these are worsened as bad translations are. The
    teacher reads the same text, but with the sign for an unknown word in place of each word that was
    left untranslated: it would understand that word.

    Attributes:
        plan: the numbers of the pairs of every step. A step has sentences, or pairs of single words.
        pairs: sources, and their English translations as targets.
        tokenizers: of ``english`` texts and of ``others``, with the same numbers.
        max_pieces: texts are cut there.
        seed: of what is worsened, and how.
        english: share of the steps that have English texts alone.
        worsened: share of the texts of these steps that are worsened.
    """

    pairs: Sequence[Pair]
    tokenizers: "Mapping[str, PreTrainedTokenizerFast]"
    max_pieces: int
    seed: int
    english: float = 0.0
    worsened: float = 0.0

    def __getitem__(self, step: int) -> dict[str, Tensor]:
        """The arguments of `Distillation.forward` in a step."""
        rng = np.random.default_rng((self.seed, step))
        pairs = [self.pairs[index] for index in self.plan[step]]
        has_words = pairs[0].group.endswith(WORD_LISTS)
        if rng.random() < self.english and not has_words:
            return self._english_batch(pairs, rng)
        sources = [pair.source for pair in pairs]
        targets = [pair.target for pair in pairs]
        batch = _columns(self._encoded("english", targets), "target")
        batch |= _columns(self._encoded("others", sources), "source")
        batch["teacher_ids"] = batch["target_ids"]
        shares_text = _equal_texts(sources) | _equal_texts(targets)
        np.fill_diagonal(shares_text, False)
        return batch | {"shares_text": torch.from_numpy(shares_text)}

    def _english_batch(self, pairs: Sequence[Pair], rng: np.random.Generator) -> dict[str, Tensor]:
        """English texts alone, some of them worsened."""
        texts = []
        for pair, other in zip(pairs, rng.permutation(len(pairs)), strict=True):
            words = pair.target.split()
            text = WorsenedText(words, [False] * len(words))
            if rng.random() < self.worsened:
                text = worsen(pair.source, pair.target, pairs[other].target, _MOST_CHANGED, rng)
            texts.append(text)
        encoded = self._encoded("english", [" ".join(text.words) for text in texts])
        batch = _columns(encoded, "target")
        teacher_ids = batch["target_ids"].clone()
        for row, text in enumerate(texts):
            offsets = encoded["offset_mapping"][row].tolist()
            pieces = _untranslated_pieces(text, offsets)
            teacher_ids[row, pieces] = self.tokenizers["english"].unk_token_id
        return batch | {"teacher_ids": teacher_ids}

    def _encoded(self, language: str, texts: list[str]) -> "BatchEncoding":
        """Pieces of texts of ``english`` or of ``others``, padded."""
        return self.tokenizers[language](
            texts,
            truncation=True,
            max_length=self.max_pieces,
            padding=True,
            return_tensors="pt",
            return_special_tokens_mask=True,
            return_offsets_mapping=True,
        )


def _columns(encoded: "BatchEncoding", side: str) -> dict[str, Tensor]:
    """The arguments of `Distillation.forward` for a side, ``source`` or ``target``: (n, t) numbers
    of the pieces, a mask of pieces that are no padding, and one of pieces that are no special
    tokens either."""
    return {
        f"{side}_ids": encoded["input_ids"],
        f"{side}_mask": encoded["attention_mask"].bool(),
        f"{side}_content": ~encoded["special_tokens_mask"].bool(),
    }


def _equal_texts(texts: Sequence[str]) -> np.ndarray:
    """Whether two of n texts are the same sentence (`corpus.text_key`), (n, n)."""
    _, numbers = np.unique([text_key(text) for text in texts], return_inverse=True)
    return numbers[:, None] == numbers


def _untranslated_pieces(text: WorsenedText, offsets: Sequence[Sequence[int]]) -> list[int]:
    """Positions of the pieces of untranslated words, of a text whose pieces have these offsets."""
    is_untranslated: list[bool] = []
    for word, untranslated in zip(text.words, text.is_untranslated, strict=True):
        is_untranslated += [untranslated] * len(word) + [False]
    # A piece may begin with the space before it, so its last character decides.
    return [
        position
        for position, (begin, end) in enumerate(offsets)
        if end > begin and is_untranslated[end - 1]
    ]


def worsen(
    source: str,
    target: str,
    other_target: str,
    share: float,
    rng: np.random.Generator,
) -> WorsenedText:
    """Worsens a translation as bad ones are, with words of its source and of another translation.

    Every word changes with the same chance, which is drawn between 0 and `share`. Where none would,
    one word is drawn.

    Args:
        source: the source, whose words are left untranslated.
        target: the translation.
        other_target: another translation, whose words are unrelated.
        share: the greatest chance of a word to change.
        rng: of the draws.
    """
    words = target.split()
    lower_words = {word.lower() for word in words}
    source_words = [word for word in source.split() if word.lower() not in lower_words]
    unrelated_words = [word for word in other_target.split() if word.lower() not in lower_words]
    is_changed = rng.random(len(words)) < share * rng.random()
    if words and not is_changed.any():
        is_changed[rng.integers(len(words))] = True
    # Each word of the worsened text, and whether it was left untranslated.
    result: list[tuple[str, bool]] = []
    for word, changes in zip(words, is_changed, strict=True):
        change = rng.choice(list(_CHANGES), p=list(_CHANGES.values())) if changes else None
        if change == "untranslated" and source_words:
            result.append((source_words[rng.integers(len(source_words))], True))
        elif change in ("untranslated", "unrelated") and unrelated_words:
            result.append((unrelated_words[rng.integers(len(unrelated_words))], False))
        elif change == "missing" and len(words) > 1:
            continue
        elif change == "doubled":
            result += [(word, False), (word, False)]
        elif change == "misplaced":
            result.insert(int(rng.integers(len(result) + 1)), (word, False))
        else:
            result.append((word, False))
    if not result:
        return WorsenedText(words, [False] * len(words))
    return WorsenedText(
        [word for word, _ in result],
        [is_untranslated for _, is_untranslated in result],
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
        distance_weight: see above.
        english_weight: see above.
        negatives: number of sampled goals of other sentences.
    """

    def __init__(
        self,
        student: nn.Module,
        teacher: nn.Module,
        *,
        temperature: float,
        distance_weight: float,
        english_weight: float,
        negatives: int,
    ) -> None:
        super().__init__()
        self.student = student
        # In a tuple torch does not see it, so that it is no part of checkpoints.
        self._teacher = (teacher.eval().requires_grad_(False),)
        self.temperature, self.negatives = temperature, negatives
        self.distance_weight, self.english_weight = distance_weight, english_weight
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
        shares_text: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The loss of a batch.

        Special tokens count wherever a text is looked at as a whole. They are no words that could be
        told apart from those of other sentences.

        Args:
            target_ids: (n, t) pieces of the English texts.
            target_mask: (n, t) bool, pieces that are no padding.
            target_content: (n, t) bool, pieces that are no special tokens either.
            teacher_ids: (n, t) the same pieces as the teacher reads them.
            source_ids: (n, s) pieces of the sources; None in a step of English texts alone.
            source_mask: (n, s) bool, pieces that are no padding.
            source_content: (n, s) bool, pieces that are no special tokens either.
            shares_text: (n, n) bool, two pairs of the batch that have a side in common.
        """
        goals = self._goals(teacher_ids, target_mask)
        english = encode(self.student, target_ids, target_mask)
        english_cosines = functional.cosine_similarity(english, goals, dim=-1)
        loss = self.english_weight * (1 - english_cosines[target_mask].mean())
        if source_ids is None:
            return {"loss": loss}
        source = encode(self.student, source_ids, source_mask)
        similarities = pooled(source, source_mask) @ pooled(goals, target_mask).T
        loss = loss + symmetric_loss(similarities / self.temperature, shares_text)
        source = functional.normalize(source, dim=-1)
        goals = functional.normalize(goals, dim=-1)
        source_cosines, goal_cosines = nearest(source, source_mask, goals, target_mask)
        source_distance = (1 - source_cosines[source_mask]).mean()
        goal_distance = (1 - goal_cosines[target_mask]).mean()
        loss = loss + self.distance_weight * (source_distance + goal_distance)
        other_cosines = self._cosines_of_others(source, goals, target_content, shares_text)
        logits = torch.cat([source_cosines[..., None], other_cosines], -1) / self.temperature
        # The right answer, the first column, is the nearest goal of the translation.
        logits = logits[source_content]
        answers = torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
        return {"loss": loss + functional.cross_entropy(logits, answers)}

    def _goals(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The teacher's vectors of pieces, (n, t, d), less their running mean."""
        with torch.no_grad():
            vectors = encode(self._teacher[0].to(ids.device), ids, mask).float()
            if self.training:
                self.batches += 1
                # Like the mean of all batches at first, so that its start has no weight.
                share = max(1 - _MEAN_MOMENTUM, 1 / float(self.batches))
                self.target_mean += share * (vectors[mask].mean(0) - self.target_mean)
            return vectors - self.target_mean

    def _cosines_of_others(
        self,
        source: Tensor,
        goals: Tensor,
        content: Tensor,
        shares_text: Tensor,
    ) -> Tensor:
        """Cosines of source pieces with sampled goals, (n, s, `negatives`); far below any where the
        goal is of the same sentence, or of a pair that shares a text with it."""
        sentences, _ = content.nonzero(as_tuple=True)
        candidates = goals[content]
        if len(candidates) > self.negatives:
            # Evenly spread: pieces of all sentences, and the same in every run.
            places = torch.linspace(0, len(candidates) - 1, self.negatives, device=goals.device)
            candidates, sentences = candidates[places.long()], sentences[places.long()]
        is_same_pair = torch.eye(len(goals), dtype=torch.bool, device=goals.device)
        is_related = (shares_text | is_same_pair)[:, sentences]
        return (source @ candidates.T).masked_fill(is_related[:, None], _NO_CANDIDATE)


def encode(encoder: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    """(n, t, d) token vectors of a `transformers` encoder."""
    return encoder(input_ids=ids, attention_mask=mask.long()).last_hidden_state


def pooled(states: Tensor, mask: Tensor) -> Tensor:
    """(n, d) float32 means of the (n, t, d) vectors over the tokens of each text, of unit length."""
    states, weights = states.float(), mask.float()[:, :, None]
    return functional.normalize((states * weights).sum(1) / weights.sum(1), dim=-1)


def nearest(
    source: Tensor,
    source_mask: Tensor,
    target: Tensor,
    target_mask: Tensor,
) -> tuple[Tensor, Tensor]:
    """Cosine of each token with the nearest one of the other side of its pair.

    Args:
        source: (n, s, d) vectors of unit length.
        source_mask: (n, s) bool, no padding.
        target: (n, t, d) vectors of unit length.
        target_mask: (n, t) bool, no padding.

    Returns:
        (n, s) and (n, t) cosines; those of padding mean nothing.
    """
    cosines = source @ target.transpose(1, 2)
    source_cosines = cosines.masked_fill(~target_mask[:, None], _NO_CANDIDATE).amax(2)
    target_cosines = cosines.masked_fill(~source_mask[:, :, None], _NO_CANDIDATE).amax(1)
    return source_cosines, target_cosines


def token_similarity(
    source: Tensor,
    source_mask: Tensor,
    target: Tensor,
    target_mask: Tensor,
) -> Tensor:
    """(n,) means of the `nearest` cosines of both sides of each pair; see there for the arguments,
    but vectors may have any length."""
    units = functional.normalize(source, dim=-1), functional.normalize(target, dim=-1)
    source_cosines, target_cosines = nearest(units[0], source_mask, units[1], target_mask)
    forwards = (source_cosines * source_mask).sum(1) / source_mask.sum(1)
    backwards = (target_cosines * target_mask).sum(1) / target_mask.sum(1)
    return (forwards + backwards) / 2


def symmetric_loss(similarities: Tensor, shares_text: Tensor) -> Tensor:
    """Cross-entropy of the diagonal of (n, n) similarities, over rows and over columns; their mean.

    Two pairs that share a text, as `shares_text` (n, n) says, are no negatives of each other."""
    similarities = similarities.float().masked_fill(shares_text, _NO_CANDIDATE)
    labels = torch.arange(len(similarities), device=similarities.device)
    over_rows = functional.cross_entropy(similarities, labels)
    over_columns = functional.cross_entropy(similarities.T, labels)
    return (over_rows + over_columns) / 2
