"""The argparse parser of ``mtmetrics``, whose help ends with examples.

The options of a command depend on the metrics that ``--metric`` and ``--plugin`` name, so
`early_options` reads these two before the full parser is built."""

import argparse
import copy
from collections.abc import Sequence
from typing import IO

from mtmetrics.cli import options
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import known_metric

# One command line per line. The help of a command shows the lines that begin with its name. Tests
# parse every line.
EXAMPLES = """
mtmetrics score --preset mini --lp de-en -s source.de -t system-a.en system-b.en --ci
mtmetrics score --metric xmoverscore:mini --metric sentsim:mini --lp de-en rows.tsv --segments
mtmetrics score --metric bertr:mini -r reference.en -t system.en --out scores.jsonl
mtmetrics compare --preset mini --lp de-en -s source.de -t system-a.en system-b.en
mtmetrics compare --metric bertr:mini --metric chrf -r reference.en -t system-a.en system-b.en --format markdown
mtmetrics compare --preset mini --lp de-en systems.jsonl --correction holm --resamples 10000
mtmetrics explain --preset mini --lp de-en rows.tsv --segments 1-3
mtmetrics explain --preset mini --lp de-en -s source.de -t system.en --worst 10 --plot worst
mtmetrics explain --metric bertr:mini -r reference.en -t system.en --segments 7 --plot segment.svg
mtmetrics evaluate --preset mini --data judged.jsonl
mtmetrics evaluate --metric sentsim:mini --metric chrf --against reference --ci --data de-en.jsonl fi-en.jsonl
mtmetrics evaluate --metric bertr:mini --layers all --plot layers.svg --data judged.jsonl
mtmetrics evaluate --recipe zhao2020-table1 --preset mini --report reproduced
mtmetrics evaluate --metric xmoverscore:mini --data judged.jsonl --plot scatter.png --draw scatter
mtmetrics evaluate --metric xmoverscore:mini --metric chrf --data judged.jsonl --plot bars.svg
mtmetrics evaluate --metric xmoverscore:mini --data development.jsonl --plot weights.pdf --draw weights
mtmetrics evaluate --metric xmoverscore:mini --data development.jsonl --tune tuned
mtmetrics evaluate --metric uscore:mini --data development.jsonl --try weights=tuned,+,++ --tune tuned
mtmetrics evaluate --metric bertr:mini:encoder=my-encoder --against reference --data development.jsonl --tune tuned
mtmetrics probe preference pairs.tsv --preset mini --lp de-en --word-pairs words.tsv
mtmetrics probe matching pairs.tsv --preset mini --lp de-en --candidates 50
mtmetrics probe matching pairs.tsv --metric sentsim:mini --lp de-en --at 1 --plot matching.png
mtmetrics list
mtmetrics list xmoverscore sentsim
mtmetrics list --format json
mtmetrics data list
mtmetrics data pull wmt17-cased
mtmetrics data score mt-metrics-eval-v2/wmt22 --lp en-de --name XMoverScore --metric xmoverscore:paper
mtmetrics filter --preset mini --lp de-en pairs.tsv --top 0.5 --out kept.tsv --report report.json
mtmetrics filter --metric xmoverscore:mini --metric uscore:mini --lp de-en pairs.tsv --tokens 1000000 --out kept.tsv
mtmetrics filter --preset mini --lp de-en pairs.parquet --threshold -1.2 --engine ray --out kept
mtmetrics rerank --preset mini --lp de-en nbest.jsonl
mtmetrics rerank --mbr --metric sentsim:mini --lp de-en nbest.jsonl
mtmetrics rerank --preset mini --lp de-en nbest.jsonl --tune development.jsonl
mtmetrics mine --lp de-en --source-text de.txt --target-text en.txt --memory 4G --out pairs.jsonl
mtmetrics mine --lp de-en --source-text de.txt --target-text en.txt --encoder my-own --level sentence --out a.jsonl
mtmetrics mine --lp de-en --source-text de.txt --target-text en.txt --encoder my-own --map umd --maps maps --out a.jsonl
mtmetrics train encoder --begin intfloat/multilingual-e5-small --parallel de-en.jsonl --out my-encoder
mtmetrics train lm --mono en.txt --out my-lm
mtmetrics train regressor --architecture esim --encoder my-encoder --judged judged.jsonl --out my-esim
mtmetrics train regressor --composition transformer --encoder mini-encoder --judged labelled.jsonl.gz --out my-esim
mtmetrics train maps --encoder mini-encoder --layer 6 --lp de-en --parallel de-en.jsonl --out maps
mtmetrics train maps --encoder mini-encoder --layer 6 --lp de-en --word-pairs words.tsv --map clp --out maps
mtmetrics train maps --encoder mini-encoder --lp de-en --parallel de-en.jsonl --level sentence --out maps
mtmetrics train idf --encoder mini-encoder --text de.txt en.txt --out idf.safetensors
mtmetrics train idf --encoder bert-base-multilingual-cased --text de.txt en.txt --out idf.safetensors --overwrite
mtmetrics train idf --encoder my-own --text de.txt en.txt --out idf.safetensors --dtype auto
mtmetrics train uscore --lp de-en --source-text de.txt --target-text en.txt --without translation --out made
mtmetrics train uscore --lp de-en --source-text de.txt --target-text en.txt --parallel de-en.tsv --out made
mtmetrics train uscore --lp de-en --source-text de.txt --target-text en.txt --judged judged.jsonl --out made
mtmetrics train labels --metric bilstm:mini --data outputs.jsonl --out labelled.jsonl.gz
mtmetrics train labels --metric bilstm:mini --metric esim:mini --data outputs.jsonl --failures 99 --out labels.jsonl
mtmetrics train labels --data judged.jsonl --out standardised.jsonl
mtmetrics artifacts list
mtmetrics artifacts verify
mtmetrics artifacts pull xmoverscore-published --lp de-en ru-en
mtmetrics artifacts convert facebook/mbart-large-cc25 --out models/mbart-large-cc25
mtmetrics space push xmoverscore --namespace org --package-url git+https://git.example.org/mtmetrics@v2.0.0
mtmetrics space push compare bertr --namespace org --execute
mtmetrics space push xmoverscore --namespace org --format json
mtmetrics install
mtmetrics install xmoverscore
mtmetrics install sentsim bertr
mtmetrics demo
mtmetrics demo --port 8000
mtmetrics demo xmoverscore
mtmetrics serve --preset mini --lp de-en
mtmetrics serve --metric esim:mini:against=source --lp de-en --threshold 0.2 --port 9000
mtmetrics serve --metric bertr:mini --most-segments 64 --most-waiting 16
mtmetrics doctor
"""


class Parser(argparse.ArgumentParser):
    """A parser whose help begins with a short usage and ends with examples.

    It does not accept abbreviated options, because `early_options` recognises only full names."""

    def __init__(self, **keywords) -> None:
        super().__init__(allow_abbrev=False, **keywords)
        self._argument_strings: Sequence[str] = ()

    def parse_known_args(
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Remembers the arguments, because help shows the options of the metrics that they name."""
        self._argument_strings = args or ()
        return super().parse_known_args(args, namespace)

    def _print_message(self, message: str, file: IO[str]) -> None:
        """Prints help or usage. Unlike argparse, lets errors of writing through."""
        file.write(message)

    def format_usage(self) -> str:
        """Returns a usage line without the optional flags, for which it says [options]."""
        formatter = self._get_formatter()
        required_actions = [
            action for action in self._actions if action.required or not action.option_strings
        ]
        formatter.add_usage(None, required_actions, ())
        return formatter.format_help().replace(self.prog, f"{self.prog} [options]", 1)

    def format_help(self) -> str:
        """Returns usage, description, options and examples.

        Options that belong to metrics are shown last, and only for the metrics that the user
        names."""
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        for group in self._action_groups:
            if group.title != options.PRESET_OVERRIDES_TITLE:
                _add_section(formatter, group.title, group._group_actions, group.description)
        for group in self._action_groups:
            if group.title == options.PRESET_OVERRIDES_TITLE:
                self._add_options_of_metrics(formatter, group._group_actions)
        parts = [self.format_usage(), formatter.format_help()]
        examples = [
            line for line in EXAMPLES.splitlines() if f"{line} ".startswith(f"{self.prog} ")
        ]
        if self.prog == "mtmetrics":
            examples = examples[:1]
        if examples:
            parts.append("examples:\n" + "".join(f"  {line}\n" for line in examples))
        return "\n".join(parts)

    def _add_options_of_metrics(
        self, formatter: argparse.HelpFormatter, actions: Sequence[argparse.Action]
    ) -> None:
        """Adds a section for each metric that the user names; without one, a hint how to see it."""
        metrics = named_metrics(self._argument_strings)
        if not metrics:
            formatter.start_section(f"{options.PRESET_OVERRIDES_TITLE} (a metric's own options)")
            formatter.add_text(f"{self.prog} --metric NAME --help")
            formatter.end_section()
        for name in filter(known_metric, dict.fromkeys(metrics)):
            fields = METRICS[name].settings_class().options()
            actions_of_metric = [copy.copy(action) for action in actions if action.dest in fields]
            for action in actions_of_metric:  # shows only this metric's help of the option
                action.help = fields[action.dest].metadata["help"].replace("%", "%%")
            _add_section(formatter, f"{options.PRESET_OVERRIDES_TITLE} ({name})", actions_of_metric)


def _add_section(
    formatter: argparse.HelpFormatter,
    title: str | None,
    actions: Sequence[argparse.Action],
    description: str | None = None,
) -> None:
    formatter.start_section(title)
    formatter.add_text(description)
    formatter.add_arguments(actions)
    formatter.end_section()


def early_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads ``--plugin`` and ``--metric``, on which the other options depend.

    Each is a list, in which None stands for a missing value."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("--plugin", "--metric"):
        # The full parser reports a missing value.
        parser.add_argument(name, action="append", nargs="?", default=[])
    early_arguments, _ = parser.parse_known_args(arguments)
    return early_arguments


def named_metrics(arguments: Sequence[str]) -> list[str]:
    """Returns the names of the metrics that --metric gives, without presets and options.

    A name may be unknown, or stand twice. The default metric is not among them."""
    return [text.partition(":")[0] for text in early_options(arguments).metric if text]
