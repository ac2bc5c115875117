"""The JDBC/ODBC server and Spark Connect inside the attached driver."""
