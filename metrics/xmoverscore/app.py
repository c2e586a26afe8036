"""The demo of XMoverScore."""

from mtmetrics.page.app import build_page
from mtmetrics.page.offers import pull_models
from mtmetrics.page.theme import serve

if __name__ == "__main__":
    pull_models("xmoverscore")
    serve(build_page("xmoverscore")).block_thread()
