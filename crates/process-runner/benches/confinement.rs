//! Measures the cost of a confinement: the same run without and with it, in turn.
//!
//! `cargo bench -p process-runner --bench confinement`
//!
//! Needs Linux with Landlock, and `/bin/true`.
#![allow(clippy::expect_used, reason = "a benchmark that cannot measure has nothing to say")]
#![allow(clippy::print_stdout, reason = "the table is what a benchmark is for")]

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use process_runner::{Command, Confinement};
use support::{RunCost, gate, heading, measure, median, row};

const ROUNDS: usize = 15;
const RUNS: u32 = 100;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let status = Confinement::available().expect("Landlock");
    println!("{status}");
    let folder = tempfile::tempdir().expect("a folder");
    let few = Confinement::new().read("/usr").read("/etc").write("/dev/null").write(folder.path());
    let project = Confinement::project([folder.path()], folder.path());
    let caches = tempfile::tempdir().expect("a folder");
    let mut many = project.clone().network(false);
    for number in 0..100 {
        let path = caches.path().join(number.to_string());
        #[allow(clippy::disallowed_methods, reason = "a benchmark's own folder")]
        std::fs::create_dir(&path).expect("a folder");
        many = many.read(path);
    }
    let ways: [(&str, Option<Confinement>); 4] = [
        ("free", None),
        ("4 paths", Some(few)),
        ("`Confinement::project`", Some(project)),
        ("the same, without network, and 100 folders", Some(many)),
    ];
    let mut costs = vec![(Vec::new(), Vec::new()); ways.len()];
    for round in 0..=ROUNDS {
        for ((_, confinement), (costs, each)) in ways.iter().zip(&mut costs) {
            let confinement = confinement.clone();
            let work = async move {
                let mut walls = Vec::new();
                for _ in 0..RUNS {
                    let command = Command::new("/bin/true", "/");
                    let command = match &confinement {
                        Some(confinement) => command.confined(confinement.clone()),
                        None => command,
                    };
                    let start_time = Instant::now();
                    black_box(command.run().await.expect("it starts"));
                    walls.push(start_time.elapsed());
                }
                walls
            };
            let mut walls = Vec::new();
            let cost = measure(|| walls = runtime.block_on(runtime.spawn(work)).expect("no panic"));
            // The first round warms up.
            if round > 0 {
                costs.push(RunCost { cpu: cost.cpu / RUNS, wall: cost.wall / RUNS });
                each.extend(walls);
            }
        }
    }
    heading(
        "Start and wait for /bin/true",
        &["confinement", "own CPU us", "wall us p50", "wall us min", "added CPU us"],
    );
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    let free = micros(median(costs[0].0.clone()).cpu);
    for ((name, _), (costs, mut each)) in ways.iter().zip(costs) {
        each.sort_unstable();
        let cpu = micros(median(costs).cpu);
        let added = match *name {
            "free" => String::new(),
            "`Confinement::project`" => format!("{:.0} ({})", cpu - free, gate(cpu - free, 100.0, "us")),
            _ => format!("{:.0}", cpu - free),
        };
        row(&[
            (*name).into(),
            format!("{cpu:.0}"),
            format!("{:.0}", micros(each[each.len() / 2])),
            format!("{:.0}", micros(each[0])),
            added,
        ]);
    }
}
