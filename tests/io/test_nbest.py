"""N-best lists of Moses and Marian: fields are counted from the right, and what cannot be decided
is refused."""

from pathlib import Path

import pytest
from helpers import write

from mtmetrics.errors import InputError
from mtmetrics.io.nbest import read_candidates


def candidates(tmp_path: Path, *lines: str) -> list[tuple[str, float]]:
    lists = list(
        read_candidates(write(tmp_path / "n.best", "".join(f"{line}\n" for line in lines)))
    )
    return [(candidate.text, candidate.score) for group in lists for candidate in group]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0 ||| the house ||| LM0= -1 Distortion0= 0 0 ||| -1.5", ("the house", -1.5)),
        ("0 ||| the house  ||| d: 0 -1 lm: -3 w: -2 ||| -1e-3", ("the house ", -0.001)),
        ("0 ||| the house ||| f ||| 1", ("the house", 1.0)),
        ("0 ||| the house |||  ||| 1", ("the house", 1.0)),
        ("0 ||| the house ||| -2", ("the house", -2.0)),
        # A text with bars.
        ("0 ||| a ||| b ||| LM0= -1 ||| 4", ("a ||| b", 4.0)),
        ("0 ||| a ||| b ||| c 5 ||| F0= -1 F1= 2 ||| 4", ("a ||| b ||| c 5", 4.0)),
        ("0 ||| a |||| b ||| LM0= -1 ||| 4", ("a |||| b", 4.0)),
        # Alignments behind the score, as Moses has them, or before the features, as Marian has
        # them.
        ("0 ||| the house ||| LM0= -1 ||| -1.5 ||| 0-0 1-1", ("the house", -1.5)),
        ("0 ||| the ||| house ||| LM0= -1 ||| -1.5 ||| 0-0 1-1", ("the ||| house", -1.5)),
        ("0 |||  ||| LM0= -1 ||| -1.5 ||| ", ("", -1.5)),
        ("0 |||  ||| LM0= -1 ||| -1.5 |||", ("", -1.5)),
        ("0 ||| the house ||| 0-0 1-1 ||| F0= -2 ||| -0.7", ("the house", -0.7)),
        (
            "0 ||| the house ||| 0-0 1-1 ||| WordScores= -1 -2 ||| F0= -2 ||| -0.7",
            ("the house", -0.7),
        ),
    ],
)
def test_fields_are_counted_from_the_right(
    tmp_path: Path, line: str, expected: tuple[str, float]
) -> None:
    assert candidates(tmp_path, line) == [expected]


def test_line_1_says_whether_alignments_stand_before_the_features(tmp_path: Path) -> None:
    plain, scored = "0 ||| it was ||| F0= -2 ||| -1", "0 ||| it was ||| 2-1 ||| F0= -2 ||| -1"
    assert candidates(tmp_path, plain, scored) == [("it was", -1.0), ("it was ||| 2-1", -1.0)]
    assert candidates(tmp_path, scored, "0 |||  |||  ||| F0= 0 ||| 0") == [
        ("it was", -1.0),
        ("", 0.0),
    ]
    with pytest.raises(InputError, match="n.best, line 2: has not the same fields as line 1"):
        candidates(tmp_path, scored, plain)


@pytest.mark.parametrize(
    "line",
    [
        "the house",
        "0 ||| the house",
        "x ||| the house ||| F0= 1 ||| 1",
        "0 ||| the house ||| F0= 1 ||| good",
        "0 ||| the house ||| F0= 1 ||| 0-0",
        "0 ||| the house ||| see room 5",
        "0 ||| a ||| b ||| c d ||| 1",
        "0 ||| a ||| b c ||| 1",
        "0 ||| a ||| F0= 1 ||| -1 ||| 5",
        "0 ||| a ||| F0= 1 ||| -1 ||| more ||| 5",
    ],
)
def test_what_cannot_be_decided_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match="n.best, line 2: .*NUMBER"):
        candidates(tmp_path, "0 ||| x ||| F0= 1 ||| 1", line)
