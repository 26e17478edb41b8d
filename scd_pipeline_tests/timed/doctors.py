"""The table of the seed of timed tables: eleven doctors, and a log of two statements."""

from __future__ import annotations

FIELDS = "number int, first_name string, last_name string"
DEFAULT = "fishfingers and custard"
RAW = """
| number | first_name  | last_name | extra_field             |
| 1      | William     | Hartnell  | fishfingers and custard |
| 2      | Patrick     | Troughton | fishfingers and custard |
| 3      | Jon         | Pertwee   | fishfingers and custard |
| 4      | Tom         | Baker     | fishfingers and custard |
| 5      | Peter       | Davison   | fishfingers and custard |
| 6      | Colin       | Baker     | fishfingers and custard |
| 7      | Sylvester   | McCoy     | fishfingers and custard |
| 8      | Paul        | McGann    | fishfingers and custard |
| 9      | Christopher | Eccleston | fishfingers and custard |
| 10     | David       | Tennant   | fishfingers and custard |
| 11     | Matt        | Smith     | fishfingers and custard |
"""
AT_2014_01_01 = RAW.replace("| 2      | Patrick", "| 12     | Patrick")
NOW = "\n".join(line for line in AT_2014_01_01.splitlines() if "Colin" not in line)
LOG = """UPDATE doctors set number = 12 where number = 2;
-- time=2014-09-01
DELETE FROM doctors WHERE first_name = 'Colin';
"""
