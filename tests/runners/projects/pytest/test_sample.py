import sys
import time

import pytest


def test_passes():
    print("on standard output")


def test_fails():
    print("on standard output")
    print("on standard error", file=sys.stderr)
    assert 1 + 1 == 3


@pytest.mark.skip(reason="not today")
def test_is_skipped():
    pass


@pytest.mark.xfail(reason="known")
def test_is_expected_to_fail():
    assert False


@pytest.mark.parametrize("value", [1, 2, "名前"])
def test_with_parameters(value):
    assert value != 2


@pytest.fixture
def broken():
    raise RuntimeError("no fixture today")


def test_errors(broken):
    pass


def test_is_slow():
    time.sleep(0.05)


def test_überprüft_名前():
    pass
