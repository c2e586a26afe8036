"""The registry of public sets; fetching is tested with the command."""

import re

import pytest

from mtmetrics.errors import ArtifactError
from mtmetrics.judgements import public_sets as datasets


def test_every_file_has_a_fixed_address_and_a_name_that_is_read():
    known = datasets.datasets()
    assert {"wmt17-da", "mlqe-pe-test", "wmt-mqm"} <= known.keys()
    for name, dataset in known.items():
        assert dataset.name == name
        assert dataset.what
        assert dataset.licence
        for file, about in dataset.files.items():
            assert re.match(r"https://.*/[0-9a-f]{40}/", about.url), about.url
            assert file.endswith((".tsv", ".csv", ".tar.gz", ".json", ".jsonl"))
            assert about.pickled == about.url.endswith(".pkl")
            assert about.sha256 is None or re.fullmatch("[0-9a-f]{64}", about.sha256)


def test_a_malformed_registry(tmp_path, monkeypatch):
    path = tmp_path / "datasets.toml"
    path.write_text('[one]\nwhat = "a set"\n')
    monkeypatch.setattr(datasets, "REGISTRY", path)
    with pytest.raises(ArtifactError, match=r"datasets\.toml: the registry of data cannot be read \(KeyError"):
        datasets.datasets()
