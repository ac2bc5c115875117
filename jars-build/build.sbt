// Only the formatter uses sbt: build_shim.py compiles with the compiler inside Spark.
ThisBuild / scalaVersion := "2.13.18"

lazy val shim = (project in file(".")).settings(
  Compile / unmanagedSourceDirectories ++= (baseDirectory.value / "src" / "main" * "scala-*").get()
)
