"""Options that commands share, and progress as it is shown."""

import argparse
import dataclasses

import pytest

from mtmetrics.cli import options
from mtmetrics.cli.options import add_metric_options, add_model_options, metric_specs, pool_options
from mtmetrics.models.progress import report_progress
from mtmetrics.models.running import Running
from mtmetrics.reports.metric_runs import MetricSpec


def test_options_and_presets_go_to_the_metrics_that_they_are_for() -> None:
    def specs(*argv: str) -> dict[str, MetricSpec]:
        parser = argparse.ArgumentParser()
        add_metric_options(parser, several=True)
        return metric_specs(parser.parse_args(argv))

    texts = ("xmoverscore:mini:lm_weight=0.5,ngram=1", "sentsim::normalize=fixed")
    assert specs("--metric", texts[0], "--metric", texts[1], "--preset", "paper") == {
        texts[0]: MetricSpec("xmoverscore", "mini", (("lm_weight", 0.5), ("ngram", 1))),
        texts[1]: MetricSpec("sentsim", "paper", (("normalize", "fixed"),)),
    }
    (spec,) = specs(
        "--metric", "sentsim:mini:layer=2", "--combine", "sss+wmd", "--layer", "3"
    ).values()
    assert (spec.metric, spec.preset, dict(spec.options)) == (
        "sentsim",
        "mini",
        {"layer": 2, "combine": "sss+wmd"},
    )
    assert specs() == {"xmoverscore": MetricSpec("xmoverscore", "paper")}


def test_progress_is_finer_than_a_chunk_and_stays_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = []

    class Bar:
        total, n = 100, 0

        def update(self, count: int) -> None:
            self.n += count
            shown.append(self.n)

        def __enter__(self) -> "Bar":
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(options, "progress", lambda **_: Bar())
    with options.scoring(100):
        for _ in range(2):
            for _ in range(5):
                report_progress("texts", 20)
            report_progress("segments", 45)
    assert shown == sorted(shown)
    assert len(set(shown)) > 8
    assert shown[-1] == 100


def test_every_setting_is_an_option_of_the_command_line_with_the_same_default() -> None:
    parser = argparse.ArgumentParser()
    add_model_options(parser)
    assert pool_options(parser.parse_args([])) == dataclasses.asdict(Running())
    given = parser.parse_args(["--batch-tokens", "7", "--dtype", "auto", "--local-files-only"])
    changed = dataclasses.replace(Running(), batch_tokens=7, dtype="auto", local_files_only=True)
    assert pool_options(given) == dataclasses.asdict(changed)


def test_a_list_that_is_given_again_grows_and_replaces_its_default() -> None:
    parser = argparse.ArgumentParser()
    options.add_options(
        parser,
        {
            "--at N ...": ("N of Precision@N", {"type": int, "default": [1, 5]}),
            "--data FILE ...": "",
        },
    )
    for words, expected in (
        ("--data a --at 1 --data b c", ([1], ["a", "b", "c"])),
        ("--at 1 5 --at 7", ([1, 5, 7], [])),
        ("", ([1, 5], [])),
    ):
        found = parser.parse_args(words.split())
        assert (found.at, found.data) == expected
