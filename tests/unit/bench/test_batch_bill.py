"""The bills of the batch lane: arithmetic over prices, measured times and stated assumptions."""

from __future__ import annotations

import pytest

from workbench.bench.batch_bill import Assumptions, Bill, Prices, Service

PRICES = Prices(
    0.36,  # a ten-thousandth of a dollar a second
    {1024: 0.00002, 2048: 0.00004, 4096: 0.00008},
    {
        "sagemaker_serverless_data_per_gb": 0.016,
        "lambda_arm64_per_gb_s": 0.0000133334,
        "lambda_per_request": 0.0000002,
        "http_api_per_request": 0.000001,
        "dynamodb_per_write_unit": 0.000000625,
        "dynamodb_per_read_unit": 0.000000125,
        "dynamodb_per_gb_month": 0.25,
        "s3_per_put": 0.000005,
        "s3_per_get": 0.0000004,
        "sqs_per_request": 0.0000004,
        "logs_ingest_per_gb": 0.5,
    },
)
SERVICE = Service(
    request_s=0.1,
    two_core_gain=1.5,
    record_core_s=0.06,
    startup_s=2.0,
    least_mb=1024,
    request_bytes=200,
    answer_bytes=100,
)
ASSUMED = Assumptions(mb_per_vcpu=2048, provisioning_s=38.0, requests_per_job=10_000)
BILL = Bill(SERVICE, PRICES, ASSUMED)


def test_serverless_is_billed_by_the_second_at_its_memory() -> None:
    """One vCPU: the measured time; half of one: twice that; two: as much faster as two cores were seen to be."""
    assert BILL.serverless_s(2048) == pytest.approx(0.1)
    assert BILL.serverless_s(1024) == pytest.approx(0.2)
    assert BILL.serverless_s(4096) == pytest.approx(0.1 / 1.5)
    assert BILL.serverless(2048) == pytest.approx(1000 * 0.1 * 0.00004)


def test_the_cheapest_serverless_is_of_the_sizes_that_hold_the_model() -> None:
    """A comparison with a size nobody needs would flatter batch, and one with a size too small would be a lie."""
    assert BILL.cheapest_mb in (1024, 2048)
    larger = Bill(Service(0.1, 1.5, 0.06, 2.0, 4096, 200, 100), PRICES, ASSUMED)
    assert larger.cheapest_mb == 4096


def test_a_job_is_billed_from_its_start_and_works_on_all_its_vcpus() -> None:
    """Provisioning and start-up are in it, however few records there are."""
    assert BILL.job_s(10_000) == pytest.approx(38 + 2 + 10_000 * 0.06 / 4)
    assert BILL.batch() == pytest.approx((40 + 150) * 0.0001 / 10)
    assert BILL.batch(1) == pytest.approx(1000 * (40 + 0.015) * 0.0001)


def test_vcpus_that_share_a_core_do_less() -> None:
    """Half the yield is twice the work's time, and start-up stays what it is."""
    slower = Bill(SERVICE, PRICES, ASSUMED.changed({"vcpu_yield": "0.5"}))
    assert slower.job_s(10_000) == pytest.approx(40 + 300)


def test_a_job_of_its_own_pays_for_records_queue_and_the_answers_way_back() -> None:
    """Four write units and two reads, 1.2 queue requests, two calls of gateway and functions."""
    items = BILL.whole_batch()
    assert items["records"] == pytest.approx(1000 * (4 * 0.000000625 + 2 * 0.000000125))
    assert items["queue"] == pytest.approx(1000 * 1.2 * 0.0000004)
    assert items["gateway"] == pytest.approx(2 * BILL.whole_serverless(2048)["gateway"])
    assert items["logs"] == pytest.approx(2 * 1000 * 1500 / 1e9 * 0.5)


def test_what_a_job_pays_around_its_compute_is_told_in_milliseconds() -> None:
    """So many milliseconds of serverless at that size cost as much as message, record and objects of one job."""
    items = BILL.whole_batch()
    around = sum(items[name] for name in ("queue", "records", "audit and storage", "objects")) / 1000
    assert BILL.around_ms(2048) / 1e3 * 0.00004 == pytest.approx(around)


def test_a_record_is_read_by_every_audit_while_it_is_kept() -> None:
    """Seven days of four scans read half a KB at half a unit for 4 KB; storage is beside it."""
    read, stored = 7 * 4 * 0.0625 * 0.000000125, 0.5e-6 * 7 / 30 * 0.25
    assert BILL.whole_batch()["audit and storage"] == pytest.approx(1000 * (read + stored))


def test_a_data_set_pays_for_its_compute_and_once_for_the_rest() -> None:
    """What a single job pays around its compute is spread over every record."""
    items = BILL.whole_dataset()
    around = sum(BILL.whole_batch().values()) - BILL.batch()
    assert items["compute"] == pytest.approx(BILL.batch())
    assert items["everything else, once"] == pytest.approx(around / 10_000)


def test_a_synchronous_request_pays_for_the_function_that_waits() -> None:
    """The wait for the model is in the function's time; serverless does not bill the way to it."""
    items = BILL.whole_serverless(2048)
    waits_s = 0.1 + 0.010 + 0.002
    assert items["functions"] == pytest.approx(1000 * (0.0000002 + waits_s * 0.0000133334))
    assert items["compute"] == pytest.approx(0.004)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("share", [0.35, 1.0])
def test_from_the_service_time_told_on_batch_costs_that_share(whole: bool, share: float) -> None:
    """Just there both bills agree, whichever bill is asked about."""
    turn_ms = BILL.service_time_ms(share, 4096, whole=whole)
    assert turn_ms is not None
    there = Bill(SERVICE.scaled(turn_ms / 100), PRICES, ASSUMED)
    if whole:
        batch, serverless = sum(there.whole_batch().values()), sum(there.whole_serverless(4096).values())
    else:
        batch, serverless = there.batch(), there.serverless(4096)
    assert batch == pytest.approx(share * serverless)


def test_from_the_number_of_requests_told_on_batch_costs_that_share() -> None:
    """Start-up is spread over the records of a job; with so many it is small enough."""
    count = BILL.requests_per_job(1.0, 2048)
    assert count is not None
    assert BILL.batch(count) == pytest.approx(BILL.serverless(2048), rel=1e-6)


def test_what_no_job_reaches_is_never() -> None:
    """Where work alone costs more than the share, neither longer requests nor larger jobs help."""
    assert BILL.requests_per_job(0.01, 2048) is None
    assert BILL.service_time_ms(0.01, 2048, whole=True) is None


def test_assumptions_are_changed_by_name() -> None:
    """A number in the field's own kind; an unknown name or another kind is an error that says so."""
    assert Assumptions().changed({"vcpus": "8", "polls": "3"}).vcpus == 8
    with pytest.raises(ValueError, match="nothing is assumed of speed"):
        Assumptions().changed({"speed": "1"})
    with pytest.raises(ValueError, match="vcpus is no int: 'many'"):
        Assumptions().changed({"vcpus": "many"})
