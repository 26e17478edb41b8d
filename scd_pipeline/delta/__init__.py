"""The only package that writes Delta tables; DataFrame writer and SQL only, so that it works over Spark Connect."""
