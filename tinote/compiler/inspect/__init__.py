"""What people look at of a compilation: stages, remarks, schedules, observed values, costs, versions."""
