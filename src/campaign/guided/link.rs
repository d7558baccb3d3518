//! The link to a broker on another host.
//!
//! LibAFL's own way to join one (`connect_b2b`) numbers its clients as if no worker had come
//! before or came after, and workers then ignore each other's messages. So the one who joins is a
//! relay: to both brokers it is another broker that has called.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crossbeam::channel::Sender;
use libafl::Error;
use libafl_bolts::llmp::{TcpRequest, TcpResponse, send_tcp_msg};

/// So long the other broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries to reach it again.
const PAUSE: Duration = Duration::from_secs(5);
/// The longest message, in bytes: what is longer is nonsense.
const LONGEST: u32 = 1 << 30;
/// The longest one with which a broker says who it is.
const LONGEST_GREETING: u32 = 1 << 16;
/// The length of what tells the length of a message.
const LENGTH: usize = 4;

/// Joins the broker at `other` with ours, which listens at `port`, and keeps them joined for as
/// long as this process lives. What happens to the link later on goes to `notes`.
///
/// # Errors
/// When the other broker cannot be reached now, or is none.
pub(super) fn join(other: SocketAddr, port: u16, notes: Sender<String>) -> Result<(), Error> {
    let ours = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut ends = (call(other)?, call(ours)?);
    std::thread::spawn(move || {
        loop {
            relay(ends);
            let lost = format!("the link to {other} is lost; trying again");
            if notes.send(lost).is_err() {
                return;
            }
            ends = loop {
                std::thread::sleep(PAUSE);
                if let (Ok(there), Ok(here)) = (call(other), call(ours)) {
                    break (there, here);
                }
            };
            drop(notes.send(format!("joined {other} again")));
        }
    });
    Ok(())
}

/// Calls a broker as another broker does.
fn call(broker: SocketAddr) -> Result<TcpStream, Error> {
    let mut stream = TcpStream::connect_timeout(&broker, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let greeting = receive(&stream, LONGEST_GREETING)?.split_off(LENGTH);
    let TcpResponse::BrokerConnectHello { .. } = greeting.try_into()? else {
        return Err(Error::illegal_state("it is no broker of LibAFL"));
    };
    let hostname = "ddfuzz".to_owned();
    send_tcp_msg(&mut stream, &TcpRequest::RemoteBrokerHello { hostname })?;
    let accepted = receive(&stream, LONGEST_GREETING)?.split_off(LENGTH);
    let TcpResponse::RemoteBrokerAccepted { .. } = accepted.try_into()? else {
        return Err(Error::illegal_state("it accepts no other broker"));
    };
    stream.set_read_timeout(None)?;
    Ok(stream)
}

/// Passes messages on in both directions until one end is closed.
fn relay((there, here): (TcpStream, TcpStream)) {
    std::thread::scope(|scope| {
        let both = [(&there, &here), (&here, &there)];
        for (from, to) in both {
            scope.spawn(move || {
                // However it ends, the other direction ends as well.
                let _ = pass_on(from, to);
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
}

/// Passes on whole messages, each in one piece: a broker waits for the second half of what it has
/// begun to read only for a moment.
fn pass_on(from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    loop {
        to.write_all(&receive(from, LONGEST)?)?;
    }
}

/// A message, with the length before it. LibAFL's own function panics at one that is cut off.
fn receive(mut from: &TcpStream, longest: u32) -> io::Result<Vec<u8>> {
    let mut length = [0; LENGTH];
    from.read_exact(&mut length)?;
    let count = u32::from_be_bytes(length);
    if count > longest {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = Vec::new();
    message.extend(length);
    from.take(u64::from(count)).read_to_end(&mut message)?;
    if message.len() != LENGTH + count as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(message)
}
