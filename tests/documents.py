"""Small files in the layouts that the documents name, and what their code blocks are run with."""

import contextlib
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from helpers import write, write_jsonl
from markdown_it import MarkdownIt

from mtmetrics.layout import bundled_artifacts
from mtmetrics.reports.example import Example, example

ROOT = Path(__file__).parents[1]
# Files that ship with the repository, which the guide's commands run with.
EXAMPLE = ROOT / "tools" / "guide" / "example"
# Whether the tests write the outputs that pages show, instead of comparing them.
RENEW = bool(os.environ.get("MTMETRICS_RENEW"))
_PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "tools/*.md",
    "tools/guide/**/*.md",
    "metrics/*/README.md",
    "hub_artifacts/**/README.md",
)
# As many sentences as a page names a segment of; each one more takes a second of all pages.
_SIZE = 7
# Four sentences of the example in other languages, by their places in it.
_PLACES = (8, 6, 2, 7)
_TRANSLATED = {
    "et": (
        "Muuseum on esmaspäeviti suletud.",
        "Pärast vihma oli õhk värske ja selge.",
        "Rong Berliini väljub täna seitsmendalt perroonilt.",
        "Ta on kolm kuud uut korterit otsinud.",
    ),
    "fi": (
        "Museo on suljettu maanantaisin.",
        "Sateen jälkeen ilma oli raikas ja kirkas.",
        "Juna Berliiniin lähtee tänään raiteelta seitsemän.",
        "Hän on etsinyt uutta asuntoa kolme kuukautta.",
    ),
    "ro": (
        "Muzeul este închis lunea.",
        "După ploaie aerul era proaspăt și limpede.",
        "Trenul spre Berlin pleacă azi de la peronul șapte.",
        "El caută de trei luni un apartament nou.",
    ),
}
_QUALITY = {"careful": 0.9, "literal": 0.0, "hasty": -1.0}
# What stands for programs while a block runs; each hands its call to the test.
_PROGRAMS = (
    "mtmetrics",
    "pip",
    "pytest",
    "python",
    "ruff",
    "lint-imports",
    "mypy",
    "pre-commit",
    "curl",
    ".ci/run",
)
_PROGRAM = """
import json, os, socket, stat, sys
has_input = stat.S_ISFIFO(os.fstat(0).st_mode) or stat.S_ISREG(os.fstat(0).st_mode)
call = {
    "argv": [os.path.basename(sys.argv[0]) if sys.argv[0].startswith("/") else sys.argv[0], *sys.argv[1:]],
    "folder": os.getcwd(),
    "environment": {name: value for name, value in os.environ.items() if name.startswith("MTMETRICS_")},
    "input": sys.stdin.buffer.read().decode() if has_input else "",
    "output": os.fstat(1).st_ino,
}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.environ["CALLS"])
    connection.sendall(json.dumps(call).encode())
    connection.shutdown(socket.SHUT_WR)
    answer = json.load(connection.makefile("rb"))
sys.stdout.write(answer["output"])
sys.stdout.flush()
sys.stderr.write(answer["messages"])
sys.exit(answer["code"])
"""


class Block(NamedTuple):
    """A code block of a page: its first line's number, its language (empty if it is indented), its
    text, and the number of headings before it."""

    line: int
    language: str
    text: str
    section: int = 0


class Call(NamedTuple):
    """A program that a shell block called; `on_screen` where its output goes into no other program
    and into no file."""

    argv: list[str]
    folder: str
    environment: dict[str, str]
    input: str
    on_screen: bool


class Answer(NamedTuple):
    """The exit code, standard output and standard error of a program."""

    code: int = 0
    output: str = ""
    messages: str = ""


def pages() -> list[str]:
    """The documents of the repository, as paths from its root."""
    paths = {path for pattern in _PAGES for path in ROOT.glob(pattern)}
    return sorted(path.relative_to(ROOT).as_posix() for path in paths)


def blocks(page: str) -> list[Block]:
    """The code blocks of a page, fenced or indented, also those in lists."""
    text = (ROOT / page).read_text(encoding="utf-8")
    front = re.match(r"---\n.*?\n---\n", text, flags=re.DOTALL)
    if front is not None:  # the metadata of a card are no text
        text = "\n" * front[0].count("\n") + text[front.end() :]
    tokens = MarkdownIt().parse(text)
    section = 0
    page_blocks = []
    for token in tokens:
        if token.type == "heading_open":
            section += 1
        elif token.type in ("fence", "code_block"):
            page_blocks.append(Block(token.map[0] + 1, token.info.strip(), token.content, section))
    return page_blocks


def small_example() -> Example:
    """The first segments of the example."""
    texts = example()
    systems = {name: lines[:_SIZE] for name, lines in texts.systems.items()}
    return Example(
        texts.lang_pair,
        texts.sources[:_SIZE],
        texts.references[:_SIZE],
        texts.second[:_SIZE],
        systems,
    )


def judgements(lang_pair: str, size: int = _SIZE) -> list[dict]:
    """Rows of judged segments: every system of the example on its first sentences, or on those that
    exist in the pair's source language."""
    texts = example()
    source_language, _, target_language = lang_pair.partition("-")
    places = range(size) if "de" in (source_language, target_language) else _PLACES
    english = {"reference": texts.references, **texts.systems}
    rows = []
    for number, place in enumerate(places):
        source = (
            _TRANSLATED[source_language][number]
            if source_language in _TRANSLATED
            else texts.sources[place]
        )
        for system, quality in _QUALITY.items():
            row = {"lp": lang_pair, "sid": place, "item": place, "system": system}
            if (
                source_language == "en"
            ):  # from English: the sources of the example are the only human translations
                row |= {"source": english["reference"][place], "reference": texts.sources[place]}
                row |= {
                    "translation": texts.sources[(place + (system == "hasty")) % len(texts.sources)]
                }
            else:
                row |= {"source": source, "reference": english["reference"][place]}
                row |= {"translation": english[system][place]}
            human = quality + (number % 5) / 10
            rows.append(
                row
                | {
                    "human": human,
                    "da_mean": 60 + 20 * human,
                    "post_edit_tok": row["reference"].lower(),
                }
            )
    return rows


def lay_data(folder: Path) -> None:
    """Writes the files that the documents name."""
    texts = small_example()
    careful, hasty, literal = (texts.systems[name] for name in ("careful", "hasty", "literal"))
    for name, lines in {
        "source.de": texts.sources,
        "reference.en": texts.references,
        **dict.fromkeys(["system.en", "system-a.en", "a.en"], careful),
        **dict.fromkeys(["system-b.en", "b.en"], literal),
        "c.en": hasty,
        "de.txt": texts.sources,
        "en.txt": texts.references,
        "nbest.en": [
            line
            for three in zip(careful, literal, hasty, strict=True)
            for line in (*three, *three, *three[:2])
        ],
    }.items():
        write(folder / name, "".join(f"{line}\n" for line in lines))
    pairs = zip(example().sources, example().references, strict=True)  # all: probes draw candidates
    write(folder / "pairs.tsv", "".join(f"{source}\t{target}\n" for source, target in pairs))
    write(
        folder / "de-en.tsv", "haus\thouse\nhund\tdog\nzug\ttrain\nzeit\ttime\nkinder\tchildren\n"
    )
    _lay_rows(folder)
    _lay_judgements(folder)
    _lay_scores(folder)
    lay_models(folder)


def _lay_rows(folder: Path) -> None:
    texts = small_example()
    columns = {
        "source": texts.sources,
        "reference": texts.references,
        "translation": texts.systems["careful"],
    }
    rows = pd.DataFrame(columns)
    rows[["source", "translation"]].to_csv(folder / "rows.tsv", sep="\t", index=False)
    rows[["source", "translation"]].to_parquet(folder / "rows.parquet", index=False)
    write_jsonl(folder / "rows.jsonl", rows.to_dict("records"))
    lists = [
        {"source": source, "candidates": list(candidates), "scores": [-0.1, -0.2, -0.3]}
        for source, *candidates in zip(texts.sources, *texts.systems.values(), strict=True)
    ]
    write_jsonl(folder / "nbest.jsonl", lists)
    human = [[_QUALITY[name] for name in texts.systems]] * len(lists)
    write_jsonl(
        folder / "dev.jsonl",
        [row | {"human": values} for row, values in zip(lists, human, strict=True)],
    )


_ROWS_OF_ESIM = ("source", "reference", "less", "last")


def _lay_judgements(folder: Path) -> None:
    german, finnish = judgements("de-en"), judgements("fi-en")
    for name in (
        "judged.jsonl",
        "judged.jsonl.gz",
        "judged/de-en.jsonl.gz",
        "mlqe-train-ref.et-en.jsonl.gz",
        "outputs.jsonl.gz",
        # Folders of the trainings that the cards of encoder and ESIM describe.
        *(f"{name}/de-en.jsonl.gz" for name in ("outputs", "labelled", *_ROWS_OF_ESIM)),
    ):
        write_jsonl(folder / name, german)
    write_jsonl(folder / "outputs" / "en-de.jsonl.gz", judgements("en-de"))
    write_jsonl(folder / "development.jsonl", [*judgements("de-en", 12), *german])
    pairs = [
        {"source": row["source"], "target": row["reference"], "origin": "example"}
        for row in german[::3]
    ]
    for name in (
        "de-en.jsonl.gz",
        "pairs.jsonl",
        "parallel/de-en.jsonl.gz",
        "parallel_more/de-en.jsonl.gz",
    ):
        write_jsonl(folder / name, pairs)
    for name in ("wmt15_seg", "wmt16_seg", "wmt17_seg"):
        write_jsonl(folder / name / "de-en.jsonl.gz", german)
        write_jsonl(folder / name / "fi-en.jsonl.gz", finnish)
    for year in (2015, 2016):
        # Texts and judgements in parallel files, as `data pull` leaves them.
        columns = {"human": "human", "mt-system": "translation"}
        columns |= {"reference": "reference", "source": "source"}
        for kind, field in columns.items():
            lines = "".join(f"{row[field]}\n" for row in german)
            write(folder / f"wmt{year - 2000}-da" / f"DAseg.newstest{year}.{kind}.de-en", lines)
    for name in ("test20.et-en", "test20.ro-en", "test20.en-de", "dev.ro-en"):
        write_jsonl(folder / "mlqe_pe" / f"{name}.jsonl.gz", judgements(name.partition(".")[2]))
    for name in ("wmt17_sys", "wmt18_sys"):
        lay_systems(folder / name)


def lay_systems(folder: Path) -> None:
    """Nine judged systems of de-en, seven of which are careful in one sentence more than the one
    before."""
    texts = small_example()
    count = len(texts.sources)
    careful, hasty = texts.systems["careful"], texts.systems["hasty"]
    systems = {f"system-{number}": careful[:number] + hasty[number:] for number in range(_SIZE)}
    systems |= {"human": texts.references, "another": texts.second}
    judged = [
        {"lp": "de-en", "system": name, "human": number / 9} for number, name in enumerate(systems)
    ]
    write_jsonl(folder / "de-en.jsonl.gz", judged)
    columns = {"source": texts.sources, "reference": texts.references}
    rows = [{name: texts[place] for name, texts in columns.items()} for place in range(count)]
    outputs = [{name: lines[place] for name, lines in systems.items()} for place in range(count)]
    segments = [row | {"outputs": lines} for row, lines in zip(rows, outputs, strict=True)]
    write_jsonl(
        folder / "de-en.outputs.jsonl.gz",
        [{"lp": "de-en", "sid": n} | row for n, row in enumerate(segments)],
    )


def _lay_scores(folder: Path) -> None:
    """Scores of a.en and b.en as other tools write them."""
    count = len(small_example().sources)
    comet = {
        f"{name}.en": [{"COMET": 0.8 - number / 100} for number in range(count)]
        for name in ("a", "b")
    }
    write(folder / "comet.json", json.dumps(comet))
    rows = [
        f"{name}\t{number}\t{number / 10}\n"
        for name in ("a", "b")
        for number in range(1, count + 1)
    ]
    write(folder / "metricx.tsv", "system\tsegment\tscore\n" + "".join(rows))


def lay_models(folder: Path) -> None:
    """Makes the results of trainings and productions: presets that extend the bundled ones, and
    bundled models."""
    models = {
        "my-encoder": "mini-encoder",
        "my-esim": "esim-mini",
        "my-bilstm": "bilstm-mini",
        "my-bilstm-attention": "bilstm-attention-mini",
    }
    for name, model in models.items():
        (folder / name).symlink_to(bundled_artifacts() / model)
    (folder / "artifacts").symlink_to(bundled_artifacts())
    presets = {"my-sentsim": "sentsim", "my-uscore": "uscore", "xmoverscore-labse": "xmoverscore"}
    for name, metric in presets.items():
        write(folder / name / "preset.toml", f'metric = "{metric}"\nextends = "mini"\n')


class _Screen(io.TextIOWrapper):
    """Output that a person reads."""

    def isatty(self) -> bool:
        return True


def run_shell(
    text: str, folder: Path, answer: Callable[[Call], Answer]
) -> subprocess.CompletedProcess[str]:
    """Runs a shell block, in which `answer` stands for every program; the block ends with the first
    one that fails. Its output holds messages, too, as a screen shows them.

    Args:
        text: of the block.
        folder: the working folder.
        answer: what a called program does.
    """
    programs = folder / ".programs"
    if not programs.exists():
        write(programs / "program", f"#!{sys.executable} -SEs\n{_PROGRAM}").chmod(0o755)
        for name in _PROGRAMS:
            path = (folder if "/" in name else programs) / name
            path.parent.mkdir(exist_ok=True)
            path.symlink_to(programs / "program")
        for name in ("head", "tail"):
            (programs / name).symlink_to(shutil.which(name) or f"/usr/bin/{name}")
    shell = [shutil.which("bash") or "bash", "-euo", "pipefail", "-O", "failglob", "-c", text]
    pipes = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
    }
    # The path of a socket must be short.
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{short}/calls")
        server.listen()
        server.settimeout(0.01)
        environment = {**os.environ, "PATH": str(programs), "CALLS": f"{short}/calls"}
        running = subprocess.Popen(shell, cwd=folder, env=environment, **pipes)
        while running.poll() is None:
            with contextlib.suppress(TimeoutError):
                connection, _ = server.accept()
                connection.settimeout(None)
                with connection:
                    message = json.load(connection.makefile("rb"))
                    screen = os.fstat(running.stdout.fileno()).st_ino
                    on_screen = message.pop("output") == screen
                    call = Call(**message, on_screen=on_screen)
                    connection.sendall(json.dumps(answer(call)._asdict()).encode())
        output, _ = running.communicate()
    return subprocess.CompletedProcess(text, running.returncode, output)


def run_command(call: Call, main: Callable[[list[str]], int]) -> Answer:
    """Runs the command line in this process, in the folder and with the environment and input of a
    call."""
    output, messages = (
        kind(io.BytesIO(), encoding="utf-8", write_through=True)
        for kind in (_Screen if call.on_screen else io.TextIOWrapper, io.TextIOWrapper)
    )
    before, stdin = dict(os.environ), sys.stdin
    os.environ.update(call.environment)
    sys.stdin = io.TextIOWrapper(io.BytesIO(call.input.encode()), encoding="utf-8")
    try:
        with (
            contextlib.chdir(call.folder),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(messages),
        ):
            try:
                code = main(call.argv[1:])
            except SystemExit as stopped:
                code = int(stopped.code or 0)
    finally:
        sys.stdin = stdin
        os.environ.clear()
        os.environ.update(before)
    printed, said = (stream.buffer.getvalue().decode() for stream in (output, messages))
    return Answer(code, printed, said)


def shape(text: str) -> str:
    """The words of an output: numbers, fingerprints and the widths of columns differ from machine to
    machine and from model to model."""
    words = re.sub(r"#[0-9a-f]{8}\b|[-+]?\d[\d.,]*(e[-+]\d+)?|─+", "#", text)
    return " ".join(words.split())


def shows(shown: str, output: str) -> bool:
    """Whether an output has the shape of the one that a page shows, in which a line ``...`` stands
    for any lines."""
    before, *after = shown.split("\n...\n")
    begins = shape(output).startswith(shape(before))
    return (
        begins and shape(output).endswith(shape(after[0]))
        if after
        else shape(output) == shape(before)
    )


def cut_as(shown: str, output: str) -> str:
    """An output with as many lines before and after a line ``...`` as a page shows."""
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    before, *after = shown.split("\n...\n")
    if not after:
        return "\n".join(lines) + "\n"
    ends = len(after[0].splitlines())
    return (
        "\n".join([*lines[: len(before.splitlines())], "...", *lines[len(lines) - ends :]]) + "\n"
    )


def show_output(page: str, shown: Block, output: str) -> str:
    """Compares an output with the one that a page shows, or writes it there; returns what is
    wrong."""
    if not RENEW:
        mend = f"the output is not that of the page; MTMETRICS_RENEW=1 writes it anew:\n{output}"
        return "" if shows(shown.text, output) else mend
    text = (ROOT / page).read_text(encoding="utf-8")
    fenced = "```text\n{}```"
    assert text.count(fenced.format(shown.text)) == 1, f"{page}:{shown.line}: not one such block"
    renewed = text.replace(fenced.format(shown.text), fenced.format(cut_as(shown.text, output)))
    (ROOT / page).write_text(renewed, encoding="utf-8")
    return ""
