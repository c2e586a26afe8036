"""The demo of ESIM."""

from mtmetrics.page.metric_demo import build_demo
from mtmetrics.page.theme import serve

if __name__ == "__main__":
    serve(build_demo("esim")).block_thread()
