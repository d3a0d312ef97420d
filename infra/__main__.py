"""The inferlane stack, as a table of contents: storage, models and their lanes, alarms, the policy, the topology,
what the router shares, the router.

What a stack may say is in `infra/config.py`, what each part is in `infra/components/`.
"""

import pulumi
import pulumi_aws as aws

from infra import images, naming, policy_document, pricebook, topology
from infra.components.dedicated_lane import DedicatedLane, DedicatedLaneArgs
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

lanes = pulumi.Output.all(*(endpoint.name for endpoint in endpoints.values())).apply(
    lambda names: topology.build(stack, dict(zip(endpoints, names, strict=True)), prices)
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
    ),
)

pulumi.export("url", router.url)
pulumi.export("topology", lanes)
pulumi.export(
    "policy",
    {"application": policy.application_id, "environment": policy.environment_id, "profile": policy.profile_id},
)
pulumi.export("functions", {**router.function_names, "validate": policy.validate.function.name})
if router.key_auth:
    pulumi.export("keys_table", router.key_auth.table.name)
