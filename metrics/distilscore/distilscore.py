"""DistilScore as an `evaluate` module; the arithmetic is in the package `mtmetrics`."""

import evaluate

import mtmetrics

_DESCRIPTION = """
DistilScore is the cosine of the sentence vectors of a translation and its source, in a multilingual sentence encoder
that was distilled from an English one. No reference is needed; references can be used instead of sources.
"""

_CITATION = """
@inproceedings{reimers-gurevych-2020-making,
    title = "Making Monolingual Sentence Embeddings Multilingual using Knowledge Distillation",
    author = "Reimers, Nils and Gurevych, Iryna",
    booktitle = "Proceedings of the 2020 Conference on Empirical Methods in Natural Language Processing",
    year = "2020",
    pages = "4512--4525",
    doi = "10.18653/v1/2020.emnlp-main.365",
}
"""

_KWARGS_DESCRIPTION = f"""
Scores translations against sources or references. A higher score is better; scores are comparable where their
signatures are equal.

Args of `evaluate.load`, besides all but the texts of `compute`, which are defaults for it then:
    config_name (`str`): a preset: `"paper"` (default, the models of the paper) or `"mini"` (bundled, offline).
    preset (`str`): a folder with a preset.toml, instead of a config name.
{mtmetrics.MetricModule.LOAD_ARGUMENTS}

Args of `compute`:
    predictions (`list` of `str`): the translations.
    sources (`list` of `str`): the source segments.
    references (`list` of `str`, or of `list` of `str`): one reference per translation, or several, of which the best
        one counts; instead of sources.
    lang_pair (`str`): language pair such as `"de-en"`; `"mini"` reads
        texts by it, references without it as English.
    against (`str`): `"source"` or `"reference"`, where both are passed; sources by default.
    encoder (`str`): another sentence-transformers model, or an encoder whose token vectors are averaged.
    layer (`int`): hidden state of an encoder that is averaged.
    return_ci (`bool`): also return a 95 % bootstrap interval of the mean.
    return_scores (`bool`): return the scores of the segments; without them the result is small enough to be logged.

Returns:
    mean_score (`float`): mean of the segment scores, which is the system score.
    scores (`list` of `float`): one score per segment, from -1 to 1.
    ci (`dict`): with `return_ci=True`: `low`, `high`, and how they were made.
    signature (`str`): one line that pins everything that the scores depend on.
    report (`dict` of `int`): segments in all, blank ones, truncated ones, and, against sources, ones identical to the
        source.

Examples:

    >>> import evaluate
    >>> distilscore = evaluate.load("distilscore", "mini", lang_pair="de-en")
    >>> result = distilscore.compute(sources=["Das Haus ist klein."], predictions=["The house is small."])
    >>> sorted(result)
    ['mean_score', 'report', 'scores', 'signature']
    >>> len(result["scores"])
    1
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class DistilScore(mtmetrics.MetricModule):
    """DistilScore as an `evaluate` metric."""

    metric_name = "distilscore"

    def _info(self):
        """What `evaluate` shows of the metric."""
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=self.features_for("sources", "references"),
            homepage="https://aclanthology.org/2020.emnlp-main.365",
            reference_urls=["https://aclanthology.org/2020.emnlp-main.365", "https://arxiv.org/abs/2202.10062"],
        )

    def _download_and_prepare(self, dl_manager):
        """Loads the encoder once."""
        self.prepare(dl_manager)

    def _compute(
        self,
        predictions,
        sources=None,
        references=None,
        lang_pair=None,
        against=None,
        encoder=None,
        layer=None,
        return_ci=False,
        return_scores=True,
    ):
        """Scores the translations; see the arguments of `compute`."""
        return self.scored(locals())
