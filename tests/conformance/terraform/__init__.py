"""The Pulumi program in the hands of the real AWS provider: captured, said in Terraform's JSON, and run.

- `translation`: Pulumi's types and properties in the provider's words, by the provider's own schema
- `capture`: one stack of the program as a Terraform configuration; a process of its own
- `cli`: the terraform program: where it and the provider are found, and its commands
"""
