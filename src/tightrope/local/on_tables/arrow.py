"""Reports as Arrow arrays: compact, typed, and read by every language; ``pyarrow`` is loaded on first use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError, MissingExtraError
from tightrope.local.parts.bits import LANES, checked_rows, width
from tightrope.local.parts.values import domain

MOST_ARROW_BITS = 1 << 20


def to_arrow(reports: NDArray[Any]) -> Any:
    """Numbers, shape [n], as an Arrow array of the same type.

    Raises ``InputError`` for rows: packed bits go through ``bits_to_arrow``, columns of a table one by one.

    >>> to_arrow(np.array([1, 2], dtype=np.uint16)).type
    DataType(uint16)
    """
    if not isinstance(reports, np.ndarray) or reports.ndim != 1 or reports.dtype.kind != "u":
        found = (str(getattr(reports, "dtype", type(reports))), np.shape(reports))
        raise InputError("reports", found, "unsigned numbers of shape [n]", "packed bits: local.bits_to_arrow")
    return _arrow().array(reports)


def from_arrow(column: Any) -> NDArray[Any]:
    """The inverse of ``to_arrow``, for arrays and chunked arrays; raises ``InputError`` for other types or nulls."""
    arrow = _arrow()
    if not arrow.types.is_unsigned_integer(column.type) or column.null_count:
        raise InputError("column", (str(column.type), column.null_count), "unsigned integers without nulls")
    return np.asarray(column.to_numpy(zero_copy_only=False) if _is_plain(column) else column.to_numpy())


def bits_to_arrow(rows: NDArray[np.uint64], k: int) -> Any:
    """Rows of k packed bits as binary of ⌈k/8⌉ bytes each, the lowest bit first.

    >>> from tightrope.local.mechanisms.unary import unary_encoding
    >>> bits_to_arrow(unary_encoding(1.0, 20).perturb([3, 4]), 20).type
    FixedSizeBinaryType(fixed_size_binary[3])
    """
    size = domain(k, MOST_ARROW_BITS, "hash the categories: local.hashing")
    packed = np.ascontiguousarray(checked_rows("rows", rows, size).astype("<u8")).view(np.uint8)
    kept = np.ascontiguousarray(packed[:, : -(-size // 8)])
    arrow = _arrow()
    return arrow.FixedSizeBinaryArray.from_buffers(
        arrow.binary(kept.shape[1]), len(kept), [None, arrow.py_buffer(kept.tobytes())]
    )


def bits_from_arrow(column: Any, k: int) -> NDArray[np.uint64]:
    """The inverse of ``bits_to_arrow``; raises ``InputError`` for other types, nulls, or bits from k on."""
    size, arrow = domain(k, MOST_ARROW_BITS, "hash the categories: local.hashing"), _arrow()
    count = -(-size // 8)
    if not column.type.equals(arrow.binary(count)) or column.null_count:
        expected = f"fixed_size_binary[{count}] without nulls for {size} values"
        raise InputError("column", (str(column.type), column.null_count), expected)
    chunks = [column] if _is_plain(column) else column.chunks
    data = b"".join(_bytes(chunk, count) for chunk in chunks)
    rows = np.zeros((len(column), width(size) * LANES // 8), dtype=np.uint8)
    rows[:, :count] = np.frombuffer(data, dtype=np.uint8).reshape(-1, count)
    return checked_rows("column", rows.view("<u8").astype(np.uint64), size)


def _bytes(chunk: Any, count: int) -> bytes:
    """The values of a chunk, which may be a slice of a longer one."""
    start = chunk.offset * count
    return bytes(memoryview(chunk.buffers()[1])[start : start + len(chunk) * count]) if len(chunk) else b""


def _is_plain(column: Any) -> bool:
    return not hasattr(column, "chunks")


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError("pyarrow", "release") from None
    return pyarrow
