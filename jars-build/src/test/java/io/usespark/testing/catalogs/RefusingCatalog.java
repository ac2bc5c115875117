package io.usespark.testing.catalogs;

import io.usespark.UseDeltaCatalog;
import java.util.Set;
import org.apache.hadoop.security.AccessControlException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;

/** A catalog of a deployment, which refuses some tables to the users of a session, or hides them. */
@SuppressWarnings("overrides")
public class RefusingCatalog extends UseDeltaCatalog {
  /** What begins the names of tables that are refused, of those that are hidden, and of those that may only be read. */
  private static final String REFUSED = "refused_", HIDDEN = "hidden_", READABLE = "readable_";

  @Override
  public Table loadTable(Identifier identifier) {
    check(identifier);
    return super.loadTable(identifier);
  }

  @Override
  public Table loadTable(Identifier identifier, Set<TableWritePrivilege> privileges) {
    check(identifier);
    if (identifier.name().startsWith(READABLE)) refuse(identifier);
    return super.loadTable(identifier, privileges);
  }

  private static void check(Identifier identifier) {
    if (identifier.name().startsWith(REFUSED)) refuse(identifier);
    if (identifier.name().startsWith(HIDDEN)) throw RefusingCatalog.<RuntimeException>raised(new NoSuchTableException(identifier));
  }

  private static void refuse(Identifier identifier) {
    throw RefusingCatalog.<RuntimeException>raised(new AccessControlException("no rights on " + identifier.name()));
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> RuntimeException raised(Throwable error) throws T {
    throw (T) error;
  }
}
