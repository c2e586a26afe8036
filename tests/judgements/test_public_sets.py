"""The registry of public sets; fetching is tested with the command."""

import re

from mtmetrics.judgements import public_sets as datasets
from mtmetrics.judgements.readers import files_of


def test_every_file_has_a_fixed_address_and_every_set_files_that_are_read(tmp_path):
    known = datasets.datasets()
    assert {"wmt17-da", "mlqe-pe-test", "wmt-mqm", "wmt16-da", "wmt19-metrics"} <= known.keys()
    for name, dataset in known.items():
        assert dataset.name == name
        assert dataset.what
        assert dataset.licence
        for file, about in dataset.files.items():
            assert re.match(r"https://.*/[0-9a-f]{40}/", about.url), about.url
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).touch()
            assert about.pickled == about.url.endswith(".pkl")
            assert about.sha256 is None or re.fullmatch("[0-9a-f]{64}", about.sha256)
            assert about.git_blob is None or re.fullmatch("[0-9a-f]{40}", about.git_blob)
            # The only one whose checksum is that of the first download.
            assert about.is_pinned or (name, file) == ("wmt-mqm", "wmt-mqm.csv")
        assert files_of(tmp_path / name)


def test_texts_of_a_metrics_task_lie_where_its_reader_looks_for_them():
    """Every pair with a system has the source and the reference of its test set."""
    for year, pairs in (
        ("17", "cs de fi lv ru tr zh"),
        ("18", "cs de et fi ru tr zh"),
        ("19", "de fi gu kk lt ru zh"),
    ):
        files = datasets.datasets()[f"wmt{year}-metrics"].files
        systems = {name.split("/")[1] for name in files if name.startswith("system-outputs/")}
        assert systems == {f"{source}-en" for source in pairs.split()}
        for pair in systems:
            source, target = pair.split("-")
            name = f"newstest20{year}-{source}{target}"
            assert {
                f"source/{name}-src.{source}",
                f"references/{name}-ref.{target}",
            } <= files.keys()
