"""Batch transform: jobs that send S3 objects through a model, record by record, and store one output object for each.

Pure: `jsonpath` (what a filter selects), `splitting` (objects to records), `packing` (records to payloads),
`processing` (filters and joins), `objects` (which objects, and where each one's output goes), `request` (rules and
defaults of a job), `jobs` (its life). With I/O: `storage` (S3), `instance` (a model process and the calls to it),
`work` (one object's way through it), `runner` (a whole job), `events` (EventBridge).
"""
