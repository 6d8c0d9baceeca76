"""The fixtures of `promisefs.testing`, which pytest finds by itself where this package is installed."""
import contextlib

import pytest

from .testing import TemporaryMount


@pytest.fixture
def promisefs_mounts():
    """Makes mounts with content, as `TemporaryMount`; all are gone after the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *arguments, **options: stack.enter_context(TemporaryMount(*arguments, **options))


@pytest.fixture
def promisefs_mount(promisefs_mounts):
    """A mount with a few samples."""
    return promisefs_mounts()
