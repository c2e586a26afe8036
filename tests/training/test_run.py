"""The skeleton of trainings: its work folder, the schedule of whole passes, and what an artifact says of its making."""

import json
from pathlib import Path
from typing import Any

import pytest

from mtmetrics.errors import InputError
from mtmetrics.training.run import Passes, Run
from mtmetrics.training.settings import ContrastiveConfig, LMConfig, TranslationConfig


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "text" / "de-en.jsonl"
    path.parent.mkdir()
    path.write_text("{}\n", encoding="utf-8")
    return path


def opened(data: Path, **options: Any) -> Run:
    run = Run(data.parents[1] / "toy", **options)
    run.open(LMConfig(), {"parallel": [data]}, side="target")
    return run


def test_a_work_folder_belongs_to_its_settings_and_files(data: Path) -> None:
    run = opened(data)
    assert run.once("before", lambda: {"loss": 1.5}) == {"loss": 1.5}
    assert opened(data).once("before", lambda: pytest.fail("computed again")) == {"loss": 1.5}
    with pytest.raises(InputError, match=r"toy\.work holds a run with other settings; pass --restart"):
        opened(data, seed=2)
    data.write_text("{}\n{}\n", encoding="utf-8")
    with pytest.raises(InputError, match="other settings"):
        opened(data)
    opened(data, restart=True)
    assert [path.name for path in run.work.iterdir()] == ["settings.json"]
    # Nothing was computed yet, so other settings may begin.
    opened(data, seed=2)
    assert opened(data, work=data.parent / "elsewhere", seed=3).work == data.parent / "elsewhere"


def test_what_cannot_begin_leaves_nothing(data: Path) -> None:
    run = Run(data.parents[1] / "toy")
    with pytest.raises(InputError, match="90 steps are fewer than 80 of warm-up and 700 of decay"):
        run.open(LMConfig(steps=90), {"parallel": [data]})
    with pytest.raises(InputError, match=r"none\.jsonl: no such file"):
        run.open(LMConfig(), {"parallel": [data, data.with_name("none.jsonl")]})
    run.output.mkdir()
    with pytest.raises(InputError, match="toy exists already; choose another folder or pass --overwrite"):
        opened(data)
    assert not run.work.exists()
    assert opened(data, overwrite=True).work.exists()


def test_the_record_says_what_was_used_but_not_where_it_lay(data: Path) -> None:
    run = opened(data, seed=4)
    run.history = [{"loss": 0.123456789, "step": 1}, {"eval": 2, "step": 3}]
    with run.artifact("toy", "mtmetrics train toy", pairs=7) as folder:
        (folder / "weights").write_text("w", encoding="utf-8")
        assert not run.output.exists()
    assert sorted(path.name for path in run.output.iterdir()) == ["training.json", "training_log.csv", "weights"]
    record = json.loads((run.output / "training.json").read_text(encoding="utf-8"))
    assert {"python", "mtmetrics", "torch", "transformers", "sentence-transformers"} <= set(record.pop("versions"))
    assert record.pop("config") == vars(LMConfig())
    assert record == {
        "kind": "toy",
        "command": "mtmetrics train toy",
        "seed": 4,
        "parallel": ["text/de-en.jsonl"],
        "side": "target",
        "pairs": 7,
    }
    log = (run.output / "training_log.csv").read_text(encoding="utf-8")
    assert log == "step,eval,loss\n1,,0.123457\n3,2,\n"


def test_the_schedule_of_whole_passes() -> None:
    assert Passes.over(10, TranslationConfig(epochs=3, pairs_per_step=4)) == Passes(9, 0, 9, 1000, False)
    assert Passes.over(40, ContrastiveConfig(epochs=2, pairs_per_step=4, warmup=0.13)) == Passes(20, 2, 18, 100, False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs 0: must be a whole number of at least 1"),
        ({"pairs_per_step": 0}, "pairs_per_step 0: must be a whole number of at least 1"),
        ({"warmup": 1.0}, "warmup 1.0: a share of the steps is needed"),
    ],
)
def test_settings_that_allow_no_step(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Passes.over(10, ContrastiveConfig(**change))
