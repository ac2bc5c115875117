package io.qbeast.use.managed.cli;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * The main class that jobs of other optimizers name in {@code spark-submit --class}. It runs {@code use-spark optimize
 * --strategy CubeDefragmentation} with the same flags, in the Python that Spark would use, and ends with its exit code.
 */
public final class CubeDefragmentationCLI {
    private static final String START =
        "import importlib.util, sys\n"
            + "if importlib.util.find_spec('sql_ext') is None:\n"
            + "    sys.exit(f'{sys.executable} has no package use-spark: install it there with pip, or name another "
            + "Python in PYSPARK_PYTHON.')\n"
            + "from sql_ext.commands.command_line import main\n"
            + "main()\n";
    /** Settings of the submitted JVM alone; the command brings the jars of its own session. */
    private static final Set<String> OWN =
        Set.of("spark.app.name", "spark.app.submitTime", "spark.jars", "spark.repl.local.jars", "spark.submit.deployMode",
            "spark.submit.pyFiles");
    private static final int SECONDS_TO_END = 60;

    private CubeDefragmentationCLI() {
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Process command = new ProcessBuilder(command(arguments)).inheritIO().start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> end(command)));
        System.exit(command.waitFor());
    }

    private static List<String> command(String[] arguments) {
        List<String> words = new ArrayList<>(List.of(python(), "-c", START, "optimize"));
        words.add("--strategy=CubeDefragmentation");
        settings().forEach((key, value) -> words.add("--conf=" + key + "=" + value));
        words.addAll(List.of(arguments));
        return words;
    }

    private static String python() {
        String[] named = {
            System.getProperty("spark.pyspark.driver.python"),
            System.getProperty("spark.pyspark.python"),
            System.getenv("PYSPARK_DRIVER_PYTHON"),
            System.getenv("PYSPARK_PYTHON"),
        };
        for (String name : named) {
            if (name != null && !name.isBlank()) {
                return name;
            }
        }
        return "python3";
    }

    /** What {@code spark-submit} was given; it arrives in the system properties. */
    private static Map<String, String> settings() {
        Map<String, String> settings = new TreeMap<>();
        for (String key : System.getProperties().stringPropertyNames()) {
            if (key.startsWith("spark.") && !OWN.contains(key)) {
                settings.put(key, System.getProperty(key));
            }
        }
        return settings;
    }

    /** Lets the command end at the next boundary between groups when this JVM is asked to end. */
    private static void end(Process command) {
        command.destroy();
        try {
            command.waitFor(SECONDS_TO_END, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
