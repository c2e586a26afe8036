"""BERTR of Mathur et al. (2019) as an `evaluate` module; the arithmetic is in the package
`mtmetrics`."""

import mtmetrics


class BERTR(mtmetrics.MetricModule):
    """BERTR says how much of a reference is covered by a translation: for every word piece of the
    reference, the highest cosine with a word piece of the translation, both as vectors of a
    contextual encoder, averaged over the pieces of the reference. With a multilingual encoder it
    also compares a translation with its source."""

    metric_name = "bertr"
    paper = "mathur-etal-2019-putting"
    examples = """
    >>> import evaluate
    >>> bertr = evaluate.load("bertr", "mini")
    >>> result = bertr.compute(references=["The house is small."], predictions=["The house is small."])
    >>> sorted(result)
    ['mean_score', 'report', 'scores', 'signature']
    >>> round(result["mean_score"], 4)
    1.0
    """
