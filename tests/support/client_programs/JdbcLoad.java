import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Many JDBC clients at once, each with a connection of its own, for a number of seconds.
 *
 * <p>The arguments are the number of clients and the seconds. Standard input has the statements: a name, a tab and the
 * SQL, one a line. The rows of a name that begins with "=" must be the same each time. Each statement that a client runs
 * gives a line: the name, the milliseconds, and what failed.
 */
public class JdbcLoad {
  private static final Map<String, String> ANSWERS = new ConcurrentHashMap<>();

  public static void main(String[] arguments) throws Exception {
    int clients = Integer.parseInt(arguments[0]);
    long end = System.nanoTime() + (long) (Double.parseDouble(arguments[1]) * 1e9);
    List<String[]> statements = new ArrayList<>();
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) statements.add(line.split("\t", 2));
    List<Thread> threads = new ArrayList<>();
    for (int client = 0; client < clients; client++) {
      Random random = new Random(client);
      threads.add(new Thread(() -> work(statements, random, end)));
    }
    for (Thread thread : threads) thread.start();
    for (Thread thread : threads) thread.join();
  }

  private static void work(List<String[]> statements, Random random, long end) {
    String url = System.getenv("URL");
    try (Connection connection = DriverManager.getConnection(url, "tester", System.getenv("TOKEN"))) {
      while (System.nanoTime() < end) {
        String[] statement = statements.get(random.nextInt(statements.size()));
        long started = System.nanoTime();
        String problem = problem(connection, statement[0], statement[1]);
        System.out.println(statement[0] + "\t" + (System.nanoTime() - started) / 1_000_000 + "\t" + problem);
      }
    } catch (SQLException error) {
      System.out.println("connection\t0\t" + oneLine(error));
    }
  }

  private static String problem(Connection connection, String name, String sql) {
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery(sql)) {
      String answer = textOf(rows);
      if (!name.startsWith("=")) return "";
      String first = ANSWERS.putIfAbsent(name, answer);
      return first == null || first.equals(answer) ? "" : "another answer: " + answer + " in place of " + first;
    } catch (SQLException error) {
      return oneLine(error);
    }
  }

  private static String textOf(ResultSet rows) throws SQLException {
    StringBuilder text = new StringBuilder();
    int columns = rows.getMetaData().getColumnCount();
    while (rows.next()) {
      for (int column = 1; column <= columns; column++) text.append(rows.getString(column)).append(' ');
    }
    return text.toString().trim();
  }

  private static String oneLine(SQLException error) {
    return String.valueOf(error.getMessage()).replaceAll("\\s+", " ");
  }
}
