package io.usespark;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import javax.security.sasl.AuthenticationException;
import org.apache.hive.service.auth.PasswdAuthenticationProvider;

/**
 * Lets those into the JDBC server who give its token as their password, whatever their name.
 *
 * <p>The server makes an instance for each connection and names this class in its settings; only a digest of the token
 * is kept. It is set through the instance of the companion below, which SQL's {@code java_method} does not reach.
 */
public final class TokenAuthentication implements PasswdAuthenticationProvider {
  private static final Secret SECRET = new Secret();

  /** What tokens are compared with. */
  public static Secret secret() {
    return SECRET;
  }

  @Override
  public void Authenticate(String user, String password) throws AuthenticationException {
    if (!SECRET.is(password)) {
      throw new AuthenticationException("The token is missing or wrong: give it as the password.");
    }
  }

  /** The digest of the token; nobody is let in before it is set. */
  public static final class Secret {
    private volatile byte[] digest;

    private Secret() {}

    public void set(String token) {
      digest = digestOf(token);
    }

    boolean is(String token) {
      // Digests have one length: the time that it takes tells nothing about the token.
      return digest != null && token != null && MessageDigest.isEqual(digest, digestOf(token));
    }

    private static byte[] digestOf(String token) {
      try {
        return MessageDigest.getInstance("SHA-256").digest(token.getBytes(StandardCharsets.UTF_8));
      } catch (NoSuchAlgorithmException error) {
        throw new IllegalStateException(error);
      }
    }
  }
}
