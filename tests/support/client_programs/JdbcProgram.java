import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** A JDBC client: requests and answers are JSON, one a line. */
public class JdbcProgram {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static volatile PreparedStatement statement;

  public static void main(String[] arguments) throws Exception {
    String url = System.getenv("URL");
    try (Connection connection = DriverManager.getConnection(url, "tester", System.getenv("TOKEN"))) {
      answer(Map.of("rows", List.of()));
      BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = requests.readLine(); line != null; line = requests.readLine()) {
        JsonNode request = JSON.readTree(line);
        if (request.get("do").asText().equals("cancel")) {
          statement.cancel();
        } else {
          new Thread(() -> attend(connection, request)).start();
        }
      }
    } catch (SQLException error) {
      failed(error);
    }
  }

  private static void attend(Connection connection, JsonNode request) {
    try {
      answer(Map.of("rows", rowsOf(connection, request)));
    } catch (SQLException error) {
      failed(error);
    }
  }

  private static List<List<Object>> rowsOf(Connection connection, JsonNode request) throws SQLException {
    DatabaseMetaData known = connection.getMetaData();
    switch (request.get("do").asText()) {
      case "schemas":
        return all(known.getSchemas());
      case "tables":
        return all(known.getTables(null, "default", request.get("pattern").asText(), null));
      case "columns":
        return all(known.getColumns(null, "default", request.get("pattern").asText(), null));
      default:
        return run(connection, request);
    }
  }

  private static List<List<Object>> run(Connection connection, JsonNode request) throws SQLException {
    try (PreparedStatement prepared = connection.prepareStatement(request.get("sql").asText())) {
      statement = prepared;
      int number = 1;
      for (JsonNode value : request.get("parameters")) {
        if (value.isBoolean()) prepared.setBoolean(number++, value.asBoolean());
        else if (value.isInt()) prepared.setInt(number++, value.asInt());
        else if (value.isDouble()) prepared.setDouble(number++, value.asDouble());
        else prepared.setString(number++, value.asText());
      }
      if (request.path("seconds").asInt() > 0) prepared.setQueryTimeout(request.get("seconds").asInt());
      return prepared.execute() ? all(prepared.getResultSet()) : List.of();
    }
  }

  private static List<List<Object>> all(ResultSet results) throws SQLException {
    List<List<Object>> rows = new ArrayList<>();
    int columns = results.getMetaData().getColumnCount();
    while (results.next()) {
      List<Object> row = new ArrayList<>();
      for (int i = 1; i <= columns; i++) {
        Object value = results.getObject(i);
        row.add(value == null || value instanceof Number || value instanceof Boolean ? value : value.toString());
      }
      rows.add(row);
    }
    return rows;
  }

  private static void failed(SQLException error) {
    Map<String, Object> told = new TreeMap<>();
    told.put("error", String.valueOf(error.getMessage()));
    told.put("sql_state", error.getSQLState());
    answer(told);
  }

  private static synchronized void answer(Object what) {
    try {
      System.out.println(JSON.writeValueAsString(what));
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }
}
