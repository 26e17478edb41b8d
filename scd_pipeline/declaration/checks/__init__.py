"""Checks of declarations: every validation error is collected, none is raised one by one (S28)."""
