"""Loaded by each Python process of a test command (`PYTHONPATH`). It adds our reporter where unittest runs, and loads
the module of this name that the process would have had without us."""
import os
import sys


def load_next():
    here = os.path.dirname(os.path.abspath(__file__))
    ours = sys.modules.pop("sitecustomize", None)
    path = sys.path[:]
    sys.path[:] = [folder for folder in path if folder != here]
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        sys.modules["sitecustomize"] = ours
    finally:
        sys.path[:] = path


def unittest_arguments():
    """Returns the arguments of `python -m unittest`, or nothing in another process."""
    words = getattr(sys, "orig_argv", [])
    for index in range(len(words)):
        if words[index : index + 2] == ["-m", "unittest"]:
            return words[index + 2 :]
    return None


def is_script_with_unittest():
    """Returns true for a script that runs its own tests."""
    words = getattr(sys, "orig_argv", [])
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    if "-m" in words or "-c" in words or not script.endswith(".py"):
        return False
    try:
        with open(script, encoding="utf-8", errors="replace") as file:
            text = file.read(1 << 20)
    except OSError:
        return False
    return "unittest" in text


# Only where this module is loaded: a Python that ignores `PYTHONPATH` would not find the plug-in, and pytest would fail.
plugins = [word for word in os.environ.get("PYTEST_PLUGINS", "").split(",") if word]
if "core_tools_pytest" not in plugins:
    os.environ["PYTEST_PLUGINS"] = ",".join(plugins + ["core_tools_pytest"])

load_next()
arguments = unittest_arguments()
if arguments is not None or is_script_with_unittest():
    try:
        import core_tools_unittest

        core_tools_unittest.install(arguments)
    except Exception as error:  # A project may have a module of its own under one of these names.
        sys.stderr.write("the reporter of unittest could not be added: %s\n" % error)
