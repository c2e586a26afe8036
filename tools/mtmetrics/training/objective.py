"""Batches and loss that train a multilingual student encoder (`mtmetrics.training.encoder`).

A frozen teacher encoder reads the English side of sentence pairs. The student learns to give English
tokens the teacher's vectors, and to give tokens of the other languages the vectors of their
translations. Outputs of translation systems teach it, too: the teacher compares them with their
references, the student with their sources. `SentenceBatches` makes the batch of each step; `worsen`
and `leave_untranslated` make bad translations for it. `Distillation` computes the loss of a batch. The
functions after it encode texts and compute parts of the loss; `unit_means` and `token_similarity` also
compare texts in the evaluation of a student.

Shapes: n texts in a batch, of s tokens (sources), t tokens (targets) or c tokens (copies: texts in which
words of the source, or all of it, were left untranslated); d dimensions.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from mtmetrics.checks import language_pair
from mtmetrics.training.configs import EncoderConfig
from mtmetrics.training.corpus import WORD_LISTS, Pair, text_key
from mtmetrics.training.labels import Output
from mtmetrics.training.trainers import PlannedBatches

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerFast

# The tokens of n texts as a `transformers` encoder reads them, (n, t) each: `input_ids`,
# `attention_mask` and, except for the teacher, `token_type_ids`; of sentence pairs `special_tokens_mask`,
# too, which is 1 at special tokens and at padding. What a tokenizer returns besides may be there.
TokenIds = Mapping[str, Tensor]
# The arguments of `Distillation.forward`.
Batch = dict[str, TokenIds | Tensor]

# Probability of each kind of change of a word: it is replaced by a word of the source, replaced by a
# word of another translation, left out, repeated, or moved towards the beginning.
_CHANGES = {
    "untranslated": 0.4,
    "unrelated": 0.25,
    "missing": 0.15,
    "doubled": 0.1,
    "misplaced": 0.1,
}
# Highest probability that a word of a worsened text changes.
_HIGHEST_CHANGE_PROBABILITY = 0.5
# Highest number of outputs of one source in a batch.
_OUTPUTS_PER_SOURCE = 2
# Weight of the old value when a batch updates the running mean of the teacher's vectors.
_MEAN_MOMENTUM = 0.99
# Weights of two parts of the loss of outputs, see `Distillation`.
_OUTPUT_MEAN_WEIGHT = 0.5
_OUTPUT_START_WEIGHT = 2.0
# Share of copies that are the whole source; where no word could be left untranslated, there are more.
# In each of the others this share of the words, as a mean, is left untranslated.
_WHOLE_COPIES = 0.5
_UNTRANSLATED_SHARE = 0.3
# Cosine up to which an untranslated word may be like its source: that of unrelated words.
_UNRELATED_COSINE = 0.4
# Weight of the part of the loss about untranslated words.
_COPY_WEIGHT = 0.25
# Replaces the cosine of vectors that must not be matched, such as those of padding. It lies below
# every cosine, also below a cosine that was divided by a temperature.
_NO_CANDIDATE = -1e4


class WorsenedText(NamedTuple):
    """The words of a worsened translation, and whether each is an untranslated word of the source."""

    words: list[str]
    is_untranslated: list[bool]


class Tokens(NamedTuple):
    """The tokens of n texts as an encoder gives them.

    Attributes:
        vectors: (n, t, d).
        mask: (n, t) bool, false at padding.
    """

    vectors: Tensor
    mask: Tensor

    def units(self) -> "Tokens":
        """Returns the tokens with vectors of unit length."""
        return self._replace(vectors=functional.normalize(self.vectors, dim=-1))

    def minus(self, vector: Tensor) -> "Tokens":
        """Returns the tokens with a (d,) vector subtracted from each of theirs."""
        return self._replace(vectors=self.vectors - vector)


@dataclass(eq=False, repr=False)
class SentenceBatches(PlannedBatches):
    """Batches of three kinds; a random draw decides the kind of a step.

    - Sentence pairs. The student reads both sides, the teacher reads the English side.
    - English texts alone. Some of them are worsened, so that they resemble bad translations. The
      teacher reads the same texts, but with the unknown token in place of each untranslated word. The
      teacher knows the other languages too: with the word itself, it would teach the student to treat
      the word as if it were translated.
    - Outputs of translation systems with their sources and references, all of one language pair. The
      student reads source and output, the teacher reads reference and output. The student also reads,
      as if it were a translation, a copy: the source itself, or the output with words of the source.

    Attributes:
        plan: for each step, the positions of its pairs in `pairs`. The pairs of a step are all
            sentences, or all single words of a word list.
        pairs: sources, with their English translations as targets.
        tokenizers: ``english`` -> the tokenizer of English texts, ``others`` -> that of all other
            texts. Both have the same token ids; the first gives its tokens the type
            `vocabulary.ENGLISH_TYPE`.
        max_pieces: texts are truncated to this many tokens.
        seed: seed of all random draws.
        english_only_share: share of the steps with English texts alone, among those without outputs
            and word lists.
        worsened_share: share of worsened texts in the steps with English texts alone.
        outputs: language pair -> for each source its outputs; empty for none.
        outputs_share: share of the steps with outputs, if there are any.
    """

    pairs: Sequence[Pair]
    tokenizers: "Mapping[str, PreTrainedTokenizerFast]"
    max_pieces: int
    seed: int
    english_only_share: float = 0.0
    worsened_share: float = 0.0
    outputs: Mapping[str, Sequence[Sequence[Output]]] = field(default_factory=dict)
    outputs_share: float = 0.0

    def __getitem__(self, step: int) -> Batch:
        """Makes the arguments of `Distillation.forward` for a step."""
        rng = np.random.default_rng((self.seed, step))
        if self.outputs and rng.random() < self.outputs_share:
            return self._output_batch(len(self.plan[step]), rng)
        pairs = [self.pairs[index] for index in self.plan[step]]
        is_word_list = pairs[0].group.endswith(WORD_LISTS)
        if rng.random() < self.english_only_share and not is_word_list:
            return self._english_batch(pairs, rng)
        return self._pair_batch(pairs)

    def _pair_batch(self, pairs: Sequence[Pair]) -> Batch:
        """Makes the arguments of a step with sentence pairs."""
        sources = [pair.source for pair in pairs]
        targets = [pair.target for pair in pairs]
        encoded_targets = self._tokenised("english", targets)
        shares_text = _equal_texts(sources) | _equal_texts(targets)
        np.fill_diagonal(shares_text, False)
        return {
            "target": encoded_targets,
            "teacher_ids": encoded_targets["input_ids"],
            "source": self._tokenised("others", sources),
            "shares_text": torch.from_numpy(shares_text),
        }

    def _english_batch(self, pairs: Sequence[Pair], rng: np.random.Generator) -> Batch:
        """Makes the arguments of a step with English texts alone, some of them worsened."""
        texts = []
        for pair, other in zip(pairs, rng.permutation(len(pairs)), strict=True):
            words = pair.target.split()
            text = WorsenedText(words, [False] * len(words))
            if rng.random() < self.worsened_share:
                text = worsen(
                    pair.source, pair.target, pairs[other].target, _HIGHEST_CHANGE_PROBABILITY, rng
                )
            texts.append(text)
        encoded = self._tokenised("english", [" ".join(text.words) for text in texts])
        unknown = self.tokenizers["english"].unk_token_id
        is_untranslated = _untranslated_tokens(texts, encoded["offset_mapping"])
        teacher_ids = encoded["input_ids"].masked_fill(is_untranslated, unknown)
        return {"target": encoded, "teacher_ids": teacher_ids}

    def _output_batch(self, size: int, rng: np.random.Generator) -> Batch:
        """Makes the arguments of a step with outputs: at most `size`, all of one language pair."""
        # Small language pairs are drawn more often than their share, so that they are learned too.
        weights = np.sqrt([len(sources) for sources in self.outputs.values()])
        lang_pair = list(self.outputs)[rng.choice(len(weights), p=weights / weights.sum())]
        outputs = _draw_outputs(self.outputs[lang_pair], size, rng)
        source_tokenizer, target_tokenizer = (
            "english" if language == "en" else "others" for language in language_pair(lang_pair)
        )
        translations = self._tokenised(target_tokenizer, [row.translation for row in outputs])
        copies = [leave_untranslated(row.source, row.translation, rng) for row in outputs]
        encoded_copies = self._tokenised(
            target_tokenizer, [" ".join(text.words) for text in copies]
        )
        return {
            "target": translations,
            "teacher_ids": translations["input_ids"],
            "source": self._tokenised(source_tokenizer, [row.source for row in outputs]),
            "reference": self._tokenised(target_tokenizer, [row.reference for row in outputs]),
            "copy": encoded_copies,
            "is_untranslated": _untranslated_tokens(copies, encoded_copies["offset_mapping"]),
        }

    def _tokenised(self, tokenizer: str, texts: list[str]) -> "BatchEncoding":
        """Tokenises texts. `tokenizer` is a key of `tokenizers`."""
        return tokenised(self.tokenizers[tokenizer], texts, self.max_pieces)


def tokenised(
    tokenizer: "PreTrainedTokenizerFast",
    texts: list[str],
    max_pieces: int,
) -> "BatchEncoding":
    """Tokenises texts, truncated to `max_pieces` tokens and padded to one length."""
    return tokenizer(
        texts,
        truncation=True,
        max_length=max_pieces,
        padding=True,
        return_tensors="pt",
        return_special_tokens_mask=True,
        return_offsets_mapping=True,
        return_token_type_ids=True,
    )


def _draw_outputs(
    outputs_by_source: Sequence[Sequence[Output]], size: int, rng: np.random.Generator
) -> list[Output]:
    """Draws sources, and a few outputs of each, until there are `size` outputs, or no source is
    left."""
    drawn: list[Output] = []
    for source in rng.permutation(len(outputs_by_source)):
        outputs_of_source = outputs_by_source[source]
        order = rng.permutation(len(outputs_of_source))[:_OUTPUTS_PER_SOURCE]
        drawn += [outputs_of_source[position] for position in order]
        if len(drawn) >= size:
            break
    return drawn[:size]


def _equal_texts(texts: Sequence[str]) -> np.ndarray:
    """Finds which of n texts are the same sentence (`corpus.text_key`): (n, n) bool."""
    _, sentence_numbers = np.unique([text_key(text) for text in texts], return_inverse=True)
    return sentence_numbers[:, None] == sentence_numbers


def _untranslated_tokens(texts: Sequence[WorsenedText], offsets: Tensor) -> Tensor:
    """Finds the tokens that belong to untranslated words: (n, t) bool.

    Args:
        texts: n worsened texts.
        offsets: (n, t, 2) start and end of each token, in characters of the text whose words are joined
            by single spaces.
    """
    is_untranslated = torch.zeros(offsets.shape[:2], dtype=torch.bool)
    for row, text in enumerate(texts):
        # One entry for each character of the joined text; the spaces count as translated.
        characters: list[bool] = []
        for word, word_is_untranslated in zip(text.words, text.is_untranslated, strict=True):
            characters += [word_is_untranslated] * len(word) + [False]
        # A token may begin with the space before its word, so its last character decides.
        for position, (begin, end) in enumerate(offsets[row].tolist()):
            is_untranslated[row, position] = end > begin and characters[end - 1]
    return is_untranslated


def leave_untranslated(source: str, translation: str, rng: np.random.Generator) -> WorsenedText:
    """Makes a copy: the whole source, or the translation with words of the source in the place of
    some of its own.

    A word that both texts have, such as a name or a number, is not marked as untranslated.

    Args:
        source: the source.
        translation: its translation.
        rng: makes all random draws.
    """
    translated_words = {word.lower() for word in translation.split()}
    source_words = source.split()
    in_source_only = [word.lower() not in translated_words for word in source_words]
    source_only_words = list(itertools.compress(source_words, in_source_only))
    if rng.random() < _WHOLE_COPIES or not source_only_words:
        return WorsenedText(source_words, in_source_only)
    words = translation.split()
    is_replaced = (rng.random(len(words)) < _UNTRANSLATED_SHARE).tolist()
    for position in itertools.compress(range(len(words)), is_replaced):
        words[position] = source_only_words[rng.integers(len(source_only_words))]
    return WorsenedText(words, is_replaced)


def worsen(
    source: str,
    target: str,
    other_target: str,
    highest_probability: float,
    rng: np.random.Generator,
) -> WorsenedText:
    """Worsens a translation so that it resembles a bad translation.

    The probability that a word changes is drawn once, between 0 and `highest_probability`. At least
    one word is picked for a change. Without a word of the source to take, an unrelated word is taken.
    A word stays if its change is impossible.

    Args:
        source: the source, from which untranslated words are taken.
        target: the translation.
        other_target: another translation, from which unrelated words are taken.
        highest_probability: highest probability that a word changes, 0 to 1.
        rng: makes all random draws.
    """
    words = target.split()
    lower_words = {word.lower() for word in words}
    source_only_words = [word for word in source.split() if word.lower() not in lower_words]
    unrelated_words = [word for word in other_target.split() if word.lower() not in lower_words]
    draws = rng.random(len(words))
    change_probability = highest_probability * rng.random()
    change_mask = draws < change_probability
    if words and not change_mask.any():
        change_mask[rng.integers(len(words))] = True
    # Each word of the worsened text, and whether it is untranslated.
    result: list[tuple[str, bool]] = []
    for word, is_changed in zip(words, change_mask, strict=True):
        change = rng.choice(list(_CHANGES), p=list(_CHANGES.values())) if is_changed else None
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
    """A student encoder with its loss over a batch.

    The goal of an English token is the vector that the student should give it: the teacher's vector,
    minus the running mean of all the teacher's vectors. The loss of a batch of sentence pairs is a
    weighted sum of four parts:

    1. It pulls each English token of the student towards its goal: 1 - cosine (`english_weight`).
    2. It pulls the mean vectors of a source and of its translation together, and away from those of
       the other pairs of the batch: InfoNCE (weight 1).
    3. It pulls each source token towards the nearest goal of the translation, and the nearest source
       token towards each goal: 1 - cosine (`distance_weight`).
    4. It pushes each source token away from the goals of other sentences: InfoNCE (weight 1).

    Special tokens take part in parts 1 to 3. Part 4 takes no special tokens of the sources, and none
    as goals of other sentences. A batch of English texts alone has part 1 only.

    A batch of outputs has another loss. The student compares the outputs with their sources, and the
    teacher compares them with their references, by tokens (`token_similarity`). The loss is a sum of
    four parts:

    1. It pulls the student's similarities by tokens towards those of the teacher: 1 - Pearson's r over
       the batch (weight 1).
    2. It does the same with the cosines of the student's mean vectors (`_OUTPUT_MEAN_WEIGHT`).
    3. It keeps each output token of the student where it was when the training began: 1 - cosine
       (`_OUTPUT_START_WEIGHT`).
    4. It drives apart each untranslated token of a copy and the nearest token of the source, and the
       mean vectors of both texts: the part of the cosine that exceeds `_UNRELATED_COSINE`
       (`_COPY_WEIGHT`). The term of the mean vectors is multiplied by the share of untranslated tokens.

    Args:
        student: the encoder to train, which began with the lowest layers of a larger one (the
            original).
        teacher: the original, frozen, cut off at the layer whose vectors are taught. Its weights are
            not part of this module's state.
        config: the options of the training. `english_weight` and `distance_weight` are the weights of
            parts 1 and 3; `temperature` divides the cosines in both InfoNCE losses. `negatives` is the
            highest number of goals that part 4 takes, evenly spaced over the batch; each source token
            is compared only with the goals of other sentences.
        start: a copy of the student as it is when the training begins. Its weights are not part of
            this module's state. Needed for batches of outputs; None if there are none.
    """

    def __init__(
        self,
        student: nn.Module,
        teacher: nn.Module,
        config: EncoderConfig,
        start: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.student = student
        # Tuples hide the frozen encoders from nn.Module, so that checkpoints do not contain them.
        self._teacher = (teacher.eval().requires_grad_(False),)
        self._start = () if start is None else (start.eval().requires_grad_(False),)
        # Not `config`, by which a trainer looks for the configuration of a `transformers` model.
        self.settings = config
        width = student.config.hidden_size
        # Running mean of the teacher's vectors, and the number of batches in it, for `_goals`.
        # Checkpoints hold both under these names; the artifact has neither.
        self.target_mean = nn.Buffer(torch.zeros(width))
        self.batches = nn.Buffer(torch.zeros((), dtype=torch.int64))

    def forward(
        self,
        target: TokenIds,
        teacher_ids: Tensor,
        source: TokenIds | None = None,
        shares_text: Tensor | None = None,
        reference: TokenIds | None = None,
        copy: TokenIds | None = None,
        is_untranslated: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Computes the loss of a batch.

        Args:
            target: the English texts, or outputs.
            teacher_ids: (n, t) ids of the tokens of the targets for the teacher.
            source: the sources; None for English texts alone.
            shares_text: (n, n) bool, true for two pairs with equal sources or equal targets; only for
                sentence pairs.
            reference: the references; only for outputs.
            copy: the texts with untranslated words; only for outputs.
            is_untranslated: (n, c) bool, true at the tokens of untranslated words; only for outputs.

        Returns:
            ``loss`` -> the loss.
        """
        if reference is not None:
            labels = self._reference_similarity(reference, target, teacher_ids)
            sources = encode(self.student, source)
            copies = encode(self.student, copy)
            loss = self._output_loss(sources, target, labels)
            loss = loss + _COPY_WEIGHT * copy_loss(sources, copies, is_untranslated)
            return {"loss": loss}
        goals = self._goals(teacher_ids, target["attention_mask"])
        english = encode(self.student, target)
        english_cosines = functional.cosine_similarity(english.vectors, goals.vectors, dim=-1)
        loss = self.settings.english_weight * (1 - english_cosines[goals.mask].mean())
        if source is None:
            return {"loss": loss}
        sources = encode(self.student, source)
        similarities = unit_means(sources) @ unit_means(goals).T
        loss = loss + symmetric_loss(similarities / self.settings.temperature, shares_text)
        source_units, goal_units = sources.units(), goals.units()
        source_cosines, goal_cosines = nearest_cosines(source_units, goal_units)
        source_distance = (1 - source_cosines[sources.mask]).mean()
        goal_distance = (1 - goal_cosines[goals.mask]).mean()
        loss = loss + self.settings.distance_weight * (source_distance + goal_distance)
        # Special tokens occur in every sentence, so they cannot be told apart by sentence.
        source_content = ~source["special_tokens_mask"].bool()
        goal_content = ~target["special_tokens_mask"].bool()
        negative_cosines = self._negative_cosines(
            source_units.vectors, goal_units.vectors, goal_content, shares_text
        )
        cosines = torch.cat([source_cosines[..., None], negative_cosines], -1)
        logits = (cosines / self.settings.temperature)[source_content]
        # The right answer is the first column, the nearest goal of the translation.
        answers = torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
        return {"loss": loss + functional.cross_entropy(logits, answers)}

    def _reference_similarity(
        self,
        reference: TokenIds,
        output: TokenIds,
        output_ids: Tensor,
    ) -> Tensor:
        """Compares n outputs with their references by the teacher's vectors, minus their mean.

        Returns:
            (n,) similarities, see `token_similarity`.
        """
        with torch.no_grad():
            outputs = self._teach(output_ids, output["attention_mask"])
            references = self._teach(reference["input_ids"], reference["attention_mask"])
            # Outputs and references are in one language. Their mean vector says nothing about meaning.
            vectors = [tokens.vectors[tokens.mask] for tokens in (outputs, references)]
            mean = torch.cat(vectors).mean(0)
            return token_similarity(references.minus(mean), outputs.minus(mean))

    def _output_loss(self, sources: Tokens, output: TokenIds, labels: Tensor) -> Tensor:
        """Computes parts 1 to 3 of the loss of n outputs. `sources` are the student's tokens of their
        sources, `labels` the (n,) similarities of the outputs with their references."""
        outputs = encode(self.student, output)
        with torch.no_grad():
            at_start = encode(self._start[0].to(labels.device), output)
        by_token = token_similarity(sources, outputs)
        by_mean = (unit_means(sources) * unit_means(outputs)).sum(-1)
        cosines = functional.cosine_similarity(outputs.vectors, at_start.vectors, dim=-1)
        moved = 1 - cosines[outputs.mask]
        return (
            (1 - pearson(by_token, labels))
            + _OUTPUT_MEAN_WEIGHT * (1 - pearson(by_mean, labels))
            + _OUTPUT_START_WEIGHT * moved.mean()
        )

    def _goals(self, ids: Tensor, attention_mask: Tensor) -> Tokens:
        """Computes the goals of tokens: the teacher's vectors minus their running mean. In training,
        the batch updates the mean first."""
        with torch.no_grad():
            taught = self._teach(ids, attention_mask)
            if self.training:
                self.batches += 1
                # At first a plain mean over the batches, so that the initial zeros have no weight.
                batch_weight = max(1 - _MEAN_MOMENTUM, 1 / float(self.batches))
                batch_mean = taught.vectors[taught.mask].mean(0)
                self.target_mean += batch_weight * (batch_mean - self.target_mean)
            return taught.minus(self.target_mean)

    def _teach(self, ids: Tensor, attention_mask: Tensor) -> Tokens:
        """Computes the teacher's tokens, in float32. It reads all texts alike, so it needs no types."""
        texts = {"input_ids": ids, "attention_mask": attention_mask}
        tokens = encode(self._teacher[0].to(ids.device), texts)
        return tokens._replace(vectors=tokens.vectors.float())

    def _negative_cosines(
        self,
        source_units: Tensor,
        goal_units: Tensor,
        content: Tensor,
        shares_text: Tensor,
    ) -> Tensor:
        """Computes the cosines of source tokens with goals of other sentences.

        Args:
            source_units: (n, s, d) vectors of unit length.
            goal_units: (n, t, d) vectors of unit length.
            content: (n, t) bool, false at padding and special tokens.
            shares_text: (n, n) bool, see `forward`.

        Returns:
            (n, s, k) cosines with k goals, at most `settings.negatives`; `_NO_CANDIDATE` for a goal of the same
            pair, or of a pair that shares a text with it.
        """
        goal_pairs, _ = content.nonzero(as_tuple=True)
        candidates = goal_units[content]
        if len(candidates) > self.settings.negatives:
            # Evenly spaced goals come from all sentences, and are the same in every run.
            last = len(candidates) - 1
            positions = torch.linspace(
                0, last, self.settings.negatives, device=candidates.device
            ).long()
            candidates = candidates[positions]
            goal_pairs = goal_pairs[positions]
        is_same_pair = torch.eye(len(goal_units), dtype=torch.bool, device=candidates.device)
        is_related = (shares_text | is_same_pair)[:, goal_pairs]
        cosines = source_units @ candidates.T
        return cosines.masked_fill(is_related[:, None], _NO_CANDIDATE)


def encode(encoder: nn.Module, texts: TokenIds) -> Tokens:
    """Encodes texts by a `transformers` encoder of the BERT architecture."""
    mask = texts["attention_mask"]
    output = encoder(
        input_ids=texts["input_ids"],
        attention_mask=mask,
        token_type_ids=texts.get("token_type_ids"),
    )
    return Tokens(output.last_hidden_state, mask.bool())


def unit_means(tokens: Tokens) -> Tensor:
    """Averages the vectors of the tokens of each text: (n, d) float32, of unit length."""
    states, weights = tokens.vectors.float(), tokens.mask.float()[:, :, None]
    return functional.normalize((states * weights).sum(1) / weights.sum(1), dim=-1)


def nearest_cosines(source: Tokens, target: Tokens) -> tuple[Tensor, Tensor]:
    """Computes the cosine of each token with the nearest token of the other side of its pair.

    Args:
        source: n texts; vectors of unit length.
        target: n texts; vectors of unit length.

    Returns:
        (n, s) and (n, t) cosines; they are undefined at padding.
    """
    cosines = source.vectors @ target.vectors.transpose(1, 2)
    source_cosines = cosines.masked_fill(~target.mask[:, None], _NO_CANDIDATE).amax(2)
    target_cosines = cosines.masked_fill(~source.mask[:, :, None], _NO_CANDIDATE).amax(1)
    return source_cosines, target_cosines


def token_similarity(source: Tokens, target: Tokens) -> Tensor:
    """Scores pairs of texts: the mean of `nearest_cosines` over the tokens of each side, averaged over
    the two sides.

    Returns:
        (n,) similarities, -1 to 1.
    """
    source_cosines, target_cosines = nearest_cosines(source.units(), target.units())
    source_similarity = (source_cosines * source.mask).sum(1) / source.mask.sum(1)
    target_similarity = (target_cosines * target.mask).sum(1) / target.mask.sum(1)
    return (source_similarity + target_similarity) / 2


def copy_loss(source: Tokens, copies: Tokens, is_untranslated: Tensor) -> Tensor:
    """Computes part 4 of the loss of outputs, see `Distillation`.

    Args:
        source: the sources.
        copies: the texts with untranslated words.
        is_untranslated: (n, c) bool, true at the tokens of untranslated words.
    """
    _, copy_cosines = nearest_cosines(source.units(), copies.units())
    excess = functional.relu(copy_cosines - _UNRELATED_COSINE)[is_untranslated]
    mean_cosines = (unit_means(source) * unit_means(copies)).sum(-1)
    mean_excess = functional.relu(mean_cosines - _UNRELATED_COSINE)
    untranslated_shares = is_untranslated.sum(-1) / copies.mask.sum(-1)
    # A batch without untranslated words has the loss 0.
    token_loss = excess.sum() / max(1, len(excess))
    return token_loss + (untranslated_shares * mean_excess).mean()


def pearson(values: Tensor, labels: Tensor) -> Tensor:
    """Computes Pearson's r of two vectors, in float32; 0 if one of them is constant."""
    values, labels = values.float(), labels.float()
    values, labels = values - values.mean(), labels - labels.mean()
    return functional.cosine_similarity(values, labels, dim=0)


def symmetric_loss(similarities: Tensor, shares_text: Tensor) -> Tensor:
    """Computes the InfoNCE loss of n pairs, over rows and over columns, and averages the two.

    Args:
        similarities: (n, n) similarities of the sources with the translations, divided by the
            temperature. A source and its translation are on the diagonal.
        shares_text: (n, n) bool, true for two pairs with equal sources or equal targets, which are no
            negatives of each other. False on the diagonal.
    """
    similarities = similarities.float().masked_fill(shares_text, _NO_CANDIDATE)
    answers = torch.arange(len(similarities), device=similarities.device)
    over_rows = functional.cross_entropy(similarities, answers)
    over_columns = functional.cross_entropy(similarities.T, answers)
    return (over_rows + over_columns) / 2
