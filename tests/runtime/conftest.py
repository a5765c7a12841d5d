"""Traces here are compared whole, so no garbage collection may happen in them by chance."""

import gc

import pytest


@pytest.fixture(autouse=True)
def no_collection_by_chance():
    gc.disable()
    yield
    gc.enable()
