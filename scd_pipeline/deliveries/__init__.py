"""Deliveries: discover them, read them, turn their rows into change records, accept or reject each batch."""
