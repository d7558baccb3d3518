//! Reader for network packets, as capture files contain them: IPv4 and IPv6 with UDP, TCP and ICMP.

use crate::node::{Group, Label, Meaning, Node};
use crate::number::Encoding;
use crate::reader::Reader;
use crate::sum::Sum;

/// Known link-layer headers, which precede an IP packet (Ethernet, Ethernet with a VLAN tag, Linux
/// cooked capture, none): the size of each in bytes, and the offset in it of the number of the
/// network protocol.
const LINKS: [(usize, Option<usize>); 4] =
    [(14, Some(12)), (18, Some(16)), (16, Some(14)), (0, None)];
/// Size, in bytes, of an IPv4 header without options.
const IPV4: usize = 20;
/// Size, in bytes, of an IPv6 header.
const IPV6: usize = 40;
/// Size, in bytes, of a UDP header, and also of an ICMP header.
const UDP: usize = 8;
/// Size, in bytes, of a TCP header without options.
const TCP: usize = 20;

/// Number by which the header of an IP packet states that it contains ICMP.
const IS_ICMP: u8 = 1;
/// Number by which the header of an IP packet states that it contains TCP.
const IS_TCP: u8 = 6;
/// Number by which the header of an IP packet states that it contains UDP.
const IS_UDP: u8 = 17;
/// Number by which the header of an IP packet states that it contains ICMPv6.
const IS_ICMPV6: u8 = 58;

const WORD: Encoding = Encoding::Big(2);

/// Returns the tree nodes of a packet: the header of each layer, which is a deletable part, and the
/// content. `None` if the packet contains no IP packet after a known link-layer header.
pub fn packet(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    LINKS.into_iter().find_map(|(size, protocol)| {
        let ip = text.get(size..).filter(|ip| !ip.is_empty())?;
        let is_there = |kind: &[u8]| protocol.is_none_or(|at| text[at..].starts_with(kind));
        let (nodes, used) = match ip[0] >> 4 {
            4 if is_there(&[0x08, 0x00]) => ipv4(reader, ip)?,
            6 if is_there(&[0x86, 0xdd]) => ipv6(reader, ip)?,
            _ => return None,
        };
        let mut all = Vec::new();
        if size > 0 {
            all.push(head(reader, vec![Node::fixed(&text[..size])]));
        }
        all.extend(nodes);
        all.extend((used < ip.len()).then(|| Node::payload(&ip[used..])));
        Some(all)
    })
}

/// Makes one node of `nodes`, the header of a layer of a packet: a part that can be deleted or, if
/// the file has too many parts already, a group of nodes that cannot be deleted by itself.
fn head(reader: &mut Reader, nodes: Vec<Node>) -> Node {
    match reader.count_part() {
        true => Group::part(reader.label(), nodes).into(),
        false => Group::new(reader.label(), nodes).into(),
    }
}

/// Makes a number that states the size of the group of nodes `of` in words of 4 bytes. The number
/// is in one half of `byte`: the high four bits if `is_high`, else the low ones.
fn words(reader: &Reader, of: Label, byte: u8, is_high: bool) -> Node {
    let rest = byte & if is_high { 0x0f } else { 0xf0 };
    let encoding = Encoding::Words { is_high, rest };
    reader.number(encoding, Meaning::Length(of), 0, &[byte])
}

/// Reads the IPv4 packet at the beginning of `text`; returns its nodes and its size in bytes,
/// `None` if it is cut off.
fn ipv4(reader: &mut Reader, text: &[u8]) -> Option<(Vec<Node>, usize)> {
    let front = usize::from(text[0] & 0xf) * 4;
    let total = usize::try_from(WORD.read_at(text, 2)?).ok()?;
    let is_whole = text.get(6..8)? == [0, 0] || text[6..8] == [0x40, 0];
    let ip = text
        .get(..total)
        .filter(|_| IPV4 <= front && front <= total)?;
    let (of, checked) = (reader.label(), reader.label());
    let mut nodes = vec![
        words(reader, checked, ip[0], false),
        Node::fixed(&ip[1..2]),
        reader.number(WORD, Meaning::Length(of), 0, &ip[2..4]),
        Node::fixed(&ip[4..10]),
        reader.number(WORD, Meaning::Check(Sum::Internet, checked), 0, &ip[10..12]),
        Node::fixed(&ip[12..IPV4]),
    ];
    if IPV4 < front {
        nodes.push(head(reader, vec![Node::fixed(&ip[IPV4..front])]));
    }
    let mut nodes = vec![head(reader, vec![Group::new(checked, nodes).into()])];
    // Later pieces of a packet have no head of the next layer.
    nodes.extend(match is_whole {
        true => transport(reader, &ip[front..], ip[9], of),
        false => reader.payload(&ip[front..]),
    });
    Some((vec![Group::new(of, nodes).into()], total))
}

/// Reads the IPv6 packet at the beginning of `text`; returns its nodes and its size in bytes,
/// `None` if it is cut off.
fn ipv6(reader: &mut Reader, text: &[u8]) -> Option<(Vec<Node>, usize)> {
    let size = usize::try_from(WORD.read_at(text, 4)?).ok()?;
    let ip = text.get(..IPV6 + size)?;
    let (of, content) = (reader.label(), reader.label());
    let nodes = vec![
        Node::fixed(&ip[..4]),
        reader.number(WORD, Meaning::Length(content), 0, &ip[4..6]),
        Node::fixed(&ip[6..IPV6]),
    ];
    let front = head(reader, nodes);
    let inner = transport(reader, &ip[IPV6..], ip[6], of);
    let nodes = vec![front, Group::new(content, inner).into()];
    Some((vec![Group::new(of, nodes).into()], ip.len()))
}

/// Returns the tree nodes of `text`, the content of the IP packet with the label `ip` (id in the
/// file's tree): UDP, TCP, ICMP or ICMPv6 by the number `protocol`, with lengths and checksums that
/// are computed anew; else a payload (changeable bytes).
fn transport(reader: &mut Reader, text: &[u8], protocol: u8, ip: Label) -> Vec<Node> {
    let of = reader.label();
    let check = |reader: &Reader, sum: Sum, of: Label, at: usize| {
        reader.number(WORD, Meaning::Check(sum, of), 0, &text[at..at + 2])
    };
    let (nodes, front) = match protocol {
        IS_UDP if text.len() >= UDP => {
            let nodes = vec![
                Node::fixed(&text[..4]),
                reader.number(WORD, Meaning::Length(of), 0, &text[4..6]),
                check(reader, Sum::Transport, ip, 6),
            ];
            (nodes, UDP)
        }
        IS_TCP if text.len() >= TCP => {
            let front = usize::from(text[12] >> 4) * 4;
            let front = front.clamp(TCP, text.len());
            let whole = reader.label();
            let mut nodes = vec![
                Node::fixed(&text[..12]),
                words(reader, whole, text[12], true),
                Node::fixed(&text[13..16]),
                check(reader, Sum::Transport, ip, 16),
                Node::fixed(&text[18..TCP]),
            ];
            if TCP < front {
                nodes.push(head(reader, vec![Node::fixed(&text[TCP..front])]));
            }
            (vec![Group::new(whole, nodes).into()], front)
        }
        IS_ICMP | IS_ICMPV6 if text.len() >= UDP => {
            let (sum, of) = match protocol {
                IS_ICMP => (Sum::Internet, of),
                _ => (Sum::Transport, ip),
            };
            let nodes = vec![
                Node::fixed(&text[..2]),
                check(reader, sum, of, 2),
                Node::fixed(&text[4..UDP]),
            ];
            (nodes, UDP)
        }
        _ => return reader.payload(text),
    };
    let mut nodes = vec![head(reader, nodes)];
    nodes.extend(reader.payload(&text[front..]));
    vec![Group::new(of, nodes).into()]
}
