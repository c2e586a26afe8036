"""What the libraries keep goes where it vanishes with the tests, and what the user has of it does
not decide either; imported before them, and once, which `conftest` is not."""

import os
import tempfile

for name in [name for name in os.environ if name.startswith("HF_") and name.endswith("_CACHE")]:
    del os.environ[name]
FOLDER = tempfile.TemporaryDirectory(prefix="mtmetrics-tests-")
os.environ["HF_HOME"] = FOLDER.name
