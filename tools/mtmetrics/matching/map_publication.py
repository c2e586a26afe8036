"""The folder that publishes the authors' matrices as maps: an index of where each came from, and a
card."""

from collections.abc import Sequence
from pathlib import Path

from mtmetrics.checks import language_pair
from mtmetrics.io.atomic import write_atomic, write_json
from mtmetrics.io.checksums import sha256_file
from mtmetrics.matching.remapping_files import ENCODER, PublishedMap, layered_file

INDEX = "index.json"

_CARD = """---
library_name: mtmetrics
license: apache-2.0
language: [{languages}]
tags: [mtmetrics, machine-translation, evaluation, cross-lingual-remapping]
base_model: [{encoder}]
datasets: []
metrics: []
---

# {name}

Linear maps that bring the source side of multilingual BERT (`{encoder}`) closer to the target
side, for XMoverScore: `clp`, an orthogonal (768, 768) matrix, and `umd`, the direction of 768 numbers that is removed.
Zhao et al. (2020) fitted them on 2,000 sentence pairs each, for one layer and pair of languages.

| layer | maps | language pairs |
|---|---|---|
{rows}
## Where they come from

The authors published them as numpy files in {url}
(commit {commit}) under the licence {licence}, which holds for these files, too. What was changed is
the format: every number is as it was, float32, in safetensors. `{index}` names for each file the original, git's hash
of it, and its own sha256; `mtmetrics` compares the numbers with git's hash when it fetches a map.

## Use

```python
import mtmetrics

metric = mtmetrics.load("xmoverscore", "paper", lang_pair="de-en", maps="ORG/{name}")
```

How well they do was not measured for this card; the paper has its numbers, and the card of the metric compares. The
preset `paper` looks here by itself, one file at a time. The maps are for the files of `{encoder}`
as they were in 2020; which ones is not recorded in the originals, so a model of this name is taken for the right one.

## Citation

Wei Zhao, Goran Glavaš, Maxime Peyrard, Yang Gao, Robert West, Steffen Eger: On the Limitations of Cross-lingual
Encoders as Exposed by Reference-Free Machine Translation Evaluation. ACL 2020.
https://doi.org/10.18653/v1/2020.acl-main.151
"""


def write_publication(folder: Path, maps: Sequence[PublishedMap]) -> list[Path]:
    """Writes ``index.json`` and the card beside maps that lie in a folder, and returns their paths.

    Args:
        folder: holds the maps as `layered_file` names them.
        maps: what the folder holds, all of one origin.
    """
    rows = []
    for item in maps:
        path = layered_file(folder, item)
        about = {
            "layer": item.layer,
            "lp": item.lang_pair,
            "kind": item.kind,
            "sha256": sha256_file(path),
        }
        rows.append(
            {
                "file": path.relative_to(folder).as_posix(),
                **about,
                "from": item.url,
                "git_blob": item.git_blob,
            }
        )
    index, card = folder / INDEX, folder / "README.md"
    write_json(index, {"encoder": ENCODER, "maps": rows})
    write_atomic(card, _card(folder.name, maps))
    return [index, card]


def _card(name: str, maps: Sequence[PublishedMap]) -> str:
    held: dict[tuple[int, str], list[str]] = {}
    for item in maps:
        held.setdefault((item.layer, item.kind), []).append(item.lang_pair)
    origin = maps[0].meta
    return _CARD.format(
        name=name,
        encoder=ENCODER,
        index=INDEX,
        # YAML 1.1 reads a bare `no` as a truth value.
        languages=", ".join(
            f'"{it}"'
            for it in sorted({it for item in maps for it in language_pair(item.lang_pair)})
        ),
        rows="".join(
            f"| {layer} | `{kind}` | {' '.join(pairs)} |\n"
            for (layer, kind), pairs in sorted(held.items())
        ),
        url=origin["origin"],
        commit=origin["commit"],
        licence=origin["licence"],
    )
