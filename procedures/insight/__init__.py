"""What a table, its queries and its layout tell: health, reports, estimates, checks."""
