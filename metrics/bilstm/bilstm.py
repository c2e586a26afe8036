"""BiLSTM of Mathur et al. (2019) as an `evaluate` module; the arithmetic is in the package
`mtmetrics`."""

import mtmetrics


class BiLSTM(mtmetrics.MetricModule):
    """BiLSTM reads a reference and a translation, each by itself, as vectors of a contextual
    encoder with a bidirectional LSTM, averages and takes the maximum of the states of each side,
    and predicts from that how people would judge the translation. It is trained on human
    judgements. Where it was trained so, it compares with the source instead."""

    metric_name = "bilstm"
    paper = "mathur-etal-2019-putting"
    examples = """
    >>> import evaluate
    >>> bilstm = evaluate.load("bilstm", "mini")
    >>> predictions = ["The house is small.", "We never went to the cinema."]
    >>> result = bilstm.compute(references=["The house is small."] * 2, predictions=predictions)
    >>> sorted(result)
    ['mean_score', 'report', 'scores', 'signature']
    >>> result["scores"][0] > result["scores"][1]
    True
    """
