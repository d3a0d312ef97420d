"""What holds for every test: no test but the end-to-end ones speaks to a cloud that the caller's shell names."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A property is about values, not about how busy the machine is that looks for them: an example may take its time.
settings.register_profile("steady", deadline=None)
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def no_named_cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS_ENDPOINT_URL and LOCALSTACK_HOST choose where the end-to-end tests run; moto and stubs must not see them."""
    if request.node.get_closest_marker("e2e") is None:
        for name in ("AWS_ENDPOINT_URL", "LOCALSTACK_HOST"):
            monkeypatch.delenv(name, raising=False)
