"""Landing tables: the rows that deliveries leave, without history (S38)."""
