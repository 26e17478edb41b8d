"""Cast delivered values to numbers without a loss of information (S26)."""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration.types import INTEGERS, Decimal
from scd_pipeline.deliveries.cast_options import CastOptions

SIGNIFICANT_DIGITS = {"double": 17, "float": 9}
NUMBERS = (*INTEGERS, *SIGNIFICANT_DIGITS)
"""The types of numbers, except for decimals."""
_LARGEST_BIGINT = 2**63 - 1
# Floating literals that only Java has: with a letter for their type, or hexadecimal.
_JAVA_LITERAL = r"(?i)[\d.][df]\s*$|x"


def to_equal_number(value: Column, physical: T.DataType, ddl: str) -> Column:
    """Cast a number to another type; NULL if the result is not the same number.

    Spark casts the floating number 2**63 to the largest bigint, which does not equal it.
    """
    number = value.try_cast(ddl)
    is_same = number.try_cast(physical.simpleString()) == value
    names = {ddl, physical.simpleString()}
    if "bigint" in names and names & set(SIGNIFICANT_DIGITS):
        is_same = is_same & ((number if ddl == "bigint" else value) != F.lit(_LARGEST_BIGINT))
    return F.when(is_same, number)


def is_time(physical: T.DataType) -> bool:
    """Return whether a physical type is a timestamp, with or without a zone."""
    return isinstance(physical, T.TimestampType | T.TimestampNTZType)


def null(ddl: str) -> Column:
    """Return NULL as a value of a type."""
    return F.lit(None).cast(ddl)


def plain_number(text: Column, options: CastOptions) -> Column:
    """Return the text of a number in the form of SQL; NULL if its separators are not as declared.

    Groups are of three digits, or there are none: otherwise 1.5 with a grouping point would become 15. The first group
    does not begin with 0: 0,500 is not 500.
    """
    if not options.has_separators:
        return text
    groups = rf"[1-9]\d{{0,2}}({re.escape(options.grouping)}\d{{3}})+|" if options.grouping else ""
    form = rf"^\s*[+-]?({groups}\d*)({re.escape(options.decimal)}\d*)?([eE][+-]?\d+)?\s*$"
    digits = F.replace(text, F.lit(options.grouping), F.lit("")) if options.grouping else text
    return F.when(text.rlike(form), F.replace(digits, F.lit(options.decimal), F.lit(".")))


def to_integer(value: Column, physical: T.DataType, ddl: str, options: CastOptions) -> Column:
    """Cast a value to one of `INTEGERS`; NULL if it is bad."""
    if is_time(physical):
        return null(ddl)
    if isinstance(physical, T.FractionalType):
        return F.round(value).try_cast(ddl) if options.is_rounded else to_equal_number(value, physical, ddl)
    if isinstance(physical, T.StringType) and options.is_rounded:
        return value.try_cast("decimal(38,0)").try_cast(ddl)
    return value.try_cast(ddl)


def to_decimal(value: Column, physical: T.DataType, target: Decimal, options: CastOptions) -> Column:
    """Cast a value to a decimal; a floating number by its shortest text: 0.1, not its binary value."""
    ddl = target.ddl()
    if is_time(physical):
        return null(ddl)
    if isinstance(physical, T.FloatType | T.DoubleType):
        value, physical = value.cast("string"), T.StringType()
    if isinstance(physical, T.StringType) and not options.is_rounded:
        return F.when(_fits_scale(value, target.scale), value.try_cast(ddl))
    if isinstance(physical, T.DecimalType) and physical.scale > target.scale and not options.is_rounded:
        return to_equal_number(value, physical, ddl)
    return value.try_cast(ddl)


def _fits_scale(text: Column, scale: int) -> Column:
    """Return whether the number in a text has no more digits after its point, except zeros; true without a number."""
    digits = F.regexp_extract(text, r"([\d.]+)", 1)
    after_point = F.when(F.instr(digits, ".") > 0, F.length(digits) - F.instr(digits, ".")).otherwise(0)
    all_digits = F.regexp_replace(digits, r"\.", "")
    significant = F.regexp_replace(all_digits, "0+$", "")
    exponent = F.coalesce(F.regexp_extract(text, r"[eE]([+-]?\d+)", 1).try_cast("int"), F.lit(0)).cast("bigint")
    needed = after_point - (F.length(all_digits) - F.length(significant)) - exponent
    is_plain = text.rlike(rf"^\s*[+-]?\d*(\.\d{{0,{scale}}}0*)?\s*$")
    return is_plain | (significant == "") | (needed <= scale)


def to_floating(value: Column, physical: T.DataType, ddl: str, options: CastOptions) -> Column:
    """Cast a value to one of `SIGNIFICANT_DIGITS`; NULL if it is bad."""
    if is_time(physical):
        return null(ddl)
    if isinstance(physical, T.StringType):
        return _floating_from_text(value, ddl, options)
    number = value.try_cast(ddl)
    if options.is_rounded:
        return F.when(~_is_infinite(number) | (_is_infinite(value.try_cast("double"))), number)
    if isinstance(physical, T.IntegralType):
        return to_equal_number(value, physical, ddl)
    if isinstance(physical, T.DoubleType) and ddl == "float":
        # By the shortest texts: 0.1 is 0.1 in both.
        return F.when(number.cast("string") == value.cast("string"), number)
    if isinstance(physical, T.DecimalType):
        return F.when(number.cast("string").try_cast(physical.simpleString()) == value, number)
    return number


def _floating_from_text(text: Column, ddl: str, options: CastOptions) -> Column:
    """Return the nearest number, if the type can represent all digits, and a whole number exactly.

    Text outside of the type's range is bad; Spark would return infinity or zero.
    """
    number = text.try_cast(ddl)
    is_too_large = _is_infinite(number) & ~text.rlike("(?i)inf")
    is_too_small = (number == 0) & text.rlike("^[^eE]*[1-9]")
    is_valid = ~text.rlike(_JAVA_LITERAL) & ~is_too_large & ~is_too_small
    if options.is_rounded:
        return F.when(is_valid, number)
    digits_limit = SIGNIFICANT_DIGITS[ddl]
    digits = F.regexp_replace(F.regexp_replace(text, r"[eE].*$|\D", ""), "^0+|0+$", "")
    whole = text.try_cast("bigint")
    is_exact = (F.length(digits) <= digits_limit) & (whole.isNull() | (number.try_cast("bigint") == whole))
    return F.when(is_valid & ((F.length(text) < digits_limit - 2) | is_exact), number)


def number_text(text: Column, options: CastOptions) -> Column:
    """Return the text of a number as text; NULL for a floating-point number, whose spelling depends on its producer.

    With rounding it is written in full, without zeros at its end: 1.0 as 1, and 1.5E-3 as 0.0015.
    """
    whole = F.when(text.rlike(r"^-?\d+$"), text)
    if not options.is_rounded:
        return whole
    digits = F.when(_fits_scale(text, 18), text.try_cast("decimal(38,18)")).cast("string")
    return F.coalesce(whole, F.regexp_replace(digits, r"\.?0+$", ""), text)


def _is_infinite(number: Column) -> Column:
    return F.abs(number) == F.lit(float("inf"))
