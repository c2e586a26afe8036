"""What the trainings hand to a `transformers` trainer: its settings, whole batches, groups of
parameters, and how it judges."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.errors import require_extra
from mtmetrics.training.run import Run

if TYPE_CHECKING:
    import torch


def trainer_settings(
    run: Run,
    config: Any,
    learning_rate: float,
    *,
    steps: int = 0,
    rows_per_step: int = 1,
    arguments: Callable[..., Any] | None = None,
) -> Any:
    """The `TrainingArguments` of a run, or of a class that a trainer asks for instead.

    The learning rates rise for `warmup_steps`, stay, and fall to zero in the last `decay_steps`;
    until these begin, a run does not depend on its length. A config of epochs has as many `steps`
    as were counted instead: after the share `warmup` of them, the learning rate falls to zero. Of
    several processes each takes `rows_per_step` in a step."""
    require_extra("train", "training")
    from transformers import TrainingArguments

    if steps:
        rise = int(steps * config.warmup)
        fall = steps - rise
    else:
        steps, rise, fall = config.steps, config.warmup_steps, config.decay_steps
    evaluate_every = getattr(config, "evaluate_every", None)
    made = (arguments or TrainingArguments)(
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
        eval_strategy="no" if evaluate_every is None else "steps",
        eval_steps=evaluate_every,
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
    if made.n_gpu > 1:
        made._n_gpu = 1
    if ":" in run.device and run.processes == 1:
        # The trainer would take the first card.
        import torch

        made.__dict__["_setup_devices"] = torch.device(run.device)
        torch.cuda.set_device(run.device)
    return made


def decay_groups(
    parameters: Iterable["torch.Tensor"], weight_decay: float, **options: Any
) -> list[dict[str, Any]]:
    """Two groups of parameters for an optimiser, with its options: matrices, whose weights decay,
    and vectors."""
    found = list(parameters)
    return [
        {
            "params": [values for values in found if values.ndim > 1],
            "weight_decay": weight_decay,
            **options,
        },
        {"params": [values for values in found if values.ndim < 2], "weight_decay": 0.0, **options},
    ]


class Judging:
    """Mixin of trainers that evaluate by their method `judge`, whose numbers are logged."""

    _judged: tuple[int, dict[str, float]] | None = None

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        found = self.judgement()
        self.log({f"eval_{name}": value for name, value in found.items()})
        return found

    def judgement(self) -> dict[str, float]:
        """What `judge` says after the present step, asked once a step."""
        step = self.state.global_step
        if self._judged is None or self._judged[0] != step:
            self._judged = step, self.judge()
        return self._judged[1]


@dataclass(eq=False, repr=False)
class PlannedBatches:
    """Map-style dataset whose items are whole batches: of every step of a plan the rows, which a
    subclass collates."""

    plan: Sequence[np.ndarray]

    def __len__(self) -> int:
        return len(self.plan)


def planned_trainer() -> Any:
    """The class of trainers that take `PlannedBatches` in their order."""
    from torch.utils.data import SequentialSampler
    from transformers import Trainer

    class PlannedTrainer(Trainer):
        def __init__(self, **options: Any) -> None:
            super().__init__(data_collator=lambda batches: batches[0], **options)

        def _get_train_sampler(self, *args: Any, **kwargs: Any) -> Any:
            return SequentialSampler(self.train_dataset)

    return PlannedTrainer
