"""The demo of DistilScore."""

from mtmetrics.page.metric_demo import build_demo
from mtmetrics.page.theme import serve

if __name__ == "__main__":
    serve(build_demo("distilscore")).block_thread()
