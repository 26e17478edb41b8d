"""Generated federal grants."""
