"""Checksums of files, and safetensors files of equal content."""

import numpy as np
from safetensors.numpy import load, save

from mtmetrics.io.checksums import git_blob_sha1, with_sorted_metadata


def test_git_blob_hashes() -> None:
    # `printf 'hello\n' | git hash-object --stdin` and the empty file, known from any git
    # repository.
    assert git_blob_sha1(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert git_blob_sha1(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_safetensors_metadata_in_one_order() -> None:
    tensors = {"b": np.arange(6.0).reshape(2, 3), "a": np.ones(1, dtype=np.float32)}
    names = [letter * 3 for letter in "hgfedcbaäö"]
    orders = (names, names[::-1], sorted(names))
    [data] = {
        with_sorted_metadata(save(tensors, metadata={name: name.upper() for name in order}))
        for order in orders
    }
    read = load(data)
    assert all(np.array_equal(read[name], array) for name, array in tensors.items())
    header = data[8 : 8 + int.from_bytes(data[:8], "little")].decode()
    assert [header.index(f'"{name}"') for name in sorted(names)] == sorted(
        header.index(f'"{name}"') for name in names
    )
    assert len(header.encode()) % 8 == 0
