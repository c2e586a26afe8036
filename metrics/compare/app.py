"""The page that compares systems, as a Space."""

from mtmetrics.integrations.page.app import build_page
from mtmetrics.integrations.page.theme import serve

if __name__ == "__main__":
    serve(build_page()).block_thread()
