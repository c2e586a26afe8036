"""The demo of BiLSTM + attention."""

from mtmetrics.page.app import build_page
from mtmetrics.page.offers import pull_models
from mtmetrics.page.theme import serve

if __name__ == "__main__":
    pull_models("bilstm_attention")
    serve(build_page("bilstm_attention")).block_thread()
