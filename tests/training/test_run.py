"""The skeleton of trainings: its work folder, and what an artifact says of its making."""

import json
from pathlib import Path
from typing import Any

import pytest

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.training.configs import LMConfig
from mtmetrics.training.run import Run, save_model


def opened(data: Path, **options: Any) -> Run:
    run = Run(data.parents[1] / "toy", **options)
    run.open(LMConfig(), {"parallel": [data]}, side="target")
    return run


def test_a_work_folder_belongs_to_its_settings_and_files(data: Path) -> None:
    run = opened(data)
    (run.work / "before.json").touch()
    opened(data)
    with pytest.raises(
        InputError,
        match=r"toy\.work holds a run with other settings \(seed 1, not 2\); pass --restart",
    ):
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
    with pytest.raises(InputError, match=r"none\.jsonl: no such file"):
        run.open(LMConfig(), {"parallel": [data, data.with_name("none.jsonl")]})
    run.output.mkdir()
    with pytest.raises(
        InputError, match="toy exists already; choose another folder or pass --overwrite"
    ):
        opened(data)
    assert not run.work.exists()
    assert opened(data, overwrite=True).work.exists()


def test_the_record_says_what_was_used_but_not_where_it_lay(data: Path) -> None:
    run = opened(data, seed=4)
    run.history = [{"loss": 0.123456789, "step": 1}, {"eval": 2, "step": 3}]
    with run.artifact("toy", "mtmetrics train toy", pairs=7) as folder:
        (folder / "weights").write_text("w", encoding="utf-8")
        assert not run.output.exists()
    assert sorted(path.name for path in run.output.iterdir()) == [
        "training.json",
        "training_log.csv",
        "weights",
    ]
    record = json.loads((run.output / "training.json").read_text(encoding="utf-8"))
    assert {"python", "mtmetrics", "torch", "transformers", "sentence-transformers"} <= set(
        record.pop("versions")
    )
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


def test_weights_that_half_precision_cannot_hold_are_refused(tmp_path: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    sizes = {
        "hidden_size": 4,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 4,
    }
    model = BertModel(BertConfig(vocab_size=5, **sizes), add_pooling_layer=False)
    with torch.no_grad():
        model.embeddings.word_embeddings.weight[2, 1] = 70000.0
    with pytest.raises(
        MTMetricsError, match="1 weights are not finite in half precision, the first is embeddings"
    ):
        save_model(model, None, tmp_path)
    assert not list(tmp_path.iterdir())
