// The shim compiles against the jars that pip already brought (Spark) and the Delta jars that build_shim.py fetches:
// Spark is never downloaded a second time. Run build_shim.py, which sets the properties, rather than sbt itself.

def given(key: String): String =
  sys.props
    .get(key)
    .orElse(sys.env.get(key.toUpperCase.replace('.', '_')))
    .getOrElse(sys.error(s"set -D$key (build_shim.py does)"))

ThisBuild / scalaVersion := "2.13.18"
ThisBuild / version := given("use.version")

lazy val shim = (project in file("."))
  .settings(
    name := "use-shim",
    crossPaths := false,
    // Spark's and Delta's jars hold the Scala library too, in the version they were built with.
    autoScalaLibrary := false,
    Compile / unmanagedJars ++= Seq("use.spark.jars", "use.delta.jars").flatMap(key =>
      (file(given(key)) * "*.jar").classpath
    ),
    Test / unmanagedJars := (Compile / unmanagedJars).value,
    scalacOptions ++= Seq("-release", "17", "-encoding", "UTF-8", "-deprecation", "-feature", "-unchecked", "-Xlint"),
    javacOptions ++= Seq("--release", "17", "-encoding", "UTF-8", "-Xlint:all,-processing,-path,-classfile"),
    Compile / doc / sources := Nil,
    Compile / packageBin / artifactPath := target.value / "use-shim.jar",
    // What only tests need (a file system that fails on demand, for one) goes to a jar of its own and is never shipped.
    Test / packageBin / artifactPath := target.value / "use-shim-test.jar"
  )
