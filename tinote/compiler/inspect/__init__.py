"""Views of a compilation: its stages, remarks, schedules, observed values, costs and versions."""
