//! [`Demand`]: how many bytes each port has for each other port.

/// A square matrix of bytes: row is sender, column is receiver.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Demand {
    ports: usize,
    bytes: Vec<u64>,
}

impl Demand {
    /// Returns a demand of zero for `ports` ports.
    pub fn new(ports: usize) -> Demand {
        Demand { ports, bytes: vec![0; ports * ports] }
    }

    /// Returns the demand with these rows, one for each sender.
    ///
    /// # Panics
    /// If a row has not as many values as there are rows.
    pub fn from_rows(rows: &[&[u64]]) -> Demand {
        let ports = rows.len();
        assert!(rows.iter().all(|row| row.len() == ports), "a demand matrix is square");
        Demand { ports, bytes: rows.concat() }
    }

    /// Returns the demand of `ports` ports with these bytes, row after row.
    ///
    /// # Panics
    /// If there are not `ports * ports` values.
    pub fn from_bytes(ports: usize, bytes: Vec<u64>) -> Demand {
        assert_eq!(bytes.len(), ports * ports, "a demand matrix is square");
        Demand { ports, bytes }
    }

    /// Returns all entries, row after row.
    pub fn bytes(&self) -> &[u64] {
        &self.bytes
    }

    /// Returns the number of ports.
    pub fn ports(&self) -> usize {
        self.ports
    }

    /// Returns the bytes that `sender` has for `receiver`.
    #[inline]
    pub fn get(&self, sender: usize, receiver: usize) -> u64 {
        self.bytes[sender * self.ports + receiver]
    }

    /// Returns the bytes that `sender` has for `receiver`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, sender: usize, receiver: usize) -> &mut u64 {
        &mut self.bytes[sender * self.ports + receiver]
    }

    /// Returns what `sender` has for each receiver.
    #[inline]
    pub fn row(&self, sender: usize) -> &[u64] {
        &self.bytes[sender * self.ports..][..self.ports]
    }

    /// Returns the rows, one for each sender.
    pub fn rows(&self) -> impl Iterator<Item = &[u64]> {
        // `chunks_exact` panics for chunks of size 0, which a matrix without ports would have.
        self.bytes.chunks_exact(self.ports.max(1))
    }

    /// Returns the bytes that `sender` has for all receivers.
    pub fn sent_by(&self, sender: usize) -> u64 {
        self.row(sender).iter().sum()
    }

    /// Returns the bytes that all senders have for `receiver`.
    pub fn received_by(&self, receiver: usize) -> u64 {
        self.rows().map(|row| row[receiver]).sum()
    }

    /// Returns the bytes of all senders together.
    pub fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Returns the most bytes that a port sends or receives: the matrix's *diameter*, which no schedule of circuits
    /// serves faster than one circuit does.
    pub fn diameter(&self) -> u64 {
        let mut received = vec![0; self.ports];
        let mut most = 0;
        for row in self.rows() {
            most = most.max(row.iter().sum());
            received.iter_mut().zip(row).for_each(|(sum, bytes)| *sum += bytes);
        }
        received.into_iter().fold(most, u64::max)
    }

    /// Returns the most flows that a port sends or receives: a schedule of circuits alone needs as many
    /// configurations.
    pub fn flows_at_a_port(&self) -> usize {
        let sent = self.rows().map(|row| row.iter().filter(|bytes| **bytes > 0).count());
        let received = (0..self.ports).map(|receiver| self.rows().filter(|row| row[receiver] > 0).count());
        sent.chain(received).max().unwrap_or(0)
    }

    /// Adds another demand of as many ports.
    pub fn add(&mut self, other: &Demand) {
        debug_assert_eq!(self.ports, other.ports);
        self.bytes.iter_mut().zip(&other.bytes).for_each(|(bytes, more)| *bytes += more);
    }

    /// Returns the part of the demand that links of `capacity` bytes at every port can carry: each entry is scaled by
    /// the excess of its sender or of its receiver, the larger of the two.
    pub fn within(&self, capacity: u64) -> Demand {
        let received: Vec<u64> = (0..self.ports).map(|port| self.received_by(port)).collect();
        let mut within = self.clone();
        for sender in 0..self.ports {
            let sent = self.sent_by(sender);
            for (receiver, received) in received.iter().enumerate() {
                let load = u128::from(sent.max(*received).max(capacity).max(1));
                let bytes = within.get_mut(sender, receiver);
                *bytes = (u128::from(*bytes) * u128::from(capacity) / load) as u64;
            }
        }
        within
    }

    /// Returns the demand of the pairs of a sender and a receiver that are `kept`.
    pub fn filtered(&self, kept: impl Fn(usize, usize) -> bool) -> Demand {
        let mut demand = self.clone();
        for (place, bytes) in demand.bytes.iter_mut().enumerate() {
            if !kept(place / self.ports, place % self.ports) {
                *bytes = 0;
            }
        }
        demand
    }

    /// Returns the demand with every entry multiplied by `numerator / denominator`, rounded down.
    pub fn scaled(&self, numerator: u64, denominator: u64) -> Demand {
        let scale =
            |bytes: &u64| (u128::from(*bytes) * u128::from(numerator) / u128::from(denominator)) as u64;
        Demand { ports: self.ports, bytes: self.bytes.iter().map(scale).collect() }
    }
}
