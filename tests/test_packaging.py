"""setup.cfg lists what the tree holds; the command starts fast; nothing heavy is imported to describe it."""

import configparser
import importlib.metadata
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mtmetrics
from mtmetrics.errors import InputError
from mtmetrics.layout import metric_names, metric_path

ROOT = Path(__file__).parents[1]


def settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def test_every_package_is_listed() -> None:
    listed = set(settings()["options"]["packages"].split())
    source = ROOT / "tools"
    found = {".".join(path.parent.relative_to(source).parts) for path in source.rglob("__init__.py")}
    assert listed == found | {"mtmetrics.metric_scripts", "mtmetrics.hub_artifacts"}


def test_requirements_have_lower_bounds_only() -> None:
    lines = settings()["options"]["install_requires"].split("\n")
    assert all(">=" in line and "<" not in line and "==" not in line for line in lines if line.strip())


def test_constraints_pin_the_exact_torch() -> None:
    pins = [
        line.strip()
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    assert "torch==2.13.0" in pins
    assert all("==" in pin and "://" not in pin for pin in pins)


def test_versions_agree() -> None:
    assert importlib.metadata.version("mtmetrics") == mtmetrics.__version__


def test_metric_folders() -> None:
    assert metric_names() == [
        "bertr",
        "bilstm",
        "bilstm_attention",
        "distilscore",
        "esim",
        "sentsim",
        "uscore",
        "xmoverscore",
    ]
    for name in metric_names():
        files = {path.name for path in Path(metric_path(name)).iterdir()}
        assert {f"{name}.py", "README.md", "app.py", "requirements.txt"} <= files
    with pytest.raises(
        InputError, match="unknown metric 'bleu'; there are: bertr, bilstm, bilstm_attention, distilscore, "
    ):
        metric_path("bleu")


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from mtmetrics.cli.main import build_parser; build_parser().format_help();"
        "print([name for name in ('torch', 'transformers', 'numpy', 'datasets', 'evaluate') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert result.stdout.strip() == "[]"


def test_help_is_fast() -> None:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mtmetrics.cli.main", "--help"], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    assert min(times) < 1.0
