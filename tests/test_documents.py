"""Every code block of the documents runs as it stands; what cannot run here is at least understood.
The front page and the guide run with the files of ``tools/guide/example``, cards of metrics also
with small files of other names, and all other pages with small files only. A block of text behind a
shell block, or behind one of Python, in its section shows its output. This writes all outputs and pictures anew:
``MTMETRICS_RENEW=1 pytest tests/test_documents.py``."""

import argparse
import contextlib
import doctest
import io
import json
import re
import shutil
import tomllib
import traceback
from pathlib import Path

import pytest
import yaml
from documents import (
    EXAMPLE,
    RENEW,
    ROOT,
    Answer,
    Block,
    Call,
    blocks,
    lay_data,
    lay_models,
    lay_systems,
    pages,
    run_command,
    run_shell,
    show_output,
)
from helpers import write

from mtmetrics.cli import options
from mtmetrics.cli.main import build_parser, main
from mtmetrics.models.pool import ModelPool

# Calls and Python blocks that are not run here: a pattern of the call, or of a line of the block ->
# why. The command line must still understand the calls, and Python the blocks.
NOT_RUN = {
    r"^(pip|pytest|ruff|lint-imports|mypy|pre-commit|\.ci/run)\b": "sets up an environment, or is a check itself",
    r"^python tests/benchmarks/\w+\.py": "measures for long, on data that is not part of the repository",
    r"^mtmetrics (serve|demo)\b|^curl ": "runs until it is stopped; tests/cli/test_serve.py, tests/page",
    r"^mtmetrics train (?!maps|idf|labels|.* --out first-)": "a long training; tests/training, tests/uscore",
    r"--engine ray": "starts a cluster; tests/cluster",
    r"^mtmetrics (artifacts (pull|push|convert|import)|space push|data pull)": "needs the Hub; tests/hub",
    r"google-bert/|sentence-transformers/|\bpaper\b|comet:": "models of the Hub",
    r"\bstage3a\b|\bstep-100\b|\buscore:steps\b": "weights of a long training",
    r"encoder=e5\b": "the encoder that mini-encoder was cut from",
    r"^mtmetrics evaluate --recipe ": "fetches data, or models of the Hub; tests/cli/test_recipe_runs.py",
    r"\blighteval\b|cmd:": "another project's tool",
    r"^mtmetrics evaluate .*--data wmt17-cased(/\S+\.jsonl|$)": "data that is fetched first; tests/cli/test_data.py",
    r"\bmy-italian\b|\bit-xmover\b": "models of the Hub, and the reader's own text",
    r"from-en\.jsonl": "data that is not part of the repository",
    r"^from gradio_client ": "calls a page that runs; tests/page/test_endpoints.py",
    r"^python tools/examples/finetune\.py": "a training; tests/integrations/test_finetune.py",
}
# How blocks that are no code are read.
READERS = {
    "toml": tomllib.loads,
    "yaml": yaml.compose,
    "json": json.loads,
    "bibtex": str,
    "dockerfile": str,
    "text": str,
}


def why_not(text: str) -> str | None:
    """The pattern of NOT_RUN that a call or block has."""
    return next(
        (pattern for pattern in NOT_RUN if re.search(pattern, text, flags=re.MULTILINE)), None
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    lay_data(folder)
    return folder


@pytest.fixture
def folder(page: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a page, with the files that it names."""
    folder = tmp_path / "page"
    is_card = page.startswith("metrics/")
    is_guide = page == "README.md" or page.startswith("tools/")
    if not is_guide:
        shutil.copytree(data, folder, symlinks=True)
    if is_guide or is_card:
        shutil.copytree(EXAMPLE, folder, symlinks=True, dirs_exist_ok=True)
    if is_guide:
        # The way from the root of a clone to the example.
        (folder / "tools" / "guide").mkdir(parents=True)
        (folder / "tools" / "guide" / "example").symlink_to(folder)
        # Judged systems, which the pages call the reader's own, and what long trainings make.
        lay_systems(folder / "wmt17_sys")
        lay_models(folder)
    monkeypatch.setenv("MTMETRICS_ARTIFACTS", str(folder / "artifacts"))
    monkeypatch.chdir(folder)
    # Tables have one width on every machine.
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    if not RENEW:
        # Drawing takes longer than all the rest; other tests look at pictures.
        monkeypatch.setattr(
            "matplotlib.figure.Figure.savefig", lambda _, path, **options: Path(path).touch()
        )
    return folder


@pytest.fixture
def shared_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of a page load a model once, and encode a text once."""
    pools: dict[str, ModelPool] = {}
    make = options.model_pool

    def shared(args: argparse.Namespace, *, dtype: str = "float32") -> ModelPool:
        key = repr(sorted(options.pool_options(args, dtype=dtype).items()))
        if key not in pools:
            pools[key] = make(args, dtype=dtype)
        return pools[key]

    monkeypatch.setattr(options, "model_pool", shared)


def answer(call: Call) -> Answer:
    """Runs a call of the command line; of other programs, and calls that are not run here, just
    reads the arguments."""
    line = " ".join(call.argv)
    if why_not(line) is None:
        assert call.argv[0] == "mtmetrics", f"{line}: NOT_RUN does not say why it is not run"
        return run_command(call, main)
    if call.argv[0] == "mtmetrics":
        return run_command(call, understood)
    if call.argv[0] == "python":
        assert Path(__file__).parents[1].joinpath(call.argv[1]).is_file(), line
    return Answer()


def understood(argv: list[str]) -> int:
    """Has the parser of the command line read the arguments, which ends the process if it
    cannot."""
    build_parser(argv[0]).parse_args(argv)
    return 0


def run_python(block: Block, where: str, names: dict[str, object]) -> tuple[str, str]:
    """Runs a block of Python, or examples with what they print, with the names of the blocks before
    it; returns its output, and what went wrong."""
    if ">>> " in block.text:
        examples = doctest.DocTestParser().get_doctest(block.text, names, where, where, block.line)
        output: list[str] = []
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False).run(
            examples, out=output.append, clear_globs=False
        )
        names.update(examples.globs)
        return "", "".join(output)
    printed = io.StringIO()
    try:
        code = compile(block.text, where, "exec")
        if why_not(block.text) is None:
            with contextlib.redirect_stdout(printed):
                exec(code, names)
    except Exception:
        return printed.getvalue(), traceback.format_exc(limit=-3)
    return printed.getvalue(), ""


def write_named_file(block: Block, folder: Path) -> None:
    """Writes a block whose first line is a comment with the name of a file."""
    named = re.match(r"# ([\w/-]+\.(?:py|toml))\b", block.text)
    if named is not None:
        write(folder / named[1], block.text)


def run_block(block: Block, page: str, folder: Path, names: dict[str, object]) -> tuple[str, str]:
    """Runs or reads a block; returns its output, and what went wrong, empty where nothing did."""
    where = f"{page}:{block.line}"
    if block.language == "python":
        # tests/metrics/test_metric_folders.py runs the examples of a metric's card, of COMET's on a
        # tiny checkpoint.
        is_card = re.fullmatch(r"metrics/\w+/README.md", page)
        is_run_there = is_card and ">>> " in block.text
        return ("", "") if is_run_there else run_python(block, where, names)
    if block.language in ("bash", ""):
        done = run_shell(block.text, folder, answer)
        return done.stdout, done.stdout or "failed" if done.returncode else ""
    try:
        READERS[block.language](block.text)
    except (ValueError, yaml.YAMLError) as error:
        return "", str(error)
    return "", ""


def renew_pictures(page: str, folder: Path) -> None:
    """Copies the pictures that a page shows from where its blocks drew them."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for path in re.findall(r"\]\(([\w/.-]+\.png)\)", text):
        for drawn in folder.rglob(Path(path).name):
            shutil.copy(drawn, (ROOT / page).parent / path)


@pytest.mark.usefixtures("no_plugins", "shared_models")
@pytest.mark.parametrize("page", pages())
def test_blocks_of_a_page_run_as_they_stand(
    page: str, folder: Path, evaluate_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, object] = {"__name__": "documents"}
    faults: dict[int, str] = {}
    output, before = "", None
    for block in blocks(page):
        write_named_file(block, folder)
        is_output = (
            block.language == "text" and before is not None and block.section == before.section
        )
        if is_output and why_not(before.text) is None:
            fault = show_output(page, block, output)
        else:
            output, fault = run_block(block, page, folder, names)
        if fault:
            faults[block.line] = fault
        has_output = block.language == "bash" or (
            block.language == "python" and ">>> " not in block.text
        )
        before = block if has_output else None
    if RENEW:
        renew_pictures(page, folder)
    assert not faults, "\n".join(f"{page}:{line}: {fault}" for line, fault in faults.items())


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them of its headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*pages(), "tests/benchmarks/README.md"])
def test_links_lead_to_pages_and_headings_that_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        if not target.exists() or (anchor and anchor not in headings(target)):
            broken.append(link)
    assert not broken


def is_preparation(block: Block) -> bool:
    """Whether a block only installs extras and changes the folder."""
    return all(re.match(r"(pip|cd) ", line) for line in block.text.splitlines())


@pytest.mark.parametrize("page", [page for page in pages() if page.startswith("tools/guide/")])
def test_pages_of_the_guide_are_short_and_begin_with_a_command(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    # Most of what a script writes about the papers is numbers.
    assert len(text.split()) < 1500 or page == "tools/guide/papers.md"
    first, second = [block for block in blocks(page) if not is_preparation(block)][:2]
    assert (first.language, second.language) == ("bash", "text")
    assert f"]({page.removeprefix('tools/')})" in (ROOT / "tools/README.md").read_text("utf-8")


def test_pages_are_found() -> None:
    assert {"README.md", "tools/README.md", "hub_artifacts/README.md"} <= set(pages())
    assert any(blocks(page) for page in pages())
