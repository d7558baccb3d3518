//! What exported tests that run programs have in common: text of Rust, with the standard library
//! alone.

/// A directory of the test's own, and the run of a program within a limit on its time. A program
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

/// How the command ended, `None` where it took longer than `limit`, and what it said last.
fn run(command: &mut Command, limit: Duration) -> (Option<ExitStatus>, String) {
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
    let end = Instant::now() + limit;
    let mut ended = None;
    while ended.is_none() && Instant::now() < end {
        ended = child.try_wait().expect("its end can be waited for");
        if ended.is_none() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    if ended.is_none() {
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = child.kill();
        let _ = child.wait();
    }
    let said = receiver.recv_timeout(Duration::from_secs(5));
    let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
    (ended, said)
}
"#;
