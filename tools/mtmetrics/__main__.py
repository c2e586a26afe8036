"""``python -m mtmetrics``, and ``torchrun -m mtmetrics train ...``."""

import sys

from mtmetrics.cli.main import main

sys.exit(main())
