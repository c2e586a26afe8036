"""Judged systems in JSON Lines."""

import gzip
import json

import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.data import read_judged_systems

HUMAN = [{"lp": "de-en", "system": "A.1", "human": 0.5}, {"lp": "de-en", "system": "B", "human": -1}]
OUTPUTS = [
    {
        "lp": "de-en",
        "sid": 1,
        "source": "Haus",
        "reference": "House",
        "reference_tok": "house",
        "outputs": {"A.1": "a", "B": "b", "C": "c"},
    },
    {"lp": "de-en", "sid": 2, "source": "Hund", "outputs": {"B": "d", "A.1": ""}},
]


def write(folder, human=HUMAN, outputs=OUTPUTS, name="de-en"):
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in human))
    (folder / f"{name}.outputs.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(row) + "\n" for row in outputs).encode())
    )
    return folder / f"{name}.jsonl"


def test_judgements_and_outputs_are_joined_by_name(tmp_path):
    path = write(tmp_path)
    [systems] = read_judged_systems(path)
    assert (systems.file, systems.lang_pair, len(systems)) == (str(path), "de-en", 2)
    assert systems.human == {"A.1": 0.5, "B": -1.0}
    assert systems.outputs == {"A.1": ["a", ""], "B": ["b", "d"]}
    assert (systems.sources, systems.references) == (["Haus", "Hund"], ["House", None])
    assert read_judged_systems(path, reference_field="reference_tok")[0].references == ["house", None]


def test_a_folder(tmp_path):
    write(tmp_path)
    finnish = [row | {"lp": "fi-en"} for row in HUMAN], [row | {"lp": "fi-en"} for row in OUTPUTS]
    write(tmp_path, *finnish, name="fi-en")
    (tmp_path / "ru-en.jsonl").write_text(json.dumps(HUMAN[0]) + "\n")
    assert [pair.lang_pair for pair in read_judged_systems(tmp_path)] == ["de-en", "fi-en"]
    assert [pair.lang_pair for pair in read_judged_systems(tmp_path, lang_pair="fi-en")] == ["fi-en"]
    with pytest.raises(InputError, match="no language pair tr-en; there are: de-en, fi-en"):
        read_judged_systems(tmp_path, lang_pair="tr-en")
    with pytest.raises(InputError, match=r"ru-en\.jsonl: no ru-en\.outputs\.jsonl or \.gz beside it"):
        read_judged_systems(tmp_path / "ru-en.jsonl")
    with pytest.raises(InputError, match=r"none\.jsonl: no such file"):
        read_judged_systems(tmp_path / "none.jsonl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: holds no XX-YY\.jsonl with XX-YY\.outputs\.jsonl"):
        read_judged_systems(tmp_path / "empty")


@pytest.mark.parametrize(
    ("human", "outputs", "message"),
    [
        ([], OUTPUTS, r"de-en\.jsonl: holds no row"),
        (HUMAN, [], r"de-en\.outputs\.jsonl\.gz: holds no row"),
        ([*HUMAN, HUMAN[0]], OUTPUTS, r"de-en\.jsonl, line 3, field 'system': 'A\.1' has a judgement already"),
        (
            [HUMAN[0] | {"human": None}],
            OUTPUTS,
            r"de-en\.jsonl, line 1, field 'human': a finite number is needed, got null",
        ),
        (
            [*HUMAN, HUMAN[0] | {"lp": "fi-en"}],
            OUTPUTS,
            r"de-en\.jsonl, line 3, field 'lp': 'fi-en', but the lines before have 'de-en'",
        ),
        (
            HUMAN,
            [OUTPUTS[0] | {"lp": "fi-en"}],
            r"outputs\.jsonl\.gz, line 1, field 'lp': 'fi-en', but .*de-en\.jsonl is of de-en",
        ),
        (
            HUMAN,
            [OUTPUTS[0] | {"outputs": {"A.1": "a"}}],
            r"line 1, field 'outputs': no translation of the judged system 'B'",
        ),
        (
            HUMAN,
            [OUTPUTS[0] | {"outputs": {"A.1": "a", "B": 3}}],
            r"line 1, field 'outputs', field 'B': a string is needed, got 3",
        ),
        (
            HUMAN,
            [OUTPUTS[0] | {"outputs": ["a"]}],
            r"line 1, field 'outputs': an object, system name -> translation, is needed",
        ),
    ],
)
def test_errors_name_the_place(tmp_path, human, outputs, message):
    with pytest.raises(InputError, match=message):
        read_judged_systems(write(tmp_path, human, outputs))
