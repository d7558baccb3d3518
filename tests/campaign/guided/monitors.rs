//! Who else hears how a guided campaign stands.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::processes::Running;
use super::targets::{Built, gates};
use crate::ddfuzz::Desk;

/// Wall time within which a monitor must have reported.
const REPORT_TIME: Duration = Duration::from_secs(60);

#[test]
fn statistics_go_to_a_statsd_server() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &["-DFEW"]).is_none() {
        return;
    }
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(REPORT_TIME)).unwrap();
    let to = server.local_addr().unwrap();
    let words =
        format!("run --json --seed 1 --max-len 16 --jobs 1 --statsd {to} -o out -- ./gates");
    let mut running = Running::start(&desk, "call", &words);
    let mut heard = String::new();
    let mut packet = [0; 1 << 16];
    let began = Instant::now();
    while !(heard.contains("execs_done") && heard.contains("corpus_count")) {
        assert!(began.elapsed() < REPORT_TIME, "{heard}");
        let length = server
            .recv(&mut packet)
            .unwrap_or_else(|error| panic!("{error}: {heard}"));
        heard.push_str(&String::from_utf8_lossy(&packet[..length]));
        heard.push('\n');
    }
    running.signal(libc::SIGINT);
    assert_eq!(running.ends(&desk), Some(130), "{}", running.said(&desk));
    desk.is_left_clean();
}

/// What is served at `/metrics`; empty where nobody answers.
fn metrics(at: SocketAddr) -> String {
    let mut said = String::new();
    if let Ok(mut stream) = TcpStream::connect(at) {
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.read_to_string(&mut said);
    }
    said
}

#[test]
fn prometheus_is_answered_and_a_port_in_use_is_an_error() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &["-DFEW"]).is_none() {
        return;
    }
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = holder.local_addr().unwrap();
    let words = format!("run --json --seed 1 --max-len 16 --jobs 1 --prometheus {at} -o");
    let refused = desk
        .call(&format!("{words} refused -- ./gates"))
        .exits(2)
        .json();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains(&at.to_string()), "{refused}");
    drop(holder);
    let mut running = Running::start(&desk, "call", &format!("{words} out -- ./gates"));
    running.until(&desk, "metrics", |_, _| metrics(at).contains("executions"));
    running.signal(libc::SIGINT);
    assert_eq!(running.ends(&desk), Some(130), "{}", running.said(&desk));
    desk.is_left_clean();
}
