"""Kernels of the arena are cached under the digest of all sources that they depend on."""

from pathlib import Path

import pytest
from tests.kernels.test_jit import test_the_digest_covers_every_kernel_that_is_imported as check

ARENA = Path(__file__).parents[1] / "arena"


@pytest.mark.parametrize("path", sorted(ARENA.rglob("[a-z]*.py")), ids=lambda path: path.stem)
def test_the_digest_covers_every_kernel_that_is_imported(path: Path) -> None:
    check(path)
