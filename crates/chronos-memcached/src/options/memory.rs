//! [`ServerMemory`]: the division of the memory that a control group allows, so that the server stays within it.
//!
//! ```text
//! limit of the group = items (-m) + connections (chronos_connection_memory) + program (threads, -c)
//! ```

use std::fmt;

/// The memory of a server, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServerMemory {
    /// The memory for items, `-m`.
    pub items: u64,
    /// Requests and replies of all connections together.
    pub connections: u64,
    /// Code, threads, rings of the kernel, and an idle connection's socket and state.
    pub program: u64,
}

impl ServerMemory {
    /// Returns the program's part, for these limits of threads and connections. An idle thread with io_uring was
    /// measured to take 2 MB, and a connection 2.5 kB. A thread that is busy with values of 1 MB holds up to 3 MB more,
    /// in one reply that is not counted yet and in free memory, until the allocator returns that. The constant is for
    /// the code (5 MB).
    pub fn of_program(threads: u32, connections: u32) -> u64 {
        (16 << 20) + u64::from(threads) * (5 << 20) + u64::from(connections) * (4 << 10)
    }

    /// Returns the memory that fits into `limit`: connections give way to items down to a fifth of the rest after the
    /// program's part, or `connections_least`, and items get the remainder, at least `items_least`.
    pub fn within(self, limit: u64, connections_least: u64, items_least: u64) -> ServerMemory {
        let left = limit.saturating_sub(self.program);
        let least = connections_least.max(left / 5).min(self.connections);
        let connections = left.saturating_sub(self.items).clamp(least, self.connections);
        let items = left.saturating_sub(connections).max(items_least).min(self.items);
        ServerMemory { items, connections, ..self }
    }

    /// Returns the sum of the three parts.
    pub fn total(self) -> u64 {
        self.items + self.connections + self.program
    }
}

impl fmt::Display for ServerMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [items, connections, program] =
            [self.items, self.connections, self.program].map(|bytes| bytes >> 20);
        write!(f, "{items} MiB for items, {connections} MiB for connections, {program} MiB for the program")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_control_group_is_shared_out() {
        let memory = |[items, connections, program]: [u64; 3]| ServerMemory {
            items: items * MIB,
            connections: connections * MIB,
            program: program * MIB,
        };
        // The limit, the memory asked for, and the result.
        for (limit, asked, expected) in [
            (1000, [160, 40, 30], [160, 40, 30]),
            (230, [160, 40, 30], [160, 40, 30]),
            (225, [160, 40, 30], [156, 39, 30]),
            (200, [160, 40, 30], [136, 34, 30]),
            (80, [64, 32, 30], [40, 10, 30]),
            // More than a fifth, as the largest items need it.
            (45, [64, 32, 30], [11, 4, 30]),
            // The least with which a server runs is more than the limit.
            (35, [64, 32, 30], [8, 4, 30]),
            (10, [4, 32, 30], [4, 4, 30]),
        ] {
            let found = memory(asked).within(limit * MIB, 4 * MIB, 8 * MIB);
            assert_eq!(found, memory(expected), "{limit}");
            assert!(found.total() <= limit * MIB || limit < 42, "{limit}");
        }
        assert_eq!(ServerMemory::of_program(4, 1024) / MIB, 40);
        assert_eq!(
            memory([1, 2, 3]).to_string(),
            "1 MiB for items, 2 MiB for connections, 3 MiB for the program"
        );
    }
}
