"""A reporter for unittest: it listens to the results that its runner collects, and writes each when it happens."""
import atexit
import functools
import sys
import time
import traceback
import unittest


def name_of(test):
    return test.id() if hasattr(test, "id") else str(test)


def place_of(test):
    """Returns file and line of a test's method."""
    try:
        method = getattr(test, test._testMethodName)
        code = getattr(method, "__wrapped__", method).__func__.__code__
        return code.co_filename, code.co_firstlineno
    except Exception:
        return None, None


def line_in(error, file):
    """Returns the line of a test's own file at which it failed."""
    lines = [frame.lineno for frame in traceback.extract_tb(error[2]) if frame.filename == file]
    return lines[-1] if lines else None


class Listener:
    """Writes the events of one run, whose result calls it."""

    def __init__(self, write):
        self.write = write
        self.started = {}
        # Of a test with failed subtests, these are its failures.
        self.failed = set()

    def start(self, test):
        self.started[name_of(test)] = time.monotonic()
        self.write("start", name=name_of(test))

    def end(self, test, status, error=None, text=None):
        name = name_of(test)
        if status == "passed" and name in self.failed:
            return
        if status in ("failed", "errored"):
            self.failed.add(name)
        began = self.started.get(name)
        file, line = place_of(getattr(test, "test_case", test))
        if error:
            line = line_in(error, file) or line
            text = "".join(traceback.format_exception(*error))
        loading = test.__class__.__name__ == "_FailedTest"
        if loading:
            self.write("problem", kind="collection_error", message=f"{name}: {text}")
            self.write("discarded", name=name)
            return
        duration = (time.monotonic() - began) * 1000 if began else None
        self.write("test", name=name, status=status, error=text, duration_ms=duration, file=file, line=line)


def listen(result, write):
    """Makes a result tell its events, whatever class it is of."""
    listener = Listener(write)

    def wrap(method, before):
        own = getattr(result, method, None)
        if own is None:
            return

        @functools.wraps(own)
        def told(*words):
            before(*words)
            return own(*words)

        setattr(result, method, told)

    wrap("startTest", listener.start)
    wrap("addSuccess", lambda test: listener.end(test, "passed"))
    wrap("addFailure", lambda test, error: listener.end(test, "failed", error))
    wrap("addError", lambda test, error: listener.end(test, "errored", error))
    wrap("addSkip", lambda test, reason: listener.end(test, "skipped", text=str(reason)))
    wrap("addExpectedFailure", lambda test, error: listener.end(test, "skipped", text="it fails as expected"))
    wrap("addUnexpectedSuccess", lambda test: listener.end(test, "failed", text="it was expected to fail, and passed"))

    def subtest(test, part, error):
        if error is None:
            return
        listener.failed.add(name_of(test))
        status = "failed" if issubclass(error[0], test.failureException) else "errored"
        listener.end(part, status, error)
        listener.write("discarded", name=name_of(test))

    wrap("addSubTest", subtest)
    return result


def install(arguments=None, fails_if_empty=False, script=None):
    """Adds the reporter to the runs of this process, one after the other: a run within a run is a test's own. `arguments`
    are those of `python -m unittest` or of Django's `test`, if it is one of them,
    and `script` the file and the arguments of a script."""
    import core_tools_events as own

    Runner = unittest.TextTestRunner
    make, run = Runner._makeResult, Runner.run
    state = {"has_run": False, "is_running": False, "is_first": False, "code": 0}

    def make_result(self):
        # The result of the run itself, and not of one that a test makes.
        is_own, state["is_first"] = state["is_first"], False
        return listen(make(self), own.write) if is_own else make(self)

    def run_tests(self, test):
        if state["is_running"]:
            return run(self, test)
        if not state["has_run"]:
            own.leave()
            own.begin_runner("unittest")
        state.update(has_run=True, is_running=True, is_first=True)
        try:
            result = run(self, test)
        finally:
            state["is_running"] = False
        own.write("end")
        # Later versions of unittest's own program fail where it runs no test.
        is_empty = fails_if_empty and result.testsRun == 0 and not result.skipped
        code = 5 if is_empty and sys.version_info >= (3, 12) and result.wasSuccessful() else 0
        # A failure of an earlier run stays one.
        state["code"] = state["code"] or (code if result.wasSuccessful() else 1)
        own.write("exit", code=state["code"])
        return result

    def died_early():
        if not state["has_run"]:
            has_asked = bool({"-h", "--help"} & set(arguments))
            own.write("exit", code=0 if has_asked else 1 if hasattr(sys, "last_type") else 2)

    run_suite = unittest.TestSuite.run

    def run_alone(self, result, debug=False):
        """Reports a suite that a script runs without a runner."""
        if state["is_running"] or debug:
            return run_suite(self, result, debug)
        if not state["has_run"]:
            own.leave()
            own.begin_runner("unittest")
        state.update(has_run=True, is_running=True)
        if not getattr(result, "_core_tools_listens", False):
            listen(result, own.write)
            result._core_tools_listens = True
        try:
            return run_suite(self, result, debug)
        finally:
            state["is_running"] = False
            own.write("end")
            is_success = getattr(result, "wasSuccessful", lambda: True)()
            state["code"] = state["code"] or (0 if is_success else 1)
            own.write("exit", code=state["code"])

    Runner._makeResult, Runner.run = make_result, run_tests
    unittest.TestSuite.run = run_alone
    if arguments is None:
        # Before its tests, so that its report is not taken for that of another script.
        own.begin_process("python", script)
        failure = own.watch_exit()

        def failed_without_run():
            code = failure()
            if not state["has_run"] and code is not None:
                own.write("exit", code=code)

        atexit.register(failed_without_run)
    else:
        own.begin_process("unittest", arguments)
        atexit.register(died_early)
