//! The open connections of a listener: the limits that they count against, and which one is closed when there are
//! too many.
//!
//! A connection counts for its address until somebody has authenticated on it, and for that user from then on. At
//! a limit the server closes another connection and accepts the new one, because a peer that holds connections
//! must not keep others out: first the oldest connection on which nobody has authenticated, then one of the user
//! who has the most connections, of these the one that is idle for the longest time. It never closes one with a
//! request under way. If there is nothing to close, the new connection is refused, unless it comes from a loopback
//! address and the reserve has room.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::connection_fault::{ConnectionFault, ConnectionFaultReporter};
use crate::connection_occupancy::{ConnectionOccupancy, EvictionBlocker};
use crate::limits::Limits;

/// The limit because of which a connection was closed or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnectionLimit {
    /// The number of connections, [`Limits::connections_max`].
    Connections,
    /// The number of handshakes, [`Limits::handshakes_max`].
    Handshakes,
    /// The connections of one address, [`Limits::unauthenticated_per_address_max`].
    Address,
    /// The connections of one user, [`Limits::connections_per_user_max`].
    User,
    /// [`Limits::loopback_reserve_connections_max`], and the time and the users that it is for.
    LoopbackReserve,
    /// The limit of open files of the process.
    Descriptors,
}

impl ConnectionLimit {
    /// Every limit, for metrics that begin with zero.
    pub const ALL: [Self; 6] = [
        Self::Connections,
        Self::Handshakes,
        Self::Address,
        Self::User,
        Self::LoopbackReserve,
        Self::Descriptors,
    ];

    /// The name of the limit in metrics and in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Handshakes => "handshakes",
            Self::Address => "address",
            Self::User => "user",
            Self::LoopbackReserve => "loopback-reserve",
            Self::Descriptors => "descriptors",
        }
    }
}

/// The user may have no further connection: all of the user's connections have requests under way, or the
/// connection belongs to the reserve for administrators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many connections")]
pub struct TooManyConnections;

/// The open connections of one listener.
pub(crate) struct ConnectionTable {
    limits: Limits,
    /// The start of the server, from which times of idleness count.
    server_start: Instant,
    report_fault: ConnectionFaultReporter,
    open: Mutex<OpenConnections>,
}

/// The place of one connection in the table, until it is dropped.
pub(crate) struct ConnectionSlot {
    connection_table: Arc<ConnectionTable>,
    connection_number: u64,
    connection_occupancy: Arc<ConnectionOccupancy>,
    /// The time by which an administrator must have authenticated; `None` outside of the reserve.
    loopback_reserve_deadline: Option<tokio::time::Instant>,
    /// Set by the first authenticated request, so that later ones do not lock the table.
    is_authenticated: AtomicBool,
}

/// The connections by everything that limits count. Numbers grow, so the first number of a set is the oldest
/// connection.
#[derive(Default)]
struct OpenConnections {
    last_connection_number: u64,
    connections_by_number: HashMap<u64, OpenConnection>,
    handshaking_connections: BTreeSet<u64>,
    unauthenticated_connections: BTreeSet<u64>,
    /// The unauthenticated connections by address. An address without any has no entry.
    unauthenticated_connections_by_address: HashMap<AddressGroup, BTreeSet<u64>>,
    /// The connections that count for users. A user without any has no entry.
    connections_by_user: HashMap<Arc<str>, BTreeSet<u64>>,
    /// Connections of the reserve, which are in no other set but `handshaking_connections`.
    loopback_reserve_connections: BTreeSet<u64>,
}

struct OpenConnection {
    peer_address: SocketAddr,
    address_group: AddressGroup,
    connection_owner: ConnectionOwner,
    connection_occupancy: Arc<ConnectionOccupancy>,
}

/// The user or address whose limit a connection counts against.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ConnectionOwner {
    /// Nobody has authenticated yet, so the address counts.
    Nobody,
    /// The user of the first request that was authenticated.
    User(Arc<str>),
    /// An administrator, who has no limit.
    Administrator,
}

/// The addresses that one peer is expected to have: an address of IPv4, or a network of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct AddressGroup(IpAddr);

impl AddressGroup {
    fn new(address: IpAddr) -> Self {
        /// The bits of an IPv6 address that a machine chooses for itself.
        const INTERFACE_BITS: u32 = 64;
        match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let network = address.to_bits() >> INTERFACE_BITS << INTERFACE_BITS;
                Self(IpAddr::V6(network.into()))
            }
            address => Self(address),
        }
    }
}

impl ConnectionTable {
    pub(crate) fn new(limits: Limits, report_fault: ConnectionFaultReporter) -> Self {
        Self { limits, server_start: Instant::now(), report_fault, open: Mutex::default() }
    }

    /// Adds an accepted connection, whose handshake begins. `None` if it must be closed: there is no room for it,
    /// and nothing can be closed for it.
    pub(crate) fn admit_connection(self: &Arc<Self>, peer: SocketAddr) -> Option<ConnectionSlot> {
        let occupancy = Arc::new(ConnectionOccupancy::new(self.server_start));
        let mut faults = Vec::new();
        let admitted = self.lock().admit_connection(peer, &occupancy, &self.limits, &mut faults);
        self.report_faults(&faults);
        let (number, is_reserved) = admitted?;
        let accepted_at = tokio::time::Instant::now();
        Some(ConnectionSlot {
            connection_table: Arc::clone(self),
            connection_number: number,
            connection_occupancy: occupancy,
            loopback_reserve_deadline: is_reserved
                .then(|| accepted_at + self.limits.loopback_reserve_timeout),
            is_authenticated: AtomicBool::new(false),
        })
    }

    /// Closes a connection because the process has no descriptor for a new one. Returns whether there was one to
    /// close.
    pub(crate) fn evict_to_free_descriptor(&self) -> bool {
        let mut faults = Vec::new();
        let is_evicted =
            self.lock().evict_one_connection(ConnectionLimit::Descriptors, &mut faults);
        self.report_faults(&faults);
        is_evicted
    }

    fn report_faults(&self, faults: &[ConnectionFault]) {
        faults.iter().for_each(|fault| (self.report_fault)(fault));
    }

    /// Ignores a poisoned lock: after a panic a connection may be missing from a set, and is then only closed
    /// later than it could be.
    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    pub(crate) fn end_handshake(&self) {
        self.connection_table.lock().handshaking_connections.remove(&self.connection_number);
    }

    /// Begins a request; `None` if the connection was evicted before.
    pub(crate) fn begin_request(&self) -> Option<EvictionBlocker> {
        self.connection_occupancy.begin_request()
    }

    /// Counts the connection for a user, if it counts for nobody yet, and returns whether that changed.
    pub(crate) fn assign_connection_to_user(
        &self,
        user: &str,
        is_administrator: bool,
    ) -> Result<bool, TooManyConnections> {
        if self.is_authenticated.load(Ordering::Acquire) {
            return Ok(false);
        }
        let (table, mut faults) = (&self.connection_table, Vec::new());
        let owner = match is_administrator {
            true => ConnectionOwner::Administrator,
            false => ConnectionOwner::User(user.into()),
        };
        let changed = table.lock().assign_connection_to_user(
            self.connection_number,
            owner,
            &table.limits,
            &mut faults,
        );
        table.report_faults(&faults);
        if changed.is_ok() {
            self.is_authenticated.store(true, Ordering::Release);
        }
        changed
    }

    /// Completes when the connection must be closed at once: it is evicted, or it is in the reserve and no
    /// administrator has authenticated in time.
    pub(crate) async fn wait_for_eviction(&self) {
        if let Some(deadline) = self.loopback_reserve_deadline
            && !self.is_authenticated.load(Ordering::Acquire)
        {
            let evicted = self.connection_occupancy.wait_for_eviction();
            if tokio::time::timeout_at(deadline, evicted).await.is_ok() {
                return;
            }
            if !self.is_authenticated.load(Ordering::Acquire) {
                let mut faults = Vec::new();
                self.connection_table
                    .lock()
                    .evict_from_loopback_reserve(self.connection_number, &mut faults);
                return self.connection_table.report_faults(&faults);
            }
        }
        self.connection_occupancy.wait_for_eviction().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connection_table.lock().remove(self.connection_number);
    }
}

impl std::fmt::Debug for ConnectionSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionSlot")
            .field("number", &self.connection_number)
            .finish_non_exhaustive()
    }
}

impl OpenConnections {
    /// Adds a connection and returns its number, and whether it is in the reserve.
    fn admit_connection(
        &mut self,
        peer: SocketAddr,
        occupancy: &Arc<ConnectionOccupancy>,
        limits: &Limits,
        faults: &mut Vec<ConnectionFault>,
    ) -> Option<(u64, bool)> {
        let address = AddressGroup::new(peer.ip());
        let is_reserved = match self.make_room_for_connection(address, limits, faults) {
            Ok(()) => false,
            Err(_)
                if address.0.is_loopback()
                    && self.make_room_in_loopback_reserve(limits, faults) =>
            {
                true
            }
            Err(limit) => {
                faults.push(ConnectionFault::Refused { peer, limit });
                return None;
            }
        };
        self.last_connection_number += 1;
        let number = self.last_connection_number;
        let owner = ConnectionOwner::Nobody;
        let occupancy = Arc::clone(occupancy);
        self.connections_by_number.insert(
            number,
            OpenConnection {
                peer_address: peer,
                address_group: address,
                connection_owner: owner,
                connection_occupancy: occupancy,
            },
        );
        self.handshaking_connections.insert(number);
        if is_reserved {
            self.loopback_reserve_connections.insert(number);
        } else {
            self.unauthenticated_connections.insert(number);
            self.unauthenticated_connections_by_address.entry(address).or_default().insert(number);
        }
        Some((number, is_reserved))
    }

    /// Closes connections until the limits allow another one from this address, or returns the limit at which
    /// there is none to close.
    fn make_room_for_connection(
        &mut self,
        address: AddressGroup,
        limits: &Limits,
        faults: &mut Vec<ConnectionFault>,
    ) -> Result<(), ConnectionLimit> {
        if let Some(own) = self.unauthenticated_connections_by_address.get(&address)
            && own.len() >= limits.unauthenticated_per_address_max.max(1)
        {
            let oldest = self.evict_oldest_idle(own);
            self.finish_eviction(oldest, ConnectionLimit::Address, faults)?;
        }
        if self.handshaking_connections.len() >= limits.handshakes_max.max(1) {
            let oldest = self.evict_oldest_idle(&self.handshaking_connections);
            self.finish_eviction(oldest, ConnectionLimit::Handshakes, faults)?;
        }
        let n_regular = self
            .connections_by_number
            .len()
            .saturating_sub(self.loopback_reserve_connections.len());
        if n_regular >= limits.connections_max.max(1)
            && !self.evict_one_connection(ConnectionLimit::Connections, faults)
        {
            return Err(ConnectionLimit::Connections);
        }
        Ok(())
    }

    /// Closes a connection of the reserve, if the reserve is full: the oldest on which no administrator has
    /// authenticated, even if it has a request under way, because the reserve is not for its peer.
    fn make_room_in_loopback_reserve(
        &mut self,
        limits: &Limits,
        faults: &mut Vec<ConnectionFault>,
    ) -> bool {
        if self.loopback_reserve_connections.len() < limits.loopback_reserve_connections_max {
            return true;
        }
        let is_unauthenticated = |number: &&u64| {
            self.connections_by_number
                .get(number)
                .is_some_and(|own| own.connection_owner == ConnectionOwner::Nobody)
        };
        if let Some(oldest) =
            self.loopback_reserve_connections.iter().find(is_unauthenticated).copied()
        {
            return self.evict_from_loopback_reserve(oldest, faults);
        }
        let oldest = self.evict_oldest_idle(&self.loopback_reserve_connections);
        self.finish_eviction(oldest, ConnectionLimit::LoopbackReserve, faults).is_ok()
    }

    fn evict_from_loopback_reserve(
        &mut self,
        number: u64,
        faults: &mut Vec<ConnectionFault>,
    ) -> bool {
        let evicted = self
            .connections_by_number
            .get(&number)
            .map(|own| own.connection_occupancy.evict_unconditionally());
        let evicted = evicted.map(|()| number);
        self.finish_eviction(evicted, ConnectionLimit::LoopbackReserve, faults).is_ok()
    }

    /// Closes the oldest connection on which nobody has authenticated, or else an idle one of the user who has
    /// the most connections. Those of administrators go last.
    fn evict_one_connection(
        &mut self,
        limit: ConnectionLimit,
        faults: &mut Vec<ConnectionFault>,
    ) -> bool {
        let evicted = self.evict_oldest_idle(&self.unauthenticated_connections).or_else(|| {
            let users = self.connections_by_user.values();
            let users = users.flat_map(|own| own.iter().map(|&number| (own.len(), number)));
            let administrators = self.connections_by_number.iter().filter(|(number, own)| {
                own.connection_owner == ConnectionOwner::Administrator
                    && !self.loopback_reserve_connections.contains(number)
            });
            self.evict_longest_idle(users.chain(administrators.map(|(&number, _)| (0, number))))
        });
        self.finish_eviction(evicted, limit, faults).is_ok()
    }

    /// Evicts the oldest of these connections that has no request under way.
    fn evict_oldest_idle(&self, numbers: &BTreeSet<u64>) -> Option<u64> {
        let evict = |number: &u64| {
            self.connections_by_number
                .get(number)?
                .connection_occupancy
                .evict_if_idle()
                .then_some(*number)
        };
        numbers.iter().find_map(evict)
    }

    /// Evicts an idle connection: one with the largest weight, of these the one that is idle for the longest time.
    /// Takes time for each connection, so it is for limits at which somebody has authenticated for each of them.
    fn evict_longest_idle(
        &self,
        weighted: impl Iterator<Item = (usize, u64)> + Clone,
    ) -> Option<u64> {
        /// The number of attempts: the chosen connection may begin a request before it is evicted.
        const ATTEMPTS_MAX: usize = 8;
        let rank = |(weight, number): (usize, u64)| {
            let occupancy = &self.connections_by_number.get(&number)?.connection_occupancy;
            occupancy.is_idle().then(|| (Reverse(weight), occupancy.idle_since_us(), number))
        };
        (0..ATTEMPTS_MAX).find_map(|_| {
            let (_, _, idlest) = weighted.clone().filter_map(rank).min()?;
            self.connections_by_number
                .get(&idlest)?
                .connection_occupancy
                .evict_if_idle()
                .then_some(idlest)
        })
    }

    /// Removes an evicted connection from the table and reports it. Returns the limit as an error if none
    /// was evicted.
    fn finish_eviction(
        &mut self,
        evicted: Option<u64>,
        limit: ConnectionLimit,
        faults: &mut Vec<ConnectionFault>,
    ) -> Result<(), ConnectionLimit> {
        let removed = evicted.and_then(|number| self.remove(number)).ok_or(limit)?;
        faults.push(ConnectionFault::Evicted { peer: removed.peer_address, limit });
        Ok(())
    }

    fn assign_connection_to_user(
        &mut self,
        number: u64,
        owner: ConnectionOwner,
        limits: &Limits,
        faults: &mut Vec<ConnectionFault>,
    ) -> Result<bool, TooManyConnections> {
        match self.connections_by_number.get(&number) {
            None => return Err(TooManyConnections),
            Some(own) if own.connection_owner != ConnectionOwner::Nobody => return Ok(false),
            Some(_) => {}
        }
        if self.loopback_reserve_connections.contains(&number) {
            if owner != ConnectionOwner::Administrator {
                self.evict_from_loopback_reserve(number, faults);
                return Err(TooManyConnections);
            }
        } else if let ConnectionOwner::User(user) = &owner
            && let Some(others) = self.connections_by_user.get(user)
            && others.len() >= limits.connections_per_user_max.max(1)
        {
            let idlest = self.evict_longest_idle(others.iter().map(|&number| (0, number)));
            self.finish_eviction(idlest, ConnectionLimit::User, faults)
                .map_err(|_| TooManyConnections)?;
        }
        self.unauthenticated_connections.remove(&number);
        if let Some(entry) = self.connections_by_number.get_mut(&number) {
            remove_from_connection_set(
                &mut self.unauthenticated_connections_by_address,
                &entry.address_group,
                number,
            );
            if let ConnectionOwner::User(user) = &owner {
                self.connections_by_user.entry(Arc::clone(user)).or_default().insert(number);
            }
            entry.connection_owner = owner;
        }
        Ok(true)
    }

    fn remove(&mut self, number: u64) -> Option<OpenConnection> {
        let removed = self.connections_by_number.remove(&number)?;
        self.handshaking_connections.remove(&number);
        self.unauthenticated_connections.remove(&number);
        self.loopback_reserve_connections.remove(&number);
        remove_from_connection_set(
            &mut self.unauthenticated_connections_by_address,
            &removed.address_group,
            number,
        );
        if let ConnectionOwner::User(user) = &removed.connection_owner {
            remove_from_connection_set(&mut self.connections_by_user, user, number);
        }
        Some(removed)
    }
}

/// Removes a connection from the set of a key, and the key with its last connection.
fn remove_from_connection_set<K: std::hash::Hash + Eq>(
    groups: &mut HashMap<K, BTreeSet<u64>>,
    key: &K,
    number: u64,
) {
    if let Some(group) = groups.get_mut(key) {
        group.remove(&number);
        if group.is_empty() {
            groups.remove(key);
        }
    }
}
