"""A task of lighteval with a metric of this package, which is given all rows at once.

Tried with lighteval 0.13.0, which needs ``transformers<5``, ``huggingface-hub<1`` and
``xxhash<4``. ``data/test.jsonl`` has rows with source and reference::

    lighteval accelerate "model_name=..." translate_de_en --custom-tasks lighteval_task.py
"""

import numpy as np
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

import mtmetrics


class Esim(SampleLevelComputation):
    def compute(self, docs, responses, **_):
        scorer = mtmetrics.load("esim", "mini", lang_pair="de-en", against="source")
        outputs = [response.final_text[0] for response in responses]
        sources = [doc.specific["source"] for doc in docs]
        return scorer.score(outputs, sources=sources).segments.tolist()


def prompt(row, task_name):
    query = f"German: {row['source']}\nEnglish:"
    return Doc(
        query=query, choices=[row["reference"]], gold_index=0, specific={"source": row["source"]}
    )


esim = SampleLevelMetric(
    "esim", True, SamplingMethod.GENERATIVE, Esim(), np.mean, batched_compute=True
)
TASKS_TABLE = [
    LightevalTaskConfig(
        "translate_de_en",
        prompt,
        "data",
        "default",
        [esim],
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        generation_size=256,
        stop_sequence=["\n"],
    )
]
