"""The change types of the audit: what happened to an entity in a transition (S21)."""

from __future__ import annotations

INSERT, UPDATE, OVERWRITE = "INSERT", "UPDATE", "OVERWRITE"
LOGICAL_DELETE, REFUSED, WITHDRAWN = "LOGICAL_DELETE", "REFUSED", "WITHDRAWN"
REPAIRED = "REPAIRED"
CHANGE_TYPES = (INSERT, UPDATE, OVERWRITE, LOGICAL_DELETE, REFUSED, WITHDRAWN, REPAIRED)
"""All change types. An audit can have other labels for them, which are converted where it is read and written."""

VERSION_STATES = {INSERT: "new", UPDATE: "changed", LOGICAL_DELETE: "deleted"}
"""The values of the column `version_state` by change type, unless labels are declared."""
