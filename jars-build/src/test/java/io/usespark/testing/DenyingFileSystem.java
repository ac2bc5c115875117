package io.usespark.testing;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.URI;
import java.nio.file.FileAlreadyExistsException;
import java.util.concurrent.CountDownLatch;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.util.Progressable;

/**
 * The local file system under {@code deny://}, which on demand denies writes, fails after them, or does not answer.
 *
 * <p>File permissions would not do: tests may run as root, whom they do not stop.
 */
public final class DenyingFileSystem extends RawLocalFileSystem {
  private static final URI ROOT = URI.create("deny:///");

  private static volatile String denied;
  private static volatile String failing;
  private static volatile String existing;
  private static volatile String silent;
  private static volatile CountDownLatch answers = new CountDownLatch(0);

  /** Denies every write to a path that contains the text; null allows all again. */
  public static void deny(String text) {
    denied = text;
  }

  /** Lets renames to a path that contains the text succeed and then throws; null stops that. */
  public static void failAfterRename(String text) {
    failing = text;
  }

  /**
   * Lets renames to a path that contains the text succeed and then says that the path existed, as a store does that
   * tries again after a lost answer; null stops that.
   */
  public static void existAfterRename(String text) {
    existing = text;
  }

  /** Lets questions about files whose path contains the text wait until it is called again; null answers all. */
  public static void beSilent(String text) {
    CountDownLatch waiting = answers;
    silent = text;
    answers = new CountDownLatch(1);
    waiting.countDown();
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    awaitAnswer(path);
    return super.getFileStatus(path);
  }

  @Override
  public boolean exists(Path path) throws IOException {
    awaitAnswer(path);
    return super.exists(path);
  }

  @Override
  public String getScheme() {
    return "deny";
  }

  @Override
  public URI getUri() {
    return ROOT;
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
    check("create", path);
    return super.create(path, permission, overwrite, bufferSize, replication, blockSize, progress);
  }

  @Override
  public FSDataOutputStream create(
      Path path, boolean overwrite, int bufferSize, short replication, long blockSize, Progressable progress)
      throws IOException {
    check("create", path);
    return super.create(path, overwrite, bufferSize, replication, blockSize, progress);
  }

  @Override
  public boolean mkdirs(Path path) throws IOException {
    check("mkdirs", path);
    return super.mkdirs(path);
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    check("rename", to);
    boolean done = super.rename(from, to);
    String text = failing;
    if (text != null && to.toString().contains(text)) {
      throw new IOException("The connection was lost after renaming to " + to);
    }
    text = existing;
    if (text != null && to.toString().contains(text)) {
      throw new FileAlreadyExistsException(to.toString());
    }
    return done;
  }

  @Override
  public boolean delete(Path path, boolean recursive) throws IOException {
    check("delete", path);
    return super.delete(path, recursive);
  }

  private static void awaitAnswer(Path path) throws IOException {
    String text = silent;
    if (text != null && path.toString().contains(text)) {
      try {
        answers.await();
      } catch (InterruptedException error) {
        throw new InterruptedIOException(error.getMessage());
      }
    }
  }

  private static void check(String operation, Path path) throws IOException {
    String text = denied;
    if (text != null && path.toString().contains(text)) {
      throw new AccessControlException("Permission denied: " + operation + " " + path);
    }
  }
}
