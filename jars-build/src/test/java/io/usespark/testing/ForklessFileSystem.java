package io.usespark.testing;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local file system without processes of its own.
 *
 * <p>Without Hadoop's native library, each file that is created starts {@code chmod} and each rename starts {@code
 * readlink} four times: ten processes for a commit of Delta, which take longer than the commit.
 *
 * <p>It knows which files are opened, see {@link OpenedFiles}.
 */
public final class ForklessFileSystem extends LocalFileSystem {
  public ForklessFileSystem() {
    super(new Raw());
  }

  /** The same for {@code FileContext}. */
  public static final class Abstract extends ChecksumFs {
    /** Called by Hadoop. */
    public Abstract(URI ignored, Configuration configuration) throws IOException, URISyntaxException {
      super(new AbstractRaw(configuration));
    }
  }

  private static final class AbstractRaw extends DelegateToFileSystem {
    AbstractRaw(Configuration configuration) throws IOException, URISyntaxException {
      super(FsConstants.LOCAL_FS_URI, new Raw(), configuration, FsConstants.LOCAL_FS_URI.getScheme(), false);
    }

    @Override
    public int getUriDefaultPort() {
      return -1;
    }
  }

  private static final class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      Set<PosixFilePermission> granted = EnumSet.noneOf(PosixFilePermission.class);
      // The values are in the order of the bits, the highest first.
      for (PosixFilePermission one : PosixFilePermission.values()) {
        if ((permission.toShort() >> (8 - one.ordinal()) & 1) == 1) {
          granted.add(one);
        }
      }
      Files.setPosixFilePermissions(pathToFile(path).toPath(), granted);
    }

    @Override
    public FSDataInputStream open(Path path, int bufferSize) throws IOException {
      OpenedFiles.add(path);
      return super.open(path, bufferSize);
    }

    @Override
    public FileStatus getFileLinkStatus(Path path) throws IOException {
      return Files.isSymbolicLink(pathToFile(path).toPath()) ? super.getFileLinkStatus(path) : getFileStatus(path);
    }
  }
}
