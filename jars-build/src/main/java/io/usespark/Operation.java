package io.usespark;

import java.util.Set;

/**
 * A question that the shim asks of Python: its name and the keys of its arguments.
 *
 * <p>Python declares the same operations in {@code sql_ext/bridge_operations.py}; a test of the Python package compares
 * the two. Constants, not methods: SQL's {@code java_method} reaches static methods.
 */
public final class Operation {
  public static final Operation CALL = new Operation("call", "name", "arguments");
  public static final Operation UNKNOWN_PROCEDURE = new Operation("unknown_procedure", "name");
  public static final Operation VIRTUAL_TABLE = new Operation("virtual_table", "table", "kind");
  public static final Operation SYSTEM_TABLE = new Operation("system_table", "kind", "columns");
  public static final Operation CHECK_TABLE = new Operation("check_table", "table");
  public static final Operation CHECK_VIRTUAL_TABLE = new Operation("check_virtual_table", "table", "name");
  public static final Operation CHECK_VERSION = new Operation("check_version", "table", "version");
  public static final Operation PLAN_SAMPLE = new Operation("plan_sample", "configuration", "lower", "upper", "settings");
  public static final Operation PLAN_READ = new Operation("plan_read", "configuration", "conditions", "settings");
  public static final Operation KEY_LIMITS = new Operation("key_limits", "settings");
  public static final Operation PLAN_KEY_JOB =
      new Operation("plan_key_job", "scan_bytes", "side_bytes", "one_key_share", "settings");
  public static final Operation CHECK_SETTING = new Operation("check_setting", "name", "value");
  public static final Operation CHECK_METADATA = new Operation("check_metadata", "before", "after", "inherited");
  public static final Operation CHECK_DATABASE = new Operation("check_database", "properties");
  public static final Operation CHECK_OTHER_FORMAT =
      new Operation("check_other_format", "table", "provider", "properties");
  public static final Operation CHECK_OPTIONS = new Operation("check_options", "options", "others", "of_delta");
  public static final Operation INDEX_SETTINGS =
      new Operation(
          "index_settings", "options", "configuration", "schema", "partition_columns", "replaces", "writes");
  public static final Operation WRITE_FILES = new Operation("write_files", "write");
  public static final Operation WRITE_KEPT_ROWS = new Operation("write_kept_rows", "write");
  public static final Operation WRITE_COMMITTED = new Operation("write_committed", "write", "version");
  public static final Operation CATALOG_CHANGED =
      new Operation("catalog_changed", "kind", "name", "before", "location");
  public static final Operation SCANS_RECORDED = new Operation("scans_recorded", "location", "lines");
  public static final Operation MANUAL_TRIGGER = new Operation("manual_trigger", "table", "properties");

  private final String name;
  private final Set<String> keys;

  private Operation(String name, String... keys) {
    this.name = name;
    this.keys = Set.of(keys);
  }

  /** Throws unless these are the keys of the operation. */
  void check(Set<String> arguments) {
    if (!keys.equals(arguments)) {
      throw new IllegalArgumentException(name + " takes the arguments " + keys + ", not " + arguments);
    }
  }

  @Override
  public String toString() {
    return name;
  }
}
