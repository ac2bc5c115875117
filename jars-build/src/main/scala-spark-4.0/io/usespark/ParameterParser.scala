package io.usespark

import org.apache.spark.sql.catalyst.parser.ParserInterface

/** Delta's parser; Spark 4.0 binds parameters after parsing. */
object ParameterParser {
  def of(delta: ParserInterface): ParserInterface = delta
}
