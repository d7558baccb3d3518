//! The link to a LibAFL broker on another host (`--join`).
//!
//! LibAFL's `connect_b2b` gives the other broker a client number that workers may have too, and
//! clients with equal numbers ignore each other's messages. So the joining side is a relay, which
//! each of the two brokers takes for another broker that has connected.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam::channel::Sender;
use libafl::Error;
use libafl_bolts::llmp::{TcpRequest, TcpResponse, send_tcp_msg};

use crate::lock;

/// Time that a LibAFL broker may take to accept a connection, and to send each of its answers in
/// the handshake.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two attempts to reconnect to the broker of another host.
const RECONNECT_EVERY: Duration = Duration::from_secs(5);
/// Greatest length of a valid message between brokers, in bytes; a longer one ends the connection.
const MAX_MESSAGE: u32 = 1 << 30;
/// Greatest length of a message of the handshake between brokers, in bytes.
const MAX_HANDSHAKE: u32 = 1 << 16;
/// Size in bytes of the length field in front of each message between brokers.
const LENGTH: usize = 4;

/// The connections of a link between two brokers: to the other host's broker and to this campaign's
/// broker, in this order.
type Connections = (TcpStream, TcpStream);

/// A link between the LibAFL broker of this campaign and a broker on another host; dropping it
/// closes the connections for good. It must not outlive this campaign's broker, since the broker of
/// another campaign may later listen at the same port.
pub(super) struct BrokerLink {
    state: Arc<Mutex<LinkState>>,
}

/// The state of a link between the brokers of two hosts: joined, lost (reconnecting), or ended.
enum LinkState {
    Joined(Connections),
    Lost,
    Ended,
}

impl Drop for BrokerLink {
    fn drop(&mut self) {
        let last = std::mem::replace(&mut *lock(&self.state), LinkState::Ended);
        if let LinkState::Joined(ends) = last {
            close(&ends);
        }
    }
}

/// Links the LibAFL broker of this campaign, which listens at `port`, to the broker of another host
/// at `other`, and returns the link. A thread relays their messages, and after a loss tries to
/// reconnect them every 5 seconds, until the link is dropped. Sends notes about losses and
/// reconnections to `notes`. Fails if the first connection fails.
pub(super) fn join(
    other: SocketAddr,
    port: u16,
    notes: Sender<String>,
) -> Result<BrokerLink, Error> {
    let ours = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut ends = (call(other)?, call(ours)?);
    let now = Arc::new(Mutex::new(LinkState::Joined(clone_ends(&ends)?)));
    let link = BrokerLink {
        state: Arc::clone(&now),
    };
    std::thread::spawn(move || {
        loop {
            relay(ends);
            if !set_state(&now, LinkState::Lost) {
                return;
            }
            drop(notes.send(format!(
                "the connection to {other} is lost; trying to reconnect"
            )));
            ends = loop {
                std::thread::sleep(RECONNECT_EVERY);
                if matches!(*lock(&now), LinkState::Ended) {
                    return;
                }
                if let (Ok(there), Ok(here)) = (call(other), call(ours)) {
                    break (there, here);
                }
            };
            let joined =
                clone_ends(&ends).is_ok_and(|copy| set_state(&now, LinkState::Joined(copy)));
            if !joined {
                return close(&ends);
            }
            drop(notes.send(format!("joined {other} again")));
        }
    });
    Ok(link)
}

/// Sets the state `now` of a link to `state`, and returns true. If the link was dropped, changes
/// nothing and returns false.
fn set_state(now: &Mutex<LinkState>, state: LinkState) -> bool {
    let mut now = lock(now);
    if matches!(*now, LinkState::Ended) {
        return false;
    }
    *now = state;
    true
}

fn clone_ends((there, here): &Connections) -> io::Result<Connections> {
    Ok((there.try_clone()?, here.try_clone()?))
}

fn close((there, here): &Connections) {
    // An error means that the connection is closed already.
    let _ = there.shutdown(Shutdown::Both);
    let _ = here.shutdown(Shutdown::Both);
}

/// Connects to the LibAFL broker at `broker` and registers as the broker of another host. Returns
/// the connection. Fails if no LibAFL broker answers within 10 seconds, or it does not accept the
/// connection.
fn call(broker: SocketAddr) -> Result<TcpStream, Error> {
    let mut stream = TcpStream::connect_timeout(&broker, CALL_TIMEOUT)?;
    stream.set_read_timeout(Some(CALL_TIMEOUT))?;
    let hello = receive(&stream, MAX_HANDSHAKE)?.split_off(LENGTH);
    let TcpResponse::BrokerConnectHello { .. } = hello.try_into()? else {
        return Err(Error::illegal_state("there is no LibAFL broker"));
    };
    let hostname = "ddfuzz".to_owned();
    send_tcp_msg(&mut stream, &TcpRequest::RemoteBrokerHello { hostname })?;
    let accepted = receive(&stream, MAX_HANDSHAKE)?.split_off(LENGTH);
    let TcpResponse::RemoteBrokerAccepted { .. } = accepted.try_into()? else {
        return Err(Error::illegal_state("it accepts no other broker"));
    };
    stream.set_read_timeout(None)?;
    Ok(stream)
}

/// Forwards messages between the brokers of two hosts, in both directions, until one connection is
/// closed; then closes both.
fn relay((there, here): Connections) {
    std::thread::scope(|scope| {
        let both = [(&there, &here), (&here, &there)];
        for (from, to) in both {
            scope.spawn(move || {
                // The other direction ends as well.
                let _ = forward(from, to);
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
}

/// Forwards messages from the broker at `from` to the broker at `to` until reading or writing
/// fails. Each message is written whole, since a broker does not wait long for the rest of a
/// message.
fn forward(from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    loop {
        to.write_all(&receive(from, MAX_MESSAGE)?)?;
    }
}

/// Receives a message from a broker, and returns it with its length field of 4 bytes in front;
/// fails if it has more than `longest` bytes or is incomplete (LibAFL's function panics then).
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use crossbeam::channel;
    use libafl_bolts::llmp::{BrokerId, recv_tcp_msg};
    use libafl_bolts::shmem::{ShMem, ShMemProvider};

    use super::super::process::UnlinkedShMem;
    use super::*;

    /// Accepts one connection on `broker` in the way that a LibAFL broker does, for tests; returns
    /// the connection.
    fn accept(broker: &TcpListener) -> TcpStream {
        let (mut stream, _) = broker.accept().unwrap();
        let page = UnlinkedShMem::new().unwrap().new_shmem(4096).unwrap();
        let hello = TcpResponse::BrokerConnectHello {
            broker_shmem_description: page.description(),
            hostname: "here".to_owned(),
        };
        send_tcp_msg(&mut stream, &hello).unwrap();
        let called: TcpRequest = recv_tcp_msg(&mut stream).unwrap().try_into().unwrap();
        assert!(matches!(called, TcpRequest::RemoteBrokerHello { .. }));
        let broker_id = BrokerId(1);
        send_tcp_msg(
            &mut stream,
            &TcpResponse::RemoteBrokerAccepted { broker_id },
        )
        .unwrap();
        stream
    }

    fn broker() -> (TcpListener, SocketAddr) {
        let broker = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = broker.local_addr().unwrap();
        (broker, address)
    }

    #[test]
    fn a_link_passes_whole_messages_on_until_it_is_dropped() {
        let ((there, address), (here, ours)) = (broker(), broker());
        let (notes, received) = channel::unbounded();
        let (link, mut ends) = std::thread::scope(|scope| {
            let ends = scope.spawn(move || (accept(&there), accept(&here)));
            let link = join(address, ours.port(), notes).unwrap();
            (link, ends.join().unwrap())
        });
        let message = [0, 0, 0, 3, 7, 8, 9];
        ends.0.write_all(&message).unwrap();
        let mut passed = [0; 7];
        ends.1.read_exact(&mut passed).unwrap();
        assert_eq!(passed, message);
        drop(link);
        assert_eq!(ends.0.read(&mut passed).unwrap(), 0);
        assert_eq!(ends.1.read(&mut passed).unwrap(), 0);
        // The thread does not reconnect: it ends and drops its sender.
        assert!(received.recv().is_err());
    }
}
