"""Requirements of the reference warehouses: each row by its number, with the values that it states."""
