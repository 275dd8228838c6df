from __future__ import annotations

import pytest
import torch
from shapes import tensors

from cbabo.surrogate import Surrogates, fit


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def car() -> Surrogates:
    return fit(*tensors("car", 60))


@pytest.fixture(scope="session")
def truss() -> Surrogates:
    return fit(*tensors("three_truss", 40))
