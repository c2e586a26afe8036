"""Errors of the Hub's client."""

import httpx2
import pytest
from huggingface_hub import errors

from mtmetrics.artifacts.hub import hub_errors
from mtmetrics.errors import ArtifactError

REFUSED = httpx2.Response(500, request=httpx2.Request("GET", "http://127.0.0.1/api"))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (errors.HFValidationError("a/b/c"), "org/x: that is no valid name of a repository"),
        (
            errors.LocalTokenNotFoundError("hf_secret"),
            "org/x: no token for the Hub; log in by 'hf auth login'",
        ),
        (errors.HfHubHTTPError("500\nmore", response=REFUSED), "org/x: the Hub refused (500): 500"),
        (
            httpx2.ConnectError("refused"),
            "org/x: the Hub at HUB could not be asked: ConnectError: refused",
        ),
        (OSError(28, "No space left"), "org/x: OSError: [Errno 28] No space left"),
    ],
)
def test_what_the_client_raises_becomes_one_line(error, message):
    from huggingface_hub import constants

    with pytest.raises(ArtifactError) as caught, hub_errors("org/x"):
        raise error
    assert str(caught.value).startswith(message.replace("HUB", constants.ENDPOINT))
    assert "\n" not in str(caught.value)
    assert "hf_secret" not in str(caught.value)
