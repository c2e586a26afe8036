"""Values of texts in memory."""

from mtmetrics.models.text_cache import TextCache


def test_the_least_recently_used_texts_are_forgotten() -> None:
    cache, computed = TextCache(10, len), []

    def values(*texts: str) -> list[str]:
        computed.clear()
        return cache.values(
            texts, lambda missing: computed.extend(missing) or [text * 2 for text in missing]
        )

    assert values("aa", "b", "aa") == ["aaaa", "bb", "aaaa"]
    assert computed == ["aa", "b"]
    assert values("aa", "ccc") == ["aaaa", "cccccc"]
    assert cache.size == 10
    values("aa", "ccc", "b")
    assert computed == ["b"]
    values("x" * 6)
    values("ccc", "b", "x" * 6)
    assert computed == ["x" * 6]  # too large to be kept; the others stayed
