"""Parts of the networks of COMET, by hand."""

import numpy as np
import pytest
import torch

from mtmetrics.models.comet_network import error_spans, sparsemax


def test_spans_end_where_no_error_follows() -> None:
    likely = np.eye(3)[[0, 2, 1, 0, 1, 0, 2]] * 0.8
    offsets = [(0, 0), (0, 3), (4, 7), (8, 9), (10, 12), (13, 14), (15, 16)]
    found = error_spans(likely, offsets, ["minor", "major"])
    # The second is of the severity that it begins with; what reaches the end does not count.
    assert [(span.start, span.end, span.severity) for span in found] == [
        (0, 7, "major"),
        (10, 12, "minor"),
    ]
    assert [span.confidence for span in found] == pytest.approx([0.8, 0.8])


def test_sparsemax_is_the_nearest_point_of_the_simplex() -> None:
    generator = torch.Generator().manual_seed(3)
    for _ in range(20):
        scores = torch.randn(5, generator=generator) * 2
        found = sparsemax(scores)
        assert found.sum().item() == pytest.approx(1, abs=1e-6)
        corners = torch.eye(5)
        # Its distance to the scores grows towards every corner.
        for corner in corners:
            assert torch.dot(scores - found, corner - found).item() <= 1e-5
