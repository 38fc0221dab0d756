"""The column of reports of each mechanism: its Arrow type, and the way there and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.on_tables.arrow import bits_from_arrow, bits_to_arrow, to_arrow
from tightrope.local.parts.values import smallest_type

Oracle = FrequencyOracle | MeanOracle
REPORT_COLUMN = "report"
"""The name of the column."""


def report_bytes(mechanism: Oracle) -> int:
    """Bytes of one report in a column.

    >>> from tightrope.local.mechanisms.response import k_randomized_response
    >>> report_bytes(k_randomized_response(1.0, 1000))
    2
    """
    letters = mechanism.letters
    return smallest_type(letters).itemsize if letters is not None else -(-mechanism.report_bits // 8)


def report_schema(mechanism: Oracle) -> Any:
    """The Arrow schema of a table of reports: one column, of the smallest unsigned type, or of ⌈k/8⌉ bytes for bits.

    >>> from tightrope.local.mechanisms.unary import unary_encoding
    >>> report_schema(unary_encoding(1.0, 20)).field("report").type
    FixedSizeBinaryType(fixed_size_binary[3])
    """
    import pyarrow

    letters = mechanism.letters
    packed = pyarrow.binary(report_bytes(mechanism))
    form = packed if letters is None else pyarrow.from_numpy_dtype(smallest_type(letters))
    return pyarrow.schema([pyarrow.field(REPORT_COLUMN, form)])


def reports_to_arrow(mechanism: Oracle, reports: NDArray[Any]) -> Any:
    """Reports as ``perturb`` makes them, as an Arrow array of the type in ``report_schema``."""
    if mechanism.letters is None:
        return bits_to_arrow(reports, mechanism.report_bits)
    return to_arrow(reports.astype(smallest_type(mechanism.letters), copy=False))


def reports_from_arrow(mechanism: Oracle, column: Any) -> NDArray[Any]:
    """The inverse of ``reports_to_arrow``, also where an engine made the type wider: any whole numbers, any binary.

    Whether they are reports that somebody can have made, ``mechanism.tally`` checks. Raises ``InputError`` for other
    types, for NULLs and for bits of another length.

    >>> from tightrope.local.mechanisms.response import k_randomized_response
    >>> import pyarrow
    >>> reports_from_arrow(k_randomized_response(1.0, 4), pyarrow.array([3, 0])).tolist()
    [3, 0]
    """
    import pyarrow

    if mechanism.letters is None:
        return bits_from_arrow(_packed(column, report_bytes(mechanism)), mechanism.report_bits)
    if not pyarrow.types.is_integer(column.type) or column.null_count:
        raise InputError("column of reports", _found(column), "whole numbers without NULLs", "read the right column")
    return np.asarray(column.to_numpy(zero_copy_only=False) if hasattr(column, "offset") else column.to_numpy())


def _packed(column: Any, count: int) -> Any:
    """Binary of this many bytes a report, whatever kind of binary it came in."""
    import pyarrow

    wanted, failed = f"binary of {count} bytes a report without NULLs", False
    try:
        column = column.cast(pyarrow.binary(count))
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        failed = True
    if failed or column.null_count:
        raise InputError("column of reports", _found(column), wanted, "use the mechanism that made the reports")
    return column


def _found(column: Any) -> tuple[str, int]:
    return str(column.type), column.null_count
