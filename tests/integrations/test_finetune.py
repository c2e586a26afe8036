"""The worked example of a training that two metrics watch, shortened."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import mtmetrics
from mtmetrics.layout import source_tree
from mtmetrics.models.translator import Translator

pytest.importorskip("accelerate", reason="needs the extra 'train'")


@pytest.fixture(scope="module")
def finetune() -> ModuleType:
    root = source_tree()
    assert root is not None
    path = root / "tools" / "examples" / "finetune.py"
    spec = importlib.util.spec_from_file_location("finetune", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_200_built_in_sentences_are_learnt_and_50_others_held_back(finetune) -> None:
    learnt, held_back = finetune.built_in_pairs().split()
    assert [len(set(texts)) for texts in (*learnt, *held_back)] == [200, 200, 50, 50]
    assert not {*learnt.sources} & {*held_back.sources}


def test_the_best_checkpoint_is_kept(finetune, tmp_path: Path, capsys) -> None:
    """Its translations score as the table says, by both metrics."""
    out = tmp_path / "run"
    finetune.main(["--lines", "20", "--epochs", "2", "--best", "xmoverscore", "--out", str(out)])
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    head = table.index(["epoch", "XMoverScore", "ESIM"])
    rows = [[float(cell) for cell in row] for row in table[head + 1 : head + 4]]
    assert [row[0] for row in rows] == [0, 1, 2]
    assert table[head + 4] == ["best", "by", "xmoverscore:", str(out / "best")]
    best = max(rows[1:], key=lambda row: row[1])
    sources, references = finetune.built_in_pairs()
    held_back, expected = sources[16:20], references[16:20]
    texts = [line.text for line in Translator(out / "best", "de-en").translate(held_back)]
    mover = mtmetrics.load("xmoverscore", "mini", lang_pair="de-en")
    esim = mtmetrics.load("esim", "mini", lang_pair="de-en", against="reference")
    assert mover.score(texts, sources=held_back).system == pytest.approx(best[1], abs=1e-3)
    assert esim.score(texts, references=expected).system == pytest.approx(best[2], abs=1e-3)


def test_files_of_the_user(finetune, tmp_path: Path, capsys) -> None:
    german, english = tmp_path / "a.de", tmp_path / "a.en"
    german.write_text("".join(f"Satz {number}\n" for number in range(12)), encoding="utf-8")
    english.write_text("".join(f"sentence {number}\n" for number in range(12)), encoding="utf-8")
    pairs = finetune.read_pairs(str(german), str(english), lines=10)
    learnt, held_back = pairs.split()
    assert (len(learnt.sources), held_back.sources) == (8, ["Satz 8", "Satz 9"])
    assert held_back.references == ["sentence 8", "sentence 9"]
    (tmp_path / "short.en").write_text("one\n", encoding="utf-8")
    files = ["-s", str(german)]
    for arguments, message in [
        (files, "--references: missing; pass both files, or none"),
        (["-r", str(english)], "--sources: missing"),
        ([*files, "-r", str(tmp_path / "short.en")], "ends after 1 lines"),
        ([*files, "-r", str(english), "--lines", "4"], "4 lines: at least 5 are needed"),
        ([*files, "-r", str(tmp_path / "none.en")], "none.en"),
    ]:
        with pytest.raises(SystemExit) as stopped:
            finetune.main(arguments)
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err
