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


def django_arguments():
    """Returns the arguments of Django's own command, if it is to run tests."""
    words = getattr(sys, "orig_argv", [])
    for index in range(1, len(words)):
        is_django = os.path.basename(words[index]) in ("manage.py", "django-admin")
        if is_django or words[index - 1 : index + 1] == ["-m", "django"]:
            return words[index + 1 :] if words[index + 1 : index + 2] == ["test"] else None
    return None


def script_arguments():
    """Returns the file and the arguments of a script of the project."""
    words = getattr(sys, "orig_argv", [])
    at = next((index for index in range(1, len(words)) if not words[index].startswith("-")), 0)
    script = words[at] if at else ""
    if "-m" in words[:at] or "-c" in words[:at] or not script.endswith(".py") or "site-packages" in script:
        return None
    return words[at:]


def uses_unittest(script):
    """Returns true if a script may run its own tests."""
    try:
        with open(script, encoding="utf-8", errors="replace") as file:
            return "unittest" in file.read(1 << 20)
    except OSError:
        return False


def tell_failure(script):
    """Tells of a script that reports no test, if it fails: it may be a test."""
    import atexit

    import core_tools_events as own

    failure = own.watch_exit()

    def told():
        code = failure()
        if code is not None:
            own.begin_process("python", script)
            own.write("exit", code=code)

    atexit.register(told)


# Only where this module is loaded: a Python that ignores `PYTHONPATH` would not find the plug-in, and pytest would fail.
plugins = [word for word in os.environ.get("PYTEST_PLUGINS", "").split(",") if word]
if "core_tools_pytest" not in plugins:
    os.environ["PYTEST_PLUGINS"] = ",".join(plugins + ["core_tools_pytest"])

load_next()
of_unittest = unittest_arguments()
of_django = django_arguments() if of_unittest is None else None
script = script_arguments() if of_unittest is None and of_django is None else None
try:
    if of_unittest is not None or of_django is not None or (script is not None and uses_unittest(script[0])):
        import core_tools_unittest

        # Of these two, later versions of the first fail where there is no test.
        core_tools_unittest.install(of_django if of_unittest is None else of_unittest, of_unittest is not None, script)
    elif script is not None:
        tell_failure(script)
except Exception as error:  # A project may have a module of its own under one of these names.
    sys.stderr.write("the reporter of unittest could not be added: %s\n" % error)
