"""Writes events of this process to the file of events of the run, each as a line of JSON."""
import json
import os
import sys
import time

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HERE = os.path.join(FOLDER, "python")
MAX_LENGTH = 64 * 1024
owner = os.getpid()
run = f"{owner}-{time.time_ns():x}"
events = None


def tidy(value):
    """Returns text that any reader of JSON takes, cut where it is far longer than what a report shows of it."""
    if not isinstance(value, str):
        return value
    if len(value) > MAX_LENGTH:
        left_out = f"[... {len(value) - MAX_LENGTH} characters left out ...]"
        value = value[: MAX_LENGTH // 2] + left_out + value[-MAX_LENGTH // 2 :]
    return value.encode("utf-8", "replace").decode("utf-8")


def write(event, **fields):
    global events
    # What a test forks must not write its parent's report.
    if os.getpid() != owner:
        return
    if events is None:
        events = os.open(os.path.join(FOLDER, "events"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    fields = {name: tidy(value) for name, value in fields.items()}
    os.write(events, (json.dumps({"event": event, **fields, "run": run}) + "\n").encode())


def begin_process(program, arguments=None):
    """Tells of the process, in which a runner may end before it reports."""
    script = os.environ.get("TOX_ENV_NAME") or os.environ.get("NOX_CURRENT_SESSION")
    arguments = sys.argv[1:] if arguments is None else arguments
    write("process", program=program, arguments=arguments, folder=os.getcwd(), parent=os.getppid(),
          script=script)


def begin_runner(runner):
    """Tells that a runner in the process reports its tests."""
    write("runner", runner=runner)


def leave():
    """Takes what loads our reporters out of the environment: what the tests start has none."""
    try:
        with open(os.path.join(FOLDER, "environment.json"), encoding="utf-8") as file:
            additions = json.load(file)
    except OSError:
        # The folder is gone: nothing can be loaded from it.
        additions = []
    for name, word, separator in additions:
        words = separator + os.environ.get(name, "") + separator
        if separator + word + separator not in words:
            continue
        rest = words.replace(separator + word + separator, separator, 1)[1:-1]
        if rest:
            os.environ[name] = rest
        else:
            del os.environ[name]
    sys.path[:] = [folder for folder in sys.path if folder != HERE]


def watch_exit():
    """Returns a function that gives the exit code with which the process fails, as far as it is known while it ends."""
    code = None
    leave_process = sys.exit

    def told(status=None):
        nonlocal code
        code = status
        leave_process(status)

    sys.exit = told

    def failure():
        if hasattr(sys, "last_type"):
            return 1
        if code is None or code is False or code == 0:
            return None
        return code & 0xFF if isinstance(code, int) else 1

    return failure
