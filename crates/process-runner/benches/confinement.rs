//! Measures the cost of a confinement: the same run without and with each of its levels, in turn.
//!
//! `cargo bench -p process-runner --bench confinement`
//!
//! Needs Linux with Landlock, and `/bin/true`. It also measures the sandboxes that are there: bubblewrap (`bwrap`), and
//! Codex's (`CODEX=…/codex`), and sandbox-runtime (`SRT=…/srt`).
#![allow(clippy::expect_used, reason = "a benchmark that cannot measure has nothing to say")]
#![allow(clippy::print_stdout, reason = "the table is what a benchmark is for")]

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use process_runner::{Command, Confinement, ConfinementLevel};
use support::{RunCost, gate, heading, measure, median, row};

const ROUNDS: usize = 15;
const RUNS: u32 = 100;

/// The most that all layers together may add to the wall time of a start.
const MAX_ADDED_WALL_US: f64 = 2000.0;

/// A way to run `/bin/true`.
struct Way {
    name: String,
    command: Command,
    /// The runs of each round. Fewer for what takes long.
    runs: u32,
}

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
    let command = || Command::new("/bin/true", "/");
    let way = |name: &str, command: Command| Way { name: name.to_owned(), command, runs: RUNS };
    let mut ways = vec![
        way("free", command()),
        way("4 paths, `filesystem`", command().confined(few.level(ConfinementLevel::Filesystem))),
    ];
    for level in ConfinementLevel::ALL.into_iter().skip(1) {
        let confinement = project.clone().level(level);
        ways.push(way(&format!("`Confinement::project`, `{level}`"), command().confined(confinement)));
    }
    ways.push(way("the same, `namespaces`, without network", command().confined(project.network(false))));
    ways.push(way("the same, and 100 folders", command().confined(many)));
    // Codex refuses a home below `/tmp`.
    let home = tempfile::tempdir_in("/var/tmp").expect("a folder");
    ways.extend(other_sandboxes(home.path()));
    let mut costs = vec![(Vec::new(), Vec::new()); ways.len()];
    for round in 0..=ROUNDS {
        for (way, (costs, each)) in ways.iter().zip(&mut costs) {
            let work = async {
                let mut walls = Vec::new();
                for _ in 0..way.runs {
                    let start_time = Instant::now();
                    black_box(way.command.clone().run().await.expect("it starts"));
                    walls.push(start_time.elapsed());
                }
                walls
            };
            let mut walls = Vec::new();
            let cost = measure(|| walls = runtime.block_on(work));
            // The first round warms up.
            if round > 0 {
                costs.push(RunCost { cpu: cost.cpu / way.runs, wall: cost.wall / way.runs });
                each.extend(walls);
            }
        }
    }
    heading(
        "Start and wait for /bin/true",
        &["confinement", "own CPU us", "wall us p50", "wall us min", "added wall us p50"],
    );
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    let mut free = None;
    for (Way { name, .. }, (costs, mut each)) in ways.iter().zip(costs) {
        each.sort_unstable();
        let cpu = micros(median(costs).cpu);
        let wall = micros(each[each.len() / 2]);
        let added = free.map_or(0.0, |free| wall - free);
        let judged = match name.starts_with("`Confinement::project`") {
            true => format!("{added:.0} ({})", gate(added, MAX_ADDED_WALL_US, "us")),
            false if free.is_none() => String::new(),
            false => format!("{added:.0}"),
        };
        free.get_or_insert(wall);
        let min = micros(each[0]);
        row(&[name.clone(), format!("{cpu:.0}"), format!("{wall:.0}"), format!("{min:.0}"), judged]);
    }
    first_start(&runtime, folder.path());
}

/// Measures the first start of a confinement, which makes its namespaces.
fn first_start(runtime: &tokio::runtime::Runtime, folder: &std::path::Path) {
    heading(
        "First start of a confinement, which makes its namespaces",
        &["network", "wall us p50", "wall us min"],
    );
    for network in [true, false] {
        let mut walls: Vec<_> = (0..20)
            .map(|number| {
                let root = folder.join(format!("{network}-{number}"));
                #[allow(clippy::disallowed_methods, reason = "a benchmark's own folder")]
                std::fs::create_dir(&root).expect("a folder");
                let confinement = Confinement::project([root], folder).network(network);
                let start_time = Instant::now();
                runtime
                    .block_on(Command::new("/bin/true", "/").confined(confinement).run())
                    .expect("it starts");
                start_time.elapsed()
            })
            .collect();
        walls.sort_unstable();
        let micros = |duration: Duration| format!("{:.0}", duration.as_secs_f64() * 1e6);
        row(&[network.to_string(), micros(walls[walls.len() / 2]), micros(walls[0])]);
    }
}

/// Returns the sandboxes of others that are there.
fn other_sandboxes(home: &std::path::Path) -> Vec<Way> {
    let mut ways = Vec::new();
    if std::path::Path::new("/usr/bin/bwrap").exists() {
        let arguments = [
            "--ro-bind",
            "/usr",
            "/usr",
            "--ro-bind",
            "/etc",
            "/etc",
            "--symlink",
            "usr/bin",
            "/bin",
            "--symlink",
            "usr/lib",
            "/lib",
            "--symlink",
            "usr/lib64",
            "/lib64",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--tmpfs",
            "/tmp",
            "--unshare-all",
            "/bin/true",
        ];
        let command = Command::new("/usr/bin/bwrap", "/").args(arguments);
        ways.push(Way { name: "bubblewrap, `--unshare-all`".to_owned(), command, runs: 10 });
    }
    #[allow(clippy::disallowed_methods, reason = "the one who runs the benchmark says where it is")]
    if let Ok(codex) = std::env::var("CODEX") {
        let command = Command::new(codex, home).args(["sandbox", "--", "/bin/true"]).env("HOME", home);
        ways.push(Way { name: "`codex sandbox`".to_owned(), command, runs: 3 });
    }
    #[allow(clippy::disallowed_methods, reason = "the one who runs the benchmark says where it is")]
    if let Ok(runtime) = std::env::var("SRT") {
        let command = Command::new(runtime, home).arg("/bin/true").env("HOME", home);
        ways.push(Way { name: "`srt` (sandbox-runtime)".to_owned(), command, runs: 1 });
    }
    ways
}
