"""Mathematics and on-disk format of the OTree index: cubes, weights, revisions, trees and packing, without Spark."""
