"""The demo of ESIM."""

from mtmetrics.page.app import build_page
from mtmetrics.page.offers import pull_models
from mtmetrics.page.theme import serve

if __name__ == "__main__":
    pull_models("esim")
    serve(build_page("esim")).block_thread()
