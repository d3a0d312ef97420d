"""Programs that ask for what the deployer cannot do fail, in one line that names it. Previews: no cloud is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = "import pulumi\nimport pulumi_aws as aws\n"


def preview(folder: Path, program: str) -> tuple[int, str]:
    """Exit code and last message of a preview of the program."""
    (folder / "Pulumi.yaml").write_text("name: strict\nruntime: python\n")
    (folder / "Pulumi.s.yaml").write_text("config:\n  aws:region: us-east-1\n")
    (folder / "__main__.py").write_text(HEAD + program)
    command = [sys.executable, "-m", "workbench.stack.deployer", "preview", "--stack", "s", "--json-events"]
    ended = subprocess.run(
        [*command, "--project-dir", str(folder), "--state", str(folder / "state.json")],
        env={**os.environ, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    event = json.loads(ended.stdout.splitlines()[-1])
    return ended.returncode, str(event.get("message", event))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ('aws.kinesis.Stream("s")', "aws:kinesis/stream:Stream has no row"),
        ('aws.s3.Bucket("b", acl="private", website={"index_document": "i"})', "input website has no place in"),
        ('aws.iam.Role("r", assume_role_policy="{}")\naws.iam.Role("r", assume_role_policy="{}")', "have the URN"),
        ('pulumi.export("x", aws.s3.Bucket("b").website_endpoint)', "output websiteEndpoint of aws:s3/bucket:Bucket"),
        (
            'b = aws.s3.Bucket("b")\naws.cloudwatch.LogGroup("l", name=b.hosted_zone_id.apply(lambda z: f"/{z}/x"))',
            "output hostedZoneId of aws:s3/bucket:Bucket is not mapped, but aws:cloudwatch/logGroup:LogGroup",
        ),
        (
            'aws.kinesis.FirehoseDeliveryStream("s", destination="splunk")',
            "a delivery stream's destination is extended_s3 offline, not 'splunk'",
        ),
        ('aws.cloudwatch.EventRule("r", is_enabled=True, state="ENABLED")', "a rule has either state or isEnabled"),
        ('aws.s3.Bucket.get("b", "there")', "reading what another program made"),
        ("aws.get_availability_zones()", "the function aws:index/getAvailabilityZones"),
        ('aws.Provider("p", region="eu-west-1")', "offline there is one cloud, one region"),
        ('aws.s3.Bucket("b", opts=pulumi.ResourceOptions(import_="x"))', "option import_ is not supported"),
        ('raise KeyError("mine")', "the program failed: KeyError: 'mine'"),
    ],
    ids=[
        "type",
        "input",
        "urn",
        "export",
        "read",
        "stream",
        "rule",
        "get",
        "function",
        "provider",
        "import",
        "program",
    ],
)
def test_refused(tmp_path: Path, program: str, message: str) -> None:
    """The program ends with 1 and a message that names what it asked for."""
    code, said = preview(tmp_path, program)

    assert code == 1
    assert message in said
    assert "\n" not in said
