"""The batch lane as deployed: its Model, tables, queues, bucket, functions, what sets them off, what each may do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions import batch_settings, settings
from functions.aws.work_messages import INLINE_BYTES, payload_key
from functions.core import job, run
from functions.core.topology import Topology
from tests.infra.capture import ACCOUNT, REGION, Program, arn
from tests.infra.conftest import DATASET_KEY, NOTIFY, TOPIC, named, of_type, one, statements

KEY = arn("kms", "key/key-1")
DATA = "arn:aws:s3:::inferlane-mature-data-0a1b2c3"
JOBS, RUNS = (arn("dynamodb", f"table/inferlane-mature-{table}") for table in ("jobs", "runs"))
TRANSFORM_JOBS = f"arn:aws:sagemaker:{REGION}:*:transform-job/inferlane-mature-*"
MODELS = ("moderation", "moderation-heavy")


def queue(name: str) -> str:
    """The ARN of one of the mature stack's queues."""
    return arn("sqs", f"inferlane-mature-{name}")


def granted(program: Program, role_policy: str) -> dict[str, set[str]]:
    """Action -> resources, but for logs and keys."""
    found: dict[str, set[str]] = {}
    for statement in statements(program, role_policy):
        for action in statement["Action"]:
            if not action.startswith(("logs:", "kms:")):
                found.setdefault(action, set()).update(statement["Resource"])
    return found


def unlocks(program: Program, role_policy: str) -> dict[str, set[str]]:
    """Service -> what a role may do with the stack's key on behalf of it."""
    found: dict[str, set[str]] = {}
    for statement in statements(program, role_policy):
        actions = {action for action in statement["Action"] if action.startswith("kms:")}
        if actions:
            service = statement["Condition"]["StringEquals"]["kms:ViaService"].split(".")[0]
            found.setdefault(service, set()).update(actions)
    return found


def test_a_transform_job_runs_the_package_as_a_role_of_its_own(programs: dict[str, Program]) -> None:
    """The lane's Model has the model's artifact, a worker a vCPU, and a role that no endpoint's container runs as."""
    program = programs["mature"]
    model = named(program, "moderation-batch-model")
    container = model["primaryContainer"]

    assert model["name"].startswith("inferlane-mature-moderation-batch-")
    assert model["executionRoleArn"] == arn("iam", "role/inferlane-mature-moderation-batch", region="")
    assert container["modelDataUrl"] == named(program, "moderation-dedicated-model")["primaryContainer"]["modelDataUrl"]
    assert container["environment"]["SAGEMAKER_MODEL_SERVER_WORKERS"] == "4"
    assert container["image"].endswith("/pytorch-inference:2.6.0-cpu-py312")


def test_a_transform_job_reads_inputs_and_writes_outputs(programs: dict[str, Program]) -> None:
    """Its role: artifact, image, metrics; runs' inputs and outputs and nothing else of the bucket; its own log."""
    program = programs["mature"]
    grants = granted(program, "moderation-batch-grants")
    heavy = granted(program, "moderation-heavy-batch-grants")

    assert grants["s3:GetObject"] == {
        "arn:aws:s3:::inferlane-mature-artifacts-0a1b2c3/models/moderation/*",
        f"{DATA}/batch/*/in/*",
    }
    assert grants["s3:PutObject"] == {f"{DATA}/batch/*/out/*"}
    assert heavy["s3:PutObject"] - grants["s3:PutObject"] == {f"{DATA}/nightly/runs/*/out/*"}
    assert heavy["s3:GetObject"] > {f"{DATA}/nightly/runs/*"}
    assert unlocks(program, "moderation-batch-grants") == {"s3": {"kms:Decrypt", "kms:GenerateDataKey"}}
    logs = [each for each in statements(program, "moderation-batch-grants") if each["Action"][0].startswith("logs:")]
    group = f"arn:aws:logs:{REGION}:*:log-group:/aws/sagemaker/TransformJobs"
    assert [each["Resource"] for each in logs] == [[group], [f"{group}:log-stream:inferlane-mature-*"]]


def test_data_sets_are_granted_by_prefix(programs: dict[str, Program]) -> None:
    """Where the stack file names data sets, jobs read and write below them, whosever, with the keys it names."""
    found = statements(programs["mature-told"], "moderation-batch-grants")
    objects = {"Action": ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"]}

    assert {**objects, "Resource": ["arn:aws:s3:::reviews/in/*/*"]} in found
    assert {**objects, "Resource": ["arn:aws:s3:::reviews-out/*"]} in found
    assert {
        "Action": ["s3:ListBucket"],
        "Resource": ["arn:aws:s3:::reviews"],
        "Condition": {"StringLike": {"s3:prefix": "in/*/*"}},
    } in found
    assert [each["Resource"] for each in found if DATASET_KEY in each["Resource"]] == [[DATASET_KEY]]


def test_the_topology_says_how_jobs_are_made(programs: dict[str, Program]) -> None:
    """The router's core reads the lane whole: model, instances, limits, pace and price."""
    topology = Topology.from_json(programs["mature"]["exports"]["topology"])
    lane = topology.batch_lane("moderation")

    assert lane
    assert lane.model_name == named(programs["mature"], "moderation-batch-model")["name"]
    assert (lane.instance_type, lane.instance_count, lane.usd_per_instance_hour) == ("ml.c5.xlarge", 1, 0.204)
    assert (lane.max_jobs, lane.target_records, lane.max_wait_s) == (4, 20_000, 1800)
    assert (lane.startup_s, lane.record_s, lane.strategy) == (300, 0.02, "MultiRecord")
    assert (lane.max_payload_mb, lane.max_concurrent, lane.max_bytes) == (6, 4, 6 * 2**20)
    assert topology.sync_lanes("moderation-heavy") == {}


def test_whoever_works_on_jobs_has_the_topology(programs: dict[str, Program]) -> None:
    """The functions that make or answer jobs ship with the document that is exported; the notifier needs none."""
    program = programs["mature-told"]
    for name in ("collect", "settle", "promote", "audit", "jobs"):
        shipped = named(program, f"{name}-function")["code"]["archive"][settings.TOPOLOGY_FILE]["text"]
        assert json.loads(shipped) == program["exports"]["topology"]
    assert settings.TOPOLOGY_FILE not in named(program, "notify-function")["code"]["archive"]


def test_jobs_are_found_by_their_tenant(programs: dict[str, Program]) -> None:
    """The table's first key is the tenant; its listing is by time; ended records expire; every second is kept."""
    table = named(programs["mature"], "job-store-jobs")

    assert (table["hashKey"], table["rangeKey"], table["billingMode"]) == ("tenant", "id", "PAY_PER_REQUEST")
    assert table["globalSecondaryIndexes"] == [
        {
            "name": "by_time",
            "projectionType": "KEYS_ONLY",
            "keySchemas": [
                {"attributeName": "tenant", "keyType": "HASH"},
                {"attributeName": "accepted_at", "keyType": "RANGE"},
            ],
        }
    ]
    assert {each["name"]: each["type"] for each in table["attributes"]} == {
        "tenant": "S",
        "id": "S",
        "accepted_at": "N",
    }


def test_open_runs_are_found_by_an_index_of_few(programs: dict[str, Program]) -> None:
    """Runs by name; the index holds those that have the attribute `open` only."""
    table = named(programs["mature"], "job-store-runs")

    assert (table["hashKey"], "rangeKey" in table) == ("name", False)
    (index,) = table["globalSecondaryIndexes"]
    assert (index["name"], [key["attributeName"] for key in index["keySchemas"]]) == ("open", ["open", "name"])


@pytest.mark.parametrize("table", ["jobs", "runs"])
def test_the_tables_are_kept_safe(programs: dict[str, Program], table: str) -> None:
    """Encrypted with the stack's key, restorable, expiring by `expires_at`."""
    found = named(programs["mature"], f"job-store-{table}")

    assert found["serverSideEncryption"] == {"enabled": True, "kmsKeyArn": KEY}
    assert found["pointInTimeRecovery"] == {"enabled": True}
    assert found["ttl"] == {"attributeName": "expires_at", "enabled": True}


@pytest.mark.parametrize(
    ("name", "hidden_s", "receives"), [("work", 240, 10), ("promote", 150, 16), ("notices", 90, 20)]
)
def test_a_queue_ends_in_one_that_people_read(
    programs: dict[str, Program], name: str, hidden_s: int, receives: int
) -> None:
    """Kept fourteen days, hidden as long as its reader may take; what fails too often goes to its own dead letters."""
    program = programs["mature-told"]
    found, dead = named(program, name), named(program, f"{name}-dead")

    assert json.loads(found["redrivePolicy"]) == {
        "deadLetterTargetArn": queue(f"{name}-dead"),
        "maxReceiveCount": receives,
    }
    assert (found["visibilityTimeoutSeconds"], found["kmsMasterKeyId"]) == (hidden_s, KEY)
    assert found["messageRetentionSeconds"] == dead["messageRetentionSeconds"] == 14 * 86_400
    allowed = json.loads(named(program, f"{name}-dead-source")["redriveAllowPolicy"])
    assert allowed == {"redrivePermission": "byQueue", "sourceQueueArns": [queue(name)]}


def test_no_reader_takes_longer_than_its_message_is_hidden(programs: dict[str, Program]) -> None:
    """A message that is worked on is given to nobody else."""
    program = programs["mature-told"]
    for queue_name, function in (("work", "collect"), ("promote", "promote"), ("notices", "notify")):
        timeout_s = named(program, f"{function}-function")["timeout"]
        assert named(program, queue_name)["visibilityTimeoutSeconds"] >= timeout_s


def test_a_message_holds_the_largest_body_it_may(programs: dict[str, Program]) -> None:
    """What travels in a message, as base64 and with a kilobyte around it, fits the queue's limit."""
    assert named(programs["mature"], "work")["maxMessageSize"] > INLINE_BYTES * 4 / 3 + 20_000


def test_what_passes_through_is_deleted(programs: dict[str, Program]) -> None:
    """Each prefix of the data bucket has its days, no version is kept, and broken uploads go."""
    program = programs["mature"]
    rules = named(program, "data-expiry")["rules"]

    assert {rule["filter"]["prefix"]: rule["expiration"]["days"] for rule in rules} == {
        "batch/": 30,
        "capture/": 30,
        "capture-errors/": 30,
        "nightly/reports/": 365,
        "nightly/runs/": 30,
    }
    assert {rule["abortIncompleteMultipartUpload"]["daysAfterInitiation"] for rule in rules} == {2}
    versioned = {each["inputs"]["bucket"] for each in of_type(program, "BucketVersioning")}
    assert versioned == {"inferlane-mature-artifacts-0a1b2c3"}


def test_the_roles_know_where_the_functions_put_things() -> None:
    """The prefixes that roles are granted are those that the code writes to."""
    name = "inferlane-mature-0123456789abcdef"
    key = job.JobKey("acme", "1")

    assert run.input_prefix(name) == f"batch/{name}/in/"
    assert run.output_prefix(name) == f"batch/{name}/out/"
    work = job.Work(key, "m", None, None, 0.0, 1.0, ())
    assert payload_key(work, b"x").startswith("batch/payloads/")
    assert job.result_key(key, name).startswith("batch/results/")


@pytest.mark.parametrize("name", ["collect", "settle", "promote", "audit"])
def test_the_functions_read_what_the_program_writes(programs: dict[str, Program], name: str) -> None:
    """Their environment reads back as the stack's tables, queues and bucket."""
    function = named(programs["mature-told"], f"{name}-function")
    read = batch_settings.read_batch(function["environment"]["variables"] | {"AWS_REGION": REGION})

    assert function["handler"] == f"functions.handlers.{name}.handler"
    assert (read.jobs_table, read.runs_table) == ("inferlane-mature-jobs", "inferlane-mature-runs")
    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/inferlane-mature-"
    assert (read.work_queue, read.promote_queue, read.notices_queue) == (f"{url}work", f"{url}promote", f"{url}notices")
    assert (read.data_bucket, read.channels) == ("inferlane-mature-data-0a1b2c3", ("topic", "webhook"))
    assert read.retention_s == 7 * 86_400


def test_nobody_is_told_unless_somebody_asked(programs: dict[str, Program]) -> None:
    """Without `notify` there is neither queue nor function nor setting."""
    program = programs["mature"]
    variables = named(program, "settle-function")["environment"]["variables"]

    assert batch_settings.read_batch(variables | {"AWS_REGION": REGION}).notices_queue is None
    assert "notify" not in program["exports"]["functions"]


def test_the_collector_gathers_starts_and_promotes(programs: dict[str, Program]) -> None:
    """Its role: work in, promotions out, records, runs with their lease, runs' objects, transform jobs of its stack."""
    program = programs["mature"]
    models = {arn("sagemaker", f"model/{named(program, f'{model}-batch-model')['name']}") for model in MODELS}

    assert granted(program, "collect-grants") == {
        "sagemaker:CreateTransformJob": {TRANSFORM_JOBS, *models},
        "sagemaker:AddTags": {TRANSFORM_JOBS},
        "sagemaker:DescribeTransformJob": {TRANSFORM_JOBS},
        "dynamodb:GetItem": {RUNS},
        "dynamodb:BatchGetItem": {RUNS, JOBS},
        "dynamodb:PutItem": {RUNS},
        "dynamodb:UpdateItem": {RUNS, JOBS},
        "dynamodb:DeleteItem": {RUNS},
        "dynamodb:Query": {f"{RUNS}/index/open"},
        "s3:ListBucket": {DATA},
        "s3:GetObject": {f"{DATA}/batch/*"},
        "s3:PutObject": {f"{DATA}/batch/*"},
        "s3:AbortMultipartUpload": {f"{DATA}/batch/*"},
        "sqs:ReceiveMessage": {queue("work")},
        "sqs:DeleteMessage": {queue("work")},
        "sqs:ChangeMessageVisibility": {queue("work")},
        "sqs:GetQueueAttributes": {queue("work")},
        "sqs:SendMessage": {queue("promote")},
    }
    both = {"kms:Decrypt", "kms:GenerateDataKey"}
    assert unlocks(program, "collect-grants") == {"dynamodb": {"kms:Decrypt"}, "s3": both, "sqs": both}


def test_the_settler_ends_jobs_and_retries_runs(programs: dict[str, Program]) -> None:
    """Its role: as the collector's, without the queue of work and the lease; what it cannot do, it may send away."""
    program = programs["mature-told"]
    collector, settler = granted(program, "collect-grants"), granted(program, "settle-grants")

    assert settler["sqs:SendMessage"] == {queue("promote"), queue("settle-dead"), queue("notices")}
    assert collector.keys() - settler.keys() == {
        "dynamodb:DeleteItem",
        *(
            f"sqs:{action}"
            for action in ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes")
        ),
    }
    assert all(settler[action] == collector[action] for action in settler if not action.startswith("sqs:"))


def test_promotion_asks_the_endpoints(programs: dict[str, Program]) -> None:
    """Its role: the stack's endpoints, its queue, records and results; no transform job, no run."""
    grants = granted(programs["mature"], "promote-grants")

    assert grants["sagemaker:InvokeEndpoint"] == {
        arn("sagemaker", f"endpoint/inferlane-mature-moderation-{lane}") for lane in ("dedicated", "serverless")
    }
    assert grants["s3:PutObject"] == {f"{DATA}/batch/results/*"}
    assert grants["dynamodb:UpdateItem"] == {JOBS}
    assert not [action for action in grants if "Transform" in action]
    assert RUNS not in {resource for resources in grants.values() for resource in resources}


def test_the_audit_only_reads(programs: dict[str, Program]) -> None:
    """Its role: every record, single runs, metrics."""
    assert granted(programs["mature"], "audit-grants") == {
        "dynamodb:Scan": {JOBS},
        "dynamodb:GetItem": {RUNS},
        "cloudwatch:GetMetricData": {"*"},
    }


def test_the_router_accepts(programs: dict[str, Program]) -> None:
    """With a batch lane the route function may look for, send and record a job, and keep a payload; without, not.

    What is urgent it sends to promotion; a data set is not, so `jobs` cannot.
    """
    grants = granted(programs["mature-plain"], "route-grants")
    variables = named(programs["mature-plain"], "route-function")["environment"]["variables"]
    read = settings.read_router(variables | {"AWS_REGION": REGION})

    assert read.acceptance
    assert (read.acceptance.jobs_table, read.acceptance.data_bucket) == (
        *("inferlane-mature-jobs", "inferlane-mature-data-0a1b2c3"),
    )
    assert JOBS in grants["dynamodb:GetItem"] & grants["dynamodb:PutItem"]
    assert JOBS not in grants["dynamodb:UpdateItem"]
    assert grants["sqs:SendMessage"] == {queue("work"), queue("promote")}
    assert granted(programs["mature-plain"], "jobs-grants")["sqs:SendMessage"] == {queue("work")}
    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/inferlane-mature-"
    assert (read.acceptance.work_queue, read.acceptance.promote_queue) == (f"{url}work", f"{url}promote")
    assert grants["s3:PutObject"] == {f"{DATA}/batch/payloads/*"}
    without = named(programs["growth"], "route-function")["environment"]["variables"]
    assert settings.read_router(without | {"AWS_REGION": REGION}).acceptance is None


def test_callers_are_told_of_jobs_by_their_own_function(programs: dict[str, Program]) -> None:
    """Three routes go to `jobs`, guarded as all others; it reads, cancels, and accepts data sets."""
    program = programs["mature-told"]
    routes = {each["inputs"]["routeKey"]: each["inputs"] for each in of_type(program, "Route")}
    keys = ("ANY /v1/jobs", "ANY /v1/jobs/{id}", "ANY /v1/models/{model}/batches")

    assert set(routes) == {"GET /healthz", "ANY /{proxy+}", *keys}
    for key in keys:
        assert routes[key]["target"] == "integrations/front-door-jobs-integration-0a1b2c3"
        assert (routes[key]["authorizationType"], routes[key]["authorizerId"]) == (
            *("CUSTOM", "front-door-proxy-authorizer-id"),
        )
    assert len(of_type(program, "Authorizer")) == 1
    uri = named(program, "front-door-jobs-integration")["integrationUri"]
    assert f"{arn('lambda', 'function:inferlane-mature-jobs:live')}/invocations" in uri
    read = batch_settings.read_jobs(
        named(program, "jobs-function")["environment"]["variables"] | {"AWS_REGION": REGION}
    )
    assert read.datasets == ("s3://reviews/in/{tenant}/", "s3://reviews-out/")


def test_the_jobs_function_reads_results(programs: dict[str, Program]) -> None:
    """Its role: records and their listing, runs, results, the queue for data sets, the policy."""
    assert granted(programs["mature"], "jobs-grants") == {
        "appconfig:StartConfigurationSession": {
            arn("appconfig", "application/app1/environment/env1/configuration/pro1")
        },
        "appconfig:GetLatestConfiguration": {arn("appconfig", "application/app1/environment/env1/configuration/pro1")},
        "dynamodb:GetItem": {JOBS, RUNS},
        "dynamodb:BatchGetItem": {JOBS},
        "dynamodb:PutItem": {JOBS},
        "dynamodb:UpdateItem": {JOBS},
        "dynamodb:Query": {f"{JOBS}/index/by_time"},
        "s3:GetObject": {f"{DATA}/batch/results/*"},
        "s3:ListBucket": {DATA},
        "sqs:SendMessage": {queue("work")},
    }


@pytest.mark.parametrize(
    ("stack", "name", "rate", "tries"),
    [
        ("mature", "collect", "rate(1 minute)", 0),
        ("mature", "audit", "rate(6 hours)", 2),
        ("mature-told", "audit", "rate(1 hour)", 2),
    ],
)
def test_what_runs_by_the_clock(programs: dict[str, Program], stack: str, name: str, rate: str, tries: int) -> None:
    """A schedule calls the alias, by a role that may call it only, for this stack's schedules only.

    Again only what is hours from its next turn.
    """
    program = programs[stack]
    schedule, alias = named(program, f"{name}-schedule"), arn("lambda", f"function:inferlane-mature-{name}:live")

    assert (schedule["scheduleExpression"], schedule["flexibleTimeWindow"]) == (rate, {"mode": "OFF"})
    assert schedule["groupName"] == "inferlane-mature"
    assert schedule["target"]["arn"] == alias
    assert schedule["target"]["retryPolicy"]["maximumRetryAttempts"] == tries
    assert statements(program, f"{name}-schedule-grants") == [
        {"Action": ["lambda:InvokeFunction"], "Resource": [alias]}
    ]
    trust = json.loads(named(program, f"{name}-schedule-role")["assumeRolePolicy"])["Statement"][0]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert trust["Condition"] == {"ArnLike": {"aws:SourceArn": arn("scheduler", "schedule-group/inferlane-mature")}}
    again = named(program, f"{name}-async")
    assert (again["qualifier"], again["maximumRetryAttempts"]) == ("live", tries)


def test_an_ended_transform_job_is_settled(programs: dict[str, Program]) -> None:
    """SageMaker's events of this stack's ended jobs call the alias; one that cannot be handled is kept in a queue."""
    program = programs["mature"]
    rule = named(program, "settle-rule")

    assert json.loads(rule["eventPattern"]) == {
        "source": ["aws.sagemaker"],
        "detail-type": ["SageMaker Transform Job State Change"],
        "detail": {
            "TransformJobName": [{"prefix": "inferlane-mature-"}],
            "TransformJobStatus": ["Completed", "Failed", "Stopped"],
        },
    }
    target = named(program, "settle-target")
    assert (target["rule"], target["arn"]) == (rule["name"], arn("lambda", "function:inferlane-mature-settle:live"))
    permission = named(program, "settle-rule-calls-settle")
    assert (permission["principal"], permission["qualifier"]) == ("events.amazonaws.com", "live")
    assert permission["sourceArn"] == arn("events", f"rule/{rule['name']}")
    assert named(program, "settle-async")["destinationConfig"] == {"onFailure": {"destination": queue("settle-dead")}}


def test_promotion_is_bounded(programs: dict[str, Program]) -> None:
    """Few messages a call and few calls at a time; only those that failed come again."""
    assert {k: v for k, v in named(programs["mature"], "promote-messages").items() if k != "tags"} == {
        "eventSourceArn": queue("promote"),
        "functionName": arn("lambda", "function:inferlane-mature-promote:live"),
        "batchSize": 5,
        "functionResponseTypes": ["ReportBatchItemFailures"],
        "scalingConfig": {"maximumConcurrency": 10},
    }


def test_notices_go_where_the_stack_file_says(programs: dict[str, Program]) -> None:
    """The notifier knows topic, addresses and the names of secrets; it may publish there and read those, no more."""
    program = programs["mature-told"]
    variables = named(program, "notify-function")["environment"]["variables"]
    read = batch_settings.read_notify(variables | {"AWS_REGION": REGION})
    hook: Any = NOTIFY["webhooks"]

    assert (read.topic, {name: each.url for name, each in read.webhooks.items()}) == (
        *(TOPIC, {"acme": hook["acme"]["url"]}),
    )
    grants = granted(program, "notify-grants")
    assert grants["sns:Publish"] == {TOPIC}
    assert grants["ssm:GetParameter"] == {f"arn:aws:ssm:{REGION}:*:parameter/inferlane/webhooks/acme"}
    assert grants["sqs:ReceiveMessage"] == {queue("notices")}
    assert one(program, "notify-messages")["inputs"]["functionResponseTypes"] == ["ReportBatchItemFailures"]


def test_what_a_mature_stack_gives_out(programs: dict[str, Program]) -> None:
    """Tables, bucket, queues, dead letters, and the functions' names."""
    exports = programs["mature"]["exports"]

    assert (exports["jobs_table"], exports["runs_table"]) == ("inferlane-mature-jobs", "inferlane-mature-runs")
    assert set(exports["queues"]) == {"work", "promote"}
    assert set(exports["dead_letter_queues"]) == {"work", "promote", "settle"}
    assert exports["data_bucket"] == "inferlane-mature-data-0a1b2c3"
    assert {"collect", "settle", "promote", "audit", "jobs", "prepare", "report"} <= exports["functions"].keys()


def test_a_stack_without_a_batch_lane_has_none_of_it(programs: dict[str, Program]) -> None:
    """In a growth stack nothing waits, so nothing is there for it."""
    kinds = {resource["type"].rsplit(":", 1)[1] for resource in programs["growth"]["resources"]}

    assert kinds.isdisjoint({"Queue", "Schedule", "EventRule", "StateMachine", "FirehoseDeliveryStream"})
    assert "queues" not in programs["growth"]["exports"]
