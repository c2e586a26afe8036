"""Every folder under ``metrics/``: runs its own examples from a copy, and keeps the rules for
scripts and cards."""

import ast
import configparser
import doctest
import re
import shutil
from pathlib import Path

import evaluate
import pytest
import yaml

import mtmetrics.artifacts.presets as presets
from mtmetrics.integrations.registration import install
from mtmetrics.layout import metric_names, metric_scripts, source_tree
from mtmetrics.scorers.metric import METRICS

pytestmark = pytest.mark.parametrize("name", metric_names())


@pytest.fixture
def copied(name, tmp_path, monkeypatch):
    """A copy of the folder elsewhere, which is the working directory then."""
    shutil.copytree(
        metric_scripts() / name,
        tmp_path / "copy" / name,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    monkeypatch.chdir(tmp_path / "copy")
    return name


def run_examples(text, title):
    """Runs the examples and compares what they print."""
    examples = doctest.DocTestParser().get_doctest(text, {}, title, title, 0)
    assert examples.examples
    output: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False).run(
        examples, out=output.append
    )
    assert not results.failed, "".join(output)


def test_examples_of_the_card(name, preset, copied, evaluate_cache):
    card = Path(name, "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", card, flags=re.MULTILINE | re.DOTALL)
    run_examples("\n".join(blocks), f"card of {name}")


def test_examples_of_the_script(name, preset, copied, evaluate_cache):
    metric = evaluate.load(f"./{name}", preset)
    assert metric.name == metric.metric_name == name
    shutil.rmtree(name)
    install([name])
    run_examples(metric.inputs_description, f"docstring of {name}")


def test_script_keeps_the_rules_of_evaluate(name):
    text = (metric_scripts() / name / f"{name}.py").read_text(encoding="utf-8")
    assert "'''" not in text
    # `evaluate` reads imports line by line, with a regular expression that takes a trailing comment
    # for an address.
    imports = [line for line in text.splitlines() if re.match(r"\s*(import|from)\s", line)]
    assert imports
    assert all(re.fullmatch(r"import [\w.]+", line) for line in imports), imports
    [metric] = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    assert ast.get_docstring(metric)
    # What the base class makes of the settings of the metric is not said again.
    assert not [node for node in metric.body if isinstance(node, ast.FunctionDef)]


def test_every_keyword_is_documented(name, preset, evaluate_cache):
    """In the docstring; tests/benchmarks/test_cards.py looks at the card. The guide says what
    `compute` can return, since that is the same for all metrics."""
    module = evaluate.load(str(metric_scripts() / name), preset)
    guide = (source_tree() / "tools/guide/python.md").read_text(encoding="utf-8")
    keywords = [*METRICS[name].columns, "predictions", *METRICS[name].keywords()]
    for keyword in [*keywords, *module.returns()]:
        line = rf"^    {keyword} \(`"
        assert re.search(line, module.inputs_description, flags=re.MULTILINE), keyword
    for keyword in module.returns():
        assert f"| `{keyword}` |" in guide


def test_card(name):
    folder = metric_scripts() / name
    card = (folder / "README.md").read_text(encoding="utf-8")
    _, front, _ = card.split("---\n", 2)
    about = yaml.safe_load(front)
    assert (folder / about["app_file"]).is_file()
    assert about["pinned"] is False
    assert about["title"]
    assert about["description"]


def test_averages_in_the_card(name):
    """A slip in a table of correlations shows in its average."""
    card = (metric_scripts() / name / "README.md").read_text(encoding="utf-8")
    rows = 0
    for table in re.findall(r"(?:^\|.*\n)+", card, flags=re.MULTILINE):
        header, _, *lines = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
        ]
        if header[-1] in {"average", "mean"}:
            for line in lines:
                values = [float(cell) for cell in line[1:] if cell]
                assert values[-1] == pytest.approx(
                    sum(values[:-1]) / len(values[:-1]), abs=0.00101
                ), line
                rows += 1
    assert rows or not (metric_scripts() / name / "results.json").exists()


def keys(table, place=()):
    """The keys of a table and of the tables in it."""
    return {(*place, name) for name in table}.union(
        *(keys(value, (*place, name)) for name, value in table.items() if isinstance(value, dict))
    )


def test_preset_in_the_card(name, tmp_path):
    """It shows every key of the preset `paper`, or of the usual one of COMET, and none that the
    metric does not know."""
    if not presets.preset_names(name):
        return
    usual = METRICS[name].usual_preset() if name == "comet" else "paper"
    card = (metric_scripts() / name / "README.md").read_text(encoding="utf-8")
    [text] = re.findall(r"^```toml\n(.*?)^```", card, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "preset.toml").write_text(text, encoding="utf-8")
    shown, shipped = (presets.load_preset(name, preset) for preset in (tmp_path, usual))
    others = [
        ("language_models", language) for language in ("de", "zh", "ru")
    ]  # tables like that of English
    needed = {place for place in keys(shipped.settings) if place[:2] not in others}
    assert needed - {("description",)} <= keys(shown.settings)
    METRICS[name].scorer_class().read_checked_preset(str(tmp_path), {})


def test_requirements_are_those_of_the_package_without_its_name(name):
    """Not `mtmetrics` itself, which a Space holds a copy of: whoever takes that name on an index
    could be installed."""
    setup = configparser.ConfigParser()
    setup.read(source_tree() / "setup.cfg")
    extras = setup["options.extras_require"]
    tables = [setup["options"]["install_requires"], extras["app"], extras["plot"]]
    wanted = sorted(
        line
        for table in tables
        for line in table.split("\n")
        if line and not line.startswith("mtmetrics")
    )
    assert (metric_scripts() / name / "requirements.txt").read_text(
        encoding="utf-8"
    ).splitlines() == wanted


def test_what_evaluate_shows_of_a_metric(name, preset, evaluate_cache):
    info = evaluate.load(str(metric_scripts() / name), preset).info
    assert info.license == "Apache-2.0"
    assert info.citation.startswith("@inproceedings{")
    card = (metric_scripts() / name / "README.md").read_text(encoding="utf-8")
    assert [url in card for url in (*info.reference_urls, *info.codebase_urls)] == [True, True]
