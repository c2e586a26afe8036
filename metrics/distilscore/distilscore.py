"""DistilScore as an `evaluate` module; the arithmetic is in the package `mtmetrics`."""

import mtmetrics


class DistilScore(mtmetrics.MetricModule):
    """DistilScore is the cosine of the sentence vectors of a translation and its source, in a
    multilingual sentence encoder that was distilled from an English one. No reference is needed;
    references can be used instead of sources."""

    metric_name = "distilscore"
    paper = "reimers-gurevych-2020-making"
    examples = """
    >>> import evaluate
    >>> distilscore = evaluate.load("distilscore", "mini", lang_pair="de-en")
    >>> result = distilscore.compute(sources=["Das Haus ist klein."], predictions=["The house is small."])
    >>> sorted(result)
    ['mean_score', 'report', 'scores', 'signature']
    >>> len(result["scores"])
    1
    """
