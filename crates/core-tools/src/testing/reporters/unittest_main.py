"""Runs unittest, and writes each event when it happens to the file that the first argument names.

It is started as `python THIS EVENTS ARGUMENTS...`, which is `python -m unittest ARGUMENTS...` with a reporter.
"""
import os
import sys

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    # As `python -m` does: the current folder comes first, not that of this file; neither of them in safe-path mode.
    if getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    else:
        sys.path[0] = os.getcwd()
    sys.path.insert(0, os.path.join(here, "python"))
    import core_tools_events
    import core_tools_unittest

    core_tools_events.leave()
    del sys.argv[1]
    import unittest

    def write(event, **fields):
        # A run of one process: its events need not say whose they are.
        core_tools_events.write(event, **fields)

    class Runner(unittest.TextTestRunner):
        def _makeResult(self):
            return core_tools_unittest.listen(super()._makeResult(), write)

        def run(self, test):
            result = super().run(test)
            write("end")
            return result

    sys.argv[0] = "python -m unittest"
    unittest.main(module=None, testRunner=Runner)
