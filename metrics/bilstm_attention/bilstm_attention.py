"""BiLSTM + attention of Mathur et al. (2019) as an `evaluate` module; the arithmetic is in the package `mtmetrics`."""

import evaluate

import mtmetrics

_DESCRIPTION = """
BiLSTM + attention reads a reference and a translation as vectors of a contextual encoder with a bidirectional LSTM,
lets the words of each attend to those of the other, averages and takes the maximum of what was found on each side, and
predicts from that how people would judge the translation. It is trained on human judgements. Where it was trained so,
it compares with the source instead.
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
Scores translations against references, or against sources where the network was trained for that. A higher score is
better; scores are comparable where their signatures are equal.

Args of `evaluate.load`, besides all but the texts of `compute`, which are defaults for it then:
    config_name (`str`): a preset: `"mini"` (default; bundled, offline, against English references) or `"paper"` (its
        authors published no weights, so it needs `regressor`).
    preset (`str`): a folder with a preset.toml, instead of a config name.
{mtmetrics.MetricModule.LOAD_ARGUMENTS}

Args of `compute`:
    predictions (`list` of `str`): the translations.
    references (`list` of `str`, or of `list` of `str`): one reference per translation, or several, of which the best
        one counts.
    sources (`list` of `str`): the source segments, instead of references.
    lang_pair (`str`): language pair such as `"de-en"`; `"mini"` reads
        texts by it, references without it as English.
    against (`str`): `"reference"` or `"source"`, where both are passed; references by default.
    regressor (`str`): another trained network than the preset's: a folder, a bundled artifact, or a Hub repository.
    encoder (`str`): where the encoder lies that the network was trained on, if not under the name that the network
        records.
    workers (`int`): threads that share the computation of features; one per core by default, at most 4.
    return_alignments (`bool`): also return how much the word pieces of each side attend to those of the other.
    return_ci (`bool`): also return a 95 % bootstrap interval of the mean.
    return_scores (`bool`): return the scores of the segments; without them the result is small enough to be logged.

Returns:
    mean_score (`float`): mean of the segment scores, which is the system score.
    scores (`list` of `float`): one score per segment, on the scale of the judgements that the network was trained on.
    alignments (`list` of `dict`): with `return_alignments=True`, one per segment: the pieces of `source` (the
        reference, or the source) and `prediction`, their attention (`values`), and `mass`, which is the same scaled
        to the sum 1.
    ci (`dict`): with `return_ci=True`: `low`, `high`, and how they were made.
    signature (`str`): one line that pins everything that the scores depend on.
    report (`dict` of `int`): segments in all, blank ones, truncated ones, and, against sources, ones identical to the
        source.

Examples:

    >>> import evaluate
    >>> bilstm_attention = evaluate.load("bilstm_attention", "mini")
    >>> predictions = ["The house is small.", "We never went to the cinema."]
    >>> result = bilstm_attention.compute(references=["The house is small."] * 2, predictions=predictions)
    >>> sorted(result)
    ['mean_score', 'report', 'scores', 'signature']
    >>> result["scores"][0] > result["scores"][1]
    True
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class BiLSTMAttention(mtmetrics.MetricModule):
    """BiLSTM + attention as an `evaluate` metric."""

    metric_name = "bilstm_attention"

    def _info(self):
        """What `evaluate` shows of the metric."""
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=self.features_for("references", "sources"),
            homepage="https://aclanthology.org/P19-1269",
            codebase_urls=["https://github.com/nitikam/mteval-in-context"],
            reference_urls=["https://aclanthology.org/P19-1269"],
        )

    def _download_and_prepare(self, dl_manager):
        """Loads the network and its encoder once."""
        self.prepare(dl_manager)

    def _compute(
        self,
        predictions,
        references=None,
        sources=None,
        lang_pair=None,
        against=None,
        regressor=None,
        encoder=None,
        workers=None,
        return_alignments=False,
        return_ci=False,
        return_scores=True,
    ):
        """Scores the translations; see the arguments of `compute`."""
        return self.scored(locals())
