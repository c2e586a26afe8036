"""COMET of Rei et al. (2020) as an `evaluate` module; the arithmetic is in the package
`mtmetrics`."""

import mtmetrics


class COMET(mtmetrics.MetricModule):
    """COMET encodes source, translation and reference with a multilingual encoder, and a network
    that was trained on human judgements predicts from their vectors how people would judge the
    translation. Checkpoints that others have published are read: of regression with and without
    references, unified ones such as COMETKiwi, and XCOMET. They are converted once, by `mtmetrics
    artifacts convert`; none ships with the package."""

    metric_name = "comet"
    paper = "rei-etal-2020-comet"
    examples = """
    >>> import evaluate
    >>> comet = evaluate.load("comet", "wmt22-comet-da")
    >>> texts = {"sources": ["Das Haus ist klein."], "references": ["The house is little."]}
    >>> sorted(comet.compute(predictions=["The house is small."], **texts))
    ['mean_score', 'report', 'scores', 'signature']
    """
