"""A plug-in that `PYTEST_PLUGINS` names: the reporter of `../pytest.py` in a pytest that somebody else starts."""
import os

import core_tools_events

# Not for what the tests start, and not for the workers of pytest-xdist.
core_tools_events.leave()
source = os.path.join(core_tools_events.FOLDER, "pytest.py")
with open(source, encoding="utf-8") as file:
    exec(compile(file.read(), source, "exec"))
