"""A wide table of page views with many strings, after the shape of ClickBench's ``hits``, and a day of small appends.

The first queries filter by counter and time. In the middle of the day they change: from then on they ask for users, and
each system is told to lay the table out for that.
"""

from __future__ import annotations

from pathlib import Path

from peers.workload import Table, Workload
from peers.workloads.history import History, file_bytes, seeded, write_rows

TABLE = Table("hits", "hits.parquet", ("counter_id", "event_time"))
DAYS, HOURS = 30, 24

# Popular values are much more frequent than others, as in real logs.
_VIEWS = """
SELECT TIMESTAMP '2013-07-01' + to_microseconds((({first} + {hours} * random()) * 3600e6)::BIGINT) AS event_time,
    (1000 * pow(random(), 3))::INTEGER AS counter_id,
    (200000 * pow(random(), 2))::BIGINT * 7919 AS user_id,
    (hash({base} + range) >> 1)::BIGINT AS watch_id,
    (random() * 230)::INTEGER AS region_id,
    (random() * 9)::INTEGER AS os,
    (random() * 12)::INTEGER AS browser,
    (random() * 60)::INTEGER AS browser_version,
    random() < 0.3 AS is_mobile,
    (random() * 2560)::INTEGER AS width,
    (random() * 1440)::INTEGER AS height,
    ['en', 'es', 'ru', 'de', 'tr', 'fr'][1 + (random() * 5)::INTEGER] AS language,
    (random() * 4294967295)::BIGINT AS client_ip,
    'https://site-' || (1000 * pow(random(), 3))::INTEGER || '.example/'
        || left(md5((random() * 5000)::INTEGER::VARCHAR), 12) || '/page-' || (random() * 300)::INTEGER AS url,
    CASE WHEN random() < 0.6 THEN 'https://search-' || (random() * 40)::INTEGER || '.example/?q='
        || left(md5((random() * 20000)::INTEGER::VARCHAR), 8) ELSE '' END AS referer,
    'Title ' || left(md5((random() * 8000)::INTEGER::VARCHAR), 16) AS title,
    CASE WHEN random() < 0.13 THEN 'phrase ' || (3000 * pow(random(), 2))::INTEGER ELSE '' END AS search_phrase,
    (random() * 5)::INTEGER AS search_engine,
    (random() * 20)::INTEGER AS traffic_source,
    random() < 0.05 AS is_refresh,
    random() < 0.02 AS is_download,
    (random() * 30000)::INTEGER AS load_millis,
    (random() * 3000)::INTEGER AS dns_millis,
    (random() * 3000)::INTEGER AS connect_millis,
    (random() * 100)::INTEGER AS interests,
    (random() * 90)::INTEGER AS age,
    (random() * 3)::INTEGER AS sex,
    (random() * 50)::INTEGER AS goal,
    (random() * 100000)::DECIMAL(12, 2) AS price,
    'EUR' AS currency,
    md5((random() * 100000)::INTEGER::VARCHAR) AS session,
    left(md5(random()::VARCHAR), 10) AS opener,
    (random() * 10)::INTEGER AS hid,
    (random() * 30)::INTEGER AS silverlight,
    'utm-' || (random() * 15)::INTEGER AS campaign
FROM range({rows})
"""


def _since(first: str, last: str = "2013-08-01 00:00:00") -> str:
    return f"event_time >= TIMESTAMP '{first}' AND event_time < TIMESTAMP '{last}'"


_DAY = _since("2013-07-30 00:00:00", "2013-07-31 00:00:00")
_MOST = "GROUP BY 1 ORDER BY n DESC, 1 LIMIT 10"
BY_COUNTER = {
    "count": "SELECT count(*) FROM hits",
    "counter, month": "SELECT url, count(*) AS n FROM hits "
    f"WHERE counter_id = 62 AND {_since('2013-07-01 00:00:00')} {_MOST}",
    "counter, titles": "SELECT title, count(*) AS n FROM hits "
    f"WHERE counter_id = 5 AND {_DAY} AND NOT is_refresh {_MOST}",
    "counters, hours": "SELECT hour(event_time) AS h, count(*) AS n FROM hits "
    f"WHERE counter_id BETWEEN 10 AND 30 AND {_since('2013-07-28 00:00:00')} GROUP BY 1",
    "last hours": "SELECT region_id, count(DISTINCT user_id) AS n FROM hits "
    f"WHERE {_since('2013-07-30 20:00:00')} GROUP BY 1",
    "phrases": f"SELECT search_phrase, count(*) AS n FROM hits WHERE search_phrase <> '' {_MOST}",
    "like": "SELECT count(*) FROM hits WHERE url LIKE '%page-299%'",
    "browsers": "SELECT os, browser, avg(width) AS w, count(*) AS n FROM hits GROUP BY 1, 2",
    "two hours": "SELECT event_time, user_id, url, referer, title, search_phrase, price, session FROM hits "
    f"WHERE counter_id = 700 AND {_since('2013-07-10 00:00:00', '2013-07-10 02:00:00')}",
}
BY_USER = {
    "user": "SELECT event_time, url FROM hits WHERE user_id = 79190",
    "user, week": f"SELECT count(*), sum(price) FROM hits WHERE user_id = 791900 AND {_since('2013-07-24 00:00:00')}",
    "users": "SELECT user_id, count(*) AS n FROM hits WHERE user_id BETWEEN 0 AND 7919000 GROUP BY 1",
    "users, day": "SELECT count(*), max(load_millis) FROM hits "
    f"WHERE user_id BETWEEN 79190000 AND 158380000 AND {_DAY}",
}


def make(folder: Path, scale: float, rounds: int) -> Workload:
    """Makes the workload.

    Args:
        folder: an empty folder.
        scale: 1 is 3,000,000 rows, about 400 MB.
        rounds: number of appends in the day; 24 is one an hour.
    """
    rows, database = int(3_000_000 * scale), seeded(0.36)
    views = _VIEWS.format(base=0, first=0, hours=(DAYS - 1) * HOURS, rows=rows)
    database.execute(f"CREATE TABLE hits AS {views} ORDER BY event_time")
    write_rows(database, "SELECT * FROM hits", folder / TABLE.rows)
    history = History(folder, database, BY_COUNTER | BY_USER)
    history.measure("bulk", BY_COUNTER)
    for number in range(rounds):
        if number == rounds // 2:
            history.measure("half a day", BY_COUNTER)
            history.measure("new queries", BY_USER)
            history.lay_out_by("hits", ("user_id", "event_time"))
        first, hours = (DAYS - 1) * HOURS + number * HOURS / rounds, HOURS / rounds
        few, base = max(rows // DAYS // rounds, 100), (number + 1) * 1_000_000_000
        history.append("hits", _VIEWS.format(base=base, first=first, hours=hours, rows=few))
        history.maintain()
    if rounds:
        history.measure("new queries, a day", BY_USER)
    return history.end(file_bytes(scale, 16e6), (TABLE,))
