"""SentSim of Song et al. (2021) as an `evaluate` module; the arithmetic is in the package `mtmetrics`."""

import evaluate

import mtmetrics

_DESCRIPTION = """
SentSim combines the similarity of two sentences as wholes (the cosine of their sentence vectors) with that of their
words (BERTScore, or the Word Mover's Distance of contextual vectors). It compares a translation with its source
(SRC-MT), so that no reference is needed, or with a reference (MT-REF).
"""

_CITATION = """
@inproceedings{song-etal-2021-sentsim,
    title = "{S}ent{S}im: Crosslingual Semantic Evaluation of Machine Translation",
    author = "Song, Yurun and Zhao, Junchen and Specia, Lucia",
    booktitle = "Proceedings of the 2021 Conference of the North American Chapter of the
        Association for Computational Linguistics",
    year = "2021",
    pages = "3143--3156",
    doi = "10.18653/v1/2021.naacl-main.252",
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
    sources (`list` of `str`): the source segments, for SRC-MT.
    references (`list` of `str`, or of `list` of `str`): for MT-REF, one reference per translation, or several, of which
        the best counts.
    lang_pair (`str`): language pair such as `"de-en"`; `"mini"` reads
        texts by it (references without it as English), and `"paper"` chooses the models for references.
    setting (`str`): `"src-mt"` or `"mt-ref"`, where both sources and references are passed.
    words (`str`): another encoder of words. This and what follows overrides the preset.
    variant (`str`): `"bertscore"` or `"wmd"`, what the sentence similarity is combined with.
    combine (`str`): instead of `variant`, any of `sss`, `bertscore`, `wmd` and `smd`, joined by `+`.
    layer (`int`): hidden state of the encoder of words, 0 = embeddings.
    w1 (`float`): weight of the first of two parts, the sentence similarity; 0.5 by default.
    w2 (`float`): weight of the second of two parts, the word similarity; 0.5 by default.
    normalize (`str`): `"batch"`, by the extremes of the call, as published (a score then depends on the other
        segments), or `"fixed"`, by bounds that the preset holds.
    normalize_vectors (`bool`): give word vectors length 1 before Word and Sentence Mover's Distance.
    workers (`int`): processes that solve transport where that pays, or threads that match tokens; by
        default one per core, at most 4.
    return_parts (`bool`): also return the parts that a score is combined from.
    return_alignments (`bool`): also return which word pieces were matched, and with what cosine or cost.
    return_ci (`bool`): also return a 95 % bootstrap interval of the mean.
    return_scores (`bool`): return the scores of the segments; without them the result is small enough to be logged.

Returns:
    mean_score (`float`): mean of the segment scores, which is the system score.
    scores (`list` of `float`): one score per segment, from 1 to e (times `w1 + w2`).
    parts (`dict` of `list` of `float`): with `return_parts=True`: `sss` and `bertscore`, or what else was combined,
        before they are scaled.
    alignments (`list` of `dict`): with `return_alignments=True`, one per segment: the pieces of `source` (or the
        reference) and `prediction`, the `mass` of each match, its cosine or cost (`values`, as `cells` says), and
        their `total`: of cosines the mean of precision and recall, of costs the distance.
    ci (`dict`): with `return_ci=True`: `low`, `high`, and how they were made.
    signature (`str`): one line that pins everything that the scores depend on.
    report (`dict` of `int`): segments in all, blank ones, truncated ones, and, against sources, ones identical to the
        source.

Examples:

    >>> import evaluate
    >>> sentsim = evaluate.load("sentsim", "mini", lang_pair="de-en")
    >>> sources = ["Das Haus ist klein.", "Ich habe einen Hund."]
    >>> predictions = ["The house is small.", "I have a dog."]
    >>> result = sentsim.compute(sources=sources, predictions=predictions, return_parts=True)
    >>> sorted(result["parts"])
    ['bertscore', 'sss']
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class SentSim(mtmetrics.MetricModule):
    """SentSim as an `evaluate` metric."""

    metric_name = "sentsim"

    def _info(self):
        """What `evaluate` shows of the metric."""
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=self.features_for("sources", "references"),
            homepage="https://aclanthology.org/2021.naacl-main.252",
            reference_urls=["https://aclanthology.org/2021.naacl-main.252"],
        )

    def _download_and_prepare(self, dl_manager):
        """Loads the encoders once, when it is known which of them are needed."""
        self.prepare(dl_manager)

    def _compute(
        self,
        predictions,
        sources=None,
        references=None,
        lang_pair=None,
        setting=None,
        words=None,
        variant=None,
        combine=None,
        layer=None,
        w1=None,
        w2=None,
        normalize=None,
        normalize_vectors=None,
        workers=None,
        return_parts=False,
        return_alignments=False,
        return_ci=False,
        return_scores=True,
    ):
        """Scores the translations; see the arguments of `compute`."""
        return self.scored(locals())
