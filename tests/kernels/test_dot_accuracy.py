"""dot against a reference in higher precision, over the edges of every block, layout and value."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from opbench import kernels
from opbench.errors import AliasError, ReadOnlyError, ShapeError
from opbench.kernels.dot import door, loops, machine, microkernel
from opbench.kernels.dot.family import Family, not_loaded
from opbench.kernels.dot.small import DONE

FLOATS = ("float32", "float64")
INTEGERS = ("int32", "int64")
MR = microkernel.MR


def columns(dtype):
    """NR for that dtype."""
    return microkernel.ROW_BYTES // np.dtype(dtype).itemsize


def uniform(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return rng.uniform(-1, 1, shape).astype(dtype)


def check(result, a, b):
    """|result − exact| <= K·eps·|A||B|, exact for integers, which wrap around."""
    if result.dtype.kind == "i":
        np.testing.assert_array_equal(result, np.dot(a, b))
        return
    wide = np.longdouble if result.dtype == np.float64 else np.float64
    exact = np.dot(a.astype(wide), b.astype(wide))
    magnitude = np.dot(abs(a).astype(wide), abs(b).astype(wide))
    eps, tiny = np.finfo(result.dtype).eps, np.finfo(result.dtype).smallest_subnormal
    bound = a.shape[-1] * (eps * magnitude + tiny)
    assert result.shape == exact.shape
    assert np.all(abs(result - exact) <= bound), np.max(abs(result - exact) - bound)


@pytest.fixture(params=FLOATS)
def dtype(request):
    """The integers join where little has to be compiled for them."""
    return request.param


def blocked(dtype, *, parallel=True, span=0):
    """A dot with blocks so small that modest shapes cross every edge: KC 8, MC 2·MR, NC 2·NR.

    B is packed, but with a large `span` read where it lies.
    """
    family = Family(np.dtype(dtype), machine.Blocks(8, 2 * MR, 2 * columns(dtype), span))
    family.serial_gemm = family.serial_gemv = -1 if parallel else 1 << 60

    def dot(a, b):
        out = np.full(a.shape[:-1] + b.shape[1:], 77, dtype)
        door.compute(family, a, b, out)
        return out

    return dot


def around(*edges):
    """One less than each, each, and one more."""
    return sorted({max(1, edge + step) for edge in edges for step in (-1, 0, 1)})


# ---- block edges ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("parallel", "span"), [(True, 0), (False, 0), (False, 1 << 40)])
def test_every_edge_of_the_blocks_in_m_and_n(dtype, parallel, span):
    dot, nr = blocked(dtype, parallel=parallel, span=span), columns(dtype)
    for m in around(1, MR, 2 * MR, 4 * MR):
        for n in around(1, nr, 2 * nr, 4 * nr):
            k = 7 + (m + n) % 3
            a, b = uniform((m, k), dtype), uniform((k, n), dtype, 1)
            check(dot(a, b), a, b)


def test_every_edge_of_kc(dtype):
    dot, m, n = blocked(dtype), 2 * MR + 3, columns(dtype) + 1
    for k in [1, 2, *around(8, 16, 32, 64)]:
        a, b = uniform((m, k), dtype), uniform((k, n), dtype, 1)
        check(dot(a, b), a, b)


@pytest.mark.parametrize("n", range(1, 36))
@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_small_products(dtype, n):
    for m, k in ((n, n), (3, 2), (1, n), (n, 1), (2 * MR + 1, 5)):
        a, b, c = (
            uniform((m, k), dtype),
            uniform((k, n), dtype, 1),
            uniform((n, k), dtype, 2),
        )
        check(kernels.dot(a, b), a, b)
        check(kernels.dot(a, c.T), a, c.T)
        check(kernels.dot(c, a.T), c, a.T)


@pytest.mark.parametrize(
    "shape",
    [(300, 700, 200), (129, 257, 4100), (2100, 33, 70), (60, 9000, 50), (2, 9000, 3)],
)
def test_the_blocks_of_this_machine(dtype, shape):
    m, k, n = shape
    a, b = uniform((m, k), dtype), uniform((k, n), dtype, 1)
    check(kernels.dot(a, b), a, b)


@pytest.mark.parametrize("m", [1, 3, 4, 5, 70, 2047, 2049])
@pytest.mark.parametrize("k", [1, 7, 8, 9, 33, 513, 16385])
def test_matrix_times_vector(dtype, m, k):
    if m * k > 5_000_000:
        m = 300
    a, x, z = uniform((m, k), dtype), uniform(k, dtype, 1), uniform(m, dtype, 2)
    for order in "CF":
        check(kernels.dot(np.asarray(a, order=order), x), a, x)
        check(kernels.dot(z, np.asarray(a, order=order)), z, a)


@pytest.mark.parametrize("dtype", [*FLOATS, "int64"])
@pytest.mark.parametrize("k", [1, 2, 15, 16, 17, 33, 16383, 16384, 16385, 300_000])
def test_vector_times_vector(dtype, k):
    x, y = uniform(k, dtype), uniform(k, dtype, 1)
    check(kernels.dot(x, y), x, y)
    check(kernels.dot(x[::-1], y[::-1]), x[::-1], y[::-1])


# ---- layouts -------------------------------------------------------------------------------------


def layouts(shape, dtype, seed):
    """The same values in every kind of layout, by name."""
    values = uniform(shape, dtype, seed)
    raw = np.empty(values.nbytes + 1, "uint8")
    misaligned = raw[1:].view(dtype).reshape(shape)
    misaligned[...] = values
    spread = np.zeros([3 * length for length in shape], dtype)
    spread[::3, ::3] = values
    inside = np.zeros([length + 5 for length in shape], dtype)
    inside[2:-3, 2:-3] = values
    return {
        "C": values,
        "F": np.asfortranarray(values),
        "backwards rows": np.ascontiguousarray(values[::-1])[::-1],
        "backwards columns": np.ascontiguousarray(values[:, ::-1])[:, ::-1],
        "backwards F": np.asfortranarray(values[::-1, ::-1])[::-1, ::-1],
        "spread": spread[::3, ::3],
        "inside": inside[2:-3, 2:-3],
        "inside F": np.asfortranarray(inside)[2:-3, 2:-3],
        "misaligned": misaligned,
        "one row repeated": np.broadcast_to(values[:1], shape),
        "one column repeated": np.broadcast_to(values[:, :1], shape),
        "one value repeated": np.broadcast_to(values[:1, :1], shape),
    }


def test_every_pair_of_layouts(dtype):
    dot = blocked(dtype)
    for m, k, n in [(2 * MR + 1, 19, columns(dtype) + 3), (3, 5, 4)]:
        lefts, rights = layouts((m, k), dtype, 0), layouts((k, n), dtype, 1)
        for a, b in itertools.product(lefts.values(), rights.values()):
            check(dot(a, b), a, b)


def test_every_layout_with_a_vector(dtype):
    for a in layouts((67, 129), dtype, 0).values():
        for x in layouts((129, 1), dtype, 1).values():
            check(kernels.dot(a, x[:, 0]), a, x[:, 0])
            check(kernels.dot(x[:, 0], a.T), x[:, 0], a.T)


def test_a_matrix_times_itself_transposed(dtype):
    a = uniform((50, 40), dtype)
    check(kernels.dot(a, a.T), a, a.T)
    check(kernels.dot(a[0], a[0]), a[0], a[0])


# ---- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", FLOATS)
def test_nan_and_infinity_reach_their_row_or_column_and_no_other(name, value):
    dot, (m, k, n) = blocked(name), (MR + 3, 11, columns(name) + 5)
    for i, j in itertools.product((0, MR - 1, MR, m - 1), (0, 7, 8, k - 1)):
        a, b = uniform((m, k), name), uniform((k, n), name, 1)
        a[i, j] = value
        with np.errstate(invalid="ignore"):
            expected = a @ b
        np.testing.assert_array_equal(np.isfinite(dot(a, b)), np.isfinite(expected))
        np.testing.assert_array_equal(np.isnan(dot(a, b)), np.isnan(expected))
        np.testing.assert_array_equal(np.isnan(dot(b.T, a.T)), np.isnan(expected.T))


@pytest.mark.parametrize("name", FLOATS)
def test_infinity_times_zero_is_nan_where_numpy_says_so(name):
    a, b = np.zeros((MR + 1, 3), name), np.full((3, 5), np.inf, name)
    assert np.isnan(kernels.dot(a, b)).all()
    assert np.isnan(kernels.dot(a, b[:, 0])).all()
    assert np.isnan(kernels.dot(a[0], b[:, 0]))


@pytest.mark.parametrize("name", FLOATS)
def test_what_out_held_before_does_not_matter(name):
    a, b = uniform((MR + 1, 20), name), uniform((20, 9), name)
    out = np.full((MR + 1, 9), np.nan, name)
    check(kernels.dot(a, b, out=out), a, b)


@pytest.mark.parametrize("name", FLOATS)
def test_subnormal_numbers_are_kept(name):
    tiny = np.finfo(name).smallest_subnormal
    a, b = np.full((MR + 1, 40), tiny, name), np.ones((40, 9), name)
    np.testing.assert_array_equal(kernels.dot(a, b), np.full((MR + 1, 9), 40 * tiny, name))
    np.testing.assert_array_equal(kernels.dot(a, b[:, 0]), np.full(MR + 1, 40 * tiny, name))


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_at_the_edge_wrap_around_as_numpys(name):
    info = np.iinfo(name)
    a = np.array([[info.min, info.max], [-1, info.min]], name)
    np.testing.assert_array_equal(kernels.dot(a, a), a @ a)
    np.testing.assert_array_equal(kernels.dot(a, a[0]), a @ a[0])


# ---- the same bits -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FLOATS)
def test_the_same_bits_from_the_small_kernel(name):
    a, b = uniform((33, 64), name), uniform((64, 41), name, 1)
    family = Family(np.dtype(name))
    family.serial_gemm = 0
    out = np.empty((33, 41), name)
    door.compute(family, a, b, out)
    np.testing.assert_array_equal(kernels.dot(a, b), out)
    np.testing.assert_array_equal(kernels.dot(a, np.asfortranarray(b)), out)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("strided", ["a", "b", "both"])
def test_one_by_one_has_the_same_bits_from_the_small_kernel_in_any_layout(name, strided):
    a, b = uniform((1, 300), name), uniform((300, 1), name, 1)
    a = uniform((3, 600), name)[1:2, ::2] if strided != "b" else a
    b = uniform((300, 5), name, 1)[:, 2:3] if strided != "a" else b
    family = door.FAMILIES[np.dtype(name)]
    family.load_small(2, 2)
    expected, out = np.empty((1, 1), name), np.empty((1, 1), name)
    door.compute(Family(np.dtype(name)), a, b, expected)
    assert family.small[2][2](a, b, out, door.FACTS_AT) == DONE
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("name", FLOATS)
def test_equal_rows_have_equal_sums_down_to_the_sign_of_zero(name):
    tiny = np.finfo(name).tiny
    lanes = 64 // np.dtype(name).itemsize
    for k in (1, lanes // 4, lanes // 2, lanes):
        y = kernels.dot(np.full((9, k), -tiny, name), np.full(k, tiny, name))
        assert len(set(np.signbit(y))) == 1


def test_a_product_with_a_column_loads_the_small_kernel_itself():
    for m, n in ((5, 1), (1, 5)):
        door.FAMILIES[np.dtype("int32")].small[2][2] = not_loaded
        kernels.dot(np.ones((m, 7), "int32"), np.ones((7, n), "int32"))
        assert door.FAMILIES[np.dtype("int32")].small[2][2] is not not_loaded


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(5, 100, 1), (1, 100, 5), (1, 100, 1), (40, 333, 1), (1, 4000, 9)]
)
def test_a_column_or_a_row_has_the_same_bits_before_and_after_the_small_kernels_load(name, m, k, n):
    a, b = uniform((m, k), name), uniform((k, n), name, 1)
    for x, y in ((a, b), (a[0], b), (a, b[:, 0]), (a[0], b[:, 0])):
        door.FAMILIES[x.dtype].load_small(x.ndim, y.ndim)
        expected = np.empty(x.shape[:-1] + y.shape[1:], name)
        door.compute(Family(np.dtype(name)), x, y, expected)
        np.testing.assert_array_equal(kernels.dot(x, y), expected)
        np.testing.assert_array_equal(kernels.dot(x, y, out=np.empty_like(expected)), expected)


@pytest.mark.parametrize("name", FLOATS)
def test_small_products_with_vectors_refuse_what_they_cannot_compute(name):
    a, x = uniform((6, 7), name), uniform((7,), name, 1)
    for first, second in ((a, x), (a.T, x[:6]), (x, a.T), (x, x)):
        kernels.dot(first, second)  # loads the small kernel
        expected = np.dot(first.astype("float64"), second.astype("float64"))
        out = np.empty((*expected.shape, 2), name)[..., 0] if expected.ndim else np.empty((), name)
        assert kernels.dot(first, second, out=out) is out
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    for first, second in ((a, x[:5]), (x[:5], a), (x, x[:5])):
        with pytest.raises(ShapeError):
            kernels.dot(first, second)
    with pytest.raises(AliasError):
        kernels.dot(a, x, out=a[:, 0])
    with pytest.raises(ReadOnlyError):
        kernels.dot(a, x, out=np.broadcast_to(np.zeros(1, name), (6,)))


@pytest.mark.parametrize("name", ["float32", "float64", "int64"])
@pytest.mark.parametrize("parallel", [False, True])
def test_the_same_bits_from_an_operand_whose_columns_crowd_one_cache_set(name, parallel):
    rows = 4096 // np.dtype(name).itemsize
    a = uniform((150, rows), name).T[:137]
    b = uniform((150, 90), name, 1)
    assert loops.distant(a, 90)
    dot = blocked(name, parallel=parallel)
    np.testing.assert_array_equal(dot(a, b), dot(np.ascontiguousarray(a), b))


@pytest.mark.parametrize("name", FLOATS)
def test_the_same_bits_on_one_thread_and_on_several(name):
    a, b = uniform((137, 401), name), uniform((401, 150), name, 1)
    several, one = (blocked(name, parallel=parallel) for parallel in (True, False))
    np.testing.assert_array_equal(several(a, b), one(a, b))
    np.testing.assert_array_equal(several(a, b), blocked(name, span=1 << 40)(a, b))
    deep = uniform((30, 5000), name), uniform((5000, 20), name, 1)
    split, whole = (blocked(name, parallel=parallel) for parallel in (True, False))
    np.testing.assert_array_equal(split(*deep), whole(*deep))
    for x, y in ((a, b[:, 0]), (a.T, a[:, 0]), (a[0], b[:, 0])):
        np.testing.assert_array_equal(several(x, y), one(x, y))
