"""UScore of Belouadi and Eger (2023) as an `evaluate` module; the arithmetic is in the package
`mtmetrics`."""

import mtmetrics


class UScore(mtmetrics.MetricModule):
    """UScore scores a translation against its source, without a reference. All that it builds on
    can be had without parallel text and without human judgements: remapped word vectors, a machine
    translation of the source as pseudo-reference, a language model, and contrastively trained
    sentence vectors."""

    metric_name = "uscore"
    paper = "belouadi-eger-2023-uscore"
    examples = """
    >>> import evaluate
    >>> uscore = evaluate.load("uscore", "mini", lang_pair="de-en")
    >>> texts = {"sources": ["Das Haus ist klein."], "predictions": ["The house is small."]}
    >>> sorted(uscore.compute(**texts, return_parts=True)["parts"])
    ['lm', 'snt', 'wmd', 'wrd']
    """
