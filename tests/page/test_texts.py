"""Texts as visitors give them."""

import pytest

import mtmetrics.page.texts as texts_module
from mtmetrics.errors import InputError
from mtmetrics.page.texts import TextInput, from_lists, read_texts


def test_texts_are_read(tmp_path):
    path = tmp_path / "a.en"
    path.write_text("one\n\nthree\n")
    given = read_texts(
        "de-en",
        {
            "sources": TextInput("source", text="eins\r\n\r\ndrei\n\n"),
            "references": TextInput("reference"),
        },
        [TextInput("a", str(path)), TextInput("b"), TextInput("c", text="1\n2\n3")],
    )
    assert given == (
        "de-en",
        {"sources": ["eins", "", "drei"]},
        {"a": ["one", "", "three"], "c": ["1", "2", "3"]},
    )
    assert given.segments == 3


@pytest.mark.parametrize(
    ("lang_pair", "source", "systems", "message"),
    [
        ("de", "a", ["b"], "language pair 'de'"),
        ("de-en", "", ["b"], "no source and no references"),
        ("de-en", "a", [""], "no translations"),
        ("de-en", "a\nb", ["c"], "system has 1 segments but source has 2"),
        ("de-en", "a", ["b", "c"], "two of the texts are called 'system'"),
        ("de-en", "a\nb\nc", ["1\n2\n3"], "system: with it the texts have more than .* characters"),
    ],
)
def test_texts_that_cannot_be_used(lang_pair, source, systems, message, monkeypatch):
    monkeypatch.setattr(texts_module, "MAX_CHARACTERS", 5)
    with pytest.raises(InputError, match=message):
        read_texts(
            lang_pair,
            {"sources": TextInput("source", text=source)},
            [TextInput("system", text=text) for text in systems],
        )


def test_files_that_cannot_be_used(tmp_path, monkeypatch):
    path = tmp_path / "out.en"
    others = {"sources": TextInput("source", text="a\nb")}
    path.write_bytes(b"a\nb\n\xff\n")
    with pytest.raises(InputError, match=r"^out\.en, line 3: byte 1 \(0xff\) is not valid UTF-8"):
        read_texts("de-en", others, [TextInput("out", str(path))])
    monkeypatch.setattr(texts_module, "MAX_SEGMENTS", 2)
    path.write_text("a\nb\nc\n")
    pasted = TextInput("out", text="a\nb\nc")
    for system in (TextInput("out", str(path)), pasted):
        with pytest.raises(InputError, match=r"out: more than 2 segments.*mtmetrics compare"):
            read_texts("de-en", others, [system])
    with pytest.raises(InputError, match=r"systems\['a'\]: more than 2 segments"):
        from_lists("de-en", {"sources": ["a", "b"]}, {"a": ["a", "b", "c"]})


def test_texts_of_one_name_can_be_renamed_whatever_they_are(tmp_path):
    """Not only systems: a source and references from two folders, too."""
    inputs = {}
    for column in ("sources", "references"):
        path = tmp_path / column / "test.txt"
        path.parent.mkdir()
        path.write_text("a\n")
        inputs[column] = TextInput(path.name, str(path))
    with pytest.raises(InputError, match=r"two of the texts are called 'test.txt': rename one of"):
        read_texts("de-en", inputs, [TextInput("system", text="b")])


def test_lists_of_a_program():
    texts = from_lists("de-en", {"references": ("eins",)}, {"a": ("one",)})
    assert texts == ("de-en", {"references": ["eins"]}, {"a": ["one"]})
    texts = from_lists("de-en", {"references": ["eins"]}, {"a": ["one"], "sources": ["two"]})
    assert texts == ("de-en", {"references": ["eins"]}, {"a": ["one"], "sources": ["two"]})
    for others, systems, message in [
        ({}, {"a": ["one"]}, "no sources and no references"),
        ({"sources": ["eins"]}, ["one"], "systems: a dictionary"),
        ({"sources": ["eins"]}, {"a": "one"}, r"systems\['a'\]: a list of strings is needed"),
        ({"references": [["eins"]]}, {"a": ["one"]}, r"references\[0\]: a string is needed"),
    ]:
        with pytest.raises(InputError, match=message):
            from_lists("de-en", others, systems)
