//! Campaigns on several hosts: brokers that listen at loopback, joined through a tunnel.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::processes::Running;
use super::targets::{Built, assert_whole, corpus, functions, gates};
use crate::ddfuzz::Desk;
use crate::needs;

/// A free port at loopback.
fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Seeds of one file.
fn seeds(desk: &Desk, folder: &str, text: &str) {
    std::fs::create_dir(desk.file(folder)).unwrap();
    desk.write(&format!("{folder}/seed"), text);
}

fn has(out: &Path, text: &str) -> bool {
    corpus(out).values().any(|input| input == text.as_bytes())
}

fn stop(desk: &Desk, mut running: Running) {
    running.signal(libc::SIGINT);
    assert_eq!(running.ends(desk), Some(130), "{}", running.said(desk));
}

/// Merges two directories, and the same again: the union.
fn assert_merged(desk: &Desk, one: &str, other: &str) {
    desk.call(&format!("merge {one} {other} -o union")).exits(0);
    let union = corpus(&desk.file("union"));
    for out in [one, other] {
        assert_whole(&desk.file(out));
        for name in corpus(&desk.file(out)).keys() {
            assert!(union.contains_key(name), "{out}/corpus/{name}");
        }
        let missing = functions(&desk.file(out));
        assert!(
            missing.is_subset(&functions(&desk.file("union"))),
            "{missing:?}"
        );
    }
    let before = crate::outcome::outcome(&desk.file("union"));
    desk.call(&format!("merge {other} {one} -o union")).exits(0);
    let after = crate::outcome::outcome(&desk.file("union"));
    crate::outcome::assert_same(&before, &after, "merged again");
}

#[test]
fn two_campaigns_that_are_joined_exchange_what_is_new_and_what_crashes() {
    let desk = Desk::new();
    if gates(
        &desk,
        "gates",
        Built::Harness,
        &["-DFEW", "-DNONE", "-DSEALED"],
    )
    .is_none()
    {
        return;
    }
    seeds(&desk, "a-seeds", "sealed-one--");
    seeds(&desk, "b-seeds", "sealed-two--");
    let port = port();
    let words = "run --json --plain --max-len 12 --jobs 1";
    let first = format!("{words} --seed 1 --seeds a-seeds --broker {port} -o a -- ./gates");
    let mut first = Running::start(&desk, "a", &first);
    first.until(&desk, "its seed", |desk, _| {
        has(&desk.file("a"), "sealed-one--")
    });
    let second =
        format!("{words} --seed 2 --seeds b-seeds --join 127.0.0.1:{port} -o b -- ./gates");
    let mut second = Running::start(&desk, "b", &second);
    second.says(&desk, &format!("joined 127.0.0.1:{port}"));
    first.until(&desk, "the crash of b", |desk, _| {
        functions(&desk.file("a")).contains("unsealed")
    });
    // What the first had before the other joined reaches it with what comes next; the union
    // has it in any case.
    stop(&desk, second);
    stop(&desk, first);
    assert_merged(&desk, "a", "b");
    desk.is_left_clean();
}

/// A network namespace of its own, as a process that holds it and can be entered.
struct Host(Child);

impl Host {
    fn new(desk: &Desk) -> Option<Host> {
        let mut command = desk.command("unshare");
        command.args([
            "--net",
            "sh",
            "-c",
            "ip link set lo up && echo up && exec sleep 600",
        ]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let mut said = [0; 3];
        let up = child.stdout.take()?.read_exact(&mut said);
        let host = Host(child);
        if up.is_err() {
            needs::missing("network namespaces", "unshare --net, ip link set lo up");
            return None;
        }
        Some(host)
    }

    /// The name of the namespace.
    fn net(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }

    /// Does something there, in a thread of its own.
    fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let net = std::fs::File::open(self.net()).unwrap();
        std::thread::scope(|scope| {
            scope
                .spawn(move || {
                    use std::os::fd::AsRawFd;
                    // SAFETY: this thread alone moves, and ends after its work.
                    let moved = unsafe { libc::setns(net.as_raw_fd(), libc::CLONE_NEWNET) };
                    assert_eq!(moved, 0);
                    work()
                })
                .join()
                .unwrap()
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The tunnel: what connects to `here` in one namespace comes out at `there` in the other. Both
/// ends are sockets of the test; dropped, it is cut.
struct Tunnel {
    ends: std::sync::Arc<std::sync::Mutex<Option<Vec<TcpStream>>>>,
    port: u16,
    digger: Option<std::thread::JoinHandle<()>>,
}

impl Tunnel {
    fn dig(from: &Host, to: &Host, there: u16, here: Option<u16>) -> Tunnel {
        let address = SocketAddr::from(([127, 0, 0, 1], here.unwrap_or(0)));
        let listener = from.within(|| TcpListener::bind(address)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let ends = std::sync::Arc::new(std::sync::Mutex::new(Some(Vec::new())));
        let (shared, net) = (ends.clone(), to.net());
        let to = Host::handle(&net);
        listener.set_nonblocking(true).unwrap();
        let digger = std::thread::spawn(move || {
            while shared.lock().unwrap().is_some() {
                let Ok((near, _)) = listener.accept() else {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                };
                near.set_nonblocking(false).unwrap();
                let Ok(far) = to.connect(there) else { continue };
                for (from, into) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut into) =
                        (from.try_clone().unwrap(), into.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut into);
                        let _ = into.shutdown(std::net::Shutdown::Both);
                    });
                }
                if let Some(ends) = shared.lock().unwrap().as_mut() {
                    ends.extend([near, far]);
                }
            }
        });
        Tunnel {
            ends,
            port,
            digger: Some(digger),
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        for end in self.ends.lock().unwrap().take().into_iter().flatten() {
            let _ = end.shutdown(std::net::Shutdown::Both);
        }
        // It holds the port.
        let _ = self.digger.take().map(std::thread::JoinHandle::join);
    }
}

/// A namespace by its file, for threads that outlive the test's look at its host.
struct Entrance(std::fs::File);

impl Host {
    fn handle(net: &str) -> Entrance {
        Entrance(std::fs::File::open(net).unwrap())
    }
}

impl Entrance {
    fn connect(&self, port: u16) -> std::io::Result<TcpStream> {
        use std::os::fd::AsRawFd;
        let net = self.0.as_raw_fd();
        let call = move || {
            // SAFETY: this thread alone moves, and ends at once.
            unsafe { libc::setns(net, libc::CLONE_NEWNET) };
            TcpStream::connect(("127.0.0.1", port))
        };
        std::thread::scope(|scope| scope.spawn(call).join().unwrap())
    }
}

#[test]
fn two_hosts_exchange_corpus_and_groups_through_a_tunnel_that_is_cut_and_comes_back() {
    let desk = Desk::new();
    if gates(
        &desk,
        "gates",
        Built::Harness,
        &["-DFEW", "-DNONE", "-DSEALED"],
    )
    .is_none()
    {
        return;
    }
    let (Some(one), Some(other)) = (Host::new(&desk), Host::new(&desk)) else {
        return;
    };
    std::fs::create_dir(desk.file("a-seeds")).unwrap();
    std::fs::create_dir(desk.file("b-seeds")).unwrap();
    desk.write("a-seeds/plain", "plain text");
    desk.write("b-seeds/crash", "sealed-two--");
    let words = "run --json --plain --max-len 12 --jobs 1";
    let first = format!("{words} --seed 1 --seeds a-seeds --broker 4000 -o a -- ./gates");
    let mut first = one.within(|| Running::start(&desk, "a", &first));
    first.until(&desk, "its corpus", |desk, _| {
        !corpus(&desk.file("a")).is_empty()
    });
    let tunnel = Tunnel::dig(&other, &one, 4000, None);
    let port = tunnel.port;
    let second =
        format!("{words} --seed 2 --seeds b-seeds --join 127.0.0.1:{port} -o b -- ./gates");
    let mut second = other.within(|| Running::start(&desk, "b", &second));
    second.says(&desk, "joined");
    first.until(&desk, "the crash of b", |desk, _| {
        functions(&desk.file("a")).contains("unsealed")
    });
    drop(tunnel);
    second.says(&desk, "is lost");
    let _tunnel = Tunnel::dig(&other, &one, 4000, Some(port));
    second.says(&desk, &format!("joined 127.0.0.1:{port} again"));
    // A third joins with what none of them can find, and it goes from a to b as well.
    seeds(&desk, "c-seeds", "sealed-one--");
    let third = format!("{words} --seed 3 --seeds c-seeds --join 127.0.0.1:4000 -o c -- ./gates");
    let mut third = one.within(|| Running::start(&desk, "c", &third));
    third.says(&desk, "joined");
    second.until(&desk, "the seed of c", |desk, _| {
        has(&desk.file("b"), "sealed-one--")
    });
    stop(&desk, third);
    stop(&desk, second);
    stop(&desk, first);
    assert_merged(&desk, "a", "b");
}

/// What a campaign says that is to join this port, within 15 seconds.
#[track_caller]
fn refused(desk: &Desk, out: &str, port: u16) {
    let began = Instant::now();
    let words = format!(
        "run --json --seed 1 --max-len 12 --jobs 1 --join 127.0.0.1:{port} -o {out} -- ./gates"
    );
    let said = desk.call(&words).exits(2).json();
    assert!(began.elapsed() < Duration::from_secs(30), "{out}");
    let message = said["error"]["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("127.0.0.1:{port}")),
        "{out}: {said}"
    );
    desk.is_left_clean();
}

#[test]
fn joining_what_is_no_broker_is_an_error() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &[]).is_none() {
        return;
    }
    refused(&desk, "nobody", port());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    refused(&desk, "silent", silent.local_addr().unwrap().port());
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in server.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    refused(&desk, "http", at);
}

#[test]
fn a_port_that_is_in_use_is_an_error() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &[]).is_none() {
        return;
    }
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let words = format!("run --json --seed 1 --jobs 1 --broker {port} -o out -- ./gates");
    let said = desk.call(&words).exits(2).json();
    assert!(
        said["error"]["message"]
            .to_string()
            .contains(&port.to_string()),
        "{said}"
    );
}
