"""Members of the United States Congress."""
