//! The folder that a run's reports are written to, outside the project.

use std::path::Path;

/// The reporters of this crate, which are written into the folder for runners to load: name and text.
pub(crate) const REPORTERS: [(&str, &str); 22] = [
    ("pytest.py", include_str!("../reporters/pytest.py")),
    ("events.cjs", include_str!("../reporters/events.cjs")),
    ("only.cjs", include_str!("../reporters/only.cjs")),
    ("preload.cjs", include_str!("../reporters/preload.cjs")),
    ("ava.cjs", include_str!("../reporters/ava.cjs")),
    ("node.mjs", include_str!("../reporters/node.mjs")),
    (NODE_EXIT, include_str!("../reporters/node_exit.cjs")),
    ("mocha.cjs", include_str!("../reporters/mocha.cjs")),
    ("vitest.mjs", include_str!("../reporters/vitest.mjs")),
    ("jest.cjs", include_str!("../reporters/jest.cjs")),
    ("playwright.cjs", include_str!("../reporters/playwright.cjs")),
    ("unittest_main.py", include_str!("../reporters/unittest_main.py")),
    ("python/core_tools_events.py", include_str!("../reporters/python/core_tools_events.py")),
    ("python/core_tools_pytest.py", include_str!("../reporters/python/core_tools_pytest.py")),
    ("python/core_tools_unittest.py", include_str!("../reporters/python/core_tools_unittest.py")),
    ("python/sitecustomize.py", include_str!("../reporters/python/sitecustomize.py")),
    ("ruby/core_tools_events.rb", include_str!("../reporters/ruby/core_tools_events.rb")),
    ("ruby/core_tools_test_unit.rb", include_str!("../reporters/ruby/core_tools_test_unit.rb")),
    ("ruby/core_tools_rspec.rb", include_str!("../reporters/ruby/core_tools_rspec.rb")),
    ("ruby/minitest/core_tools_plugin.rb", include_str!("../reporters/ruby/minitest/core_tools_plugin.rb")),
    ("rspec.rb", include_str!("../reporters/rspec.rb")),
    ("mix.exs", include_str!("../reporters/mix.exs")),
];

/// The module that tells of `process.exit()` in a file with tests of node.
pub(super) const NODE_EXIT: &str = "node_modules/core_tools/exit.cjs";

/// The folder of programs that load a reporter, for `PATH`.
pub(crate) const PROGRAMS_FOLDER: &str = "bin";

/// The programs in that folder: name and text.
pub(crate) const PROGRAMS: [(&str, &str); 1] = [("bin/node", include_str!("../reporters/node.sh"))];

/// The file that these reporters write: one JSON object a line, each written when it happens.
pub(crate) const EVENTS_FILE: &str = "events";

/// The file that tells reporters what of the environment they take away from the tests.
pub(crate) const ENVIRONMENT_FILE: &str = "environment.json";

/// The variable that tells a reporter the path of [`EVENTS_FILE`].
pub(super) const EVENTS_VARIABLE: &str = "CORE_TOOLS_EVENTS";

/// The folder that a run's reports are written to.
pub(crate) struct ReportFolder {
    path: String,
}

impl ReportFolder {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_string_lossy().into_owned() }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> String {
        Path::new(&self.path).join(name).to_string_lossy().into_owned()
    }

    pub(crate) fn events(&self) -> String {
        self.file(EVENTS_FILE)
    }
}
