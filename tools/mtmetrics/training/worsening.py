"""Worsened copies of translations, with one error each, for regressors that learn to score them lower.

`mtmetrics.training.objective.worsen` changes many words of a text instead, for an encoder.
"""

import functools
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mtmetrics.io.languages import is_unspaced

# Number of the most frequent words of a language that are called function words.
_FUNCTION_WORDS = 60
# In a small text there are fewer: one for so many different words.
_WORDS_PER_FUNCTION_WORD = 8
_LONGEST_ADDITION = 4
_UNTRANSLATED = "untranslated word"
# A run of letters and digits, or a mark, with the space before it.
_TOKEN = re.compile(r"\s*(?:\w[\w'’-]*|[^\w\s])")
_NUMBER = re.compile(r"\d+")


class Token(NamedTuple):
    """A word or a mark of a text, with the white space before it."""

    space: str
    text: str

    @property
    def is_word(self) -> bool:
        """Whether this is a word, and not a mark or a number."""
        return self.text[0].isalpha()

    @property
    def is_capitalised(self) -> bool:
        """Whether it begins with a capital letter."""
        return self.text[0].isupper()


# A method that finds places of tokens in a text.
FindPlaces = Callable[[list[Token]], list[int]]


def tokens_of(text: str) -> list[Token]:
    """Words and marks of a text; in scripts without spaces every character is one."""
    tokens = []
    for match in _TOKEN.finditer(text):
        token = match[0].lstrip()
        space = match[0][: len(match[0]) - len(token)]
        pieces = [*token] if is_unspaced(token[0]) else [token]
        tokens += [
            Token(space if number == 0 else "", piece) for number, piece in enumerate(pieces)
        ]
    return tokens


def _space_before(word: str) -> str:
    """The white space before a word inside a text."""
    return "" if is_unspaced(word[0]) else " "


def text_of(tokens: Sequence[Token]) -> str:
    """The text of words and marks."""
    return "".join(token.space + token.text for token in tokens).strip()


class Worsening:
    """Makes worsened copies of translations of one language.

    Args:
        translations: texts of the language. Their most frequent words are its function words; words
            and phrases that are put into a copy come from them.
        seed: of everything random.

    Attributes:
        kinds: names of the kinds of errors.
    """

    def __init__(self, translations: Sequence[str], seed: int = 1) -> None:
        self._rng = random.Random(seed)
        self._texts = [tokens_of(text) for text in translations]
        counts = Counter(
            token.text.lower() for tokens in self._texts for token in tokens if token.is_word
        )
        count = min(_FUNCTION_WORDS, len(counts) // _WORDS_PER_FUNCTION_WORD)
        self._function_words = [word for word, _ in counts.most_common(count)]
        # Kind -> the method that makes such an error; an untranslated word needs the source too, see
        # `copy`.
        self._methods: dict[str, Callable[[list[Token]], list[Token] | None] | None] = {
            "word twice": self._word_twice,
            "phrase twice": self._phrase_twice,
            "addition": self._addition,
            "function word lost": functools.partial(self._lost, self._function_places),
            "function word replaced": self._function_word_replaced,
            "word lost": functools.partial(self._lost, self._content_places),
            "word replaced": functools.partial(self._exchanged, self._content_places),
            "words swapped": self._words_swapped,
            "name lost": functools.partial(self._lost, self._name_places),
            "name replaced": functools.partial(self._exchanged, self._name_places),
            "number replaced": self._number_replaced,
            _UNTRANSLATED: None,
            "end lost": self._end_lost,
            "capitals lost": self._capitals_lost,
            "tokenised": self._tokenised,
            "mark lost": functools.partial(self._lost, self._mark_places),
        }
        self.kinds = tuple(self._methods)

    def copy(self, text: str, source: str, kind: str) -> str | None:
        """The text with one error of a kind; None where there is no place for it.

        Args:
            text: the translation.
            source: its source, from which an untranslated word comes.
            kind: one of `kinds`.
        """
        method = self._methods[kind]
        tokens = tokens_of(text)
        worsened = self._untranslated_word(tokens, source) if method is None else method(tokens)
        if worsened is None:
            return None
        copy = text_of(worsened)
        return copy if copy and copy != text else None

    def any_copy(self, text: str, source: str) -> str | None:
        """The text with one error of a random kind; None where no kind has a place."""
        for kind in self._rng.sample(self.kinds, len(self.kinds)):
            copy = self.copy(text, source, kind)
            if copy is not None:
                return copy
        return None

    def _choose(self, places: Sequence[int]) -> int | None:
        """One of the places, drawn at random; None without any."""
        return self._rng.choice(places) if places else None

    def _word_places(self, tokens: list[Token]) -> list[int]:
        """The places of words."""
        return [place for place, token in enumerate(tokens) if token.is_word]

    def _function_places(self, tokens: list[Token]) -> list[int]:
        """The places of function words."""
        return [
            place
            for place, token in enumerate(tokens)
            if token.text.lower() in self._function_words
        ]

    def _content_places(self, tokens: list[Token]) -> list[int]:
        """The places of words that are neither function words nor capitalised."""
        function_places = set(self._function_places(tokens))
        return [
            place
            for place in self._word_places(tokens)
            if place not in function_places and not tokens[place].is_capitalised
        ]

    def _name_places(self, tokens: list[Token]) -> list[int]:
        """The places of capitalised words that do not begin the text."""
        places = self._word_places(tokens)
        return [place for place in places if place > 0 and tokens[place].is_capitalised]

    def _mark_places(self, tokens: list[Token]) -> list[int]:
        """The places of marks of punctuation."""
        return [place for place, token in enumerate(tokens) if not token.text[0].isalnum()]

    # The methods that make an error return None where a text has no place for it.

    def _word_twice(self, tokens: list[Token]) -> list[Token] | None:
        """Repeats a word."""
        place = self._choose(self._word_places(tokens))
        if place is None:
            return None
        word = tokens[place].text
        repeated = Token(_space_before(word), word)
        return [*tokens[: place + 1], repeated, *tokens[place + 1 :]]

    def _phrase_twice(self, tokens: list[Token]) -> list[Token] | None:
        """Repeats two to four words and marks."""
        if len(tokens) < 5:
            return None
        length = self._rng.randint(2, 4)
        begin = self._rng.randrange(len(tokens) - length + 1)
        phrase = tokens[begin : begin + length]
        first = phrase[0]
        if first.is_word:
            first = first._replace(space=_space_before(first.text))
        return [*tokens[: begin + length], first, *phrase[1:], *tokens[begin + length :]]

    def _addition(self, tokens: list[Token]) -> list[Token] | None:
        """Adds words of another text behind a word."""
        other_text = self._rng.choice(self._texts)
        places = self._word_places(tokens)
        if len(other_text) < 4 or not places:
            return None
        length = self._rng.randint(1, _LONGEST_ADDITION)
        begin = self._rng.randrange(max(1, len(other_text) - length))
        phrase = other_text[begin : begin + length]
        words = [token.text for token in phrase if token.is_word]
        added = [Token(_space_before(word), word) for word in words]
        place = self._rng.choice(places)
        return [*tokens[: place + 1], *added, *tokens[place + 1 :]] if added else None

    def _lost(self, find_places: FindPlaces, tokens: list[Token]) -> list[Token] | None:
        """Leaves out one of the tokens at the places that a method finds."""
        place = self._choose(find_places(tokens))
        if place is None or len(tokens) < 3:
            return None
        return [*tokens[:place], *tokens[place + 1 :]]

    def _exchanged(self, find_places: FindPlaces, tokens: list[Token]) -> list[Token] | None:
        """Replaces a word by a word of another text, both at places that a method finds."""
        place = self._choose(find_places(tokens))
        other_text = self._rng.choice(self._texts)
        other_place = self._choose(find_places(other_text))
        if other_place is None:
            return None
        return self._replaced(tokens, place, other_text[other_place].text)

    def _replaced(self, tokens: list[Token], place: int | None, text: str) -> list[Token] | None:
        """The tokens with another text at a place; None for an equal text."""
        if place is None or text.lower() == tokens[place].text.lower():
            return None
        return [*tokens[:place], tokens[place]._replace(text=text), *tokens[place + 1 :]]

    def _function_word_replaced(self, tokens: list[Token]) -> list[Token] | None:
        """Replaces a function word by another one."""
        place = self._choose(self._function_places(tokens))
        if not self._function_words:
            return None
        return self._replaced(tokens, place, self._rng.choice(self._function_words))

    def _words_swapped(self, tokens: list[Token]) -> list[Token] | None:
        """Exchanges two words that follow each other."""
        is_word = [token.is_word for token in tokens]
        pairs = [place for place in range(len(tokens) - 1) if is_word[place] and is_word[place + 1]]
        place = self._choose(pairs)
        if place is None:
            return None
        first, second = tokens[place], tokens[place + 1]
        swapped = [first._replace(text=second.text), second._replace(text=first.text)]
        return [*tokens[:place], *swapped, *tokens[place + 2 :]]

    def _number_replaced(self, tokens: list[Token]) -> list[Token] | None:
        """Replaces one digit of a number."""
        places = [place for place, token in enumerate(tokens) if _NUMBER.search(token.text)]
        place = self._choose(places)
        if place is None:
            return None
        text = tokens[place].text
        digit_places = [number for number, character in enumerate(text) if character.isdigit()]
        digit_place = self._rng.choice(digit_places)
        other_digits = [digit for digit in "123456789" if digit != text[digit_place]]
        new_text = text[:digit_place] + self._rng.choice(other_digits) + text[digit_place + 1 :]
        return self._replaced(tokens, place, new_text)

    def _untranslated_word(self, tokens: list[Token], source: str) -> list[Token] | None:
        words = {token.text.lower() for token in tokens}
        foreign = [
            token.text
            for token in tokens_of(source)
            if token.is_word and token.text.lower() not in words
        ]
        if not foreign:
            return None
        place = self._choose(self._content_places(tokens))
        return self._replaced(tokens, place, self._rng.choice(foreign))

    def _end_lost(self, tokens: list[Token]) -> list[Token] | None:
        """Cuts the text behind its first half, or later."""
        if len(tokens) < 6:
            return None
        return tokens[: self._rng.randint(len(tokens) // 2, len(tokens) - 3)]

    def _capitals_lost(self, tokens: list[Token]) -> list[Token] | None:
        """Puts all words in lower case."""
        return [token._replace(text=token.text.lower()) for token in tokens]

    def _tokenised(self, tokens: list[Token]) -> list[Token] | None:
        """Puts a space before every mark, as tokenisers leave it."""
        if not any(token.space for token in tokens):
            return None
        return [token._replace(space=" ") for token in tokens]
