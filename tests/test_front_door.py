"""The names that `import mtmetrics` offers, and how little it imports."""

import inspect
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

import evaluate
import pytest

import mtmetrics

PACKAGE = f"{Path(mtmetrics.__file__).parent}/"


def test_every_public_name_is_there() -> None:
    for name in mtmetrics.__all__:
        assert getattr(getattr(mtmetrics, name), "__name__", name) == name
    assert set(mtmetrics.__all__) <= set(dir(mtmetrics))
    with pytest.raises(AttributeError, match="module 'mtmetrics' has no attribute 'load_scorer'"):
        mtmetrics.load_scorer  # noqa: B018


def test_load_takes_options_of_the_metric_and_of_its_models(tiny_preset: Path) -> None:
    scorer = mtmetrics.load(
        "xmoverscore", str(tiny_preset), lang_pair="de-en", ngram=2, dtype="bfloat16", device="cpu"
    )
    assert isinstance(scorer, mtmetrics.XMoverScore)
    assert "|ngram:2|" in scorer.signature
    assert "|dtype:bf16|" in scorer.signature
    assert isinstance(scorer.score(["the house"], sources=["das haus"]), mtmetrics.MetricResult)
    assert mtmetrics.load("chrf").score(["a b"], references=["a b"]).system == 1.0
    with pytest.raises(
        mtmetrics.InputError,
        match="xmoverscore has no option 'dtypes'; it takes: preset, lang_pair",
    ):
        mtmetrics.load("xmoverscore", str(tiny_preset), lang_pair="de-en", dtypes="bfloat16")


def test_one_call_of_evaluate_passes_few_of_our_files(
    evaluate_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From `evaluate.load` to the score; a file counts if one of its functions runs."""
    passed: set[str] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = (
            frame.f_code
        )  # that of modules and classes, which runs when they are imported, is not optimised
        if (
            event == "call"
            and code.co_flags & inspect.CO_OPTIMIZED
            and code.co_filename.startswith(PACKAGE)
        ):
            passed.add(code.co_filename.removeprefix(PACKAGE))

    script = mtmetrics.metric_path("xmoverscore")
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        metric = evaluate.load(script, "mini")
        metric.compute(
            sources=["Das Haus ist klein."], predictions=["The house is small."], lang_pair="de-en"
        )
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert {
        "integrations/metric_module.py",
        "scorers/xmoverscore.py",
        "matching/transport.py",
    } <= passed
    assert len(passed) <= 36, sorted(passed)


def test_a_score_imports_what_it_needs() -> None:
    """Packages that take long to import, and that only other commands use."""
    heavy = (
        "datasets",
        "evaluate",
        "sentence_transformers",
        "matplotlib",
        "ray",
        "gradio",
        "faiss",
        "sacrebleu",
    )
    heavy += (
        "starlette",
        "uvicorn",
        "jieba",
        "py3langid",
        "rapidfuzz",
        "sacremoses",
        "ot",
        "sklearn",
        "pandas",
        "sympy",
    )
    heavy += (
        "transformers.modeling_utils",
        "torch._dynamo",
        "torch.distributed.tensor",
        "scipy.optimize",
    )
    call = (
        "mtmetrics.load('xmoverscore', 'mini', lang_pair='de-en').score(['Yes.'], sources=['Ja.'])"
    )
    script = (
        f"import sys, mtmetrics; {call}; print(*(name for name in {heavy!r} if name in "
        "sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
