"""Reading training text: origins, caps, line ranges, held-back sentences, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from helpers import write, write_jsonl

from mtmetrics.errors import InputError
from mtmetrics.training import corpus
from mtmetrics.training.configs import DistilConfig


def row(number: int, origin: str) -> dict:
    return {"source": f"Satz {number}", "target": f"sentence {number}", "origin": origin}


@pytest.mark.parametrize(
    ("origin", "patterns", "expected"),
    [
        ("wmt-newstest2015", ["wmt-*"], True),
        ("wmt-newstest2015", ["wmt"], False),
        ("multi30k", ["x", "multi30k"], True),
        ("a-multi30k", ["multi30k*"], False),
    ],
)
def test_origin_matches_whole_names_or_prefixes(
    origin: str, patterns: list[str], expected: bool
) -> None:
    assert corpus.origin_matches(origin, patterns) is expected


def test_the_exact_name_goes_before_patterns_and_a_long_pattern_before_a_short_one() -> None:
    numbers = {"wmt-*": 1, "wmt-news*": 2, "wmt-newstest2015": 3}
    origins = ("wmt-newstest2015", "wmt-newstest2014", "wmt-dev", "tatoeba")
    assert [corpus.number_for(origin, numbers, 9) for origin in origins] == [3, 2, 1, 9]


def test_pairs_are_filtered_capped_counted_and_not_repeated(tmp_path: Path) -> None:
    rows = (
        [row(i, "news") for i in range(5)]
        + [row(i, "manual") for i in range(10, 20)]
        + [row(30, "closed-x"), row(0, "again")]
    )
    path = write_jsonl(tmp_path / "de-en.jsonl.gz", rows)
    pairs, counts = corpus.read_pairs([path], exclude=["closed-*"], caps={"man*": 4})
    assert counts.as_dict()["used"] == {f"{tmp_path.name}/de-en.jsonl.gz": {"news": 5, "manual": 4}}
    assert counts.left_out == {"origin excluded": 1, "repeated": 1, "over the cap": 6}
    assert {pair.group for pair in pairs} == {"de-en"}
    assert pairs == corpus.read_pairs([path], exclude=["closed-*"], caps={"man*": 4})[0]
    assert pairs != corpus.read_pairs([path], exclude=["closed-*"], caps={"man*": 4}, seed=5)[0]


def test_word_lists_are_a_group_of_their_own(tmp_path: Path) -> None:
    pairs, _ = corpus.read_pairs(
        [write(tmp_path / "de-en.tsv", "Haus\thouse\tlexicon\nHund\tdog\n")]
    )
    assert [(p.source, p.target, p.origin, p.group) for p in pairs] == [
        ("Haus", "house", "lexicon", "de-en.words"),
        ("Hund", "dog", corpus.UNNAMED, "de-en.words"),
    ]


def test_pairs_with_a_judged_text_are_left_out(tmp_path: Path) -> None:
    rows = [row(n, "news") for n in range(40)]
    rows += [
        {"source": "Das Haus!", "target": "a house"},
        {"source": "ein hund", "target": "The DOG"},
    ]
    path = write_jsonl(tmp_path / "de-en.jsonl.gz", rows)
    texts = enumerate([("das haus", "x"), ("y", "the dog")])
    lines = [
        {"lp": "de-en", "source": s, "translation": t, "human": human} for human, (s, t) in texts
    ]
    judged = write_jsonl(tmp_path / "judged.jsonl", lines)
    config = DistilConfig(
        held_back_per_mille=100, steps=3, warmup_steps=0, decay_steps=0, pairs_per_step=4
    )
    data = corpus.read_distillation(
        corpus.ParallelText([path]), [judged], config, seed=1, processes=1
    )
    assert {pair.origin for pair in [*data.train, *data.held]} == {"news"}
    assert data.counts.left_out["judged"] == 2
    sizes = data.record()["pairs"]
    assert (sizes["words"], sizes["held_back"]) == (0, len(data.held))
    assert sizes["train"] == len(data.train) == 40 - len(data.held)
    assert [len(rows) for rows in data.plan] == [4] * 3


def test_line_ranges_carry_origins(tmp_path: Path) -> None:
    path = write(tmp_path / "en.txt", "".join(f"line {i}\n" for i in range(1, 11)))
    lines, counts = corpus.read_lines([f"{path}:8-9=speech,2-3=news"])
    assert lines == [
        ("line 2", "news"),
        ("line 3", "news"),
        ("line 8", "speech"),
        ("line 9", "speech"),
    ]
    assert counts.used == {f"{tmp_path.name}/en.txt": {"news": 2, "speech": 2}}
    assert corpus.read_lines([f"{path}:8-9=speech,2-3=news"], exclude=["speech"])[0] == lines[:2]
    assert len(corpus.read_lines([str(path)])[0]) == 10


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("en.txt:3-2", "end after"),
        ("en.txt:0-2", "start at 1"),
        ("en.txt:1-4,3-6", "overlap"),
        ("en.txt:2-90", "has 3 lines"),
    ],
)
def test_bad_line_ranges_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("en.txt").write_text("a\nb\nc\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        corpus.read_lines([spec])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ('{"source": "a"}\n', "line 1: the row needs a text `target`"),
        (
            '{"source": "a", "target": "b"}\n{"source": null, "target": "b"}\n',
            "line 2: the row needs a text `source`",
        ),
        ('{"source": "a", "target": " "}\n', "line 1"),
        ("[1]\n", "line 1"),
        ("{\n", "line 1"),
    ],
)
def test_bad_pair_files_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "de-en.jsonl", text)
    with pytest.raises(InputError, match=message) as caught:
        corpus.read_pairs([path])
    assert "de-en.jsonl" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        corpus.read_pairs([tmp_path / "none.jsonl"])
    with pytest.raises(InputError, match="no such file"):
        corpus.read_lines([str(tmp_path / "none.txt")])
    with pytest.raises(InputError, match="--parallel"):
        corpus.read_pairs([])


@pytest.mark.parametrize("spec", ["news", "=3", "news=-1", "news=many"])
def test_bad_numbers_name_their_option(spec: str) -> None:
    with pytest.raises(InputError, match="--cap needs NAME=NUMBER"):
        corpus.parse_numbers([spec], "--cap")


def test_held_back_sentences_share_no_side_with_training() -> None:
    pairs = [corpus.Pair(f"Satz {i}.", f"sentence {i}", "news", "de-en") for i in range(400)]
    pairs += [corpus.Pair(f"věta {i}", f"Sentence {i}!", "news", "cs-en") for i in range(400)]
    pairs += [corpus.Pair(f"SATZ {i}", f"предложение {i}", "news", "de-ru") for i in range(400)]
    listed = [corpus.Pair("Satz", "sentence 7", "lexicon", "de-en.words")]
    train, words, held = corpus.training_split(pairs + listed, per_mille=100, per_group=20, seed=1)
    assert words == listed
    sides = {corpus.text_key(text) for pair in held for text in (pair.source, pair.target)}
    assert not sides & {
        corpus.text_key(text) for pair in train for text in (pair.source, pair.target)
    }
    sizes = {
        group: sum(pair.group == group for pair in held) for group in ("de-en", "cs-en", "de-ru")
    }
    assert sizes == {"de-en": 20, "cs-en": 20, "de-ru": 20}
    assert corpus.training_split(pairs, per_mille=100, per_group=20, seed=1) == (train, [], held)
    with pytest.raises(InputError, match="400 sentence pairs are too few"):
        corpus.training_split(pairs[:400], per_mille=0, per_group=20, seed=1)


def test_the_plan_keeps_groups_apart_and_a_shorter_one_is_its_beginning() -> None:
    groups = np.array(["a-en"] * 100 + ["b-en"] * 50 + ["b-en.words"] * 8)
    lengths = np.random.default_rng(0).integers(5, 40, 158)
    plan = corpus.plan_batches(groups, lengths, 10, 60, seed=1, words=0.4)
    for batch in plan:
        assert len(batch) == len(set(batch.tolist())) == (8 if batch[0] >= 150 else 10)
        assert len(set(groups[batch])) == 1
    shorter = corpus.plan_batches(groups, lengths, 10, 25, seed=1, words=0.4)
    assert all(np.array_equal(a, b) for a, b in zip(shorter, plan, strict=False))
    first_pass = [batch for batch in plan if batch[0] < 100][:10]
    assert sorted(np.concatenate(first_pass).tolist()) == list(range(100))
    assert not any(
        batch[0] >= 150 for batch in corpus.plan_batches(groups, lengths, 10, 60, seed=1, words=0.0)
    )


def test_a_pass_over_pairs_takes_all_of_them_once_with_others_of_like_length() -> None:
    lengths = np.random.default_rng(0).integers(1, 60, 1003)
    plan = corpus.plan_epochs(lengths, 10, 2, seed=1)
    passes = plan[:101], plan[101:]
    assert all(sorted(np.concatenate(batches).tolist()) == list(range(1003)) for batches in passes)
    assert [sum(len(batch) != 10 for batch in batches) for batches in passes] == [1, 1]
    assert np.mean([np.ptp(lengths[batch]) for batch in plan]) < 5
    assert not all(np.array_equal(a, b) for a, b in zip(*passes, strict=True))
    assert all(
        np.array_equal(a, b)
        for a, b in zip(corpus.plan_epochs(lengths, 10, 1, seed=1), passes[0], strict=True)
    )


def test_numbers_of_origins_are_decimal() -> None:
    assert corpus.parse_numbers(["news=12"], "--cap") == {"news": 12}
    assert corpus.parse_numbers(["news=.5"], "--repeat", whole=False) == {"news": 0.5}
    for text in ("news=²", "news=-1", "=3", "news=1.5"):
        with pytest.raises(InputError, match="--cap needs NAME=NUMBER"):
            corpus.parse_numbers([text], "--cap")
