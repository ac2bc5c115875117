package io.usespark.testing;

import java.io.EOFException;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * The local file system, counting what an object store would be asked for.
 *
 * <p>A read that begins where the last one of the same stream ended belongs to the same request; any other is a request
 * of its own. So the counts depend neither on buffers nor on the table format, and Spark's input metrics, which miss the
 * reads of drivers and of some formats, are not needed. Paths outside of the root do not count, and there are no
 * checksum files.
 */
public final class CountingFileSystem extends LocalFileSystem {
  // Whether a request is under way: what the local file system asks itself for its sake is no request of its own.
  private static final ThreadLocal<Boolean> ASKING = ThreadLocal.withInitial(() -> false);
  private static final Map<String, LongAdder> COUNTS = new ConcurrentHashMap<>();
  private static volatile String root = null;

  public CountingFileSystem() {
    super(new Raw());
    setVerifyChecksum(false);
    setWriteChecksum(false);
  }

  /** Counts below a folder only, from now on. */
  public static void start(String folder) {
    COUNTS.clear();
    root = folder;
  }

  /** The counts so far; a name is a kind of file ("data" or "log"), a point, and what was counted. */
  public static Map<String, Long> counts() {
    Map<String, Long> counts = new TreeMap<>();
    COUNTS.forEach((name, count) -> counts.put(name, count.sum()));
    return counts;
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    return getRawFileSystem().open(path, bufferSize);
  }

  private interface Request<T> {
    T answer() throws IOException;
  }

  private static <T> T ask(Path path, String what, Request<T> request) throws IOException {
    if (ASKING.get()) {
      return request.answer();
    }
    if (!what.isEmpty()) {
      count(path, what, 1);
    }
    ASKING.set(true);
    try {
      return request.answer();
    } finally {
      ASKING.set(false);
    }
  }

  private static void count(Path path, String what, long amount) {
    String folder = root;
    String name = path.toUri().getPath();
    if (folder != null && name.startsWith(folder)) {
      COUNTS.computeIfAbsent(kind(name) + "." + what, ignored -> new LongAdder()).add(amount);
    }
  }

  private static String kind(String name) {
    boolean isLog =
        name.contains("/_delta_log") || name.contains("/_use/") || name.contains("/metadata/") || name.contains("/.hoodie");
    return isLog || !name.endsWith(".parquet") ? "log" : "data";
  }

  private static final class Raw extends RawLocalFileSystem {
    // Hadoop starts a process for it, and no object store has permissions.
    @Override
    public void setPermission(Path path, FsPermission permission) {}

    @Override
    public FSDataInputStream open(Path path, int bufferSize) throws IOException {
      // The first read is the request.
      return ask(path, "", () -> new FSDataInputStream(new CountedReads(path, super.open(path, bufferSize))));
    }

    @Override
    public FSDataOutputStream create(
        Path path, boolean overwrite, int bufferSize, short replication, long blockSize, Progressable progress)
        throws IOException {
      return ask(
          path,
          "puts",
          () -> counted(path, super.create(path, overwrite, bufferSize, replication, blockSize, progress)));
    }

    @Override
    public FSDataOutputStream create(
        Path path,
        FsPermission permission,
        boolean overwrite,
        int bufferSize,
        short replication,
        long blockSize,
        Progressable progress)
        throws IOException {
      return ask(
          path,
          "puts",
          () -> counted(path, super.create(path, overwrite, bufferSize, replication, blockSize, progress)));
    }

    private static FSDataOutputStream counted(Path path, OutputStream out) throws IOException {
      return new FSDataOutputStream(new CountedWrites(path, out), null);
    }

    @Override
    public FileStatus[] listStatus(Path path) throws IOException {
      return ask(path, "lists", () -> super.listStatus(path));
    }

    @Override
    public FileStatus getFileStatus(Path path) throws IOException {
      return ask(path, "heads", () -> super.getFileStatus(path));
    }

    @Override
    public boolean rename(Path from, Path to) throws IOException {
      return ask(to, "renames", () -> super.rename(from, to));
    }

    @Override
    public boolean delete(Path path, boolean recursive) throws IOException {
      return ask(path, "deletes", () -> super.delete(path, recursive));
    }
  }

  private static final class CountedWrites extends FilterOutputStream {
    private final Path path;

    CountedWrites(Path path, OutputStream out) {
      super(out);
      this.path = path;
    }

    @Override
    public void write(int one) throws IOException {
      out.write(one);
      count(path, "bytes_written", 1);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      out.write(bytes, offset, length);
      count(path, "bytes_written", length);
    }
  }

  private static final class CountedReads extends FSInputStream {
    private final Path path;
    private final FSDataInputStream in;
    private long position = 0;
    private long end = -1;

    CountedReads(Path path, FSDataInputStream in) {
      this.path = path;
      this.in = in;
    }

    @Override
    public synchronized int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public synchronized int read(byte[] bytes, int offset, int length) throws IOException {
      int read = read(position, bytes, offset, length);
      position += Math.max(read, 0);
      return read;
    }

    @Override
    public synchronized int read(long at, byte[] bytes, int offset, int length) throws IOException {
      in.seek(at);
      int read = in.read(bytes, offset, length);
      if (read > 0) {
        count(path, "gets", at == end ? 0 : 1);
        count(path, "bytes_read", read);
        end = at + read;
      }
      return read;
    }

    @Override
    public synchronized void seek(long target) throws IOException {
      if (target < 0) {
        throw new EOFException("seek before the file: " + target);
      }
      position = target;
    }

    @Override
    public synchronized long getPos() {
      return position;
    }

    @Override
    public boolean seekToNewSource(long target) {
      return false;
    }

    @Override
    public synchronized int available() throws IOException {
      in.seek(position);
      return in.available();
    }

    @Override
    public void close() throws IOException {
      in.close();
    }
  }
}
