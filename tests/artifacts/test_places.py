"""Places of artifacts: the meaning of a name on the Hub."""

from mtmetrics.artifacts.places import HubSource, hub_source, is_on_hub


def test_repositories_and_revisions(places, monkeypatch):
    assert hub_source("thing") == HubSource("org/thing", "v1.2.0", {"preset.toml": "00"})
    assert hub_source("thing", "v1.2.0").files
    # Nothing is known of the files of another revision.
    assert hub_source("thing", "main") == HubSource("org/thing", "main", {})
    assert hub_source("someone/model") == HubSource("someone/model", None, {})
    monkeypatch.setenv("MTMETRICS_NAMESPACE", "mirror")
    assert hub_source("thing") == HubSource("mirror/thing", "v1.2.0", {"preset.toml": "00"})
    assert hub_source("thing", namespace="other").repository == "other/thing"
    assert hub_source("someone/model").repository == "someone/model"


def test_what_is_worth_asking_the_hub_for(places):
    assert is_on_hub("thing", "preset")
    assert not is_on_hub("thing", "maps")
    assert not is_on_hub("elsewhere", "maps")
    assert is_on_hub("someone/model", "preset")
    (places["here"] / "someone" / "model").mkdir(parents=True)
    for name in ("someone/model", "plain", "/tmp/x", "./x", "a/b/c", ""):
        assert not is_on_hub(name, "preset"), name
