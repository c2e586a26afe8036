"""MLQE-PE: the published archives, and what is in them."""

import io
import tarfile

import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.data import read_judged

TABLE = (
    "index\toriginal\ttranslation\tscores\tmean\tz_scores\tz_mean\tmodel_scores\n"
    '0\tSee "it\tSieh "es\t[71, 62, 80]\t71.0\t[0.2, -0.1, 0.5]\t0.2\t-0.4\n'
    "1\tGo\tGeh\t[10, 20, 30]\t20.0\t[-1, -1, -1]\t-1\t-0.5\n"
)


def archive(path, *names):
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(TABLE)
            tar.addfile(member, io.BytesIO(TABLE.encode()))
    return path


def check(segments, file):
    assert (segments.file, segments.lang_pair, len(segments)) == (str(file), "en-de", 2)
    assert segments.sources == ['See "it', "Go"]
    assert segments.predictions == ['Sieh "es', "Geh"]
    assert segments.references == [None, None]
    assert segments.human.tolist() == [0.2, -1.0]
    assert segments.raw_human.tolist() == [71.0, 20.0]
    assert segments.column("model_scores") == [-0.4, -0.5]
    with pytest.raises(InputError, match="no column of numbers 'scores'; there are: index, model_scores"):
        segments.column("scores")


def test_a_file_and_an_archive(tmp_path):
    path = tmp_path / "dev.ende.df.short.tsv"
    path.write_text(TABLE)
    check(*read_judged(path), path)
    packed = archive(
        tmp_path / "en-de-dev.tar.gz", "en-de-dev/word-probas/mt.dev.ende", "en-de-dev/dev.ende.df.short.tsv"
    )
    check(*read_judged(packed), packed)


def test_a_folder_of_archives(tmp_path):
    for split in ("dev", "test"):
        archive(tmp_path / f"et-en-{split}.tar.gz", f"et-en-{split}/{split}.eten.df.short.tsv")
    archive(tmp_path / "en-de-dev.tar.gz", "en-de-dev/dev.ende.df.short.tsv")
    (tmp_path / "SHA256SUMS").write_text("not judged data\n")
    found = [(pair.file, pair.lang_pair) for pair in read_judged(tmp_path)]
    names = ("en-de-dev", "et-en-dev", "et-en-test")
    assert found == [(str(tmp_path / f"{name}.tar.gz"), name[:5]) for name in names]
    assert [pair.file for pair in read_judged(tmp_path, lang_pair="en-de")] == [str(tmp_path / "en-de-dev.tar.gz")]


def test_what_is_no_mlqe(tmp_path):
    path = tmp_path / "dev.df.short.tsv"
    path.write_text(TABLE)
    with pytest.raises(InputError, match=r"dev\.df\.short\.tsv: a name such as dev\.ende\.df\.short\.tsv is needed"):
        read_judged(path)
    with pytest.raises(InputError, match=r"none\.tar\.gz: holds 0 files \*\.df\.short\.tsv, one is needed"):
        read_judged(archive(tmp_path / "none.tar.gz", "README"))
    packed = archive(tmp_path / "two.tar.gz", "dev.ende.df.short.tsv", "test.ende.df.short.tsv")
    with pytest.raises(InputError, match=r"two\.tar\.gz: holds 2 files"):
        read_judged(packed)
    packed.write_bytes(packed.read_bytes()[:50])
    with pytest.raises(InputError, match=r"two\.tar\.gz: cannot be read as a tar archive"):
        read_judged(packed)
    with pytest.raises(InputError, match=r"gone\.tar: cannot be read as a tar archive"):
        read_judged(tmp_path / "gone.tar")
