"""The component for the declared dimensions and facts."""
