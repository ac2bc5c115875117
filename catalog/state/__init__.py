"""Small files and facts beside a table: leases, suspensions, what the service knows."""
