"""BiLSTM + attention of Mathur et al. (2019) as an `evaluate` module; the arithmetic is in the package `mtmetrics`."""

import mtmetrics


class BiLSTMAttention(mtmetrics.MetricModule):
    """BiLSTM + attention reads a reference and a translation as vectors of a contextual encoder with a
    bidirectional LSTM, lets the words of each attend to those of the other, averages and takes the maximum of what
    was found on each side, and predicts from that how people would judge the translation. It is trained on human
    judgements. Where it was trained so, it compares with the source instead.
    """

    metric_name = "bilstm_attention"
    paper = "mathur-etal-2019-putting"
    examples = """
    >>> import evaluate
    >>> bilstm_attention = evaluate.load("bilstm_attention", "mini")
    >>> predictions = ["The house is small.", "We never went to the cinema."]
    >>> result = bilstm_attention.compute(references=["The house is small."] * 2, predictions=predictions)
    >>> sorted(result)
    ['mean_score', 'report', 'scores', 'signature']
    >>> result["scores"][0] > result["scores"][1]
    True
    """
