"""Measurements of a production."""

import json
import unittest.mock

import numpy as np

from mtmetrics.uscore import production_report as report


def test_a_sentence_without_words_matches_none(tmp_path, monkeypatch):
    """Not the last target, whose place a number of -1 would name."""
    made = unittest.mock.Mock(maps=[], models=[], start=unittest.mock.Mock(sentences=None))
    made.request.languages = ("de", "en")
    made.stages.run = lambda name, measure, **options: measure(tmp_path)
    made.settings.return_value = made.word_settings.return_value = {}
    monkeypatch.setattr(
        report, "encode_side", lambda texts, encoder, language: unittest.mock.Mock(texts=texts)
    )
    found = unittest.mock.Mock(targets=np.array([0, -1]))
    monkeypatch.setattr(report, "find_closest", lambda *sides, k, threads: found)
    report.precision(made, [("das haus", "the house"), ("?", "!")])
    assert json.loads((tmp_path / "measured.json").read_text())["words"] == {"start": 0.5}
