"""The demo of COMET."""

from mtmetrics.page.app import build_page
from mtmetrics.page.offers import pull_models
from mtmetrics.page.theme import serve

if __name__ == "__main__":
    pull_models("comet")
    serve(build_page("comet")).block_thread()
