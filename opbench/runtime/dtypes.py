"""Which element types an NDArray may have."""

from __future__ import annotations

from typing import Any

import numpy as np

from opbench.errors import DTypeError

__all__ = ["DEFAULT", "real", "require_real"]

# What None means, as in MXNet; NumPy's own answer would be float64.
DEFAULT = np.dtype("float32")

# Kinds of NumPy dtypes that an array may have, each up to 8 bytes: bool, integers, floats.
_KINDS = "biuf"
_WIDEST = 8


def real(dtype: Any) -> np.dtype[Any]:
    """The native dtype that a caller means; float32 for None.

    Raises:
        DTypeError: no dtype, or not one of real numbers of at most 64 bits.
    """
    if dtype is None:
        return DEFAULT
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise DTypeError(f"{dtype!r} is no dtype; give for example 'float32'") from None
    require_real(kind)
    native: np.dtype[Any] = kind.newbyteorder("=")
    return native


def require_real(dtype: np.dtype[Any]) -> None:
    """Require a dtype of real numbers.

    Raises:
        DTypeError: it is another.
    """
    if dtype.kind not in _KINDS or dtype.itemsize > _WIDEST:
        raise DTypeError(
            f"an NDArray holds real numbers of at most 64 bits, not {dtype.name};"
            " convert the values first"
        )
