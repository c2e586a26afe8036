"""ESIM of Mathur et al. (2019) as an `evaluate` module; the arithmetic is in the package
`mtmetrics`."""

import mtmetrics


class ESIM(mtmetrics.MetricModule):
    """ESIM reads a reference and a translation as vectors of a contextual encoder with a
    bidirectional LSTM, lets the words of each attend to those of the other, compares what was
    found, reads that with a second LSTM, and predicts from both ends how people would judge the
    translation. It is trained on human judgements. Where it was trained so, it compares with the
    source instead."""

    metric_name = "esim"
    paper = "mathur-etal-2019-putting"
    examples = """
    >>> import evaluate
    >>> source, translations = "Das Haus ist klein.", ["The house is small.", "We never went to the cinema."]
    >>> esim = evaluate.load("esim", "mini", lang_pair="de-en")
    >>> good, bad = esim.compute(sources=[source] * 2, predictions=translations)["scores"]
    >>> good > bad
    True
    """
