package io.usespark

import io.delta.sql.DeltaSparkSessionExtension
import io.usespark.read.SmallFileLists
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.delta.usespark.SmallLogs

/** `spark.sql.extensions`: everything that Delta's extension does, then ours. */
class UseSessionExtension extends DeltaSparkSessionExtension {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    UnclosedClassLoader.install()
    // Before the rule of Delta's that drops the provider.
    extensions.injectResolutionRule(_ => new LikeUsingQbeast)
    super.apply(extensions)
    extensions.injectParser { (_, delta) =>
      // Made with every session, on the thread that opens it.
      UnclosedClassLoader.install()
      ParameterParser.of(delta)
    }
    // Rules for hints run before Spark looks relations up.
    extensions.injectHintResolutionRule(session => VirtualTablesOfViews(session))
    extensions.injectPostHocResolutionRule(session => IndexedWriteRules(session))
    extensions.injectPostHocResolutionRule(session => UnknownVirtualTables(session))
    extensions.injectPostHocResolutionRule(session => TablesOfOtherFormats(session))
    extensions.injectPostHocResolutionRule(session => ReadOnlyTables(session))
    extensions.injectOptimizerRule(session => SmallLogs(session))
    extensions.injectOptimizerRule(session => SampleRule(session))
    extensions.injectPlannerStrategy(session => StatementStrategy(session))
    extensions.injectPlannerStrategy(_ => SmallFileLists)
    extensions.injectPreCBORule(session => ReplaceFileIndex(session))
    extensions.injectQueryStagePrepRule(session => ShuffledKeys(session))
    extensions.injectQueryStageOptimizerRule(session => JoinPruning(session))
  }
}
