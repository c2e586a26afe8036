"""The presets of a metric."""

from pathlib import Path

import pytest
from helpers import write

from mtmetrics.artifacts import presets
from mtmetrics.artifacts.presets import load_preset
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.scorers.registry import load_scorer


@pytest.fixture
def extending(tmp_path: Path):
    """Writes a preset and returns its folder."""

    def made(text: str, name: str = "mine") -> Path:
        return write(tmp_path / name / "preset.toml", text).parent

    return made


def test_a_preset_may_be_another_one_with_keys_of_its_own(extending) -> None:
    mini = presets.load_preset("sentsim", "mini")
    folder = extending(
        'metric = "sentsim"\nextends = "mini"\n[score]\nvariant = "wmd"\nagainst = '
        '"source"\n[options]\nw1 = 0.2\n'
    )
    found = presets.load_preset("sentsim", folder)
    assert found.settings["score"] == {
        **mini.settings["score"],
        "variant": "wmd",
        "against": "source",
    }
    assert found.settings["bounds"] == mini.settings["bounds"]
    assert (found.options, found.folder) == ({"w1": 0.2}, folder)


def test_paths_lie_in_its_folder_or_in_that_of_the_preset_that_it_extends(extending) -> None:
    base = extending('metric = "sentsim"\n[mt-ref]\nwords = "words"\n', "base")
    folder = extending(f'extends = "{base}"\n[mt-ref]\nsentences = "sentences"\n')
    for name in ("base/words", "base/both", "mine/sentences", "mine/both"):
        (base.parent / name).mkdir()
    preset = presets.load_preset("sentsim", folder)
    paths = [preset.path(name) for name in ("words", "sentences", "both", "mini-encoder")]
    assert paths == [
        str(base / "words"),
        str(folder / "sentences"),
        str(folder / "both"),
        "mini-encoder",
    ]


def test_what_it_sets_is_overridden_by_the_user(extending) -> None:
    folder = str(extending('extends = "mini"\n[score]\nagainst = "source"\n[options]\nw1 = 0.2\n'))
    assert (
        load_scorer("sentsim", folder).signature
        == load_scorer("sentsim", "mini", against="source", w1=0.2).signature
    )
    assert load_scorer("sentsim", folder, w1=0.3).weights == [0.3, 0.5]
    with pytest.raises(
        InputError, match="against 'reference': preset .* compares with the source only"
    ):
        load_scorer("sentsim", folder, against="reference")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('extends = "none"\n', "extends 'none': unknown preset 'none' for metric sentsim"),
        ("extends = 1\n", "extends must name a preset"),
        ('extends = "mini"\noptions = 2\n', "options must be a table"),
        ('extends = "mini"\n[optoins]\nw1 = 1\n', "unknown table or key 'optoins'"),
    ],
)
def test_what_cannot_be_extended_is_named(extending, text: str, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        load_scorer("sentsim", str(extending(text)), against="source")


def test_only_one_preset_is_extended(extending) -> None:
    base = extending('extends = "mini"\n[options]\nw1 = 0.2\n', "base")
    folder = extending(f'extends = "{base}"\n')
    with pytest.raises(ArtifactError, match="which extends another preset; extend that one"):
        presets.load_preset("sentsim", folder)
    with pytest.raises(InputError, match="sentsim has no option 'layers'|unknown option 'layers'"):
        load_scorer(
            "sentsim",
            str(extending('extends = "mini"\n[options]\nlayers = 2\n', "c")),
            against="source",
        )


def test_a_bundled_preset_is_extended_by_its_name(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mini", "mine"):
        (tmp_path / name).mkdir()
    assert presets.extending("sentsim", "mini", "")["extends"] == "mini"
    assert presets.extending("sentsim", "mine", "")["extends"] == str(tmp_path.resolve() / "mine")


def test_a_folder_is_read_and_no_file_beside_it(extending, tmp_path) -> None:
    folder = extending('[mt-ref]\nwords = "words"\n')
    (tmp_path / f"{folder.name}.toml").write_text("bounds = 3\n")
    assert presets.load_preset("sentsim", folder).settings["mt-ref"]["words"] == "words"
    with pytest.raises(InputError, match="unknown preset"):
        presets.load_preset("xmoverscore", "../sentsim/mini")


def test_a_preset_whose_options_would_be_lost_is_not_extended(extending) -> None:
    base = extending('[mt-ref]\nwords = "words"\n[options]\nw1 = 0.2\n', "base")
    with pytest.raises(ArtifactError, match="base', which has options; copy its keys here instead"):
        presets.load_preset("sentsim", extending(f'extends = "{base}"\n'))


def test_paths_lie_in_the_folder_of_any_preset_of_a_chain(extending) -> None:
    base = extending('[mt-ref]\nwords = "words"\n', "base")
    (base / "words").mkdir()
    extending('extends = "../base"\n[score]\nvariant = "wmd"\n', "middle")
    preset = presets.load_preset("sentsim", extending('extends = "../middle"\n'))
    assert preset.settings == {"mt-ref": {"words": "words"}, "score": {"variant": "wmd"}}
    assert Path(preset.path("words")).resolve() == base / "words"


@pytest.mark.parametrize("extended", [".", "../mine", "../other"])
def test_a_preset_that_extends_itself_is_refused(extending, extended: str) -> None:
    extending('extends = "../mine"\n', "other")
    with pytest.raises(ArtifactError, match="the preset extends itself"):
        presets.load_preset("sentsim", extending(f'extends = "{extended}"\n'))


@pytest.mark.parametrize("text", ["bounds = 3\n", "agreement = [1]\n", "[mt-refs]\nen = 2\n"])
def test_a_value_in_place_of_a_table_is_refused(extending, text: str) -> None:
    with pytest.raises(ArtifactError, match="must be a table"):
        load_scorer("sentsim", str(extending(text)), against="source")


@pytest.mark.parametrize("metric", ["xmoverscore", "uscore"])
def test_paper_names_a_language_model_of_each_target_that_its_authors_had_one_for(
    metric: str,
) -> None:
    models = load_preset(metric, "paper").settings["language_models"]
    assert list(models) == ["en", "de", "zh", "ru"]  # evaluate.load prepares the first one
    assert len({table["model"] for table in models.values()}) == 4
    assert {table["start_token"] for table in models.values()} == {"short"}


@pytest.mark.parametrize(
    ("metric", "preset", "kind", "message"),
    [
        ("sentsim", "mine", ArtifactError, "a preset for metric 'bertr', not 'sentsim'"),
        ("bertr", "yours", InputError, "unknown preset 'yours' for metric bertr"),
        (
            "bertr",
            "thing",
            ArtifactError,
            r"the Hub repository org/thing \(revision v1.2.0\): not whole in the cache",
        ),
        (
            "bertr",
            "x/us",
            ArtifactError,
            r"the Hub repository x/us \(revision main\): not whole in the cache",
        ),
    ],
)
def test_presets_that_cannot_be_had(places, metric, preset, kind, message):
    write(places["own"] / "mine" / "preset.toml", 'metric = "bertr"\n')
    with pytest.raises(kind, match=message):
        load_preset(metric, preset, local_files_only=True)
