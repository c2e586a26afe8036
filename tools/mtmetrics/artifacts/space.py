"""Metrics as Spaces: script, card, demo, and the package itself as a wheel, since no index has it yet."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from mtmetrics.artifacts.cards import check_space_card
from mtmetrics.artifacts.files import sha256_file, write_atomic
from mtmetrics.artifacts.publish import Publication, published_files
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.layout import metric_path, source_tree

# What a wheel is built from.
_SOURCES = ("LICENSE", "README.md", "hub_artifacts", "metrics", "pyproject.toml", "setup.cfg", "tools")
_EPOCH = "315532800"  # 1980-01-01, the first day that a wheel can name


def space_publication(name: str, namespace: str, wheel: Path, scratch: Path) -> Publication:
    """The Space of a metric, `mtmetrics` in its requirements taken from the wheel in it by its sha256; `scratch` must
    stay until it is pushed."""
    from huggingface_hub import constants

    if not (wheel.is_file() and wheel.name.startswith("mtmetrics-") and wheel.suffix == ".whl"):
        raise InputError(f"--wheel {wheel}: a wheel of this package, mtmetrics-VERSION-py3-none-any.whl, is needed")
    folder = Path(metric_path(name))
    check_space_card(folder)
    url = f"{constants.ENDPOINT}/spaces/{namespace}/{name}/resolve/main/{wheel.name}#sha256={sha256_file(wheel)}"
    requirements = scratch / f"{name}.requirements.txt"
    write_atomic(requirements, f"mtmetrics[app] @ {url}\n")
    made = {"requirements.txt": requirements, wheel.name: wheel}
    return Publication(f"{namespace}/{name}", "space", published_files(folder) | made)


def build_wheel(scratch: Path) -> Path:
    """Builds the wheel of the checkout that this package runs from; equal sources give equal wheels."""
    root = source_tree()
    if root is None:
        raise InputError("mtmetrics is installed without its sources, so its wheel cannot be built; pass --wheel FILE")
    tree, out = scratch / "tree", scratch / "wheel"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(tree)]
    try:
        # A copy, since setuptools would mix in what earlier builds left in the tree.
        tree.mkdir(parents=True)
        for source in (root / name for name in _SOURCES):
            if source.is_dir():
                shutil.copytree(source, tree / source.name, ignore=ignored)
            else:
                shutil.copyfile(source, tree / source.name)
        environment = os.environ | {"SOURCE_DATE_EPOCH": _EPOCH}
        built = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MTMetricsError(f"the wheel cannot be built in {scratch}: {error.strerror or error}") from error
    wheels = list(out.glob("mtmetrics-*.whl"))
    if built.returncode or not wheels:
        raise MTMetricsError(f"the wheel cannot be built: {' '.join(built.stderr.split())[-500:]}; pass --wheel FILE")
    return wheels[0]
