//! Detection: which runner the files of a folder, or the name of a file, ask for.

mod node;
mod project_files;
mod project_kind;
mod test_file;

pub(crate) use project_files::{LOOKED_FOR, MAKEFILES, runners_of};
pub(crate) use project_kind::{is_django, is_python, is_rule, python_runner, test_program};
pub(crate) use test_file::{runner_by_file, runner_of_lone_file};
