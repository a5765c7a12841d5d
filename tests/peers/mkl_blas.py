"""Intel's MKL through ctypes, for dot_vs_blas.py: where it is, a product as one foreign call."""

from __future__ import annotations

import ctypes
import functools
import sys
from pathlib import Path

ROW_MAJOR, PLAIN = 101, 111
NAME = "libmkl_rt.so*"


def find(given: str) -> Path | None:
    """The library: a file, or below a folder such as a virtual environment; None if there is none.

    `auto` looks into this interpreter's own environment.
    """
    place = Path(sys.prefix if given == "auto" else given).expanduser()
    if place.is_file():
        return place
    return next((f for part in ("", "lib") for f in sorted((place / part).glob(NAME))), None)


class Library:
    """The loaded library; its threads are set by the environment as well (MKL_NUM_THREADS)."""

    def __init__(self, path: str, threads: int) -> None:
        self.blas = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        self.blas.MKL_Set_Num_Threads(ctypes.c_int(threads))

    def product(self, a, b, c):
        """A call that computes c = a·b, for contiguous operands, its arguments converted once."""
        if not (a.flags.c_contiguous and b.flags.c_contiguous):
            sys.exit(
                "MKL is called for contiguous operands only; leave out --order and --set layouts"
            )
        letter, real = {"f4": ("s", ctypes.c_float), "f8": ("d", ctypes.c_double)}[c.dtype.str[1:]]
        one, zero, integer = real(1), real(0), ctypes.c_int
        pa, pb, pc = (ctypes.c_void_p(x.ctypes.data) for x in (a, b, c))
        if a.ndim == b.ndim == 1:
            function = getattr(self.blas, f"cblas_{letter}dot")
            function.restype = real
            dot = functools.partial(function, integer(a.size), pa, integer(1), pb, integer(1))
            return lambda: c.__setitem__((), dot())
        if a.ndim == 1 or b.ndim == 1:
            matrix, transpose = (b, 112) if a.ndim == 1 else (a, PLAIN)
            rows, columns = map(integer, matrix.shape)
            pm, px = (pb, pa) if a.ndim == 1 else (pa, pb)
            return functools.partial(
                getattr(self.blas, f"cblas_{letter}gemv"),
                *(integer(ROW_MAJOR), integer(transpose), rows, columns, one, pm, columns),
                *(px, integer(1), zero, pc, integer(1)),
            )
        (m, k), n = a.shape, b.shape[1]
        return functools.partial(
            getattr(self.blas, f"cblas_{letter}gemm"),
            *(integer(ROW_MAJOR), integer(PLAIN), integer(PLAIN)),
            *(integer(m), integer(n), integer(k), one, pa, integer(k)),
            *(pb, integer(n), zero, pc, integer(n)),
        )
