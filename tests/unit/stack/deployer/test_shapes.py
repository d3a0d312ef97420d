"""Pulumi's inputs become botocore's parameters, led by real API shapes; whatever does not fit is refused."""

from __future__ import annotations

from typing import cast

import botocore.session
import pytest
from botocore.model import StructureShape

from workbench.stack.deployer.errors import ProgramError, UnmappedError
from workbench.stack.deployer.shapes import to_parameters
from workbench.stack.deployer.values import UNKNOWN, Payload

SESSION = botocore.session.get_session()


def shape(service: str, operation: str) -> StructureShape:
    return cast(StructureShape, SESSION.get_service_model(service).operation_model(operation).input_shape)


def test_names_numbers_and_nesting() -> None:
    """Case, plurals, renames and whole floats follow the shape, however deep."""
    inputs = {
        "name": "config",
        "productionVariants": [
            {
                "variantName": "AllTraffic",
                "modelName": "m",
                "initialInstanceCount": 1.0,
                "initialVariantWeight": 1.0,
                "routingConfigs": [{"routingStrategy": "RANDOM"}],
                "serverlessConfig": {"memorySizeInMb": 2048.0, "maxConcurrency": 8.0},
            }
        ],
    }

    parameters = to_parameters(inputs, shape("sagemaker", "CreateEndpointConfig"), {"name": "EndpointConfigName"})

    assert parameters == {
        "EndpointConfigName": "config",
        "ProductionVariants": [
            {
                "VariantName": "AllTraffic",
                "ModelName": "m",
                "InitialInstanceCount": 1,
                "InitialVariantWeight": 1.0,
                "RoutingConfig": {"RoutingStrategy": "RANDOM"},
                "ServerlessConfig": {"MemorySizeInMB": 2048, "MaxConcurrency": 8},
            }
        ],
    }


def test_maps_become_pairs_where_the_api_wants_them() -> None:
    """Tags and dimensions are mappings in Pulumi and lists of pairs in many APIs."""
    tags = {"b": "2", "a": 1.0}

    listed = to_parameters({"tags": tags}, shape("iam", "CreateRole"), {})
    keyed = to_parameters({"tags": tags}, shape("kms", "CreateKey"), {})
    kept = to_parameters({"tags": tags}, shape("lambda", "CreateFunction"), {})
    dimensions = to_parameters({"dimensions": {"EndpointName": "e"}}, shape("cloudwatch", "PutMetricAlarm"), {})

    assert listed == {"Tags": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]}
    assert keyed == {"Tags": [{"TagKey": "a", "TagValue": "1"}, {"TagKey": "b", "TagValue": "2"}]}
    assert kept == {"Tags": {"a": "1", "b": "2"}}
    assert dimensions == {"Dimensions": [{"Name": "EndpointName", "Value": "e"}]}


def test_a_single_value_stands_for_a_list() -> None:
    """Pulumi flattens lists that the provider limits to one."""
    parameters = to_parameters({"identitySources": "$request.header.x"}, shape("apigatewayv2", "CreateAuthorizer"), {})

    assert parameters == {"IdentitySource": ["$request.header.x"]}


def test_payloads_become_bytes() -> None:
    """An archive fills a blob."""
    parameters = to_parameters({"code": Payload.of(b"zip")}, shape("lambda", "UpdateFunctionCode"), {"code": "ZipFile"})

    assert parameters == {"ZipFile": b"zip"}


def test_unknown_values_stay_unknown() -> None:
    """A preview converts what it does not know yet."""
    inputs = {"endpointName": UNKNOWN, "tags": UNKNOWN}

    assert to_parameters(inputs, shape("sagemaker", "CreateEndpoint"), {}) == {"EndpointName": UNKNOWN, "Tags": UNKNOWN}


def test_none_and_dropped_properties_are_left_out() -> None:
    """What the program did not give and what a rename drops does not reach the API."""
    assert to_parameters({"description": None, "x": 1}, shape("iam", "CreateRole"), {"x": None}) == {}


def test_an_unmapped_input_is_refused_with_its_path() -> None:
    """A property without a member would silently not be deployed."""
    inputs = {"productionVariants": [{"serverlessConfig": {"memory": 1}}]}

    with pytest.raises(UnmappedError, match=r"productionVariants\.serverlessConfig\.memory"):
        to_parameters(inputs, shape("sagemaker", "CreateEndpointConfig"), {})


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"timeout": 1.5}, "whole number"),
        ({"timeout": "soon"}, "number is wanted"),
        ({"publish": "yes"}, "true or false"),
        ({"functionName": {"a": 1}}, "text is wanted"),
        ({"vpcConfig": "x"}, "wants a mapping"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(inputs: dict[str, object], problem: str) -> None:
    """Nothing is bent into a number, a truth value or text that it is not."""
    with pytest.raises(ProgramError, match=problem):
        to_parameters(inputs, shape("lambda", "CreateFunction"), {})


def test_text_takes_numbers_and_truth_values() -> None:
    """Environment variables may be given as numbers; they arrive in their JSON spelling."""
    inputs = {"environment": {"variables": {"N": 30.0, "X": 0.5, "B": True}}}

    assert to_parameters(inputs, shape("lambda", "CreateFunction"), {}) == {
        "Environment": {"Variables": {"N": "30", "X": "0.5", "B": "true"}}
    }
