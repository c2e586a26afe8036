"""``mtmetrics train idf``: counts in how many texts each piece of an encoder's vocabulary occurs, for
weights of tokens."""

import argparse

from mtmetrics.checks import language_of
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import check_target, print_json
from mtmetrics.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Makes a table of inverse document frequencies over the vocabulary of an encoder, for "
        "--weights of xmoverscore: ln((M + 1) / (df + 1)) + 1, where df of M texts hold the "
        "piece. Prints what it wrote as JSON."
    )
    options.add_encoder(parser)
    parser.add_argument(
        "--text",
        metavar="FILE",
        **options.LIST,
        required=True,
        help=(
            "text of source and target language, one segment per line, each of which counts as a "
            "document"
        ),
    )
    parser.add_argument(
        "--languages",
        metavar="XX",
        **options.LIST,
        help=(
            "of each file, such as --languages de en; where the encoder reads some languages "
            "differently"
        ),
    )
    parser.add_argument(
        "--out", metavar="FILE", required=True, help="the table, such as idf.safetensors"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a file of that name")
    options.add_model_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from mtmetrics.io.lines import iter_lines
    from mtmetrics.models.token_weights import TokenWeights

    check_target(args.out, "--out", overwrite=args.overwrite)
    languages = [*map(language_of, args.languages)] if args.languages else [None] * len(args.text)
    if len(languages) != len(args.text):
        raise InputError(
            f"--languages: {len(languages)} for {len(args.text)} file(s) of --text; pass one for "
            "each"
        )
    files = zip(args.text, languages, strict=True)
    texts = (
        (line, language)
        for path, language in files
        for line in iter_lines(path, "segments")
        if line.strip()
    )
    encoder = options.model_pool(args).encoder(args.encoder)
    if not args.languages:
        try:
            encoder.tokenizer_for(None)
        except InputError:
            raise InputError(
                f"--encoder {args.encoder}: reads some languages with a vocabulary of their own; "
                "pass --languages, one for each file of --text"
            ) from None
    weights = TokenWeights.fit(encoder, messages.progress(texts, desc="counting", unit=" lines"))
    weights.save(args.out)
    print_json({"file": args.out, "fingerprint": weights.fingerprint, "pieces": len(weights.table)})
