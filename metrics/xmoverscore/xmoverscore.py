"""XMoverScore of Zhao et al. (2020) as an `evaluate` module; the arithmetic is in the package `mtmetrics`."""

import evaluate

import mtmetrics

_DESCRIPTION = """
XMoverScore scores a translation against its source, without a reference. It compares the token vectors of source and
translation in a multilingual encoder with the Word Mover's Distance, after a linear map has brought the two languages
closer together, and adds how likely a language model of the target language finds the translation.
"""

_CITATION = """
@inproceedings{zhao-etal-2020-limitations,
    title = "On the Limitations of Cross-lingual Encoders as Exposed by Reference-Free Machine Translation Evaluation",
    author = "Zhao, Wei and Glava{\\v{s}}, Goran and Peyrard, Maxime and Gao, Yang and West, Robert and Eger, Steffen",
    booktitle = "Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics",
    year = "2020",
    pages = "1656--1671",
    doi = "10.18653/v1/2020.acl-main.151",
}
"""

_KWARGS_DESCRIPTION = f"""
Scores translations against their sources. A higher score is better; scores are comparable where their signatures are
equal.

Args of `evaluate.load`, besides all but the first two of `compute`, which are defaults for it then:
    config_name (`str`): a preset: `"paper"` (default, the models of the paper) or `"mini"` (bundled, offline).
    preset (`str`): a folder with a preset.toml, instead of a config name.
{mtmetrics.MetricModule.LOAD_ARGUMENTS}

Args of `compute`:
    sources (`list` of `str`): the source segments.
    predictions (`list` of `str`): their translations.
    lang_pair (`str`): language pair such as `"de-en"`; it chooses the map and the language model.
    encoder (`str`): another encoder, or a table of word vectors. This and all that follows overrides the preset.
    layer (`int`): hidden state of the encoder, 0 = embeddings.
    similarity (`str`): `"mover"`, between words, or `"cosine"`, between sentence vectors.
    variant (`str`): published form: `"acl20"`, `"release"` or `"uscore"`.
    pieces (`str`): `"words"`, without punctuation and continuation pieces, or `"all"`.
    ngram (`int`): tokens per n-gram.
    distance (`str`): `"sqeuclidean"`, `"euclidean"` or `"cosine"`.
    map (`str`): `"none"`, `"clp"`, `"umd"`, `"clp+umd"` or `"umd+clp"`.
    maps (`str`): a map file, a folder of maps, or the name of a map artifact.
    sides (`str`): map the `"source"` side or `"both"`.
    lm (`str`): a language model of the target language, or `"none"`.
    lm_weight (`float`): weight of the language model.
    weights (`str`): `"uniform"`, `"norm"` (lengths of the vectors), or a stored table of inverse document frequencies.
    drop_rate (`float`): share of flows that partial transport drops.
    workers (`int`): processes that solve transport where that pays; one per core by default, at most 4.
    return_parts (`bool`): also return the parts that a score is combined from.
    return_alignments (`bool`): also return which words were matched, and at what cost.
    return_ci (`bool`): also return a 95 % bootstrap interval of the mean.
    return_scores (`bool`): return the scores of the segments; without them the result is small enough to be logged.

Returns:
    mean_score (`float`): mean of the segment scores, which is the system score.
    scores (`list` of `float`): one score per segment.
    parts (`dict` of `list` of `float`): with `return_parts=True`: `mover` or `cosine`, and `lm`, the mean
        log-likelihood per token.
    alignments (`list` of `dict`): with `return_alignments=True`, one per segment: the words of `source` and
        `prediction`, the `mass` that moves between them, its costs (`values`), and their `total`, the distance.
    ci (`dict`): with `return_ci=True`: `low`, `high`, and how they were made.
    signature (`str`): one line that pins everything that the scores depend on.
    report (`dict` of `int`): segments in all, blank ones, truncated ones, and ones identical to the source.

Examples:

    >>> import evaluate
    >>> xmoverscore = evaluate.load("xmoverscore", "mini")
    >>> sources, predictions = ["Das Haus ist klein."], ["The house is small."]
    >>> result = xmoverscore.compute(sources=sources, predictions=predictions, lang_pair="de-en")
    >>> sorted(result)
    ['mean_score', 'report', 'scores', 'signature']
    >>> len(result["scores"])
    1
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class XMoverScore(mtmetrics.MetricModule):
    """XMoverScore as an `evaluate` metric."""

    metric_name = "xmoverscore"

    def _info(self):
        """What `evaluate` shows of the metric."""
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=self.features_for("sources"),
            homepage="https://aclanthology.org/2020.acl-main.151",
            reference_urls=["https://aclanthology.org/2020.acl-main.151"],
        )

    def _download_and_prepare(self, dl_manager):
        """Loads encoder and language model once; the map follows when the language pair is known."""
        self.prepare(dl_manager, map="none")

    def _compute(
        self,
        sources,
        predictions,
        lang_pair,
        encoder=None,
        layer=None,
        similarity=None,
        variant=None,
        pieces=None,
        ngram=None,
        distance=None,
        map=None,
        maps=None,
        sides=None,
        lm=None,
        lm_weight=None,
        weights=None,
        drop_rate=None,
        workers=None,
        return_parts=False,
        return_alignments=False,
        return_ci=False,
        return_scores=True,
    ):
        """Scores the translations; see the arguments of `compute`."""
        return self.scored(locals())
