"""BiLSTM + attention of Mathur et al. (2019) as an `evaluate` module; the arithmetic is in the
package `mtmetrics`."""

import mtmetrics


class BiLSTMAttention(mtmetrics.MetricModule):
    """BiLSTM + attention reads a reference and a translation as vectors of a contextual encoder
    with a bidirectional LSTM, lets the words of each attend to those of the other, averages and
    takes the maximum of what was found on each side, and predicts from that how people would judge
    the translation. It is trained on human judgements. Where it was trained so, it compares with
    the source instead."""

    metric_name = "bilstm_attention"
    paper = "mathur-etal-2019-putting"
    examples = """
    >>> import evaluate
    >>> bilstm_attention = evaluate.load("bilstm_attention", "mini")
    >>> for prediction in ("The house is small.", "We never went to the cinema."):
    ...     bilstm_attention.add(reference="The house is small.", prediction=prediction)
    >>> good, bad = bilstm_attention.compute()["scores"]
    >>> good > bad
    True
    """
