//! A live capture of a device as a stream in pcap's format, so that it is analysed as a file is.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use plimsoll_linux::packet_socket::{DeviceKind, PacketSocket, SNAP};
use plimsoll_process::note;

use super::input::Limits;
use crate::signals::Interrupt;

/// The packets of a device, as bytes of a pcap file with timestamps in nanoseconds.
pub(super) struct Live {
    name: String,
    socket: PacketSocket,
    stop: Interrupt,
    until: Option<Instant>,
    packets_max: u64,
    packets: u64,
    with_hardware_time: u64,
    bytes: VecDeque<u8>,
}

impl Live {
    pub(super) fn open(name: &str, limits: Limits, stop: Interrupt) -> anyhow::Result<Live> {
        let socket = PacketSocket::open(name).with_context(|| format!("-i {name}"))?;
        let link_type: u32 = match socket.kind() {
            DeviceKind::Ethernet => 1,
            DeviceKind::Ip => 101,
        };
        let time = limits.time.map(|time| Duration::from_nanos(time.as_ps() / 1_000));
        let mut bytes = VecDeque::new();
        // Magic number of nanoseconds, version 2.4, no offset of the clock, snap length, kind of the first header.
        [0xa1b2_3c4d, 0x0004_0002, 0, 0, SNAP as u32, link_type]
            .iter()
            .for_each(|word: &u32| bytes.extend(word.to_le_bytes()));
        Ok(Live {
            name: name.to_owned(),
            socket,
            stop,
            until: time.and_then(|time| Instant::now().checked_add(time)),
            packets_max: limits.packets.unwrap_or(u64::MAX),
            packets: 0,
            with_hardware_time: 0,
            bytes,
        })
    }

    fn is_over(&self) -> bool {
        self.stop.signal().is_some()
            || self.packets >= self.packets_max
            || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Prints which clock took the timestamps, and the number of lost packets.
    pub(super) fn note_end(&self) {
        let Live { name, packets, with_hardware_time, .. } = self;
        match self.with_hardware_time {
            _ if *packets == 0 => {}
            0 => note!("{name}: the kernel took the timestamps of all {packets} packets"),
            all if all == *packets => note!("{name}: the NIC took the timestamps of all {packets} packets"),
            _ => note!(
                "warning: {name}: the NIC took the timestamps of {with_hardware_time} of {packets} packets and the \
                 kernel the others, by another clock: gaps between them mean nothing"
            ),
        }
        let dropped = self.socket.dropped();
        if dropped > 0 {
            note!(
                "warning: {name}: {dropped} packets were lost, since they came faster than they were analysed"
            );
        }
    }
}

impl Read for Live {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.bytes.is_empty() {
            if self.is_over() {
                return Ok(0);
            }
            let Live { socket, packets, packets_max, with_hardware_time, bytes, .. } = self;
            socket.receive(|packet| {
                if *packets < *packets_max {
                    *packets += 1;
                    *with_hardware_time += u64::from(packet.is_hardware_time);
                    let (second, ns) = (packet.ns / NS_PER_SECOND, packet.ns % NS_PER_SECOND);
                    // Seconds are 32 bits until 2106.
                    let lengths = [packet.data.len() as u32, packet.length as u32];
                    [second as u32, ns as u32, lengths[0], lengths[1]]
                        .iter()
                        .for_each(|word| bytes.extend(word.to_le_bytes()));
                    bytes.extend(packet.data);
                }
            })?;
        }
        self.bytes.read(into)
    }
}

const NS_PER_SECOND: u64 = 1_000_000_000;
