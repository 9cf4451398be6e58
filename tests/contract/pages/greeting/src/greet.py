GREETING = "Hello"


def greet(name):
    return f"{GREETING}, {name}!"
