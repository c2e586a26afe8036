"""The page that compares systems, as a Space."""

from mtmetrics.page.app import build_page
from mtmetrics.page.offers import pull_models
from mtmetrics.page.theme import serve

if __name__ == "__main__":
    pull_models()
    serve(build_page()).block_thread()
