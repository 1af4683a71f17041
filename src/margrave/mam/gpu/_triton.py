"""Triton programs for kernel sums: a tile of values is computed and summed, never stored.

`halves` is for float32. It splits a number into two of 11 bits, high + low, as 3×TF32 does, and
sums three of the four products: an error of 2⁻²² of a product. TF32 and float16 both have these 11
bits; float16 is twice as fast, and its range suffices, as rows come scaled. With z and x scaled by
√(2γ log₂e), longer rows compute the whole exponent in one product,

    (z_h, z_h, z_l, r, 1) · (x_h, x_l, x_h, 1, s) = −γ‖x − z‖² log₂e,

where r = −‖z‖²/2 and s = −‖x‖²/2 are three numbers of 11 bits each.

`values` is for all else: float64, widths so narrow that float32 would lose the distances, powers of
numbers too different in size for float16, sums |x − z| of the Laplacian kernel, and leave-one-out
over all widths at once, each width from the one before by squaring. Sums are in float32 over a tile
or a few and in float64 beyond.
"""

from __future__ import annotations

from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:  # the module can be imported without it
    triton = None

RBF, LAPLACIAN, POLY = 0, 1, 2
KINDS = {"rbf": RBF, "laplacian": LAPLACIAN, "poly": POLY}
TILE = 128
"""Rows and columns are padded to multiples of this."""

FLUSH = 32
"""Tiles that `halves` sums in float32."""


def jit(function: Any) -> Any:
    """Compile a function with Triton, if it is installed."""
    return function if triton is None else triton.jit(function)


def halves_choice(n_sums: int) -> dict[str, Any]:
    """Choose tile, warps and stages of `halves`: the fastest of several on an H200."""
    if n_sums == 1:
        return _choice(64, 128, 4)
    return _choice(64, 64, 4)


def values_choice(kind: int, single: bool) -> dict[str, Any]:
    """Choose tile, warps and stages of `values`."""
    if kind == LAPLACIAN:
        return _choice(64, 128, 8) if single else _choice(64, 32, 4)
    return _choice(64, 64, 4)


def _choice(n_rows: int, n_columns: int, n_warps: int) -> dict[str, Any]:
    # Products and sums in one operation: newer versions of Triton need the option.
    return {
        "BM": n_rows,
        "BN": n_columns,
        "num_warps": n_warps,
        "num_stages": 2,
        "enable_fp_fusion": True,
    }


@jit
def halves(
    Z: tl.tensor,
    X: tl.tensor,
    W: tl.tensor,
    OUT: tl.tensor,
    M: tl.tensor,
    n_tiles: tl.tensor,
    per_split: tl.tensor,
    back: tl.tensor,
    coef0: tl.tensor,
    K: tl.constexpr,
    KB: tl.constexpr,
    DEGREE: tl.constexpr,
    SUMS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    FLUSH: tl.constexpr,
) -> None:
    """Sum 2^(Z·Xᵀ), or powers if DEGREE is not 0, for one column of weights or a block of them."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    start = tl.program_id(1) * per_split
    stop = tl.minimum(start + per_split, n_tiles)
    columns = tl.arange(0, SUMS)
    # Before the loops: within them it needs more registers and costs a third of the speed.
    z = tl.load(Z + rows[:, None] * K + tl.arange(0, KB)[None, :])
    total = tl.zeros([BM, SUMS], tl.float64)
    for first in range(start, stop, FLUSH):
        part = tl.zeros([BM, SUMS], tl.float32)
        for tile in range(first, tl.minimum(first + FLUSH, stop)):
            cols = tile * BN + tl.arange(0, BN)
            p = products(z, Z, X, rows, cols, K, KB, tl.float32)
            p = tl.exp2(p) if DEGREE == 0 else powers(p * back + coef0, DEGREE)
            if SUMS == 1:
                part += tl.sum(p * tl.load(W + cols)[None, :], 1)[:, None]
            else:
                w = tl.load(W + cols[:, None] * SUMS + columns[None, :])
                part = tl.dot(p, w, part, input_precision="tf32x3")
        total += part
    out = OUT + tl.program_id(1).to(tl.int64) * M * SUMS
    tl.store(out + rows[:, None] * SUMS + columns[None, :], total)


@jit
def products(
    first: tl.tensor,
    Z: tl.tensor,
    X: tl.tensor,
    rows: tl.tensor,
    cols: tl.tensor,
    K: tl.constexpr,
    KB: tl.constexpr,
    KIND: tl.constexpr,
) -> tl.tensor:
    """Compute Z·Xᵀ of a tile, KB features at a time; `first` has the first ones of Z."""
    k = tl.arange(0, KB)
    x = tl.load(X + cols[:, None] * K + k[None, :])
    e = tl.dot(first, tl.trans(x), out_dtype=KIND)
    for at in range(KB, K, KB):
        z = tl.load(Z + rows[:, None] * K + (at + k)[None, :])
        x = tl.load(X + cols[:, None] * K + (at + k)[None, :])
        e = tl.dot(z, tl.trans(x), e, out_dtype=KIND)
    return e


@jit
def powers(base: tl.tensor, DEGREE: tl.constexpr) -> tl.tensor:
    """Raise each number to an integer power."""
    p = base
    for _ in range(DEGREE - 1):
        p = p * base
    return p


@jit
def distances(
    Z: tl.tensor,
    X: tl.tensor,
    M: tl.tensor,
    N: tl.tensor,
    D: tl.tensor,
    rows: tl.tensor,
    cols: tl.tensor,
    BM: tl.constexpr,
    BN: tl.constexpr,
) -> tl.tensor:
    """Compute Σ|x − z| of a tile; numbers are stored feature by feature."""
    # A load of the whole tile makes the compiler assign several columns and rows to a thread.
    e = tl.abs(tl.load(tl.broadcast_to(X + cols[None, :], (BM, BN))) - tl.load(Z + rows[:, None]))
    for f in range(1, D):
        e += tl.abs(tl.load(X + f * N + cols[None, :]) - tl.load(Z + f * M + rows[:, None]))
    return e


@jit
def added(out: tl.tensor, p: tl.tensor, w: tl.tensor) -> None:
    """Add the sums of a tile to those of its rows."""
    tl.atomic_add(out, tl.sum(p * w, 1).to(tl.float64), sem="relaxed")


@jit
def values(
    Z: tl.tensor,
    X: tl.tensor,
    RZ: tl.tensor,
    RX: tl.tensor,
    W: tl.tensor,
    LZ: tl.tensor,
    LX: tl.tensor,
    B: tl.tensor,
    GAMMAS: tl.tensor,
    SQUARINGS: tl.tensor,
    OUT: tl.tensor,
    M: tl.tensor,
    N: tl.tensor,
    D: tl.tensor,
    first: tl.tensor,
    n_tiles: tl.tensor,
    per_split: tl.tensor,
    n_gammas: tl.tensor,
    n_sums: tl.tensor,
    KIND: tl.constexpr,
    DEGREE: tl.constexpr,
    K: tl.constexpr,
    KB: tl.constexpr,
    ALONE: tl.constexpr,
    SIGNED: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
) -> None:
    """Sum values of all widths; those of weights in float32 by an exponential of float32.

    LZ, LX and B are the levels and the weights of the signed column. Each program owns its rows of
    its part of OUT, so that additions have one order.
    """
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    start = tl.program_id(1) * per_split
    kind = W.dtype.element_ty
    n_out = n_sums + 1 if SIGNED else n_sums
    out = OUT + tl.program_id(1).to(tl.int64) * n_gammas * n_out * M + rows
    for tile in range(start, tl.minimum(start + per_split, n_tiles)):
        cols = tile * BN + tl.arange(0, BN)
        e = bases(Z, X, RZ, RX, M, N, D, rows, cols, KIND, K, KB, BM, BN)
        same = (first + rows)[:, None] == cols[None, :]
        if ALONE and KIND != 2:
            e = tl.where(same, float("-inf"), e)
        if SIGNED:
            up = tl.load(LX + cols)[None, :] - tl.load(LZ + rows)[:, None]
            signed = tl.where(up > 0, 1.0, tl.where(up < 0, -1.0, 0.0)).to(kind)
            signed = signed * tl.load(B + cols)[None, :]
        p = e.to(kind)
        for g in range(n_gammas):
            scaled = e * tl.load(GAMMAS + g).to(e.dtype)
            squarings = tl.load(SQUARINGS + g)
            if KIND == 2:
                p = powers((scaled + tl.load(GAMMAS + n_gammas).to(e.dtype)).to(kind), DEGREE)
                if ALONE:
                    p = tl.where(same, 0.0, p)
            elif squarings == 0:
                p = tl.exp2(scaled.to(kind))
            else:
                for _ in range(squarings):
                    p = p * p
            for s in range(n_sums):
                added(out + (g * n_out + s) * M, p, tl.load(W + s * N + cols)[None, :])
            if SIGNED:
                added(out + (g * n_out + n_sums) * M, p, signed)


@jit
def bases(
    Z: tl.tensor,
    X: tl.tensor,
    RZ: tl.tensor,
    RX: tl.tensor,
    M: tl.tensor,
    N: tl.tensor,
    D: tl.tensor,
    rows: tl.tensor,
    cols: tl.tensor,
    KIND: tl.constexpr,
    K: tl.constexpr,
    KB: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
) -> tl.tensor:
    """Compute the argument of the kernel: −distance, or the product."""
    if KIND == 1:
        e = -distances(Z, X, M, N, D, rows, cols, BM, BN)
    else:
        z = tl.load(Z + rows[:, None] * K + tl.arange(0, KB)[None, :])
        e = products(z, Z, X, rows, cols, K, KB, tl.float64)
    if KIND == 0:
        e = tl.minimum(e + (tl.load(RZ + rows)[:, None] + tl.load(RX + cols)[None, :]), 0.0)
    return e
