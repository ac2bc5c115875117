"""Blocks of files as DataFrames: one row per block, and what is computed of them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from otree.cube_map import CubeMap
from otree.revision import Revision
from otree.tree import CubeState

BLOCKS_SCHEMA = "array<struct<cubeId:string,minWeight:int,maxWeight:int,elementCount:bigint>>"


def block_rows(files: DataFrame) -> DataFrame:
    """The blocks of files, as ``TableSnapshot.blocks`` gives them.

    Args:
        files: rows of ``TableSnapshot.files``.
    """
    return files.select(
        "revision", "path", "deletion_vector", "size", "write_id", F.explode("blocks").alias("block")
    ).select(
        "revision",
        "path",
        "deletion_vector",
        "size",
        "write_id",
        F.col("block.cubeId").alias("cube_id"),
        F.col("block.minWeight").alias("min_weight"),
        F.col("block.maxWeight").alias("max_weight"),
        F.col("block.elementCount").alias("element_count"),
    )


def states_of(blocks: DataFrame, revision: Revision, *, largest: bool = False) -> CubeMap[CubeState]:
    """The tree that blocks of a revision make; see ``TableSnapshot.cube_states``.

    Args:
        blocks: as ``TableSnapshot.blocks`` gives them.
        revision: their revision.
        largest: see ``TableSnapshot.cube_states``.
    """
    threshold = F.max("max_weight") if largest else F.min("max_weight")
    rows = (
        blocks.groupBy("cube_id").agg(threshold.alias("max_weight"), F.sum("element_count").alias("elements")).collect()
    )
    return CubeMap(revision.dimensions, {r.cube_id: CubeState(r.max_weight, r.elements) for r in rows})


def file_levels(blocks: DataFrame) -> DataFrame:
    """The level of each file, by its largest block; the blocks of one cube and one write count as one block.

    Args:
        blocks: as ``TableSnapshot.blocks`` gives them.

    Returns:
        path STRING, level INT; no row for a file whose blocks are all empty.
    """
    blocks = blocks.where("element_count > 0")
    per_write = blocks.groupBy("revision", "cube_id", "write_id").agg(F.sum("element_count").alias("of_write"))
    return (
        blocks.join(per_write, ["revision", "cube_id", "write_id"])
        .groupBy("path")
        .agg(level_column(F.max("of_write")).alias("level"))
    )


def level_column(element_count: Column) -> Column:
    """floor(log10(count)) in exact integer arithmetic: the number of decimal digits less one."""
    return F.greatest(F.length(element_count.cast("string")) - 1, F.lit(0))
