"""Everything on a table in a bucket of an S3-compatible server: ``pip install 'use-spark[object-stores]'``.

Spark's connector for S3 is some hundred megabytes, which Ivy downloads once.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JOB = ROOT / "tests" / "support" / "object_store_job.py"
BUCKET = "lake"

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def endpoint():
    """A server with an empty bucket, in a thread of this process."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    boto3 = pytest.importorskip("boto3")
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client(
        "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    client.create_bucket(Bucket=BUCKET)
    client.close()
    yield url
    server.stop()


def test_a_table_in_a_bucket(endpoint, tmp_path):
    done = subprocess.run(
        [sys.executable, "-P", str(JOB), endpoint, BUCKET, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert "committed" in seen["states"]
    assert not {"failed", "conflict", "unknown"} & set(seen["states"])
    assert (seen["rows"], seen["sum"]) == (60_000, sum(range(60_000)))
    assert 400 < seen["sample"] < 800
    assert seen["sample_files"] < seen["files"]
    assert seen["problems"] == []
    assert seen["deleted"] > 0
    assert seen["rows_after_vacuum"] == 60_000
