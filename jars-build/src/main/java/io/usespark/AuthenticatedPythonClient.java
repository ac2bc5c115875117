package io.usespark;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.concurrent.TimeUnit;
import javax.net.SocketFactory;
import py4j.CallbackClient;
import py4j.ClientServerConnection;
import py4j.Gateway;
import py4j.GatewayServer;
import py4j.Py4JClientConnection;
import py4j.Py4JException;
import py4j.Py4JPythonClient;
import py4j.PythonClient;

/**
 * Connects to Python's callback server and starts every connection with the server's token.
 *
 * <p>Py4J's own client loses its token when PySpark tells it the server's port.
 */
final class AuthenticatedPythonClient extends PythonClient {
  private static final int ATTEMPTS = 8;
  private static final long FIRST_PAUSE_MILLIS = 10;

  private final GatewayServer server;

  private AuthenticatedPythonClient(GatewayServer server, InetAddress address, int port, String token) {
    super(
        server.getGateway(),
        server.getCustomCommands(),
        port,
        address,
        CallbackClient.DEFAULT_MIN_CONNECTION_TIME,
        TimeUnit.SECONDS,
        SocketFactory.getDefault(),
        server,
        true,
        0,
        token);
    this.server = server;
  }

  /** Makes all callbacks of the gateway use this client from now on. */
  static void install(GatewayServer server, int port, String token) {
    try {
      InetAddress address = InetAddress.getByName("127.0.0.1");
      // The gateway has no setter: resetCallbackClient copies the present client, without its token.
      Field client = Gateway.class.getDeclaredField("cbClient");
      client.setAccessible(true);
      client.set(server.getGateway(), new AuthenticatedPythonClient(server, address, port, token));
    } catch (ReflectiveOperationException | UnknownHostException error) {
      throw new IllegalStateException("This version of Py4J is not supported: " + error, error);
    }
  }

  /** Opens connections again when another process of this machine floods the port of the server. */
  @Override
  protected Py4JClientConnection getConnectionLock() {
    long pause = FIRST_PAUSE_MILLIS;
    for (int attempt = 1; attempt < ATTEMPTS; attempt++) {
      try {
        return withoutDelay(super.getConnectionLock());
      } catch (Py4JException error) {
        if (!(error.getCause() instanceof IOException)) throw error;
      }
      try {
        Thread.sleep(pause);
      } catch (InterruptedException interrupt) {
        Thread.currentThread().interrupt();
        break;
      }
      pause *= 2;
    }
    return withoutDelay(super.getConnectionLock());
  }

  /**
   * Sends the parts of a request as they come. Py4J writes 8 KiB at a time; otherwise the second part would wait until Python
   * has acknowledged the first, which takes 40 ms. A thread of Python keeps its connection, which Spark has opened.
   */
  private static Py4JClientConnection withoutDelay(Py4JClientConnection connection) {
    Socket socket = ((ClientServerConnection) connection).getSocket();
    try {
      if (socket != null) socket.setTcpNoDelay(true);
    } catch (SocketException closed) {
      // Whoever uses it next finds out.
    }
    return connection;
  }

  /** Keeps the token: callbacks to a server that does not ask for it fail. */
  @Override
  public Py4JPythonClient copyWith(InetAddress address, int port) {
    return new AuthenticatedPythonClient(server, address, port, authToken);
  }
}
