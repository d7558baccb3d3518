//! What exported tests that run programs have in common: text of Rust, with the standard library
//! alone.

use super::Reproducer;

/// The constants of the limits on a run: of processor time in milliseconds, and of memory in
/// bytes, where there are such limits.
pub(super) fn limits(of: &Reproducer, time: Option<u64>, memory: Option<u64>) -> String {
    let time = match time {
        Some(limit) => format!("Some(Duration::from_millis({limit}))"),
        None => "None".to_owned(),
    };
    format!(
        "/// Limit on the time of a run.\nconst LIMIT: Duration = Duration::from_millis({});\n\
         /// Limit on its CPU time.\nconst TIME: Option<Duration> = {time};\n\
         /// Limit on its memory, in bytes.\nconst MEMORY: Option<u64> = {memory:?};\n",
        of.patience().as_millis(),
    )
}

/// A directory of the test's own, and the run of a program within its limits. A program
/// that goes on is killed with all that it has started in its process group; what it says is
/// read all the time, for one that hangs may say without an end.
pub(super) const RUN: &str = r#"
/// A directory that is removed when the test has ended.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("ddfuzz-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a directory for temporary files");
        Scratch(path)
    }

    fn input(&self) -> PathBuf {
        let path = self.0.join("input");
        std::fs::write(&path, INPUT).expect("a file for the input");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How the command ended, or which limit it went over, and what it said last.
fn run(command: &mut Command) -> (Result<ExitStatus, String>, String) {
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.process_group(0).spawn().expect("it can be started");
    let mut stderr = child.stderr.take().expect("it was asked for");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut last, mut part) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = stderr.read(&mut part) {
            last.extend_from_slice(&part[..read]);
            let excess = last.len().saturating_sub(4096);
            last.drain(..excess);
        }
        let _ = sender.send(last);
    });
    let end = Instant::now() + LIMIT;
    let ended = loop {
        // What it has used can be read for as long as nobody has asked how it ended.
        let dead = is_dead(child.id());
        let over = over_limit(child.id());
        if let Some(over) = over.or_else(|| late(end).filter(|_| !dead)) {
            break Err(over);
        }
        if dead {
            break Ok(child.wait().expect("its end can be waited for"));
        }
        std::thread::sleep(Duration::from_millis(if MEMORY.is_some() { 1 } else { 5 }));
    };
    if ended.is_err() {
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = child.kill();
        let _ = child.wait();
    }
    let said = receiver.recv_timeout(Duration::from_secs(5));
    let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
    (ended, said)
}

fn late(end: Instant) -> Option<String> {
    (Instant::now() >= end).then(|| format!("it does not end within {LIMIT:?}"))
}

fn read(id: u32, name: &str) -> String {
    let bytes = std::fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What the kernel tells of a process after its name, which may hold anything.
fn facts(id: u32) -> Vec<String> {
    let stat = read(id, "stat");
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.map(str::to_owned).collect()
}

fn is_dead(id: u32) -> bool {
    let facts = facts(id);
    facts.first().is_none_or(|state| state == "Z" || state == "X")
}

/// Which limit a process is over, with the children that it has waited for.
fn over_limit(id: u32) -> Option<String> {
    if let Some(limit) = TIME {
        // In hundredths of a second.
        let facts = facts(id);
        let used = facts.iter().skip(11).take(4).filter_map(|ticks| ticks.parse::<u64>().ok());
        if Duration::from_millis(used.sum::<u64>() * 10) > limit {
            return Some(format!("it takes more than {limit:?} of processor time"));
        }
    }
    if let Some(limit) = MEMORY {
        let status = read(id, "status");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        if peak.is_some_and(|peak| peak * 1024 > limit) {
            return Some(format!("it takes more than {limit} bytes of memory"));
        }
    }
    None
}
"#;
