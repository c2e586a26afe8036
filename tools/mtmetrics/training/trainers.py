"""Parts that several trainings share: the settings of a `transformers` trainer, groups of parameters
for its optimiser, trainers that judge by a function of their own, and batches that are planned."""

import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mtmetrics.errors import require_extra
from mtmetrics.training.configs import Epochs, Steps
from mtmetrics.training.run import Run

if TYPE_CHECKING:
    import torch
    from torch.utils.data import Sampler
    from transformers import TrainingArguments


def trainer_settings(
    run: Run,
    config: Steps | Epochs,
    learning_rate: float,
    *,
    steps: int = 0,
    rows_per_step: int = 1,
    arguments: "type[TrainingArguments] | None" = None,
) -> "TrainingArguments":
    """The settings of a trainer for a run.

    A config of steps: the learning rates rise for `warmup_steps`, stay, and fall to zero in the
    last `decay_steps`; until these begin, a run does not depend on its length. A config of epochs:
    they rise for the share `warmup` of the steps, and then fall to zero.

    Args:
        run: its folder, seed and device.
        config: its schedule.
        learning_rate: the peak of the learning rate.
        steps: the number of steps in all epochs.
        rows_per_step: rows of the data set that each process takes in a step.
        arguments: the class of the settings, where a trainer wants another one.
    """
    require_extra("train", "training")
    from transformers import TrainingArguments

    if isinstance(config, Epochs):
        rise = int(steps * config.warmup)
        fall = steps - rise
    else:
        steps, rise, fall = config.steps, config.warmup_steps, config.decay_steps
    settings = (arguments or TrainingArguments)(
        output_dir=str(run.work / "checkpoints"),
        max_steps=steps,
        per_device_train_batch_size=rows_per_step,
        learning_rate=learning_rate,
        weight_decay=config.weight_decay,
        lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={"num_decay_steps": fall, "decay_type": "linear"},
        warmup_steps=rise,
        max_grad_norm=1.0,
        bf16=config.bf16,
        use_cpu=run.device == "cpu",
        seed=run.seed,
        data_seed=run.seed,
        save_strategy="steps",
        save_steps=config.checkpoint_every,
        save_total_limit=2,
        eval_strategy="no" if config.evaluate_every is None else "steps",
        eval_steps=config.evaluate_every,
        logging_steps=50,
        report_to=[],
        disable_tqdm=not sys.stderr.isatty(),
        remove_unused_columns=False,
        # It multiplies the loss of models that average over their own tokens, as MBart does, by the
        # processes.
        average_tokens_across_devices=False,
        dataloader_pin_memory=False,
    )
    # Else the trainer would make a step as many times larger as there are cards, or lose all
    # batches but the first.
    if settings.n_gpu > 1:
        settings._n_gpu = 1
    if ":" in run.device and run.processes == 1:
        # The trainer would take the first card.
        import torch

        settings.__dict__["_setup_devices"] = torch.device(run.device)
        torch.cuda.set_device(run.device)
    return settings


def decay_groups(
    parameters: Iterable["torch.Tensor"],
    weight_decay: float,
    **options: float,
) -> list[dict[str, object]]:
    """Two groups of parameters for an optimiser: matrices, whose weights decay, and vectors.

    Args:
        parameters: all parameters.
        weight_decay: of the matrices.
        **options: further options of the optimiser, the same for both groups.
    """
    matrices, vectors = [], []
    for values in parameters:
        group = matrices if values.ndim > 1 else vectors
        group.append(values)
    return [
        {"params": matrices, "weight_decay": weight_decay, **options},
        {"params": vectors, "weight_decay": 0.0, **options},
    ]


# Takes a model in the mode of evaluation, without gradients; returns name of a measure -> its value.
Judge = Callable[["torch.nn.Module"], dict[str, float]]


class Judging:
    """Mixin of `transformers.Trainer`, which then evaluates by a function and logs its numbers.

    Args:
        judge: the function; None for a training without evaluation.
        **options: of the trainer.
    """

    def __init__(self, judge: Judge | None, **options: object) -> None:
        super().__init__(**options)
        self._judge = judge
        # The last step that was judged, and its numbers.
        self._judged_step: int | None = None
        self._judgement: dict[str, float] = {}

    def evaluate(self, *args: object, **kwargs: object) -> dict[str, float]:
        """The judgement, for the trainer, which calls this at the steps of evaluation."""
        numbers = self.judgement()
        self.log({f"eval_{name}": value for name, value in numbers.items()})
        return numbers

    def judgement(self) -> dict[str, float]:
        """The numbers after the present step, computed once a step."""
        import torch

        step = self.state.global_step
        if self._judged_step != step:
            with torch.no_grad():
                self._judgement = self._judge(self.model.eval())
            self._judged_step = step
        return dict(self._judgement)


def train_and_judge(run: Run, trainer: Judging) -> dict[str, object]:
    """Trains a trainer; returns its judgements before and after, for the record."""
    before = trainer.judgement()
    run.train(trainer)
    return {"before_training": before, "result": trainer.judgement()}


@dataclass(eq=False, repr=False)
class PlannedBatches:
    """Map-style dataset whose items are whole batches: item i holds the rows ``plan[i]``, which a
    subclass collates."""

    plan: Sequence[np.ndarray]

    def __len__(self) -> int:
        return len(self.plan)


def planned_trainer(judge: Judge | None = None, **options: object) -> Judging:
    """A trainer that takes `PlannedBatches` in their order.

    Args:
        judge: see `Judging`.
        **options: of a `transformers.Trainer`.
    """
    from torch.utils.data import SequentialSampler
    from transformers import Trainer

    class PlannedTrainer(Judging, Trainer):
        def _get_train_sampler(self, *args: object, **kwargs: object) -> "Sampler":
            return SequentialSampler(self.train_dataset)

    # A trainer takes one item of the data set per step, which is a whole batch already.
    return PlannedTrainer(judge, data_collator=operator.itemgetter(0), **options)
