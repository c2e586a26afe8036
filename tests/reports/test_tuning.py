"""Which options are tuned."""

from mtmetrics.reports.tuning import tuned_options


def test_weights_of_uscore_are_tried_without_pseudo_references_first() -> None:
    weights = tuned_options("uscore")["weights"]
    assert len(weights) == len(set(weights)) == 231
    assert weights[0] == "wmd=1+snt=1"
    assert all("pseudo" not in text for text in weights[:66])
