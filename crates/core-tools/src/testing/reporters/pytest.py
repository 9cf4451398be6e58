"""Runs pytest, and writes each event when it happens to the file that the first argument names: one JSON object a line.

It is started as `python THIS EVENTS ARGUMENTS...`, which is `python -m pytest ARGUMENTS...` with a plug-in. As a plug-in
of a pytest that somebody else starts, it is run by `python/core_tools_pytest.py`.
"""
import atexit
import copy
import json
import os
import sys

IS_MAIN = __name__ == "__main__"
if IS_MAIN:
    # As `python -m` does: the current folder comes first, not that of this file; neither of them in safe-path mode.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()
    events = open(sys.argv[1], "w", encoding="utf-8", errors="replace", buffering=1)

if IS_MAIN or __name__ == "core_tools_pytest":
    owner = os.getpid()

    MAX_LENGTH = 64 * 1024

    def tidy(value):
        """Returns text that any reader of JSON takes, cut where it is far longer than what a report shows of it."""
        if not isinstance(value, str):
            return value
        if len(value) > MAX_LENGTH:
            left_out = f"[... {len(value) - MAX_LENGTH} characters left out ...]"
            value = value[: MAX_LENGTH // 2] + left_out + value[-MAX_LENGTH // 2 :]
        return value.encode("utf-8", "replace").decode("utf-8")

    def write(event, **fields):
        # A test that forks must not write its parent's report.
        if os.getpid() == owner:
            fields = {name: tidy(value) for name, value in fields.items()}
            events.write(json.dumps({"event": event, **fields}) + "\n")

    if not IS_MAIN:
        write = core_tools_events.write  # noqa: F821 it is of the module that runs this text

    try:
        import pytest
    except ModuleNotFoundError as error:
        message = f"{sys.executable} has no module {error.name}; install it: {sys.executable} -m pip install pytest"
        write("problem", kind="runner_missing", message=message)
        sys.exit(127)

    def subtest_of(report):
        """Returns which subtest a report is of, as a line of its own, or nothing: its test has many under one name."""
        describe = getattr(report, "sub_test_description", None) or getattr(report, "_sub_test_description", None)
        return f"subtest {describe()}:\n" if callable(describe) else ""

    class Reporter:
        def __init__(self, planned_before=0):
            # The number of tests that earlier runs of this process have planned, and those with this one.
            self.planned_before = self.planned = planned_before
            self.tests = {}
            self.skipped_files = 0
            # How often each test was run again, as pytest-rerunfailures does.
            self.reruns = {}
            # True if each worker of pytest-xdist runs every test.
            self.each = False
            self.collected = []
            self.deselected = set()

        def pytest_configure(self, config):
            self.each = getattr(config.option, "dist", "no") == "each"

        def plan(self, tests):
            self.planned = self.planned_before + tests + self.skipped_files
            write("plan", tests=self.planned)

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_collection_modifyitems(self, items):
            self.collected = list(items)
            yield

        def pytest_collection_finish(self, session):
            kept = {id(item) for item in session.items} | self.deselected
            names = {item.nodeid for item in session.items}
            for item in self.collected:
                if id(item) not in kept and item.nodeid not in names:
                    why = "pytest collected it, and a conftest.py or a plug-in removed it without a message"
                    write("not_run", what=item.nodeid, why=why)
            self.plan(len(session.items))

        @pytest.hookimpl(optionalhook=True)
        def pytest_xdist_node_collection_finished(self, node, ids):
            # Each worker of pytest-xdist collects all tests; this process has none of its own.
            if self.each:
                self.planned_before += len(ids)
                self.plan(0)
            else:
                self.plan(len(ids))

        def pytest_deselected(self, items):
            self.deselected.update(id(item) for item in items)
            write("deselected", tests=len(items))

        def pytest_collectreport(self, report):
            if report.failed:
                write("problem", kind="collection_error", message=f"{report.nodeid}: {report.longreprtext}")
            elif report.skipped:
                self.skipped_files += 1
                reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
                write("test", name=report.nodeid, status="skipped", error=reason)

        @pytest.hookimpl(optionalhook=True)
        def pytest_warning_recorded(self, warning_message, when, nodeid, location):
            self.warn(warning_message.category.__name__, str(warning_message.message), nodeid)

        def warn(self, category, message, nodeid):
            """Tells what pytest only warns of: tests that do not run, and failures beside the tests."""
            first = next(iter(message.strip().splitlines()), "")
            if category == "PytestCollectionWarning":
                why, _, file = first.partition(" (from: ")
                name = why.split("'")[1] if why.count("'") > 1 else why
                place = nodeid or file.rstrip(")")
                write("not_run", what=f"{place}::{name}" if place else name, why=f"pytest does not collect it: {why}")
            elif category == "PytestUnhandledCoroutineWarning":
                write("not_run", what=nodeid, why=f"pytest does not run it: {first}")
            elif category == "PytestReturnNotNoneWarning":
                write("note", message=f"{nodeid} returns a value, which pytest does not look at: {first}")
            elif category in ("PytestUnhandledThreadExceptionWarning", "PytestUnraisableExceptionWarning"):
                # Later versions end it with advice.
                lines = message.partition("Enable tracemalloc")[0].strip().splitlines()
                write("note", message=f"beside the tests, in {nodeid or 'the run'}: {first}: {lines[-1] if lines else ''}")

        def pytest_runtest_logstart(self, nodeid, location):
            # It does not say which worker begins.
            if not self.each:
                self.begin(nodeid, location)

        def begin(self, nodeid, location):
            # A decorator or a base class of another file gives a test the location there.
            file, is_named = nodeid.partition("::")[::2]
            is_elsewhere = is_named and location[0].replace(os.sep, "/") != file
            self.tests[nodeid] = {"file": file if is_elsewhere else location[0],
                                  "line": None if is_elsewhere else (location[1] or 0) + 1, "ms": 0.0, "seen": [],
                                  "again": False}
            write("start", name=nodeid)

        def pytest_runtest_logreport(self, report):
            if not self.each:
                self.add(report)
                return
            # A test of two workers is two tests. Other plug-ins get the same report.
            report = copy.copy(report)
            worker = getattr(report, "worker_id", None) or getattr(getattr(report, "node", None), "gateway", None)
            report.nodeid = f"{report.nodeid} [{getattr(worker, 'id', worker)}]"
            if report.nodeid not in self.tests and report.when in ("setup", "call", "teardown"):
                self.begin(report.nodeid, report.location)
            self.add(report)
            if report.when == "teardown":
                self.finish(report.nodeid)

        def add(self, report):
            test = self.tests.get(report.nodeid)
            if report.when not in ("setup", "call", "teardown"):
                # pytest-xdist reports so that a worker died beneath the test; nothing else of the test comes.
                self.tests.pop(report.nodeid, None)
                if report.outcome == "rerun":
                    self.reruns[report.nodeid] = self.reruns.get(report.nodeid, 0) + 1
                    write("discarded", name=report.nodeid)
                if report.failed:
                    at = test or {"file": report.location[0], "line": (report.location[1] or 0) + 1}
                    write("test", name=report.nodeid, status="errored", error=report.longreprtext, file=at["file"],
                          line=at["line"])
                return
            if test is None:
                return
            test["ms"] += report.duration * 1000
            if report.outcome == "rerun":
                # pytest-rerunfailures runs the test again: the result of this attempt does not count.
                test["seen"].clear()
                if not test["again"]:
                    self.reruns[report.nodeid] = self.reruns.get(report.nodeid, 0) + 1
                test["again"] = True
                return
            if report.when != "teardown":
                test["again"] = False
            status = error = None
            subtest = subtest_of(report)
            if subtest and report.skipped:
                # The test around it has a result of its own.
                reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
                name = subtest.strip().rstrip(":")
                write("not_run", what=f"{report.nodeid}: {name}", why=f"the subtest was skipped: {reason}")
                return
            if report.failed:
                status = "failed" if report.when == "call" else "errored"
                output = "".join(f"\n--- {name} ---\n{text}" for name, text in report.sections if text.strip())
                error = subtest + report.longreprtext + output
            elif report.skipped:
                status = "skipped"
                longrepr = report.longrepr
                error = getattr(report, "wasxfail", None) or (longrepr[2] if isinstance(longrepr, tuple) else None)
            elif report.passed and report.when == "call":
                status = "passed"
            if status:
                test["seen"].append((status, error))

        def pytest_runtest_logfinish(self, nodeid):
            if not self.each:
                self.finish(nodeid)

        def finish(self, nodeid):
            test = self.tests.pop(nodeid, None)
            if test is None:
                return
            if test["again"]:
                # The next attempt begins like a test of its own.
                write("discarded", name=nodeid)
                return
            # A test that passes and whose teardown fails is one failure.
            order = ["errored", "failed", "skipped", "passed"]
            seen = sorted(test["seen"], key=lambda one: order.index(one[0])) or [("errored", "it has no outcome")]
            error = "\n".join(text for status, text in seen if text and status == seen[0][0])
            write("test", name=nodeid, status=seen[0][0], error=error or None, duration_ms=round(test["ms"], 3),
                  file=test["file"], line=test["line"], attempts=self.reruns.pop(nodeid, 0) + 1)

        @pytest.hookimpl(trylast=True)
        def pytest_sessionfinish(self):
            write("end")

    if IS_MAIN:
        # An interpreter of the project is in the command; of any other the command does not say which it is.
        if not os.path.abspath(sys.prefix).startswith(os.getcwd() + os.sep):
            version = sys.version.split()[0]
            write("note", message=f"the interpreter is {sys.executable} (Python {version}, pytest {pytest.__version__})")
        sys.exit(pytest.main(sys.argv[2:], plugins=[Reporter()]))

    core_tools_events.begin_process("pytest")  # noqa: F821
    exit_code = None
    # The reporter of the run that is on, and then that of the one before. A run within a run is a test's own.
    reporter = None
    is_running = False

    def tell_exit(code):
        global exit_code
        # A failure of an earlier run stays one.
        exit_code = exit_code or code
        write("exit", code=exit_code)

    @atexit.register
    def died_early():
        # A conftest.py that cannot be loaded, or an option that pytest does not know: it never came to its run.
        if exit_code is None:
            tell_exit(1 if hasattr(sys, "last_type") else 4)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_cmdline_main():
        outcome = yield
        if outcome.excinfo is None:
            tell_exit(int(outcome.get_result() or 0))

    def pytest_configure(config):
        global reporter, is_running
        # The workers of pytest-xdist report to the process that started them.
        if is_running or hasattr(config, "workerinput"):
            return
        if reporter is None:
            core_tools_events.begin_runner("pytest")  # noqa: F821
        is_running = True
        reporter = Reporter(reporter.planned if reporter else 0)
        config.pluginmanager.register(reporter)

    def pytest_unconfigure(config):
        global is_running
        if reporter is not None and config.pluginmanager.is_registered(reporter):
            is_running = False

    def join_next_runs():
        """Adds this plug-in to the runs that follow in this process, whose environment does not name it any more."""
        from _pytest.config import PytestPluginManager

        consider = PytestPluginManager.consider_env

        def consider_env(self):
            consider(self)
            if not is_running and os.getpid() == owner:
                self.import_plugin("core_tools_pytest")

        PytestPluginManager.consider_env = consider_env

    join_next_runs()
