"""The demo of UScore."""

from mtmetrics.page.app import build_page
from mtmetrics.page.theme import serve

if __name__ == "__main__":
    serve(build_page("uscore")).block_thread()
