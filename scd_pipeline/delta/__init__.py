"""The only package that writes rows of Delta tables.

It uses only the DataFrame writer and SQL, which work over Connect.
"""
