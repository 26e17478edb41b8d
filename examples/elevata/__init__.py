"""A history table: a base whose columns change, and the declaration that mirrors them."""
