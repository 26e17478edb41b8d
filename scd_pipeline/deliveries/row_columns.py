"""Columns that a load adds to delivered rows. Delivered columns with a name in `RESERVED` are not read."""

from __future__ import annotations

DELIVERY = "_scd"
"""The batch of a row: a struct of `batch`, `at`, `delivery_rank`, `revision_rank`, `reason`, `actor`,
`correlation_id` and `scope`."""
FILE = "_scd_file"
"""The file of a row, as Spark names it."""
LINE = "_scd_line"
"""The text of a record that does not parse; NULL for a parsed row."""
PROBLEM = "_scd_problem"
"""The reason why a record does not parse; NULL for a parsed row."""
FIELDS = "_scd_fields"
"""The fields of a row, as a struct: NULL for a field that the row lacks, else a JSON token or true (`row_fields`)."""
HASH = "_scd_hash"
"""64 bits of the content of a row."""
KEY_READABLE = "_key_readable"
"""Whether the business key of a row can be read."""
NULLED = "_scd_nulled"
"""The number of values of a row that are NULL because they do not cast (`on_bad_value: null`)."""
TOTALS, TOTALS_TYPE = "_scd_totals", "array<string>"
"""The control totals that a row has, as texts in declared order; NULL if the channel declares none in its rows."""
ROW_ORDER = "_scd_row_order"
"""The position of a row in its file if the channel's tie rule depends on it: a struct that can be sorted (S5). It is
negative if the first row decides."""
ROW_ORDER_TYPE = "struct<block:bigint,row:bigint>"
RESERVED = (DELIVERY, LINE, PROBLEM, HASH, FIELDS)
"""Names of delivered columns that are never read."""
ADDED = (*RESERVED, FILE, ROW_ORDER, "_scd_text", "_metadata")
"""Names of columns that a reader adds. A delivered column with such a name is undeclared, and is not read."""
FILTERED, ABSENT = "filtered", "absent"
"""The values of `_kind`, until the rows are counted, of rows that the condition `rows` excludes, and of rows of a
snapshot whose entities count as absent. Later steps see neither."""
OUTSIDE_SCOPE = "outside of the delivery's scope"
"""The reason of a bad row that its delivery does not cover."""
