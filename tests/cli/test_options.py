"""Options that commands share, and progress as it is shown."""

import argparse
import dataclasses

import pytest

from mtmetrics.cli import messages, options, probe
from mtmetrics.cli.options import add_metric_options, add_model_options, metric_specs, pool_options
from mtmetrics.errors import InputError
from mtmetrics.models.progress import report_progress
from mtmetrics.models.running import Running
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.spec import MetricSpec


def test_options_and_presets_go_to_the_metrics_that_they_are_for() -> None:
    def specs(*argv: str) -> dict[str, MetricSpec]:
        parser = argparse.ArgumentParser()
        add_metric_options(parser, is_repeatable=True)
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


def test_advice_for_a_setting_of_no_single_metric_can_be_followed() -> None:
    def parse(*argv: str) -> dict[str, MetricSpec]:
        parser = argparse.ArgumentParser()
        add_metric_options(parser, is_repeatable=True)
        return metric_specs(parser.parse_args(argv), default_metrics=())

    for metrics in (["chrf", "sentsim:mini"], []):
        argv = [word for metric in metrics for word in ("--metric", metric)]
        with pytest.raises(InputError, match="^--combine: for which metric") as error:
            parse(*argv, "--combine", "sss")
        advice = str(error.value).rpartition(" ")[2]
        [spec] = parse("--metric", advice).values()
        assert "combine" in find_metric(spec.metric).settings_class().options()
        assert not metrics or (spec.metric, spec.preset) == ("sentsim", "mini")
    # A metric without presets takes none from --preset.
    with pytest.raises(InputError, match=r"--metric sentbleu::effective-order=VALUE$"):
        parse("--preset", "mini", "--effective-order")


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

    monkeypatch.setattr(messages, "progress", lambda **_: Bar())
    with messages.scoring(100):
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


@pytest.mark.parametrize(
    ("words", "expected"),
    [("--at 1 5 --at 7 -s s", [1, 5, 7]), ("--at 3", [3]), ("", [])],
)
def test_a_list_that_is_given_again_grows(words: str, expected: list[int]) -> None:
    parser = argparse.ArgumentParser()
    probe.configure(parser)
    for _ in range(2):  # the default stays as it is
        assert parser.parse_args(["matching", *words.split()]).at == expected


def test_owners_that_describe_a_setting_differently_are_named() -> None:
    parser = argparse.ArgumentParser()
    owners = {"a": [setting(1)], "b": [setting(2)], "c": [setting(1)]}
    options.add_settings(parser, owners)
    [action] = [action for action in parser._actions if action.dest == "size"]
    assert action.help == "a, c: of it, 5 %% (default: 1); b: of it, 5 %% (default: 2)"
    assert (action.default, parser.parse_args(["--size", "3"]).size) == (None, 3)


def setting(default: int) -> dataclasses.Field:
    metadata = {"help": "of it, 5 %"}
    field = ("size", int, dataclasses.field(default=default, metadata=metadata))
    return dataclasses.fields(dataclasses.make_dataclass("Made", [field]))[0]
