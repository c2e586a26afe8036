"""UScore of Belouadi and Eger (2023) as an `evaluate` module; the arithmetic is in the package `mtmetrics`."""

import mtmetrics


class UScore(mtmetrics.MetricModule):
    """UScore scores a translation against its source, without a reference. All that it builds on can be had without
    parallel text and without human judgements: remapped word vectors, a machine translation of the source as
    pseudo-reference, a language model, and contrastively trained sentence vectors.
    """

    metric_name = "uscore"
    paper = "belouadi-eger-2023-uscore"
    scale = "at most 0.4 with the weights `tuned`"
    parts = "`wmd`, `pseudo`, `lm`, `wrd` and `snt`, as far as they were computed"
    aligned = (
        "per segment the words of `source` and `prediction`, the `mass` that moves between them, its costs "
        "(`values`), and their `total`, the distance"
    )
    examples = """
    >>> import evaluate
    >>> uscore = evaluate.load("uscore", "mini")
    >>> sources, predictions = ["Das Haus ist klein."], ["The house is small."]
    >>> result = uscore.compute(sources=sources, predictions=predictions, lang_pair="de-en", return_parts=True)
    >>> sorted(result["parts"])
    ['lm', 'snt', 'wmd', 'wrd']
    """
