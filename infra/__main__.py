"""The inferlane stack, as a table of contents: storage, models and their lanes, alarms, the policy, the topology, work
that waits, what the router shares, the router, the nightly recheck.

What a stack may say is in `infra/config.py`, what each part is in `infra/components/`.
"""

import pulumi
import pulumi_aws as aws

from infra import images, naming, policy_document, pricebook, topology
from infra.components.batch_lane import BatchLane, BatchLaneArgs
from infra.components.data_bucket import DataBucket, DataBucketArgs
from infra.components.dedicated_lane import DedicatedLane, DedicatedLaneArgs
from infra.components.deferred_work import DeferredWork, DeferredWorkArgs, kept_days
from infra.components.model_package import ModelPackage, ModelPackageArgs
from infra.components.observability import Observability, ObservabilityArgs
from infra.components.policy_store import PolicyStore, PolicyStoreArgs
from infra.components.router import Router, RouterArgs
from infra.components.serverless_lane import ServerlessLane, ServerlessLaneArgs
from infra.components.snapshot_table import SnapshotTable, SnapshotTableArgs
from infra.components.storage import Storage, StorageArgs
from infra.stack import load

stack = load()
prices = pricebook.load()

storage = Storage("storage", StorageArgs(stack.stack, stack.protect, stack.tags_for("storage")))
data = (
    DataBucket(
        "data",
        DataBucketArgs(
            stack=stack.stack,
            region=stack.region,
            storage=storage,
            days=kept_days(stack),
            protect=stack.protect,
            tags=stack.tags_for("data-bucket"),
        ),
    )
    if stack.batch_lanes
    else None
)

models: dict[str, aws.sagemaker.Model] = {}
endpoints: dict[tuple[str, naming.Lane], aws.sagemaker.Endpoint] = {}
for name, model in sorted(stack.models.items()):
    package = ModelPackage(
        name,
        ModelPackageArgs(
            stack=stack.stack,
            model=name,
            region=stack.region,
            artifact=stack.artifact(name),
            storage=storage,
            tags=stack.tags_for("model-package", model=name),
        ),
    )
    if model.dedicated:
        dedicated = DedicatedLane(
            f"{name}-dedicated",
            DedicatedLaneArgs(
                stack=stack.stack,
                model=name,
                config=model.dedicated,
                package=package,
                image=images.choose(
                    model.dedicated.image, stack.region, prices.processor(model.dedicated.instance_type)
                ),
                log_retention_days=stack.log_retention_days,
                tags=stack.tags_for("dedicated-lane", model=name),
            ),
        )
        endpoints[name, "dedicated"] = dedicated.endpoint
    if model.serverless:
        serverless = ServerlessLane(
            f"{name}-serverless",
            ServerlessLaneArgs(
                stack=stack.stack,
                model=name,
                config=model.serverless,
                package=package,
                image=images.choose(model.serverless.image, stack.region, "cpu"),
                log_retention_days=stack.log_retention_days,
                tags=stack.tags_for("serverless-lane", model=name),
            ),
        )
        endpoints[name, "serverless"] = serverless.endpoint
    if model.batch and data:
        hardware = prices.hardware(model.batch.instance_type)
        batch = BatchLane(
            f"{name}-batch",
            BatchLaneArgs(
                stack=stack.stack,
                region=stack.region,
                model=name,
                concurrent=model.batch.concurrent(hardware.vcpus, hardware.gpus),
                batch=stack.batch,
                rechecks=stack.nightly is not None and stack.nightly.model == name,
                package=package,
                image=images.choose(model.batch.image, stack.region, prices.processor(model.batch.instance_type)),
                storage=storage,
                data=data,
                tags=stack.tags_for("batch-lane", model=name),
            ),
        )
        models[name] = batch.model

observability = Observability(
    "observability",
    ObservabilityArgs(
        stack=stack.stack,
        models=sorted(stack.models),
        lanes=sorted(endpoints),
        snapshot_ttl_s=stack.router.snapshot_ttl_s,
        config=stack.alarms,
        tags=stack.tags_for("observability"),
    ),
)

policy = PolicyStore(
    "policy",
    PolicyStoreArgs(
        stack=stack.stack,
        document=policy_document.to_json(stack.policy_file),
        rollout=stack.policy_rollout,
        alarms=observability.errors,
        log_retention_days=stack.log_retention_days,
        tags=stack.tags_for("policy-store"),
    ),
)

lanes = pulumi.Output.all(
    [endpoint.name for endpoint in endpoints.values()], [model.name for model in models.values()]
).apply(
    lambda names: topology.build(
        stack, dict(zip(endpoints, names[0], strict=True)), dict(zip(models, names[1], strict=True)), prices
    )
)

deferred = (
    DeferredWork(
        "deferred-work",
        DeferredWorkArgs(
            config=stack,
            topology=lanes.apply(topology.dumps),
            endpoints=list(endpoints.values()),
            models=models,
            policy=policy,
            timezone=policy_document.timezone(stack.policy_file),
            data=data,
            key_arn=storage.key.arn,
        ),
    )
    if data
    else None
)

snapshots = SnapshotTable(
    "snapshot", SnapshotTableArgs(stack.stack, stack.region, storage.key.arn, stack.tags_for("snapshot-table"))
)

router = Router(
    "router",
    RouterArgs(
        config=stack,
        topology=lanes.apply(topology.dumps),
        endpoints=list(endpoints.values()),
        policy=policy,
        snapshots=snapshots,
        key_arn=storage.key.arn,
        tags=stack.tags_for("router"),
        deferral=deferred.deferral if deferred else None,
        capture=deferred.capture if deferred else None,
        jobs=deferred.jobs if deferred else None,
    ),
)

pulumi.export("url", router.url)
pulumi.export("topology", lanes)
pulumi.export(
    "policy",
    {"application": policy.application_id, "environment": policy.environment_id, "profile": policy.profile_id},
)
made = {"validate": policy.validate, **(deferred.functions if deferred else {})}
pulumi.export(
    "functions", {**router.function_names, **{name: function.function.name for name, function in made.items()}}
)
if router.key_auth:
    pulumi.export("keys_table", router.key_auth.table.name)
for output, value in (deferred.outputs if deferred else {}).items():
    pulumi.export(output, value)
