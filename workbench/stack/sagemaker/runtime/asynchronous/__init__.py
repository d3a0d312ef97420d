"""InvokeEndpointAsync: requests that wait in a queue, S3 in and out, notices on SNS."""
