"""What runs beside loads: checks, status and maintenance of the tables."""
