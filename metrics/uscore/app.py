"""The demo of UScore."""

from mtmetrics.page.metric_demo import build_demo
from mtmetrics.page.theme import serve

if __name__ == "__main__":
    serve(build_demo("uscore")).block_thread()
