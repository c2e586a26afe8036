"""SentSim of Song et al. (2021) as an `evaluate` module; the arithmetic is in the package
`mtmetrics`."""

import mtmetrics


class SentSim(mtmetrics.MetricModule):
    """SentSim combines the similarity of two sentences as wholes (the cosine of their sentence
    vectors) with that of their words (BERTScore, or the Word Mover's Distance of contextual
    vectors). It compares a translation with its source (SRC-MT), so that no reference is needed, or
    with a reference (MT-REF)."""

    metric_name = "sentsim"
    paper = "song-etal-2021-sentsim"
    examples = """
    >>> import evaluate
    >>> sentsim = evaluate.load("sentsim", "mini", lang_pair="de-en")
    >>> sources = ["Das Haus ist klein.", "Ich habe einen Hund."]
    >>> predictions = ["The house is small.", "I have a dog."]
    >>> result = sentsim.compute(sources=sources, predictions=predictions, return_parts=True)
    >>> sorted(result["parts"])
    ['bertscore', 'sss']
    """
