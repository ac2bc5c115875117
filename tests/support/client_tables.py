"""Tables that clients of a server work on, and what a connection sees of them."""

from sql_clients import Client

# Places in the rows of `use.optimize`.
STATE = 3
MESSAGE = 11
# So many that a run over them is stopped before its end, however fast the machine is.
MANY = 40


def many_files(onlooker: Client, name: str, files: int = MANY) -> str:
    """Makes a table of this many unindexed files, and returns the call that indexes them one by one."""
    onlooker.run(
        f"CREATE TABLE {name} (id BIGINT, x DOUBLE) USING delta TBLPROPERTIES ('use.index.columns' = 'id,x', "
        "'use.index.cubeSize' = '1000')"
    )
    onlooker.run(f"INSERT INTO {name} SELECT /*+ REPARTITION({files}) */ id, rand(1) FROM range({files * 100})")
    return f"CALL use.optimize('{name}', strategy => 'UnindexedFiles', options => map('batch_bytes', '1'))"


def checksum(onlooker: Client, name: str) -> tuple:
    return onlooker.run(f"SELECT count(*), sum(xxhash64(id, x) % 1000003) FROM {name}")[0]


def committed(onlooker: Client, name: str) -> int:
    return int(onlooker.run(f"SELECT count(*) FROM {name}.optimizations WHERE state = 'committed'")[0][0])


def running(onlooker: Client, name: str) -> bool:
    return any(row[1] == "running" for row in onlooker.run(f"CALL use.status('{name}')"))
