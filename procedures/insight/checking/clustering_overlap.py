"""Overlap of the ranges of files in one column, computed by a sweep with Spark's window functions."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

# As in Snowflake's histogram: single depths up to 16, then classes of doubling width.
_SINGLE_DEPTHS = 16


@dataclass(frozen=True)
class Overlap:
    """Overlap of files in one column. A file without a known range may contain any value and counts everywhere.

    Attributes:
        unknown_files: files without a range.
        constant_files: files with a single value.
        average_overlaps: average number of other files whose range overlaps a file's range.
        max_overlaps: maximum of these numbers.
        average_depth: average number of files at the deepest point of a file's range, including the file itself.
        max_depth: maximum of these numbers.
        histogram: upper bound of a depth class to the number of files in it.
    """

    unknown_files: int
    constant_files: int
    average_overlaps: float
    max_overlaps: int
    average_depth: float
    max_depth: int
    histogram: dict[int, int]


def overlap_of(ranges: DataFrame) -> Overlap:
    """Measures the overlap; the driver collects only aggregates.

    Args:
        ranges: one row per file: ``path``, ``low`` and ``high`` of an ordered type, ``empty`` BOOLEAN: all values are
            null. A file with neither limits nor ``empty`` has no known range.
    """
    known = ranges.where("low IS NOT NULL AND high IS NOT NULL")
    counts = ranges.agg(
        F.count_if(~F.col("empty") & (F.col("low").isNull() | F.col("high").isNull())).alias("unknown"),
        F.count_if(F.col("low").isNotNull() & F.col("high").isNotNull()).alias("known"),
        F.count_if(F.col("low") == F.col("high")).alias("constant"),
    ).collect()[0]
    unknown = counts.unknown
    if not counts.known:
        others = max(unknown - 1, 0)
        return Overlap(unknown, 0, float(others), others, float(unknown), unknown, {})
    depths = _depths(known, counts.known).select(
        (F.col("overlaps") + F.lit(unknown)).alias("overlaps"), (F.col("depth") + F.lit(unknown)).alias("depth")
    )
    facts = depths.agg(
        F.avg("overlaps").alias("average_overlaps"),
        F.max("overlaps").alias("max_overlaps"),
        F.avg("depth").alias("average_depth"),
        F.max("depth").alias("max_depth"),
    ).collect()[0]
    classes = depths.groupBy(_depth_class(F.col("depth")).alias("bound")).count().orderBy("bound").collect()
    return Overlap(
        unknown,
        counts.constant,
        facts.average_overlaps,
        facts.max_overlaps,
        facts.average_depth,
        facts.max_depth,
        {int(r.bound): int(r["count"]) for r in classes},
    )


def _depth_class(depth: Column) -> Column:
    doubled = F.pow(F.lit(2), F.ceil(F.log2(depth.cast("double"))))
    return F.when(depth <= _SINGLE_DEPTHS, depth).otherwise(doubled.cast("bigint"))


def _depths(known: DataFrame, count: int) -> DataFrame:
    """Returns overlaps and depth of each file.

    The depth of a range is the largest number of ranges that contain one of its points. The maximum is at the start of
    a range. With ranges numbered by their start, the depth is a maximum over an interval of numbers. Two intervals
    whose length is a power of two cover any interval; their maxima are computed by doubling.
    """
    starts = known.select("path", F.col("low").alias("value"), F.lit(0).alias("kind"))
    ends = known.select("path", F.col("high").alias("value"), F.lit(1).alias("kind"))
    # Ranges are closed: at one value, starts come before ends.
    order = Window.orderBy("value", "kind", "path").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    swept = starts.unionByName(ends).select(
        "path",
        "kind",
        F.sum(1 - F.col("kind")).over(order).alias("started"),
        F.sum("kind").over(order).alias("ended"),
    )
    files = swept.groupBy("path").agg(
        F.max(F.when(F.col("kind") == 0, F.col("started") - 1)).alias("first"),
        F.max(F.when(F.col("kind") == 0, F.col("started") - F.col("ended"))).alias("active"),
        F.max(F.when(F.col("kind") == 0, F.col("ended"))).alias("ended_before"),
        F.max(F.when(F.col("kind") == 1, F.col("started"))).alias("started_by_end"),
    )
    by_start = Window.orderBy("first")
    stretches = files.withColumn("s0", F.col("active"))
    levels = count.bit_length()
    for level in range(1, levels):
        ahead = F.lead(f"s{level - 1}", 1 << (level - 1)).over(by_start)
        stretches = stretches.withColumn(f"s{level}", F.greatest(f"s{level - 1}", ahead))
    stretches = stretches.select(
        "first", "ended_before", "started_by_end", F.array(*[f"s{level}" for level in range(levels)]).alias("deepest")
    )
    length = F.col("started_by_end") - F.col("first")
    fitting = (F.length(F.bin(length)) - 1).cast("int")
    with_intervals = stretches.withColumn("level", fitting).withColumn(
        "second", F.expr("started_by_end - shiftleft(1L, level)")
    )
    other = stretches.select(F.col("first").alias("second"), F.col("deepest").alias("second_deepest"))
    return with_intervals.join(other, "second").select(
        (F.col("started_by_end") - F.col("ended_before") - 1).alias("overlaps"),
        F.greatest(
            F.element_at("deepest", F.col("level") + 1), F.element_at("second_deepest", F.col("level") + 1)
        ).alias("depth"),
    )
