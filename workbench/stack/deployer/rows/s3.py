"""S3: a bucket, the settings that pulumi-aws keeps in resources of their own, and objects.

A setting is put whole, so creating and updating are one call; its deletion is forgiven when the bucket went first. A
bucket with `forceDestroy` is emptied, old versions included, before it is deleted. An object is stored again when its
bytes (by SHA-256) or any setting change.
"""

from __future__ import annotations

import base64
from urllib.parse import urlencode

from workbench.stack.deployer.errors import ProgramError
from workbench.stack.deployer.row import Arrange, Call, Instance, Row, Step, Templates
from workbench.stack.deployer.values import Properties, items, mapping

PAGE = 1000
"""The most `delete_objects` takes."""

_BUCKET: Templates = {"Bucket": "{in.bucket}"}


def _location(instance: Instance) -> object:
    """us-east-1 is where buckets are made when nothing is said; saying it is an error."""
    region = instance.cloud.region
    return None if region == "us-east-1" else {"LocationConstraint": region}


def _tag_set(instance: Instance) -> object:
    tags = mapping(instance.inputs.get("tags"))
    return {"TagSet": [{"Key": key, "Value": str(tags[key])} for key in sorted(tags)]}


def _empty(instance: Instance) -> None:
    if instance.inputs.get("forceDestroy"):
        _delete_versions(instance, instance.id, {})


def _delete_object(instance: Instance) -> None:
    bucket, key = instance.text("bucket"), instance.text("key")
    _delete_versions(instance, bucket, {"Prefix": key}, only=key)


def _delete_versions(instance: Instance, bucket: str, scope: dict[str, str], only: str | None = None) -> None:
    """Deletes every version and delete marker in scope; each page anew, since what is deleted no longer lists."""
    while True:
        answer = instance.cloud.call("s3", "list_object_versions", {"Bucket": bucket, "MaxKeys": PAGE, **scope})
        listed = [mapping(item) for item in [*items(answer.get("Versions")), *items(answer.get("DeleteMarkers"))]]
        found = [
            {"Key": item["Key"], "VersionId": item["VersionId"]}
            for item in listed
            if only is None or item["Key"] == only
        ]
        if not found:
            return
        answer = instance.cloud.call("s3", "delete_objects", {"Bucket": bucket, "Delete": {"Objects": found}})
        errors = [mapping(item) for item in items(answer.get("Errors"))]
        if errors:
            raise ProgramError(f"{bucket}: {errors[0].get('Key')} cannot be deleted: {errors[0].get('Message')}")


def _object(inputs: Properties) -> Properties:
    """The body is one of three inputs; tags travel as a query; `sourceHash` and `etag` only trigger an update."""
    bodies = [name for name in ("source", "content", "contentBase64") if inputs.get(name) is not None]
    if len(bodies) > 1:
        raise ProgramError(f"an object has one body, not {', '.join(bodies)}")
    left_out = {"source", "content", "contentBase64", "sourceHash", "etag", "tags"}
    arranged = {name: value for name, value in inputs.items() if name not in left_out}
    if bodies:
        body = inputs[bodies[0]]
        arranged["body"] = base64.b64decode(str(body)) if bodies[0] == "contentBase64" else body
    tags = mapping(inputs.get("tags"))
    if tags:
        arranged["tagging"] = urlencode({key: str(tags[key]) for key in sorted(tags)})
    return arranged


def _nest(member: str, *names: str) -> Arrange:
    """Puts some inputs into the member that the API wants them in."""

    def arrange(inputs: Properties) -> Properties:
        inner = {name: inputs[name] for name in names if name in inputs}
        return {**{name: value for name, value in inputs.items() if name not in names}, member: inner}

    return arrange


def _lifecycle(inputs: Properties) -> Properties:
    """A rule without a filter is for the whole bucket; the API wants that said."""
    rules = [mapping(rule) for rule in items(inputs.get("rules"))]
    whole = [rule if "filter" in rule or "prefix" in rule else {**rule, "filter": {"prefix": ""}} for rule in rules]
    return _nest("lifecycleConfiguration", "rules")({**inputs, "rules": whole})


def _setting(
    type_: str, put: str, read: str, delete: Call, *, arrange: Arrange | None = None, local: tuple[str, ...] = ()
) -> Row:
    """A bucket setting: put whole, known by its bucket."""
    return Row(
        type=type_,
        service="s3",
        create=Call(put),
        id="{in.bucket}",
        arrange=arrange,
        upsert=True,
        identity=("bucket",),
        local=local,
        read=Call(read, params=_BUCKET),
        delete=delete,
    )


ROWS = (
    Row(
        type="aws:s3/bucket:Bucket",
        service="s3",
        create=Call(
            "create_bucket",
            params={"CreateBucketConfiguration": _location},
            rename={"objectLockEnabled": "ObjectLockEnabledForBucket"},
        ),
        id="{in.bucket}",
        outputs={
            "bucket": "{in.bucket}",
            "arn": "arn:aws:s3:::{in.bucket}",
            "bucketDomainName": "{in.bucket}.s3.amazonaws.com",
            "bucketRegionalDomainName": "{in.bucket}.s3.{region}.amazonaws.com",
            "bucketRegion": "{region}",
        },
        auto_name="bucket",
        steps=(
            Step(
                ("tags",),
                Call("put_bucket_tagging", take=("bucket",), params={"Tagging": _tag_set}),
                unset=Call("delete_bucket_tagging", params=_BUCKET),
            ),
        ),
        identity=("bucket",),
        local=("forceDestroy",),
        read=Call("head_bucket", params=_BUCKET),
        before_delete=_empty,
        delete=Call("delete_bucket", params=_BUCKET),
    ),
    _setting(
        "aws:s3/bucketVersioning:BucketVersioning",
        "put_bucket_versioning",
        "get_bucket_versioning",
        # Versioning cannot be taken off again, only suspended.
        Call("put_bucket_versioning", params={**_BUCKET, "VersioningConfiguration": lambda _: {"Status": "Suspended"}}),
    ),
    _setting(
        "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
        "put_bucket_encryption",
        "get_bucket_encryption",
        Call("delete_bucket_encryption", params=_BUCKET),
        arrange=_nest("serverSideEncryptionConfiguration", "rules"),
    ),
    _setting(
        "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
        "put_public_access_block",
        "get_public_access_block",
        Call("delete_public_access_block", params=_BUCKET),
        arrange=_nest(
            "publicAccessBlockConfiguration",
            "blockPublicAcls",
            "blockPublicPolicy",
            "ignorePublicAcls",
            "restrictPublicBuckets",
        ),
        local=("skipDestroy",),
    ),
    _setting(
        "aws:s3/bucketOwnershipControls:BucketOwnershipControls",
        "put_bucket_ownership_controls",
        "get_bucket_ownership_controls",
        Call("delete_bucket_ownership_controls", params=_BUCKET),
        arrange=_nest("ownershipControls", "rule"),
    ),
    _setting(
        "aws:s3/bucketPolicy:BucketPolicy",
        "put_bucket_policy",
        "get_bucket_policy",
        Call("delete_bucket_policy", params=_BUCKET),
    ),
    Row(
        type="aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
        service="s3",
        create=Call("put_bucket_lifecycle_configuration"),
        id="{in.bucket}",
        arrange=_lifecycle,
        upsert=True,
        identity=("bucket",),
        read=Call("get_bucket_lifecycle_configuration", params=_BUCKET),
        delete=Call("delete_bucket_lifecycle", params=_BUCKET),
    ),
    Row(
        type="aws:s3/bucketObjectv2:BucketObjectv2",
        service="s3",
        create=Call("put_object", rename={"kmsKeyId": "SSEKMSKeyId", "acl": "ACL"}),
        id="{in.bucket}/{in.key}",
        outputs={
            "arn": "arn:aws:s3:::{in.bucket}/{in.key}",
            "etag": lambda i: str(i.answer["ETag"]).strip('"') if "ETag" in i.answer else None,
            "versionId": lambda i: i.answer.get("VersionId"),
        },
        arrange=_object,
        upsert=True,
        identity=("bucket", "key"),
        local=("forceDestroy",),
        read=Call("head_object", params={"Bucket": "{in.bucket}", "Key": "{in.key}"}),
        delete=_delete_object,
    ),
)
