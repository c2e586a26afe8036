"""The demo of BiLSTM."""

from mtmetrics.page.app import build_page
from mtmetrics.page.offers import pull_models
from mtmetrics.page.theme import serve

if __name__ == "__main__":
    pull_models("bilstm")
    serve(build_page("bilstm")).block_thread()
