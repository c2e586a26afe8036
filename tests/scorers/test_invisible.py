"""Invisible characters cost nothing, whatever the metric; a text of nothing else is blank."""

import json

import pytest
from helpers import write

from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.plugins import PluginMetric
from mtmetrics.scorers.registry import load_scorer

SOURCE, TRANSLATION = "Der Ausschuss hat heute beschlossen.", "The committee decided today."
REFERENCE = "The committee has decided today."
SIDES = {
    **dict.fromkeys(
        ("xmoverscore", "uscore", "fluency", "source_length", "prediction_length", "random"),
        "source",
    ),
    **dict.fromkeys(
        ("sentsim", "bertr", "distilscore", "esim", "bilstm", "bilstm_attention"), "reference"
    ),
    **dict.fromkeys(("sentbleu", "chrf", "chrfpp", "ter"), "reference"),
}
NOTHING = "\u200b\u00ad \u202a\u202c"


def unseen(text):
    return (
        "\u202a"
        + text.replace("ss", "s\u00ads").replace("mm", "m\u00adm").replace(" ", " \u200b", 1)
        + "\u202c\ufeff"
    )


def loaded(metric, side):
    several = len(METRICS[metric].sides) > 1
    preset = None if METRICS[metric].usual_preset() is None else "mini"
    options = {"against": side} if several else {}
    return load_scorer(metric, preset, lang_pair="de-en", **options)


@pytest.mark.parametrize("metric", SIDES)
@pytest.mark.filterwarnings("ignore:of .* segments")
def test_they_change_no_score_and_no_fault(metric):
    scorer = loaded(metric, SIDES[metric])
    other = SOURCE if SIDES[metric] == "source" else REFERENCE
    [column] = scorer.side.columns
    dirty, translation = unseen(other), unseen(TRANSLATION)
    usual = scorer.score([TRANSLATION, ""], **{column: [other, other]})
    result = scorer.score([translation, NOTHING], **{column: [dirty, other]})
    assert result.segments.tolist() == usual.segments.tolist()
    assert (result.report.blank, result.empty.tolist()) == (1, [False, True])
    assert scorer.score([TRANSLATION], **{column: [NOTHING]}).segments.tolist() == [
        usual.segments[1]
    ]
    if scorer.can_blame:
        [faults], [others] = (
            scorer.blame([TRANSLATION], **{column: [other]}),
            scorer.blame([translation], **{column: [dirty]}),
        )
        assert [fault[2:] for fault in others] == [fault[2:] for fault in faults]
        words = [translation[fault.start : fault.end] for fault in others]
        assert words == ["The", "com\u00admittee", "decided", "today", "."]


def test_alignments_say_where_words_stand_in_the_text_as_it_is_written():
    scorer = load_scorer("xmoverscore", "mini", lang_pair="de-en")
    source, translation = unseen(SOURCE), unseen(TRANSLATION)
    [alignment] = scorer.align([translation], sources=[source])
    alignment = alignment.without_special_tokens()
    assert [translation[begin:end] for begin, end in alignment.spans][1] == "com\u00admittee"
    assert [source[begin:end] for begin, end in alignment.source_spans][
        1
    ] == "Aus\u00adschus\u00ads"


class Seen(PluginMetric):
    """The number of characters that it gets."""

    metric = "seen"
    floor = -1.0

    def segment_scores(self, predictions, sources):
        return [len(text) for text in predictions]


def test_metrics_of_others_get_the_texts_as_they_are(monkeypatch):
    from mtmetrics.scorers.metric import MetricEntry

    monkeypatch.setitem(METRICS, "seen", MetricEntry("seen", Seen))
    with pytest.warns(UserWarning, match="1 blank"):
        result = Seen().score(["a\u200bb", NOTHING], sources=["a", "a"])
    assert result.segments.tolist() == [3.0, -1.0]


def test_on_the_command_line(mtmetrics, tmp_path):
    scores = []
    for change in (str, unseen):
        path = write(tmp_path / "rows.tsv", f"{change(SOURCE)}\t{change(TRANSLATION)}\n")
        code, out, err = mtmetrics(
            "score", "--metric", "uscore", "--preset", "mini", "--lp", "de-en", path
        )
        assert code == 0, err
        scores.append(json.loads(out))
    assert scores[0] == scores[1]
