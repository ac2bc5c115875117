"""The state of a table outside its log: leases, suspensions, plans, and the schedules of the service."""
