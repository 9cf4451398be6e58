//! Paths and links put together by chance.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use proptest::prelude::*;

use super::RootsFixture;
use crate::{Error, PathKind, Workspace};

/// Paths of names that exist, links of every sort, `..`, and now and then an absolute beginning.
fn requests() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "..",
        ".",
        "src",
        "lib.rs",
        "in",
        "out",
        "up",
        "abs_in",
        "abs_out",
        "other",
        "outside",
        "secret.txt",
        "root",
        "root2",
        "twin.txt",
        "guide.md",
        "absent",
        "dangling",
        "loop",
        "",
    ]);
    let start =
        prop::sample::select(vec!["", "", "", "", "/", "ROOT/", "OUTER/root/../", "OUTER/root2/", "OTHER/"]);
    (start, prop::collection::vec(part, 0..7)).prop_map(|(start, parts)| start.to_owned() + &parts.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 150, ..ProptestConfig::default() })]

    /// And the kernel and the walk, which share no code, find the same file or both none.
    #[test]
    fn whatever_a_path_opens_lies_beneath_a_root(requests in prop::collection::vec(requests(), 20)) {
        let world = RootsFixture::new();
        world.link("src", "root/in");
        world.link("../outside", "root/out");
        world.link("../..", "root/src/up");
        world.link(world.at("root/src"), "root/abs_in");
        world.link(world.at("outside"), "root/abs_out");
        world.link(world.at("other"), "root/src/other");
        world.link("nothing", "root/dangling");
        world.link("loop", "root/loop");
        let [kernel, walking] = world.workspaces();
        let roots = [world.at("root"), world.at("other")];
        let outer = world.at("");
        for request in requests {
            let request = request
                .replace("OUTER", outer.to_str().unwrap().trim_end_matches('/'))
                .replace("ROOT", roots[0].to_str().unwrap())
                .replace("OTHER", roots[1].to_str().unwrap());
            let open = |workspace: &Workspace| {
                let path = workspace.locate(&request)?;
                let metadata = path.metadata()?;
                let place = match metadata.kind {
                    PathKind::File => real_path(path.open_read()?.0.as_raw_fd()),
                    _ => real_path(path.folder_handle()?.as_raw_fd()),
                };
                Ok::<_, Error>(place)
            };
            let (by_kernel, by_walk) = (open(&kernel), open(&walking));
            match (&by_kernel, &by_walk) {
                (Ok(a), Ok(b)) => {
                    prop_assert_eq!(a, b);
                    prop_assert!(roots.iter().any(|root| a.starts_with(root)), "{} is {}", request, a.display());
                }
                (Err(a), Err(b)) => prop_assert_eq!(a.to_string(), b.to_string()),
                (a, b) => prop_assert!(false, "{}: {:?} and {:?}", request, a, b),
            }
        }
    }
}

fn real_path(descriptor: i32) -> PathBuf {
    fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap()
}
