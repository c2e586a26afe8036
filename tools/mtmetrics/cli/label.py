"""``mtmetrics train labels``: judged rows for a metric without references, made by metrics that have
them."""

import argparse

from mtmetrics.cli import options
from mtmetrics.cli.output import check_target, print_json
from mtmetrics.errors import InputError
from mtmetrics.io.atomic import write_json
from mtmetrics.io.row_writer import write_rows


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Scores translations against their references, and writes the scores, standardised "
        "within each language pair, as judgements for 'train regressor'. Several metrics are "
        "averaged. Without --metric, judgements that the rows hold are standardised. Prints "
        "what it wrote as JSON."
    )
    rows = parser.add_argument_group("rows")
    rows.add_argument(
        "--data",
        metavar="FILE",
        **options.LIST,
        required=True,
        help=(
            "JSON Lines: lp, source, reference, and translation or outputs (an object, system -> "
            "translation)"
        ),
    )
    rows.add_argument(
        "--out",
        metavar="FILE",
        required=True,
        help=(
            "judged rows to train on: JSON Lines, .gz to compress; OUT.json beside it says how "
            "they were made"
        ),
    )
    rows.add_argument(
        "--most",
        metavar="N",
        type=int,
        help="of the different translations of a source draw at most so many",
    )
    rows.add_argument(
        "--keep",
        choices=("source", "reference", "both"),
        default="source",
        help="which text to compare with goes into the rows (default: %(default)s)",
    )
    rows.add_argument(
        "--failures",
        metavar="N",
        type=int,
        default=0,
        help="add so many outputs that are no translations, with low labels",
    )
    rows.add_argument(
        "--worsened",
        metavar="N",
        type=int,
        default=0,
        help=(
            "add so many of the better outputs once more, each with a copy that has an error, to "
            "be scored below it"
        ),
    )
    rows.add_argument(
        "--escaped",
        metavar="SYSTEM",
        **options.LIST,
        help="outputs of these systems hold HTML entities such as &quot;, which are undone",
    )
    options.add_seed(rows, "everything random")
    rows.add_argument("--overwrite", action="store_true", help="replace a file of that name")
    metric = parser.add_argument_group("metric")
    options.add_metric(metric, "a teacher, such as bilstm:mini; repeatable")
    options.add_model_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from mtmetrics.scorers.spec import MetricSpec
    from mtmetrics.training.labels import failures, labelled, read_outputs, worsened_copies

    check_target(args.out, "--out", overwrite=args.overwrite)
    least_values = {"most": 1, "failures": 0, "worsened": 0}
    for name, least in least_values.items():
        value = getattr(args, name)
        if value is not None and value < least:
            raise InputError(f"--{name} {value}: must be at least {least}")
    metrics = [MetricSpec.parse(text).filled(None, {}) for text in args.metric or []]
    outputs = read_outputs(args.data, args.most, args.seed, args.escaped)
    labels, signatures = labelled(outputs, metrics, options.model_pool(args))
    failed = failures(outputs, args.failures, args.seed)
    worsened = worsened_copies(outputs, labels, args.worsened, args.seed)
    # An output, its label, and its copy with an error, if it has one.
    rows = [(output, label, None) for output, label in zip(outputs, labels.tolist(), strict=True)]
    rows += [(output, label, None) for output, label in failed]
    rows += worsened
    kept_texts = ("source", "reference") if args.keep == "both" else (args.keep,)
    judged = []
    for output, label, worse in rows:
        row = {"lp": output.pair}
        row |= {name: getattr(output, name) for name in (*kept_texts, "translation")}
        row |= {"system": output.system, "human": round(label, 6)}
        if worsened:
            row["worse"] = worse
        judged.append(row)
    write_rows(args.out, judged)
    about = {
        "teachers": signatures,
        "translations": len(outputs),
        "failures": len(failed),
        "worsened": len(worsened),
        "most": args.most,
        "seed": args.seed,
    }
    write_json(f"{args.out}.json", about)
    print_json({"file": args.out, **about})
