"""Old names of commands: they do what the new ones do, and say so."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import refused, write, write_jsonl

from mtmetrics.cli.main import RENAMED, main

TEXTS = ["das Haus", "der Hund", "ein Baum", "die Katze"]
WORDS = ["the house", "the dog", "a tree", "the cat"]
HUMAN = [0.1, 0.4, 0.5, 0.3]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with text and judgements."""
    monkeypatch.chdir(tmp_path)
    write(Path("pairs.tsv"), "".join(map("{}\t{}\n".format, TEXTS, WORDS)))
    write(Path("text.txt"), "\n".join(TEXTS) + "\n")
    rows = [
        {"lp": "de-en", "source": text, "reference": word, "translation": word[:number], "human": h}
        | {"bars": h + number}
        for number, (text, word, h) in enumerate(zip(TEXTS, WORDS, HUMAN, strict=True), 4)
    ]
    write_jsonl(Path("judged.jsonl"), rows)
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "out"),
    [
        (
            "remap --encoder {encoder} --lp de-en --parallel pairs.tsv --map umd --out OUT",
            "train maps --encoder {encoder} --lp de-en --parallel pairs.tsv --map umd --out OUT",
            "de-en.umd.safetensors",
        ),
        (
            "idf --encoder {encoder} --text text.txt --out OUT.safetensors",
            "train idf --encoder {encoder} --text text.txt --out OUT.safetensors",
            ".safetensors",
        ),
        (
            "label --metric chrf --data judged.jsonl --out OUT.jsonl",
            "train labels --metric chrf --data judged.jsonl --out OUT.jsonl",
            ".jsonl",
        ),
        (
            "plot scatter --metric chrf --data judged.jsonl --out OUT.svg",
            "evaluate --draw scatter --metric chrf --data judged.jsonl --plot OUT.svg",
            None,
        ),
        (
            "plot weights --metric sentsim:mini --against reference --lp de-en --data judged.jsonl "
            "--parts=sss,bertscore --steps 2 --out OUT.svg",
            "evaluate --draw weights --metric sentsim:mini --against reference --lp de-en --data "
            "judged.jsonl --weigh sss,bertscore --steps 2 --plot OUT.svg",
            None,
        ),
        (
            # A value that is the name of a picture, too.
            "plot bars --column bars --data judged.jsonl --out OUT.svg",
            "evaluate --draw bars --column bars --data judged.jsonl --plot OUT.svg",
            None,
        ),
    ],
)
def test_an_old_name_does_the_same_and_names_the_new_one(
    old: str,
    new: str,
    out: str | None,
    folder: Path,
    mtmetrics: Callable,
    tiny_encoder: Path,
) -> None:
    made = {}
    for place, call in (("old", old), ("new", new)):
        words = call.format(encoder=tiny_encoder).replace("OUT", place).split()
        code, _, err = mtmetrics(*words)
        assert code == 0, err
        lines = [line for line in err.splitlines() if " is now " in line]
        if place == "new":
            assert not lines
            continue
        name = old.split()[0]
        assert lines == [
            f"mtmetrics: 'mtmetrics {name}' is now 'mtmetrics {RENAMED[name]}'; the old name goes "
            "in 2.1"
        ]
    if out is None:
        made = {place: Path(f"{place}.svg").stat().st_size > 1000 for place in ("old", "new")}
        assert made == {"old": True, "new": True}
        return
    paths = [
        Path(place) / out if out[:2] == "de" else Path(place + out) for place in ("old", "new")
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("name", RENAMED)
def test_an_old_name_is_not_listed_but_understood(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert f"\n    {name} " not in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main([name, "--help"])
    assert stopped.value.code == 0


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ("plot", "--data is missing"),
        ("plot bars --metric chrf --data judged.jsonl", "pass --plot too"),
        ("tune --metric chrf --data judged.jsonl --out=out", "takes no presets"),
    ],
)
def test_wrong_usage_of_an_old_name(
    old: str, message: str, folder: Path, mtmetrics: Callable
) -> None:
    code, out, err = mtmetrics(*old.split())
    note, error = err.splitlines()
    assert (code, out) == (2, "")
    assert " is now " in note
    assert message in error


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--tune", "out", "--plot", "a.svg"], "leave out --plot"),
        (["--tune", "out", "--level", "system"], "leave out --level system"),
        (["--tune", "out", "--layers", "all"], "leave out --layers"),
        (["--try", "layer=1"], "pass --tune too"),
        (["--draw", "bars"], "pass --plot too"),
        (["--plot", "a.svg", "--level", "system"], "leave out --level"),
        (["--plot", "a.svg", "--draw", "bars", "--layers", "all"], "--layers compares the layers"),
        (["--plot", "a.svg", "--draw", "weights", "--coefficient", "darr"], "--coefficient 'darr'"),
        (["--plot", "a.svg", "--draw", "weights", "--column", "x"], "leave out --group and"),
        (["--plot", "judged.jsonl"], "is the input --data"),
        (["--tune", "judged.jsonl", "--overwrite"], "is the input --data"),
    ],
)
def test_what_does_not_go_together_is_refused(
    argv: list[str], message: str, folder: Path, mtmetrics: Callable
) -> None:
    refused(mtmetrics("evaluate", "--metric", "chrf", "--data", "judged.jsonl", *argv), message)
    assert sorted(path.name for path in folder.iterdir()) == [
        "judged.jsonl",
        "pairs.tsv",
        "text.txt",
    ]


def test_a_picture_stands_beside_the_table(folder: Path, mtmetrics: Callable) -> None:
    call = ("evaluate", "--metric", "chrf", "--data", "judged.jsonl", "--format", "json")
    code, out, _ = mtmetrics(*call, "--plot", "bars.svg")
    assert code == 0
    [row] = json.loads(out)["rows"]
    assert row["metric"] == "chrf"
    assert Path("bars.svg").stat().st_size > 1000
