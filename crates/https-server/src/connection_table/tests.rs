//! Which connection goes at each limit.

use std::collections::BTreeMap;

use super::*;
use crate::descriptor_limit::DescriptorLimit;

/// A table, and the names of its connections. Each has its own port, by which faults name it.
struct Scene {
    table: Arc<ConnectionTable>,
    slots: BTreeMap<&'static str, ConnectionSlot>,
    requests: BTreeMap<&'static str, EvictionBlocker>,
    names: BTreeMap<SocketAddr, &'static str>,
    faults: Arc<Mutex<Vec<Fault>>>,
}

/// A connection, what happened to it, and at which limit.
type Fault = (SocketAddr, &'static str, ConnectionLimit);

/// A step of a scenario. The first text is the name of a connection.
#[derive(Clone, Copy)]
enum Step {
    /// Opens a connection from an address, ends its handshake, and tells whether it is accepted.
    Open(&'static str, &'static str),
    /// Opens a connection that stays in its handshake.
    Handshake(&'static str, &'static str),
    /// Authenticates a user, and tells whether the connection may stay.
    User(&'static str, &'static str),
    /// Authenticates an administrator on a connection.
    Admin(&'static str),
    /// Begins a request, and tells whether the connection still takes it.
    Begin(&'static str),
    /// Ends the request that was begun.
    End(&'static str),
    /// The peer closes the connection.
    Close(&'static str),
}

use ConnectionLimit::{Address, Connections, Handshakes, LoopbackReserve, User as PerUser};
use Step::{Admin, Begin, Close, End, Handshake, Open, User};

const LIMITS: fn() -> Limits = || Limits {
    connections_max: 3,
    unauthenticated_per_address_max: 100,
    connections_per_user_max: 100,
    handshakes_max: 100,
    loopback_reserve_connections_max: 2,
    ..Limits::default()
};

impl Scene {
    fn new(limits: Limits) -> Self {
        let faults = Arc::new(Mutex::new(Vec::new()));
        let report: ConnectionFaultReporter = {
            let faults = Arc::clone(&faults);
            Arc::new(move |fault| match fault {
                ConnectionFault::Evicted { peer, limit } => {
                    faults.lock().unwrap().push((*peer, "evicted", *limit));
                }
                ConnectionFault::Refused { peer, limit } => {
                    faults.lock().unwrap().push((*peer, "refused", *limit));
                }
                other => panic!("{other}"),
            })
        };
        let table = Arc::new(ConnectionTable::new(limits, report));
        let (slots, requests, names) = Default::default();
        Self { table, slots, requests, names, faults }
    }

    fn open(&mut self, name: &'static str, address: &str) -> bool {
        let peer = SocketAddr::new(address.parse().unwrap(), 1000 + self.names.len() as u16);
        self.names.insert(peer, name);
        let slot = self.table.admit_connection(peer);
        let is_open = slot.is_some();
        self.slots.extend(slot.map(|slot| (name, slot)));
        is_open
    }

    fn take(&mut self, step: Step) -> bool {
        // Times of idleness are told apart by microseconds.
        let last = self.table.server_start.elapsed().as_micros();
        while self.table.server_start.elapsed().as_micros() <= last {
            std::hint::spin_loop();
        }
        match step {
            Open(name, address) => {
                let is_open = self.open(name, address);
                self.slots.get(name).into_iter().for_each(ConnectionSlot::end_handshake);
                is_open
            }
            Handshake(name, address) => self.open(name, address),
            User(name, user) => self.slots[name].assign_connection_to_user(user, false).is_ok(),
            Admin(name) => self.slots[name].assign_connection_to_user("root", true).is_ok(),
            Begin(name) => {
                let begun = self.slots[name].begin_request();
                let has_begun = begun.is_some();
                self.requests.extend(begun.map(|request| (name, request)));
                has_begun
            }
            End(name) => self.requests.remove(name).is_some(),
            Close(name) => self.slots.remove(name).is_some(),
        }
    }

    fn faults(&self) -> Vec<String> {
        let faults = self.faults.lock().unwrap();
        let text = |(peer, what, limit): &Fault| format!("{} {what} {limit:?}", self.names[peer]);
        faults.iter().map(text).collect()
    }
}

/// Takes the steps, all of which must succeed but the last, and compares whether the last one does and what was
/// evicted or refused.
#[track_caller]
fn check(limits: Limits, steps: &[Step], want: bool, faults: &[(&str, &str, ConnectionLimit)]) {
    let mut scene = Scene::new(limits);
    let (last, before) = steps.split_last().unwrap();
    for step in before {
        assert!(scene.take(*step));
    }
    assert_eq!(scene.take(*last), want);
    let want: Vec<String> =
        faults.iter().map(|(name, what, limit)| format!("{name} {what} {limit:?}")).collect();
    assert_eq!(scene.faults(), want);
    // Whatever happened, nothing stays behind.
    scene.slots.clear();
    let open = scene.table.lock();
    let sets = [
        &open.handshaking_connections,
        &open.unauthenticated_connections,
        &open.loopback_reserve_connections,
    ];
    assert!(open.connections_by_number.is_empty() && sets.iter().all(|set| set.is_empty()));
    assert!(
        open.unauthenticated_connections_by_address.is_empty()
            && open.connections_by_user.is_empty()
    );
}

const FAR: &str = "10.0.0.1";
const FARTHER: &str = "10.0.0.2";
const HERE: &str = "127.0.0.1";

#[test]
fn the_oldest_unauthenticated_connection_goes_first() {
    let full = [Open("a", FAR), Open("b", FAR), Open("c", FARTHER)];
    check(LIMITS(), &full, true, &[]);
    let further = |more: &[Step]| [&full[..], more, &[Open("d", FAR)]].concat();
    check(LIMITS(), &further(&[]), true, &[("a", "evicted", Connections)]);
    check(LIMITS(), &further(&[User("a", "jane")]), true, &[("b", "evicted", Connections)]);
    check(LIMITS(), &further(&[Begin("a")]), true, &[("b", "evicted", Connections)]);
    check(LIMITS(), &further(&[Admin("a"), Begin("b")]), true, &[("c", "evicted", Connections)]);
    check(LIMITS(), &further(&[Close("c")]), true, &[]);
}

#[test]
fn then_the_one_that_is_idle_for_the_longest_time() {
    let full = [Open("a", FAR), Open("b", FAR), Open("c", FAR)];
    let users = [User("a", "jane"), User("b", "joe"), User("c", "ada")];
    let further = |more: &[Step]| [&full[..], &users[..], more, &[Open("d", FAR)]].concat();
    check(LIMITS(), &further(&[]), true, &[("a", "evicted", Connections)]);
    let used = [Begin("a"), End("a")];
    check(LIMITS(), &further(&used), true, &[("b", "evicted", Connections)]);
    let used = [Begin("a"), Begin("b"), End("b")];
    check(LIMITS(), &further(&used), true, &[("c", "evicted", Connections)]);
}

/// Who has many idle connections makes room, before somebody who has few.
#[test]
fn the_user_with_the_most_connections_makes_room() {
    let full = [Open("a", FAR), Open("b", FAR), Open("c", FAR)];
    let further = |more: &[Step]| [&full[..], more, &[Open("d", FAR)]].concat();
    let users = [User("a", "jane"), User("b", "joe"), User("c", "joe")];
    check(LIMITS(), &further(&users), true, &[("b", "evicted", Connections)]);
    let used = [&users[..], &[Begin("b")]].concat();
    check(LIMITS(), &further(&used), true, &[("c", "evicted", Connections)]);
    let used = [&used[..], &[Begin("c")]].concat();
    check(LIMITS(), &further(&used), true, &[("a", "evicted", Connections)]);
    let administrator = [Admin("a"), User("b", "joe"), User("c", "ada")];
    check(LIMITS(), &further(&administrator), true, &[("b", "evicted", Connections)]);
}

/// Two users whose connections are all busy leave most of the connections to others.
#[test]
fn two_users_with_busy_connections_leave_room() {
    let descriptors =
        DescriptorLimit { initial_open_files_max: None, current_open_files_max: None };
    let mut scene = Scene::new(Limits::for_connection_count(16, descriptors));
    let busy = ["a", "b", "c", "d", "e", "f"];
    for (n, name) in busy.into_iter().enumerate() {
        assert!(scene.take(Open(name, FAR)));
        let user = if n < 3 { "mallory" } else { "eve" };
        assert_eq!(scene.take(User(name, user)), n % 3 < 2, "an eighth for one user");
        assert!(scene.take(Begin(name)));
        if n % 3 == 2 {
            scene.take(End(name));
            scene.take(Close(name));
        }
    }
    for name in ["g", "h", "i", "j", "k", "l"] {
        assert!(scene.take(Open(name, FARTHER)) && scene.take(User(name, name)));
        assert!(scene.take(Begin(name)));
    }
    assert!(scene.faults().is_empty());
}

/// A request or a watch under way keeps its connection, whoever else wants one.
#[test]
fn a_connection_with_a_request_never_goes() {
    let busy = [
        Open("a", FAR),
        Begin("a"),
        Open("b", FAR),
        User("b", "joe"),
        Begin("b"),
        Open("c", FAR),
        Admin("c"),
        Begin("c"),
    ];
    let further = [&busy[..], &[Open("d", FAR)]].concat();
    check(LIMITS(), &further, false, &[("d", "refused", Connections)]);
    let freed = [&busy[..], &[End("b"), Open("d", FAR)]].concat();
    check(LIMITS(), &freed, true, &[("b", "evicted", Connections)]);
}

#[test]
fn an_evicted_connection_begins_no_request() {
    let full = [Open("a", FAR), Open("b", FAR), Open("c", FAR), Open("d", FAR)];
    let late = [&full[..], &[Begin("a")]].concat();
    check(LIMITS(), &late, false, &[("a", "evicted", Connections)]);
    let late = [&full[..], &[User("a", "jane")]].concat();
    check(LIMITS(), &late, false, &[("a", "evicted", Connections)]);
}

#[test]
fn an_address_counts_until_somebody_has_authenticated() {
    let limits = || Limits { connections_max: 100, unauthenticated_per_address_max: 2, ..LIMITS() };
    let two = [Open("a", FAR), Open("b", FAR)];
    let more = |more: &[Step]| [&two[..], more].concat();
    let third = &[Open("c", FAR)];
    check(limits(), &more(third), true, &[("a", "evicted", Address)]);
    check(limits(), &more(&[Open("c", FARTHER)]), true, &[]);
    check(limits(), &more(&[User("a", "jane"), Open("c", FAR)]), true, &[]);
    check(limits(), &more(&[Begin("a"), Open("c", FAR)]), true, &[("b", "evicted", Address)]);
    let busy = [Begin("a"), Begin("b"), Open("c", FAR)];
    check(limits(), &more(&busy), false, &[("c", "refused", Address)]);
}

#[test]
fn addresses_of_one_network_count_together() {
    let limits = || Limits { connections_max: 100, unauthenticated_per_address_max: 1, ..LIMITS() };
    for (first, second, is_one) in [
        ("10.0.0.1", "::ffff:10.0.0.1", true),
        ("2001:db8::1", "2001:db8::ffff:2", true),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
        ("::1", "::2", false),
    ] {
        let want: &[_] = if is_one { &[("a", "evicted", Address)] } else { &[] };
        check(limits(), &[Open("a", first), Open("b", second)], true, want);
    }
}

#[test]
fn a_user_has_so_many_connections() {
    let limits = || Limits { connections_max: 100, connections_per_user_max: 2, ..LIMITS() };
    let jane = |more: &[Step]| {
        let two = [Open("a", FAR), User("a", "jane"), Open("b", FARTHER), User("b", "jane")];
        [&two[..], &[Open("c", FAR)], more].concat()
    };
    check(limits(), &jane(&[User("c", "jane")]), true, &[("a", "evicted", PerUser)]);
    check(limits(), &jane(&[User("c", "joe")]), true, &[]);
    check(limits(), &jane(&[Admin("c")]), true, &[]);
    let used = [Begin("a"), User("c", "jane")];
    check(limits(), &jane(&used), true, &[("b", "evicted", PerUser)]);
    let busy = [Begin("a"), Begin("b"), User("c", "jane")];
    check(limits(), &jane(&busy), false, &[]);
    // The first user of a connection counts, whoever uses it later.
    check(limits(), &jane(&[User("c", "joe"), User("c", "jane")]), true, &[]);
}

#[test]
fn handshakes_are_given_up_in_their_order() {
    let limits = || Limits { connections_max: 100, handshakes_max: 2, ..LIMITS() };
    let open = [Open("a", FAR), Handshake("b", FAR), Handshake("c", FARTHER)];
    check(limits(), &open, true, &[]);
    let more = [&open[..], &[Handshake("d", FAR)]].concat();
    check(limits(), &more, true, &[("b", "evicted", Handshakes)]);
}

/// If all connections are busy, an administrator of this machine still gets one, and nobody else keeps it.
#[test]
fn the_reserve_is_for_administrators_of_this_machine() {
    let full = [Open("a", FAR), Begin("a"), Open("b", FAR), Begin("b"), Open("c", FAR), Begin("c")];
    let more = |more: &[Step]| [&full[..], more].concat();
    check(LIMITS(), &more(&[Open("d", FAR)]), false, &[("d", "refused", Connections)]);
    check(LIMITS(), &more(&[Open("d", HERE)]), true, &[]);
    check(LIMITS(), &more(&[Open("d", "::1"), Admin("d")]), true, &[]);
    let taken = ("d", "evicted", LoopbackReserve);
    let other = [Open("d", HERE), Begin("d"), User("d", "jane")];
    check(LIMITS(), &more(&other), false, &[taken]);
    let third = [Open("d", HERE), Begin("d"), Open("e", HERE), Open("f", HERE)];
    check(LIMITS(), &more(&third), true, &[taken]);
    let third = [Open("d", HERE), Admin("d"), Open("e", HERE), Open("f", HERE)];
    check(LIMITS(), &more(&third), true, &[("e", "evicted", LoopbackReserve)]);
    let two = [Open("d", HERE), Admin("d"), Begin("d"), Open("e", HERE), Admin("e"), Begin("e")];
    let third = [&two[..], &[Open("f", HERE)]].concat();
    check(LIMITS(), &more(&third), false, &[("f", "refused", Connections)]);
    let third = [&two[..], &[End("d"), Open("f", HERE)]].concat();
    check(LIMITS(), &more(&third), true, &[taken]);
    // What is in the reserve is not in the way of others.
    let freed = [Open("d", HERE), Close("a"), Open("e", FAR)];
    check(LIMITS(), &more(&freed), true, &[]);
}

#[tokio::test(start_paused = true)]
async fn the_reserve_waits_for_an_administrator_for_so_long() {
    for is_administrator in [false, true] {
        let mut scene = Scene::new(LIMITS());
        for step in ["a", "b", "c"].map(|name| [Open(name, FAR), Begin(name)]).concat() {
            scene.take(step);
        }
        scene.take(Open("d", HERE));
        if is_administrator {
            scene.take(Admin("d"));
        }
        let slot = &scene.slots["d"];
        let waiting = tokio::time::timeout(
            2 * scene.table.limits.loopback_reserve_timeout,
            slot.wait_for_eviction(),
        );
        assert_eq!(waiting.await.is_err(), is_administrator);
        let want = if is_administrator { vec![] } else { vec!["d evicted LoopbackReserve"] };
        assert_eq!(scene.faults(), want);
    }
}

#[test]
fn without_descriptors_a_connection_goes() {
    let mut scene = Scene::new(LIMITS());
    assert!(!scene.table.evict_to_free_descriptor(), "there is none");
    for step in [Open("a", FAR), User("a", "jane"), Open("b", FAR)] {
        scene.take(step);
    }
    assert!(scene.table.evict_to_free_descriptor() && scene.table.evict_to_free_descriptor());
    assert_eq!(scene.faults(), ["b evicted Descriptors", "a evicted Descriptors"]);
}
