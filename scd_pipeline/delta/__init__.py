"""The only package that writes Delta tables. It uses only the DataFrame writer and SQL, which work over Connect."""
