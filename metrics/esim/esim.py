"""ESIM of Mathur et al. (2019) as an `evaluate` module; the arithmetic is in the package `mtmetrics`."""

import mtmetrics


class ESIM(mtmetrics.MetricModule):
    """ESIM reads a reference and a translation as vectors of a contextual encoder with a bidirectional LSTM, lets
    the words of each attend to those of the other, compares what was found, reads that with a second LSTM, and
    predicts from both ends how people would judge the translation. It is trained on human judgements. Where it was
    trained so, it compares with the source instead.
    """

    metric_name = "esim"
    paper = "mathur-etal-2019-putting"
    examples = """
    >>> import evaluate
    >>> esim = evaluate.load("esim", "mini")
    >>> predictions = ["The house is small.", "We never went to the cinema."]
    >>> result = esim.compute(references=["The house is small."] * 2, predictions=predictions)
    >>> sorted(result)
    ['mean_score', 'report', 'scores', 'signature']
    >>> result["scores"][0] > result["scores"][1]
    True
    """
