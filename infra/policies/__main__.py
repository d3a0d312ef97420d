"""The pack itself: each rule of `rules.py` as a mandatory stack policy.

A rule that is not met stops the update. Rules see every resource of the stack once all are known.
"""

from __future__ import annotations

from pulumi_policy import (
    EnforcementLevel,
    PolicyPack,
    ReportViolation,
    StackValidationArgs,
    StackValidationPolicy,
)

from infra.policies.rules import RULES, Resource, Rule


def _policy(name: str, rule: Rule) -> StackValidationPolicy:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        resources = [Resource(resource.resource_type, resource.name, resource.props) for resource in args.resources]
        for line in rule(resources):
            report(line, None)

    return StackValidationPolicy(name=name, description=rule.__doc__ or name, validate=validate)


PolicyPack(
    "inferlane",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[_policy(name, rule) for name, rule in RULES.items()],
)
