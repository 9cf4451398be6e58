from price import total


def test_two_teas():
    assert total([2.5, 2.5]) == 5


def test_discount():
    assert total([20], discount=10) == 18
