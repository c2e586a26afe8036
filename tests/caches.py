"""Puts the caches of the libraries where they vanish with the tests, so that the user's own caches
decide no test. Import it before the libraries. It is a module because `conftest` is imported twice."""

import os
import tempfile

for name in [name for name in os.environ if name.startswith("HF_") and name.endswith("_CACHE")]:
    del os.environ[name]
FOLDER = tempfile.TemporaryDirectory(prefix="mtmetrics-tests-")
os.environ["HF_HOME"] = FOLDER.name
