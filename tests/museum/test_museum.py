"""tinote gives the right value for each report; the record has what each peer gave."""

import pytest

import tinote as ti
from tests.museum.exhibits import PACKAGES, Report, as_expected, call, close, recorded, reports, verdict

ALL = reports()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("report", ALL, ids=lambda report: report.name)
def test_the_value_is_right(report: Report) -> None:
    result = call(report.name, report.program("tinote") or "", ti)
    assert as_expected(report, {"value": result}), f"{result} for {report.ours}: {report.situation}"


def test_every_peer_that_a_report_has_a_program_for_is_recorded() -> None:
    found = recorded()
    assert found.keys() == PACKAGES.keys() - {"tinote"}
    for package, entry in found.items():
        assert entry["version"]
        wanted = {report.name for report in ALL if report.program(package)}
        assert entry["results"].keys() == wanted, "run `python -m tests.museum --peer-python PATH`"


def test_reports_are_of_public_addresses_and_of_one_each() -> None:
    addresses = [report.address for report in ALL]
    assert len(set(addresses)) == len(addresses) >= 40
    assert all(address.startswith("https://github.com/") for address in addresses)


def test_what_counts_as_the_same() -> None:
    assert close([1.0, [2]], [1.0 + 1e-9, [2.0]], 1e-8)
    assert not close([1.0], [1.0, 1.0], 1e-8)
    assert not close([0.0], [1e-3], 1e-5)
    report = next(report for report in ALL if not report.convention)
    assert verdict(report, {"value": report.right}) == "right"
    assert verdict(report, {"value": None}) == "wrong"
    assert verdict(report, {"error": "E"}) == "refused"
    assert verdict(report, {"crashed": -11}) == "ended"
