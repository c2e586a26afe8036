"""The similarities of the paper beside the contextual word mover: sentence vectors and static word
vectors; and alignments."""

from pathlib import Path

import numpy as np
import pytest

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import map_file_name, map_meta
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.static_vectors import StaticVectors
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.xmoverscore import XMoverScore

SOURCES = ["Das Haus ist klein.", "ich sehe die Katze", "der Hund schläft nicht!"]
PREDICTIONS = ["the house is small.", "i see the cat", "the dog sleeps not!"]


@pytest.fixture
def preset(tmp_path: Path, encoder: TokenEncoder, tiny_encoder: Path) -> Path:
    """A preset with maps of words and of sentences."""
    vectors = np.random.default_rng(0).normal(size=(2, 50, 16))
    for level in ("word", "sentence"):
        Remapping.fit("clp", *vectors, meta=map_meta(encoder, "de-en", level=level)).save(
            tmp_path / map_file_name("de-en", "clp", level)
        )
    (tmp_path / "preset.toml").write_text(
        f'[encoder]\nmodel = "{tiny_encoder}"\n[score]\nngram = 2\n[maps]\nkind = "clp"\n'
    )
    return tmp_path


def table(path: Path, words: dict[str, list[float]], header: bool = True) -> Path:
    """Writes word2vec text."""
    rows = [f"{len(words)} {len(next(iter(words.values())))}"] * header
    rows += [f"{word} {' '.join(map(str, vector))}" for word, vector in words.items()]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def cosine(x: np.ndarray, y: np.ndarray) -> float:
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


def test_cosine_of_means(encoder: TokenEncoder) -> None:
    scorer = XMoverScore(encoder.means(), similarity="cosine")
    assert scorer.score(SOURCES, sources=SOURCES).segments == pytest.approx([1, 1, 1], abs=1e-6)
    result = scorer.score([*PREDICTIONS, "x"], sources=[*SOURCES, " "])
    means = [
        [encoder.encode([text]).vectors.mean(0) for text in texts]
        for texts in (SOURCES, PREDICTIONS)
    ]
    assert result.segments[:3] == pytest.approx(
        [cosine(x, y) for x, y in zip(*means, strict=True)], abs=1e-6
    )
    assert result.segments[3] == -1
    assert list(result.parts) == ["cosine", "lm"]
    assert "|sim:cosine|map:none|" in result.signature
    assert "ngram" not in result.signature


def test_cosine_with_map_and_language_model(encoder: TokenEncoder, tiny_lm: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(2, 50, 16))
    for kind in ("clp", "umd", "clp+umd", "umd+clp"):
        remapping, model = Remapping.fit(kind, *vectors), LanguageModel(tiny_lm)
        options = {
            "similarity": "cosine",
            "remapping": remapping,
            "language_model": model,
            "lm_weight": 0.3,
        }
        scorer = XMoverScore(encoder.means(), **options)
        result = scorer.score(PREDICTIONS, sources=SOURCES)
        x, y = (encoder.means().encode(texts).vectors for texts in (SOURCES, PREDICTIONS))
        mapped = remapping.apply(x)
        expected = [cosine(a, b) for a, b in zip(mapped, y, strict=True)] + 0.3 * model.score(
            PREDICTIONS
        )[0]
        assert result.segments == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("option", [{"ngram": 2}, {"distance": "euclidean"}, {"drop_rate": 0.3}])
def test_options_without_effect_are_refused(encoder: TokenEncoder, option: dict) -> None:
    with pytest.raises(
        InputError, match=f"{next(iter(option))} has no effect with similarity='cosine'"
    ):
        XMoverScore(encoder.means(), similarity="cosine", **option)


def test_a_preset_chooses_the_maps_of_the_level(preset: Path) -> None:
    words, sentences = (
        XMoverScore.load(str(preset), lang_pair="de-en", similarity=similarity)
        for similarity in ("mover", "cosine")
    )
    assert words.remapping is not None
    assert sentences.remapping is not None
    assert (words.remapping.meta["level"], sentences.remapping.meta["level"]) == (
        "word",
        "sentence",
    )
    maps = str(preset / "de-en.clp.safetensors")
    with pytest.raises(ArtifactError, match="fitted on word vectors"):
        XMoverScore.load(str(preset), lang_pair="de-en", similarity="cosine", maps=maps)


def test_a_sentence_transformers_model(
    tiny_encoder: Path, tmp_path: Path, encoder: TokenEncoder
) -> None:
    from sentence_transformers import SentenceTransformer

    try:
        from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
    except ImportError:  # before sentence-transformers 6
        from sentence_transformers.models import Dense, Pooling, Transformer

    body = Transformer(str(tiny_encoder), max_seq_length=8)
    model = SentenceTransformer(modules=[body, Pooling(16, "mean"), Dense(16, 5)], device="cpu")
    model.save(str(tmp_path / "model"))
    options = {"lang_pair": "de-en", "pool": ModelPool(device="cpu"), "similarity": "cosine"}
    options["encoder"] = str(tmp_path / "model")
    scorer = XMoverScore.load("mini", map="none", lm="none", **options)
    long = " ".join(["das haus"] * 10)
    result = scorer.score([*PREDICTIONS, "a"], sources=[*SOURCES, long])
    x, y = (model.encode(texts) for texts in ([*SOURCES, long], [*PREDICTIONS, "a"]))
    assert scorer.encoder.dim == 5
    assert result.segments == pytest.approx(
        [cosine(a, b) for a, b in zip(x, y, strict=True)], abs=1e-6
    )
    assert result.report.truncated == 1
    assert "|enc:model#" in result.signature
    assert "layer" not in result.signature
    with pytest.raises(InputError, match="layers cannot be chosen"):
        XMoverScore.load("mini", map="none", layer=1, **options)


def test_static_vectors_in_two_tables(tmp_path: Path) -> None:
    table(tmp_path / "v.de.vec", {"haus": [1, 0], "klein": [0, 1], ".": [1, 1]})
    table(tmp_path / "v.en.vec", {"house": [1, 0], "small": [0, 2], "Big": [-1, 0]}, header=False)
    options = {
        "encoder": str(tmp_path / "v.{lang}.vec"),
        "map": "none",
        "pieces": "words",
        "weights": "uniform",
    }
    scorer = XMoverScore.load("mini", lang_pair="de-en", lm="none", **options)
    result = scorer.score(
        ["small house", "Big", "house"], sources=["Das Haus: klein.", "Haus", "xyz"]
    )
    assert result.segments.tolist() == pytest.approx([1, -3, -3])
    assert result.report.blank == 1
    assert "|enc:v.de.vec#" in result.signature
    assert "|tenc:v.en.vec#" in result.signature
    [alignment] = scorer.align(["small house"], sources=["Das Haus: klein."])
    assert (alignment.source, alignment.prediction) == (["Haus", "klein"], ["small", "house"])
    assert alignment.mass.tolist() == [[0, 0.5], [0.5, 0]]
    with pytest.raises(InputError, match="no such table of word vectors: .*v.fr.vec"):
        XMoverScore.load("mini", lang_pair="fr-en", **options)
    with pytest.raises(InputError, match="needs a vector per text"):
        XMoverScore.load("mini", lang_pair="de-en", similarity="cosine", **options)
    with pytest.raises(InputError, match="have no layers"):
        XMoverScore.load("mini", lang_pair="de-en", layer=1, **options)


def test_tables_of_different_width(tmp_path: Path) -> None:
    first = StaticVectors(table(tmp_path / "a.vec", {"a": [1, 0]}))
    second = StaticVectors(table(tmp_path / "b.vec", {"b": [1, 0, 0]}))
    with pytest.raises(InputError, match="sources have 2 numbers, those of predictions 3"):
        XMoverScore(first, target_encoder=second)


@pytest.mark.parametrize("ngram", [1, 2])
@pytest.mark.parametrize("variant", ["acl20", "release"])
def test_alignments_add_up_to_the_score(encoder: TokenEncoder, variant: str, ngram: int) -> None:
    scorer = XMoverScore(
        encoder, variant=variant, ngram=ngram, drop_rate=0.0 if variant == "release" else None
    )
    result = scorer.score(PREDICTIONS, sources=SOURCES)
    alignments = scorer.align(PREDICTIONS, sources=SOURCES)
    to_score = {"acl20": lambda d: 1 - d, "release": lambda d: 1 / (1 + d)}[variant]
    assert [to_score(alignment.total) for alignment in alignments] == pytest.approx(
        result.segments.tolist(), abs=2e-6
    )
    words = [
        "[CLS]",
        "der",
        "Hund",
        "schläft",
        "nicht",
        *(["!"] if variant == "release" else []),
        "[SEP]",
    ]
    assert alignments[2].source == words
    assert alignments[2].mass.sum() == pytest.approx(1, abs=1e-5)
    assert (
        alignments[2].mass.shape
        == alignments[2].values.shape
        == (len(words), len(alignments[2].prediction))
    )


def test_alignments_of_blank_texts_and_of_sentences(encoder: TokenEncoder) -> None:
    [blank] = XMoverScore(encoder).align(["the house"], sources=[" "])
    assert (blank.source, blank.prediction, blank.mass.shape) == ([], [], (0, 0))
    with pytest.raises(InputError, match="nothing to align"):
        XMoverScore(encoder.means(), similarity="cosine").align(PREDICTIONS, sources=SOURCES)
    with pytest.raises(InputError, match="must be parallel"):
        XMoverScore(encoder).align(PREDICTIONS[:1], sources=SOURCES)


@pytest.mark.parametrize("variant", ["acl20", "release"])
def test_faults_share_out_what_the_score_lacks(
    encoder: TokenEncoder, tiny_lm: Path, variant: str
) -> None:
    model = LanguageModel(tiny_lm, start_token="always")
    scorer = XMoverScore(encoder, language_model=model, variant=variant, lm_weight=0.3)
    result, alignments = (
        scorer.score(PREDICTIONS, sources=SOURCES),
        scorer.align(PREDICTIONS, sources=SOURCES),
    )
    for number, (match, losses) in enumerate(scorer.evidence(PREDICTIONS, alignments)):
        parts = {name: values[number] for name, values in result.parts.items()}
        assert match.lack.sum() == pytest.approx(1 - parts["mover"], abs=1e-5)
        assert losses.lack.sum() == pytest.approx(
            0.3 * ((variant == "release") - parts["lm"]), abs=1e-5
        )
    for text, words in zip(PREDICTIONS, scorer.faults(PREDICTIONS, alignments), strict=True):
        assert " ".join(text[word.start : word.end] for word in words) == text.replace(
            "!", " !"
        ).replace(".", " .")
        assert sum(word.share for word in words) == pytest.approx(1)
        assert all(0 <= word.severity <= 1 for word in words)
    with pytest.raises(InputError, match="3 predictions, but 1 alignments"):
        scorer.faults(PREDICTIONS[:3], alignments[:1])
