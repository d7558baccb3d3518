//! The link to a broker on another host.
//!
//! LibAFL's own way to join one (`connect_b2b`) numbers its clients as if no worker had come
//! before or came after, and workers then ignore each other's messages. So the joining side is a
//! relay: to both brokers it is another broker that has called.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam::channel::Sender;
use libafl::Error;
use libafl_bolts::llmp::{TcpRequest, TcpResponse, send_tcp_msg};

use crate::campaign_state::lock;

/// How long the other broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries to reach it again.
const PAUSE: Duration = Duration::from_secs(5);
/// The longest message, in bytes: what is longer is nonsense.
const LONGEST: u32 = 1 << 30;
/// The longest greeting of a broker.
const LONGEST_GREETING: u32 = 1 << 16;
/// The size of the length field of a message.
const LENGTH: usize = 4;

/// Both ends of the link: the other broker, and ours.
type Connections = (TcpStream, TcpStream);

/// A link that holds until it is dropped: the broker that it was made for ends then, and another
/// one may be listening in its place.
pub(super) struct Link {
    now: Arc<Mutex<LinkState>>,
}

/// What a link is at the moment.
enum LinkState {
    Joined(Connections),
    Lost,
    Ended,
}

impl Drop for Link {
    fn drop(&mut self) {
        let last = std::mem::replace(&mut *lock(&self.now), LinkState::Ended);
        if let LinkState::Joined(ends) = last {
            close(&ends);
        }
    }
}

/// Joins the broker at `other` with ours, which listens at `port`, and keeps them joined. What
/// happens to the link later on goes to `notes`.
pub(super) fn join(other: SocketAddr, port: u16, notes: Sender<String>) -> Result<Link, Error> {
    let ours = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut ends = (call(other)?, call(ours)?);
    let now = Arc::new(Mutex::new(LinkState::Joined(copy(&ends)?)));
    let link = Link {
        now: Arc::clone(&now),
    };
    std::thread::spawn(move || {
        loop {
            relay(ends);
            if !is_still(&now, LinkState::Lost) {
                return;
            }
            drop(notes.send(format!(
                "the connection to {other} is lost; trying to reconnect"
            )));
            ends = loop {
                std::thread::sleep(PAUSE);
                if matches!(*lock(&now), LinkState::Ended) {
                    return;
                }
                if let (Ok(there), Ok(here)) = (call(other), call(ours)) {
                    break (there, here);
                }
            };
            let joined = copy(&ends).is_ok_and(|copy| is_still(&now, LinkState::Joined(copy)));
            if !joined {
                return close(&ends);
            }
            drop(notes.send(format!("joined {other} again")));
        }
    });
    Ok(link)
}

/// Sets the state of a link, unless it has ended. Whether it has not.
fn is_still(now: &Mutex<LinkState>, state: LinkState) -> bool {
    let mut now = lock(now);
    if matches!(*now, LinkState::Ended) {
        return false;
    }
    *now = state;
    true
}

fn copy((there, here): &Connections) -> io::Result<Connections> {
    Ok((there.try_clone()?, here.try_clone()?))
}

fn close((there, here): &Connections) {
    // One that is closed already is what is wanted.
    let _ = there.shutdown(Shutdown::Both);
    let _ = here.shutdown(Shutdown::Both);
}

/// Calls a broker as another broker does.
fn call(broker: SocketAddr) -> Result<TcpStream, Error> {
    let mut stream = TcpStream::connect_timeout(&broker, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let greeting = receive(&stream, LONGEST_GREETING)?.split_off(LENGTH);
    let TcpResponse::BrokerConnectHello { .. } = greeting.try_into()? else {
        return Err(Error::illegal_state("there is no LibAFL broker"));
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
fn relay((there, here): Connections) {
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use crossbeam::channel;
    use libafl_bolts::llmp::{BrokerId, recv_tcp_msg};
    use libafl_bolts::shmem::{ShMem, ShMemProvider};

    use super::super::process::UnlinkedShMem;
    use super::*;

    /// Accepts one caller as a broker does.
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
        let (notes, said) = channel::unbounded();
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
        // It is not tried again: its thread ends, and with it what it would say.
        assert!(said.recv().is_err());
    }
}
