"""The checklist of a dimension: what its design, build, performance, quality and operation need, item by item."""
