"""UScore of Belouadi and Eger (2023) as an `evaluate` module; the arithmetic is in the package `mtmetrics`."""

import evaluate

import mtmetrics

_DESCRIPTION = """
UScore scores a translation against its source, without a reference. All that it builds on can be had without parallel
text and without human judgements: remapped word vectors, a machine translation of the source as pseudo-reference, a
language model, and contrastively trained sentence vectors.
"""

_CITATION = """
@inproceedings{belouadi-eger-2023-uscore,
    title = "{US}core: An Effective Approach to Fully Unsupervised Evaluation Metrics for Machine Translation",
    author = "Belouadi, Jonas and Eger, Steffen",
    booktitle = "Proceedings of the 17th Conference of the European Chapter of the
        Association for Computational Linguistics",
    year = "2023",
    doi = "10.18653/v1/2023.eacl-main.27",
}
"""

_KWARGS_DESCRIPTION = f"""
Scores translations against their sources. A higher score is better; scores are comparable where their signatures are
equal.

Args of `evaluate.load`, besides all but the first two of `compute`, which are defaults for it then:
    config_name (`str`): a preset: `"mini"` (default; bundled, offline, without pseudo-references) or `"paper"` (its
        authors published only part of the models, so it has to be made).
    preset (`str`): a folder with a preset.toml, such as `mtmetrics uscore` makes, instead of a config name.
{mtmetrics.MetricModule.LOAD_ARGUMENTS}

Args of `compute`:
    sources (`list` of `str`): the source segments.
    predictions (`list` of `str`): their translations.
    lang_pair (`str`): language pair such as `"de-en"`; not needed with a preset that was made for one pair.
    combine (`str`): `"wrd"`, `"snt"` or `"wrd+snt"`. This and what follows overrides the preset.
    weights (`str`): `"tuned"`, `"+"` or `"++"`, the three sets of weights of the paper.
    without (`str`): what to leave out: `"translation"`, `"language_model"` or `"sentences"`, or several, joined by `+`.
    map (`str`): `"none"`, `"clp"`, `"umd"`, `"clp+umd"` or `"umd+clp"`.
    maps (`str`): a map file, a folder of maps, or the name of a map artifact.
    lm (`str`): a language model of the target language, or `"none"`, which leaves it out.
    workers (`int`): processes that solve transport where that pays; one per core by default, at most 4.
    return_parts (`bool`): also return the parts that a score is combined from.
    return_alignments (`bool`): also return which words of source and translation were matched, and at what cost.
    return_ci (`bool`): also return a 95 % bootstrap interval of the mean.
    return_scores (`bool`): return the scores of the segments; without them the result is small enough to be logged.

Returns:
    mean_score (`float`): mean of the segment scores, which is the system score.
    scores (`list` of `float`): one score per segment.
    parts (`dict` of `list` of `float`): with `return_parts=True`: `wmd`, `pseudo`, `lm`, `wrd` and `snt`, as far as
        they were computed.
    alignments (`list` of `dict`): with `return_alignments=True`, one per segment: the words of `source` and
        `prediction`, the `mass` that moves between them, its costs (`values`), and their `total`, the distance.
    ci (`dict`): with `return_ci=True`: `low`, `high`, and how they were made.
    signature (`str`): one line that pins everything that the scores depend on.
    report (`dict` of `int`): segments in all, blank ones, truncated ones, and ones identical to the source.

Examples:

    >>> import evaluate
    >>> uscore = evaluate.load("uscore", "mini")
    >>> sources, predictions = ["Das Haus ist klein."], ["The house is small."]
    >>> result = uscore.compute(sources=sources, predictions=predictions, lang_pair="de-en", return_parts=True)
    >>> sorted(result["parts"])
    ['lm', 'snt', 'wmd', 'wrd']
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class UScore(mtmetrics.MetricModule):
    """UScore as an `evaluate` metric."""

    metric_name = "uscore"

    def _info(self):
        """What `evaluate` shows of the metric."""
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=self.features_for("sources"),
            homepage="https://aclanthology.org/2023.eacl-main.27",
            reference_urls=["https://aclanthology.org/2023.eacl-main.27"],
        )

    def _download_and_prepare(self, dl_manager):
        """Loads the models once; map and translation model follow when the language pair is known."""
        given = self.defaults.get("without")
        self.prepare(dl_manager, map="none", without=f"{given}+translation" if given else "translation")

    def _compute(
        self,
        sources,
        predictions,
        lang_pair=None,
        combine=None,
        weights=None,
        without=None,
        map=None,
        maps=None,
        lm=None,
        workers=None,
        return_parts=False,
        return_alignments=False,
        return_ci=False,
        return_scores=True,
    ):
        """Scores the translations; see the arguments of `compute`."""
        return self.scored(locals())
