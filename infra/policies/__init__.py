"""The CrossGuard policy pack: `pulumi up --policy-pack infra/policies`."""
