"""setup.cfg lists what the tree holds and imports; tests mirror it; examples in docstrings are
true; a fast start."""

import ast
import configparser
import doctest
import importlib
import importlib.metadata
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import mtmetrics
from mtmetrics.errors import InputError
from mtmetrics.layout import metric_names, metric_path
from mtmetrics.scorers.metric import METRICS

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "tools" / "mtmetrics").rglob("*.py"))
# Modules whose tests are those of what they are a part of; all others of this size have a file of
# their name.
LINES = 73
TESTED_IN = {
    # Adapters are trained before they are read.
    "artifacts/adapters": "training/test_adapters",
    "artifacts/merging": "training/test_adapters",
    "artifacts/pickles": "artifacts/test_convert",
    "choosing/mixture": "choosing/test_reranking",
    # What commands share, and commands that make a thing whose tests are elsewhere.
    "cli/doctor": "cli/test_inventory",
    "cli/layers": "cli/test_evaluate",
    "cli/pairs_input": "cli/test_filter",
    "cli/parser": "cli/test_main",
    "cli/process": "cli/test_streams",
    "cli/messages": "cli/test_options",
    "cli/output": "cli/test_score",
    "cli/recipe_calls": "cli/test_recipe_runs",
    "cli/recipe_pictures": "cli/test_recipe_runs",
    "cli/score_output": "cli/test_score",
    "cli/space": "hub/test_publishing",
    "cli/uscore": "uscore/test_production",
    # All that Ray runs has to start a cluster.
    "cluster/filtering": "cli/test_filter",
    "cluster/row_files": "cluster/test_engine",
    "cluster/task_map": "cli/test_mine",
    # Parts of the one reader and of the one writer.
    "io/cells": "io/test_tables",
    "io/columns": "io/test_tables",
    "io/value_types": "io/test_row_writer",
    "matching/align": "parity/test_uscore_word_parity",
    "matching/map_publication": "hub/test_published_maps",
    "models/sentence_encoder": "scorers/test_similarities",
    # One comparison is shown in all of these.
    **{
        f"page/{name}": "page/test_page"
        for name in ("app", "charts", "comparing", "downloads", "explaining", "offers", "views")
    },
    "page/theme": "metrics/test_browser",
    "reports/averages": "cli/test_recipe_runs",
    "scorers/available": "cli/test_inventory",
    "scorers/distilscore": "scorers/test_base",
    "training/labels": "cli/test_label",
    # One production makes all of these.
    "uscore/common": "uscore/test_production",
    "uscore/preset": "uscore/test_production",
    "uscore/publication": "hub/test_production",
}
# Distributions whose modules are called otherwise.
DISTRIBUTIONS = {"ot": "pot", "faiss": "faiss-cpu", "yaml": "pyyaml"}


def settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def test_every_package_is_listed() -> None:
    listed = set(settings()["options"]["packages"].split())
    source = ROOT / "tools"
    found = {
        ".".join(path.parent.relative_to(source).parts) for path in source.rglob("__init__.py")
    }
    assert listed == found | {"mtmetrics.metric_scripts", "mtmetrics.hub_artifacts"}


def test_every_module_has_tests_of_its_name() -> None:
    found = {}
    for path in MODULES:
        name = path.relative_to(ROOT / "tools" / "mtmetrics").with_suffix("").as_posix()
        folder, _, module = f"/{name}".rpartition("/")
        if module != "__init__" and path.read_text(encoding="utf-8").count("\n") > LINES:
            found[name] = f"{folder}/test_{module}".lstrip("/")
    lacking = {
        name for name, mirrored in found.items() if not (ROOT / "tests" / f"{mirrored}.py").exists()
    }
    assert lacking == TESTED_IN.keys()
    assert all((ROOT / "tests" / f"{file}.py").exists() for file in TESTED_IN.values())


def ci_checks() -> list[str]:
    """The checks of ``.ci/run`` after the tests."""
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    [tests] = [number for number, line in enumerate(lines) if line.endswith("&& pytest")]
    return lines[tests + 1 :]


def test_the_workflow_runs_what_is_run_by_hand() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    [job] = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    lowest = settings()["options"]["python_requires"].removeprefix(">=")
    assert job["container"] == f"python:{lowest}-bookworm"


def test_hooks_are_the_checks_in_the_versions_of_the_environment() -> None:
    """Local hooks have no versions of their own, which could differ from constraints.txt."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repository["repo"] for repository in config["repos"]] == ["local"]
    hooks = config["repos"][0]["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    entries = [hook["entry"].replace(" --force-exclude", "") for hook in hooks]
    *checks, documents = entries
    assert sorted(checks) == sorted(check.removesuffix(" .") for check in ci_checks())
    program, path = documents.split()
    assert program == "pytest"
    assert (ROOT / path).is_file()


def test_contributing_names_all_parts_of_the_tests_and_all_checks() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 70, "more than a screen"
    table = text.partition("|---|---|---:|\n")[2].partition("\n\n")[0]
    rooms = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    named = [
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])
    ]
    assert sorted(named) == sorted(rooms)
    assert {*ci_checks(), ".ci/run"} <= set(re.split(r"[`\n]", text))


def imported(module: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_every_imported_package_is_declared() -> None:
    extras = settings()["options.extras_require"]
    lines = [
        settings()["options"]["install_requires"],
        *(extras[name] for name in extras if name != "test"),
    ]
    declared = {
        re.split(r"[ \[<>=]", line)[0] for text in lines for line in text.split("\n") if line
    }
    found = set().union(*map(imported, MODULES)) - sys.stdlib_module_names - {"mtmetrics"}
    assert "numpy" in found
    assert {DISTRIBUTIONS.get(name, name.replace("_", "-")) for name in found} - declared == set()


@pytest.mark.parametrize(
    "module",
    [
        ".".join(path.relative_to(ROOT / "tools").with_suffix("").parts).removesuffix(".__init__")
        for path in MODULES
        if ">>> " in path.read_text(encoding="utf-8")
    ],
)
def test_examples_in_docstrings(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted
    assert not result.failed


def test_requirements_have_lower_bounds_only() -> None:
    lines = settings()["options"]["install_requires"].split("\n")
    assert all(
        ">=" in line and "<" not in line and "==" not in line for line in lines if line.strip()
    )


def test_constraints_pin_the_exact_torch() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    assert "torch==2.13.0" in pins
    assert all("==" in pin and "://" not in pin for pin in pins)


def test_versions_agree() -> None:
    assert importlib.metadata.version("mtmetrics") == mtmetrics._version.__version__


def test_metric_folders() -> None:
    assert {"bertr", "comet", "xmoverscore"} <= {*metric_names()} <= METRICS.keys()
    for name in metric_names():
        files = {path.name for path in Path(metric_path(name)).iterdir()}
        assert {f"{name}.py", "README.md", "app.py", "requirements.txt"} <= files
    names = ", ".join(metric_names())
    with pytest.raises(InputError, match=f"unknown metric 'bleu'; there are: {names}"):
        metric_path("bleu")


def test_help_imports_nothing_heavy_and_is_fast() -> None:
    program = (
        "import sys; from mtmetrics.cli.main import build_parser; "
        "build_parser(only='').format_help();print([name for name in ('torch', 'transformers', "
        "'numpy', 'datasets', 'evaluate') if name in sys.modules])"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.stdout.strip() == "[]"
    # Of the processor, so that a busy machine is no failure.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.4
