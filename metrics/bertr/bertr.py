"""BERTR of Mathur et al. (2019) as an `evaluate` module; the arithmetic is in the package `mtmetrics`."""

import evaluate

import mtmetrics

_DESCRIPTION = """
BERTR says how much of a reference is covered by a translation: for every word piece of the reference, the highest
cosine with a word piece of the translation, both as vectors of a contextual encoder, averaged over the pieces of the
reference. With a multilingual encoder it also compares a translation with its source.
"""

_CITATION = """
@inproceedings{mathur-etal-2019-putting,
    title = "Putting Evaluation in Context: Contextual Embeddings Improve Machine Translation Evaluation",
    author = "Mathur, Nitika and Baldwin, Timothy and Cohn, Trevor",
    booktitle = "Proceedings of the 57th Annual Meeting of the Association for Computational Linguistics",
    year = "2019",
    pages = "2799--2808",
    doi = "10.18653/v1/P19-1269",
}
"""

_KWARGS_DESCRIPTION = f"""
Scores translations against references or sources. A higher score is better; scores are comparable where their
signatures are equal.

Args of `evaluate.load`, besides all but the texts of `compute`, which are defaults for it then:
    config_name (`str`): a preset: `"paper"` (default, the models of the paper) or `"mini"` (bundled, offline).
    preset (`str`): a folder with a preset.toml, instead of a config name.
{mtmetrics.MetricModule.LOAD_ARGUMENTS}

Args of `compute`:
    predictions (`list` of `str`): the translations.
    references (`list` of `str`, or of `list` of `str`): one reference per translation, or several, of which the best
        one counts.
    sources (`list` of `str`): the source segments, instead of references.
    lang_pair (`str`): language pair such as `"de-en"`; `"mini"` reads
        texts by it (references without it as English), and `"paper"` chooses the encoder.
    against (`str`): `"reference"` or `"source"`, where both are passed; references by default.
    encoder (`str`): another encoder. This and all that follows overrides the preset.
    layer (`int`): hidden state of the encoder, 0 = embeddings.
    map (`str`): against sources: `"none"`, `"clp"`, `"umd"`, `"clp+umd"` or `"umd+clp"`.
    maps (`str`): a map file, a folder of maps, or the name of a map artifact.
    special_tokens (`bool`): count special tokens as word pieces.
    workers (`int`): threads that share the pairs; one per core by default, at most 4.
    return_alignments (`bool`): also return which word pieces were matched, and with what cosine.
    return_ci (`bool`): also return a 95 % bootstrap interval of the mean.
    return_scores (`bool`): return the scores of the segments; without them the result is small enough to be logged.

Returns:
    mean_score (`float`): mean of the segment scores, which is the system score.
    scores (`list` of `float`): one score per segment, at most 1.
    alignments (`list` of `dict`): with `return_alignments=True`, one per segment: the pieces of `source` (the
        reference, or the source) and `prediction`, their cosines (`values`), the `mass` of each match, and their
        `total`, which is the score.
    ci (`dict`): with `return_ci=True`: `low`, `high`, and how they were made.
    signature (`str`): one line that pins everything that the scores depend on.
    report (`dict` of `int`): segments in all, blank ones, truncated ones, and, against sources, ones identical to the
        source.

Examples:

    >>> import evaluate
    >>> bertr = evaluate.load("bertr", "mini")
    >>> result = bertr.compute(references=["The house is small."], predictions=["The house is small."])
    >>> sorted(result)
    ['mean_score', 'report', 'scores', 'signature']
    >>> round(result["mean_score"], 4)
    1.0
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class BERTR(mtmetrics.MetricModule):
    """BERTR as an `evaluate` metric."""

    metric_name = "bertr"

    def _info(self):
        """What `evaluate` shows of the metric."""
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=self.features_for("references", "sources"),
            homepage="https://aclanthology.org/P19-1269",
            reference_urls=["https://aclanthology.org/P19-1269"],
        )

    def _download_and_prepare(self, dl_manager):
        """Loads the encoder once."""
        self.prepare(dl_manager, map="none")

    def _compute(
        self,
        predictions,
        references=None,
        sources=None,
        lang_pair=None,
        against=None,
        encoder=None,
        layer=None,
        map=None,
        maps=None,
        special_tokens=None,
        workers=None,
        return_alignments=False,
        return_ci=False,
        return_scores=True,
    ):
        """Scores the translations; see the arguments of `compute`."""
        return self.scored(locals())
