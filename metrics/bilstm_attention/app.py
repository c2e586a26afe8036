"""The demo of BiLSTM + attention."""

from mtmetrics.page.metric_demo import build_demo
from mtmetrics.page.theme import serve

if __name__ == "__main__":
    serve(build_demo("bilstm_attention")).block_thread()
