def total(prices, discount=0):
    """What `prices` come to, `discount` per cent off."""
    return sum(prices) - discount
