"""XMoverScore of Zhao et al. (2020) as an `evaluate` module; the arithmetic is in the package
`mtmetrics`."""

import mtmetrics


class XMoverScore(mtmetrics.MetricModule):
    """XMoverScore scores a translation against its source, without a reference. It compares the
    token vectors of source and translation in a multilingual encoder with the Word Mover's
    Distance, after a linear map has brought the two languages closer together, and adds how likely
    a language model of the target language finds the translation."""

    metric_name = "xmoverscore"
    paper = "zhao-etal-2020-limitations"
    examples = """
    >>> import evaluate
    >>> xmoverscore = evaluate.load("xmoverscore", "mini")
    >>> sources, predictions = ["Das Haus ist klein."], ["The house is small."]
    >>> result = xmoverscore.compute(sources=sources, predictions=predictions, lang_pair="de-en")
    >>> sorted(result)
    ['mean_score', 'report', 'scores', 'signature']
    >>> len(result["scores"])
    1
    """
