"""Batches and loss of the training of an encoder (`mtmetrics.training.encoder`).

`SentenceBatches` makes the batch of each step, and `worsen` makes bad translations for it.
`Distillation` computes the loss of a batch. The functions after it compute parts of the loss;
`unit_means` and `token_similarity` also compare texts when the trained encoder is judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from mtmetrics.checks import language_pair
from mtmetrics.training.corpus import WORD_LISTS, Pair, text_key
from mtmetrics.training.labels import Output
from mtmetrics.training.trainers import PlannedBatches

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
# The highest chance of a word of a worsened text to change.
_HIGHEST_CHANCE = 0.5
# So many outputs of one source meet in a batch at most.
_OUTPUTS_PER_SOURCE = 2
# Weight of the old value when a batch updates the running mean of the teacher's vectors.
_MEAN_MOMENTUM = 0.99
# Weights of two parts of the loss of outputs: similarities of mean vectors, and the distance of
# output pieces from their vectors at the start of the training.
_OUTPUT_MEAN_WEIGHT = 0.5
_OUTPUT_START_WEIGHT = 2.0
# Replaces the cosine of a pair of vectors that must not be matched, such as padding. It lies below
# every cosine, also below one that a temperature has divided.
_NO_CANDIDATE = -1e4


class WorsenedText(NamedTuple):
    """A worsened translation, and which of its words the source left untranslated there."""

    words: list[str]
    is_untranslated: list[bool]


@dataclass(eq=False, repr=False)
class SentenceBatches(PlannedBatches):
    """Batches of sentence pairs. The student reads both sides, and the teacher the English one.

    Some steps have English texts alone, and some of these are worsened as bad translations are. The
    teacher reads the same text, but with the sign for an unknown word in place of each word that was
    left untranslated. It knows the other language too, so from the word itself it would teach the
    student to treat it as translated.

    Other steps read outputs of translation systems with their references, all of one language pair.
    The student reads source and output, the teacher reference and output.

    Attributes:
        plan: the numbers of the pairs of every step. The pairs of a step are all sentences, or all
            single words of a word list.
        pairs: sources, and their English translations as targets.
        tokenizers: of ``english`` texts and of ``others``. Both number the pieces alike.
        max_pieces: longer texts are cut to so many pieces.
        seed: seed of all draws: which steps have English texts alone, and how texts are worsened.
        english_only_share: share of the steps with sentences that have English texts alone.
        worsened_share: share of the texts of these steps that are worsened.
        outputs: language pair -> for each source its outputs.
        outputs_share: share of the steps that read outputs, if there are any.
    """

    pairs: Sequence[Pair]
    tokenizers: "Mapping[str, PreTrainedTokenizerFast]"
    max_pieces: int
    seed: int
    english_only_share: float = 0.0
    worsened_share: float = 0.0
    outputs: Mapping[str, Sequence[Sequence[Output]]] = field(default_factory=dict)
    outputs_share: float = 0.0

    def __getitem__(self, step: int) -> dict[str, Tensor]:
        """Makes the arguments of `Distillation.forward` for a step."""
        rng = np.random.default_rng((self.seed, step))
        if self.outputs and rng.random() < self.outputs_share:
            return self._output_batch(len(self.plan[step]), rng)
        pairs = [self.pairs[index] for index in self.plan[step]]
        has_words = pairs[0].group.endswith(WORD_LISTS)
        if rng.random() < self.english_only_share and not has_words:
            return self._english_batch(pairs, rng)
        sources = [pair.source for pair in pairs]
        targets = [pair.target for pair in pairs]
        batch = _model_inputs(self._tokenised("english", targets), "target")
        batch |= _model_inputs(self._tokenised("others", sources), "source")
        batch["teacher_ids"] = batch["target_ids"]
        shares_text = _equal_texts(sources) | _equal_texts(targets)
        np.fill_diagonal(shares_text, False)
        return batch | {"shares_text": torch.from_numpy(shares_text)}

    def _english_batch(self, pairs: Sequence[Pair], rng: np.random.Generator) -> dict[str, Tensor]:
        """Makes the arguments of a step with English texts alone, some of them worsened."""
        texts = []
        for pair, other in zip(pairs, rng.permutation(len(pairs)), strict=True):
            words = pair.target.split()
            text = WorsenedText(words, [False] * len(words))
            if rng.random() < self.worsened_share:
                text = worsen(pair.source, pair.target, pairs[other].target, _HIGHEST_CHANCE, rng)
            texts.append(text)
        encoded = self._tokenised("english", [" ".join(text.words) for text in texts])
        batch = _model_inputs(encoded, "target")
        teacher_ids = batch["target_ids"].clone()
        for row, text in enumerate(texts):
            offsets = encoded["offset_mapping"][row].tolist()
            pieces = _untranslated_pieces(text, offsets)
            teacher_ids[row, pieces] = self.tokenizers["english"].unk_token_id
        return batch | {"teacher_ids": teacher_ids}

    def _output_batch(self, size: int, rng: np.random.Generator) -> dict[str, Tensor]:
        """Makes the arguments of a step with `size` outputs of a language pair, at most."""
        # Small pairs are drawn more often than their share, so that they are learned too.
        weights = np.sqrt([len(sources) for sources in self.outputs.values()])
        pair = list(self.outputs)[rng.choice(len(weights), p=weights / weights.sum())]
        outputs: list[Output] = []
        for source in rng.permutation(len(self.outputs[pair])):
            outputs_of_source = self.outputs[pair][source]
            order = rng.permutation(len(outputs_of_source))[:_OUTPUTS_PER_SOURCE]
            outputs += [outputs_of_source[number] for number in order]
            if len(outputs) >= size:
                break
        source_tokenizer, target_tokenizer = (
            "english" if language == "en" else "others" for language in language_pair(pair)
        )
        translations = [output.translation for output in outputs[:size]]
        sources = [output.source for output in outputs[:size]]
        references = [output.reference for output in outputs[:size]]
        batch = _model_inputs(self._tokenised(target_tokenizer, translations), "target")
        batch |= _model_inputs(self._tokenised(source_tokenizer, sources), "source")
        batch |= _model_inputs(self._tokenised(target_tokenizer, references), "reference")
        return batch | {"teacher_ids": batch["target_ids"]}

    def _tokenised(self, language: str, texts: list[str]) -> "BatchEncoding":
        """Cuts texts into pieces, padded to one length. `language` is ``english`` or ``others``."""
        return self.tokenizers[language](
            texts,
            truncation=True,
            max_length=self.max_pieces,
            padding=True,
            return_tensors="pt",
            return_special_tokens_mask=True,
            return_offsets_mapping=True,
        )


def _model_inputs(encoded: "BatchEncoding", side: str) -> dict[str, Tensor]:
    """Makes the arguments of `Distillation.forward` for a side: ``source``, ``target`` or
    ``reference``.

    There are three, (n, t) each: the numbers of the pieces, a mask of pieces that are no padding,
    and a mask of pieces that are neither padding nor special tokens.
    """
    return {
        f"{side}_ids": encoded["input_ids"],
        f"{side}_mask": encoded["attention_mask"].bool(),
        f"{side}_content": ~encoded["special_tokens_mask"].bool(),
    }


def _equal_texts(texts: Sequence[str]) -> np.ndarray:
    """Finds which of n texts are the same sentence (`corpus.text_key`): (n, n) bool."""
    _, sentence_numbers = np.unique([text_key(text) for text in texts], return_inverse=True)
    return sentence_numbers[:, None] == sentence_numbers


def _untranslated_pieces(text: WorsenedText, offsets: Sequence[Sequence[int]]) -> list[int]:
    """Finds the positions of the pieces that belong to untranslated words.

    Args:
        text: its words are joined by one space each.
        offsets: first character of each piece in the joined text, and the one behind its last.
    """
    # One entry for each character of the joined text; the spaces count as translated.
    is_untranslated: list[bool] = []
    for word, word_is_untranslated in zip(text.words, text.is_untranslated, strict=True):
        is_untranslated += [word_is_untranslated] * len(word) + [False]
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
    highest_chance: float,
    rng: np.random.Generator,
) -> WorsenedText:
    """Worsens a translation as bad ones are, with words of its source and of another translation.

    Every word changes with the same chance, which is drawn between 0 and `highest_chance`. If no
    word changes, one is drawn that does.

    Args:
        source: the source, whose words are left untranslated.
        target: the translation.
        other_target: another translation, whose words are unrelated.
        highest_chance: the highest chance of a word to change, 0 to 1.
        rng: makes all draws.
    """
    words = target.split()
    lower_words = {word.lower() for word in words}
    source_only_words = [word for word in source.split() if word.lower() not in lower_words]
    unrelated_words = [word for word in other_target.split() if word.lower() not in lower_words]
    is_changed = rng.random(len(words)) < highest_chance * rng.random()
    if words and not is_changed.any():
        is_changed[rng.integers(len(words))] = True
    # Each word of the worsened text, and whether it was left untranslated.
    result: list[tuple[str, bool]] = []
    for word, is_changing in zip(words, is_changed, strict=True):
        change = rng.choice(list(_CHANGES), p=list(_CHANGES.values())) if is_changing else None
        if change == "untranslated" and source_only_words:
            result.append((source_only_words[rng.integers(len(source_only_words))], True))
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
    """A student encoder, with its loss over a batch of sentence pairs. A teacher reads the English
    sides.

    The goal of an English piece is the teacher's vector, less the running mean of all of the
    teacher's vectors. The loss is a weighted sum of four parts:

    - Each English piece of the student stays at its goal: 1 - cosine (`english_weight`).
    - Each source piece has a near goal in its sentence, and each goal a near source piece: 1 -
      cosine of the nearest (`distance_weight`).
    - A source piece is nearer to its nearest goal than to goals of other sentences: InfoNCE (weight
      1).
    - The mean vectors of a source and of its translation are nearer to each other than to those of
      the other pairs of the batch: InfoNCE (weight 1).

    A batch of outputs with references has another loss. The student compares each output with its
    source, and the teacher compares it with its reference. Both comparisons shall agree:

    - The nearest cosines of the student's tokens rise with those of the teacher: 1 - Pearson's r
      over the batch (weight 1).
    - The cosines of the student's mean vectors do so, too (`_OUTPUT_MEAN_WEIGHT`).
    - Each output piece of the student stays where it was when the training began: 1 - cosine
      (`_OUTPUT_START_WEIGHT`).

    Args:
        student: an encoder, cut off at its last layer.
        teacher: the frozen original, cut off at the layer that teaches; its weights are no part of
            this module's state.
        temperature: divides the cosines of both InfoNCE losses.
        distance_weight: weight of the second part.
        english_weight: weight of the first part.
        negatives: the third part takes at most so many goals of a batch, at even distances. A source
            piece is compared with those of other sentences.
        start: the student as it is when the training begins, frozen; its weights are no part of this
            module's state. Needed where batches have outputs.
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
        start: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.student = student
        # In a tuple torch does not see them, so that they are no part of checkpoints.
        self._teacher = (teacher.eval().requires_grad_(False),)
        self._start = () if start is None else (start.eval().requires_grad_(False),)
        self.temperature, self.negatives = temperature, negatives
        self.distance_weight, self.english_weight = distance_weight, english_weight
        width = student.config.hidden_size
        # The running mean of the teacher's vectors, and the number of batches that it has seen.
        # Checkpoints hold both under these names.
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
        reference_ids: Tensor | None = None,
        reference_mask: Tensor | None = None,
        reference_content: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Computes the loss of a batch.

        Special tokens are part of the mean of a text, of the distances, and of the English pieces
        that stay at their goals. They are left out of the third part: no special token is a word
        that could be told apart from words of other sentences.

        Args:
            target_ids: (n, t) pieces of the English texts, or of outputs.
            target_mask: (n, t) bool, pieces that are no padding.
            target_content: (n, t) bool, pieces that are neither padding nor special tokens.
            teacher_ids: (n, t) the same pieces as the teacher reads them.
            source_ids: (n, s) pieces of the sources; None in a step of English texts alone.
            source_mask: (n, s) bool, pieces that are no padding.
            source_content: (n, s) bool, pieces that are neither padding nor special tokens.
            shares_text: (n, n) bool, two pairs of the batch that have a side in common.
            reference_ids: (n, r) pieces of the references of outputs; None in a step without them.
            reference_mask: (n, r) bool, pieces that are no padding.
            reference_content: (n, r) bool, not used; every side of a batch has the three masks.

        Returns:
            ``loss`` -> the loss.
        """
        if reference_ids is not None:
            return {
                "loss": self._loss_of_outputs(
                    target_ids,
                    target_mask,
                    source_ids,
                    source_mask,
                    reference_ids,
                    reference_mask,
                )
            }
        goals = self._goals(teacher_ids, target_mask)
        english = encode(self.student, target_ids, target_mask)
        english_cosines = functional.cosine_similarity(english, goals, dim=-1)
        loss = self.english_weight * (1 - english_cosines[target_mask].mean())
        if source_ids is None:
            return {"loss": loss}
        source = encode(self.student, source_ids, source_mask)
        similarities = unit_means(source, source_mask) @ unit_means(goals, target_mask).T
        loss = loss + symmetric_loss(similarities / self.temperature, shares_text)
        source_units = functional.normalize(source, dim=-1)
        goal_units = functional.normalize(goals, dim=-1)
        source_cosines, goal_cosines = nearest_cosines(
            source_units, source_mask, goal_units, target_mask
        )
        source_distance = (1 - source_cosines[source_mask]).mean()
        goal_distance = (1 - goal_cosines[target_mask]).mean()
        loss = loss + self.distance_weight * (source_distance + goal_distance)
        negative_cosines = self._negative_cosines(
            source_units, goal_units, target_content, shares_text
        )
        logits = torch.cat([source_cosines[..., None], negative_cosines], -1) / self.temperature
        # The right answer is the first column, the nearest goal of the translation.
        logits = logits[source_content]
        answers = torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
        return {"loss": loss + functional.cross_entropy(logits, answers)}

    def _loss_of_outputs(
        self,
        output_ids: Tensor,
        output_mask: Tensor,
        source_ids: Tensor,
        source_mask: Tensor,
        reference_ids: Tensor,
        reference_mask: Tensor,
    ) -> Tensor:
        """Computes the loss of n outputs of one language pair.

        Args:
            output_ids: (n, t) pieces of the outputs.
            output_mask: (n, t) bool, pieces that are no padding.
            source_ids: (n, s) pieces of the sources.
            source_mask: (n, s) bool, pieces that are no padding.
            reference_ids: (n, r) pieces of the references.
            reference_mask: (n, r) bool, pieces that are no padding.
        """
        with torch.no_grad():
            taught_outputs = self._teach(output_ids, output_mask)
            taught_references = self._teach(reference_ids, reference_mask)
            # All texts of the batch have one language, whose mean vector says nothing about meaning.
            vectors = torch.cat([taught_outputs[output_mask], taught_references[reference_mask]])
            mean = vectors.mean(0)
            labels = token_similarity(
                taught_references - mean, reference_mask, taught_outputs - mean, output_mask
            )
            [start] = self._start
            outputs_at_start = encode(start.to(output_ids.device), output_ids, output_mask)
        sources = encode(self.student, source_ids, source_mask)
        outputs = encode(self.student, output_ids, output_mask)
        token_scores = token_similarity(sources, source_mask, outputs, output_mask)
        mean_scores = functional.cosine_similarity(
            unit_means(sources, source_mask), unit_means(outputs, output_mask)
        )
        cosines_with_start = functional.cosine_similarity(outputs, outputs_at_start, dim=-1)
        return (
            (1 - pearson(token_scores, labels))
            + _OUTPUT_MEAN_WEIGHT * (1 - pearson(mean_scores, labels))
            + _OUTPUT_START_WEIGHT * (1 - cosines_with_start[output_mask].mean())
        )

    def _goals(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Computes the goals of pieces, (n, t, d): the teacher's vectors less their running mean.
        In training, the batch updates the mean first."""
        with torch.no_grad():
            vectors = self._teach(ids, mask)
            if self.training:
                self.batches += 1
                # The first batches count alike, so that the zeros of the start have no weight.
                batch_weight = max(1 - _MEAN_MOMENTUM, 1 / float(self.batches))
                self.target_mean += batch_weight * (vectors[mask].mean(0) - self.target_mean)
            return vectors - self.target_mean

    def _teach(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Computes the teacher's vectors of pieces, (n, t, d) float32."""
        return encode(self._teacher[0].to(ids.device), ids, mask).float()

    def _negative_cosines(
        self,
        source_units: Tensor,
        goal_units: Tensor,
        content: Tensor,
        shares_text: Tensor,
    ) -> Tensor:
        """Computes the cosines of source pieces with goals of other sentences.

        Args:
            source_units: (n, s, d) vectors of unit length.
            goal_units: (n, t, d) vectors of unit length.
            content: (n, t) bool, goals that are neither padding nor special tokens.
            shares_text: (n, n) bool, two pairs of the batch that have a side in common.

        Returns:
            (n, s, k) cosines with k goals, at most `negatives`; `_NO_CANDIDATE` where a goal is of
            the same pair, or of a pair that shares a text with it.
        """
        goal_pairs, _ = content.nonzero(as_tuple=True)
        candidates = goal_units[content]
        if len(candidates) > self.negatives:
            # Evenly spread: pieces of all sentences, and the same in every run.
            places = torch.linspace(
                0, len(candidates) - 1, self.negatives, device=candidates.device
            )
            candidates, goal_pairs = candidates[places.long()], goal_pairs[places.long()]
        is_same_pair = torch.eye(len(goal_units), dtype=torch.bool, device=candidates.device)
        is_related = (shares_text | is_same_pair)[:, goal_pairs]
        cosines = source_units @ candidates.T
        return cosines.masked_fill(is_related[:, None], _NO_CANDIDATE)


def encode(encoder: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    """Computes the (n, t, d) token vectors of a `transformers` encoder."""
    return encoder(input_ids=ids, attention_mask=mask.long()).last_hidden_state


def unit_means(states: Tensor, mask: Tensor) -> Tensor:
    """Averages (n, t, d) vectors over the tokens of each text: (n, d) float32, of unit length."""
    states, weights = states.float(), mask.float()[:, :, None]
    return functional.normalize((states * weights).sum(1) / weights.sum(1), dim=-1)


def nearest_cosines(
    source: Tensor,
    source_mask: Tensor,
    target: Tensor,
    target_mask: Tensor,
) -> tuple[Tensor, Tensor]:
    """Computes the cosine of each token with the nearest one of the other side of its pair.

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
    """Scores pairs of texts: the mean of `nearest_cosines` over the tokens of each side, and of the
    two sides.

    Takes the arguments of `nearest_cosines`, but the vectors may have any length.

    Returns:
        (n,) similarities, -1 to 1.
    """
    source_cosines, target_cosines = nearest_cosines(
        functional.normalize(source, dim=-1),
        source_mask,
        functional.normalize(target, dim=-1),
        target_mask,
    )
    source_mean = (source_cosines * source_mask).sum(1) / source_mask.sum(1)
    target_mean = (target_cosines * target_mask).sum(1) / target_mask.sum(1)
    return (source_mean + target_mean) / 2


def pearson(values: Tensor, labels: Tensor) -> Tensor:
    """Computes Pearson's r of two vectors, in float32; 0 if one of them is constant."""
    values, labels = values.float(), labels.float()
    values, labels = values - values.mean(), labels - labels.mean()
    return functional.cosine_similarity(values, labels, dim=0)


def symmetric_loss(similarities: Tensor, shares_text: Tensor) -> Tensor:
    """Computes the InfoNCE loss of n pairs, over rows and over columns, and averages the two.

    Args:
        similarities: (n, n) of the sources with the translations, divided by the temperature. The
            pairs lie on the diagonal.
        shares_text: (n, n) bool, two pairs that have a side in common: they are no negatives of
            each other. False on the diagonal.
    """
    similarities = similarities.float().masked_fill(shares_text, _NO_CANDIDATE)
    labels = torch.arange(len(similarities), device=similarities.device)
    over_rows = functional.cross_entropy(similarities, labels)
    over_columns = functional.cross_entropy(similarities.T, labels)
    return (over_rows + over_columns) / 2
