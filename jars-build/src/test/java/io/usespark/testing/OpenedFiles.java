package io.usespark.testing;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;

/** Which files tasks have opened, with the descriptions of their jobs. */
public final class OpenedFiles {
  private static volatile Queue<String> opened = null;

  private OpenedFiles() {}

  /** Begins to take notes. */
  public static void start() {
    opened = new ConcurrentLinkedQueue<>();
  }

  /** Ends it; each note is a description, a tab and a path. */
  public static List<String> stop() {
    List<String> all = new ArrayList<>(opened);
    opened = null;
    return all;
  }

  static void add(Path path) {
    Queue<String> notes = opened;
    TaskContext task = TaskContext.get();
    if (notes != null && task != null) {
      notes.add(task.getLocalProperty("spark.job.description") + "\t" + path.toUri().getPath());
    }
  }
}
