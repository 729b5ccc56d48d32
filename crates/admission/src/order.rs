//! In which order initializers act (admission §6.9).
//!
//! Who waits for whom is a graph over the initializers that matched an object. Sequential ones form a
//! chain in global order; the others add what they name.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};

use crate::initializer::{Initializer, Ordering};

/// The most entries of a pending list.
pub const PENDING_MAX: usize = 64;

/// An entry of an object's pending list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The initializer that has to act.
    pub name: String,
    /// Those of the list that must be done first. `None` if nothing is ordered by a graph; then all
    /// before it in the list must be.
    pub after: Option<Vec<String>>,
}

/// The pending list of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingList {
    /// Such that nobody stands before those it waits for.
    pub entries: Vec<Pending>,
    /// Names that wait for each other in a circle. Validation refuses that, so this is a fault to be
    /// logged; they act in global order.
    pub cycles: Vec<Vec<String>>,
}

/// The pending list of an object that these initializers matched, given in global order.
#[must_use]
pub fn pending(matched: &[&Initializer]) -> PendingList {
    let mut graph = Graph::of(matched);
    let cycles = graph.break_cycles();
    let order = graph.topological();
    let mut place = vec![0; order.len()];
    for (at, idx) in order.iter().enumerate() {
        if let Some(place) = place.get_mut(*idx) {
            *place = at;
        }
    }
    let is_graph = matched.iter().any(|it| matches!(it.ordering, Ordering::Graph { .. }));
    let name = |idx: usize| matched.get(idx).map(|it| it.name.clone()).unwrap_or_default();
    let reversed = graph.reversed();
    let after = |idx: usize| {
        let mut before = reversed.get(idx).cloned().unwrap_or_default();
        before.sort_unstable_by_key(|idx| place.get(*idx).copied());
        before.into_iter().map(name).collect()
    };
    let entry = |idx: usize| Pending { name: name(idx), after: is_graph.then(|| after(idx)) };
    PendingList {
        entries: order.iter().map(|idx| entry(*idx)).collect(),
        cycles: cycles.into_iter().map(|cycle| cycle.into_iter().map(name).collect()).collect(),
    }
}

/// The entries of a pending list that may act now, by position. The first one always may.
#[must_use]
pub fn runnable(pending: &[Pending]) -> Vec<usize> {
    let names: HashSet<&str> = pending.iter().map(|entry| entry.name.as_str()).collect();
    let may_act = |idx: usize, entry: &Pending| match &entry.after {
        _ if idx == 0 => true,
        None => false,
        Some(after) => !after.iter().any(|name| names.contains(name.as_str())),
    };
    let entries = pending.iter().enumerate();
    entries.filter(|(idx, entry)| may_act(*idx, entry)).map(|(idx, _)| idx).collect()
}

/// Who waits for whom, by position in global order.
#[derive(Debug)]
pub(crate) struct Graph {
    /// For each, those that wait for it.
    next: Vec<BTreeSet<usize>>,
}

impl Graph {
    /// The graph of all configured initializers, whatever their rules.
    pub(crate) fn new(initializers: &[Initializer]) -> Self {
        Self::of(&initializers.iter().collect::<Vec<_>>())
    }

    /// Names that are not among the initializers contribute nothing.
    fn of(initializers: &[&Initializer]) -> Self {
        let mut graph = Self { next: vec![BTreeSet::new(); initializers.len()] };
        let named = initializers.iter().enumerate().map(|(idx, it)| (it.name.as_str(), idx));
        let places: HashMap<&str, usize> = named.collect();
        let place = |name: &String| places.get(name.as_str()).copied();
        let mut previous = None;
        for (idx, initializer) in initializers.iter().enumerate() {
            match &initializer.ordering {
                Ordering::Sequential => {
                    if let Some(previous) = previous.replace(idx) {
                        graph.add(previous, idx);
                    }
                }
                Ordering::Graph { after, before } => {
                    after.iter().filter_map(place).for_each(|other| graph.add(other, idx));
                    before.iter().filter_map(place).for_each(|other| graph.add(idx, other));
                }
            }
        }
        graph
    }

    /// Nobody waits for itself.
    fn add(&mut self, from: usize, to: usize) {
        if from != to
            && let Some(next) = self.next.get_mut(from)
        {
            next.insert(to);
        }
    }

    fn after(&self, idx: usize) -> impl Iterator<Item = usize> {
        self.next.get(idx).into_iter().flatten().copied()
    }

    /// For each, those that it waits for.
    fn reversed(&self) -> Vec<Vec<usize>> {
        let mut reversed = vec![Vec::new(); self.next.len()];
        for (from, next) in self.next.iter().enumerate() {
            for to in next {
                if let Some(own) = reversed.get_mut(*to) {
                    own.push(from);
                }
            }
        }
        reversed
    }

    /// All in an order in which nobody comes before those it waits for; those that are free come in
    /// global order. What is part of a cycle is left out.
    fn topological(&self) -> Vec<usize> {
        let mut n_waiting = vec![0_usize; self.next.len()];
        for to in self.next.iter().flatten() {
            if let Some(n) = n_waiting.get_mut(*to) {
                *n += 1;
            }
        }
        let free = n_waiting.iter().enumerate().filter(|(_, n)| **n == 0);
        let mut free: BinaryHeap<Reverse<usize>> = free.map(|(idx, _)| Reverse(idx)).collect();
        let mut order = Vec::with_capacity(self.next.len());
        while let Some(Reverse(idx)) = free.pop() {
            order.push(idx);
            for to in self.after(idx) {
                if let Some(n) = n_waiting.get_mut(to) {
                    *n -= 1;
                    if *n == 0 {
                        free.push(Reverse(to));
                    }
                }
            }
        }
        order
    }

    /// Replaces the edges inside of each strongly connected component by a chain in global order, and
    /// returns these components.
    fn break_cycles(&mut self) -> Vec<Vec<usize>> {
        let mut components = self.components();
        components.retain(|component| component.len() > 1);
        for component in &mut components {
            component.sort_unstable();
            let members: HashSet<usize> = component.iter().copied().collect();
            for idx in component.iter() {
                if let Some(next) = self.next.get_mut(*idx) {
                    next.retain(|to| !members.contains(to));
                }
            }
            for pair in component.windows(2) {
                self.add(pair[0], pair[1]);
            }
        }
        components.sort();
        components
    }

    /// The strongly connected components. Two walks without recursion: the first finds the order in
    /// which vertices are done, the second collects against the edges in the reverse of it.
    fn components(&self) -> Vec<Vec<usize>> {
        let against = self.reversed();
        let mut is_seen = vec![false; self.next.len()];
        let mut done = Vec::new();
        for start in 0..self.next.len() {
            walk(start, &mut is_seen, &mut done, &|idx| self.after(idx).collect());
        }
        let mut is_seen = vec![false; self.next.len()];
        let mut components = Vec::new();
        for start in done.into_iter().rev() {
            let mut component = Vec::new();
            let back = |idx: usize| against.get(idx).cloned().unwrap_or_default();
            walk(start, &mut is_seen, &mut component, &back);
            if !component.is_empty() {
                components.push(component);
            }
        }
        components
    }

    /// All that wait for themselves by way of others, in global order.
    pub(crate) fn circling(&self) -> BTreeSet<usize> {
        self.components().into_iter().filter(|component| component.len() > 1).flatten().collect()
    }

    /// A shortest way from a vertex back to itself, beginning with it; `None` if there is no way.
    pub(crate) fn cycle_through(&self, start: usize) -> Option<Vec<usize>> {
        let mut came_from: HashMap<usize, usize> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(idx) = queue.pop_front() {
            for to in self.after(idx) {
                if to == start {
                    let mut cycle = vec![idx];
                    while let Some(&from) = cycle.last().and_then(|last| came_from.get(last)) {
                        cycle.push(from);
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if let Entry::Vacant(entry) = came_from.entry(to) {
                    entry.insert(idx);
                    queue.push_back(to);
                }
            }
        }
        None
    }
}

/// Walks depth first from a vertex that was not seen, and notes each vertex when all behind it are
/// done.
fn walk(
    start: usize,
    is_seen: &mut [bool],
    done: &mut Vec<usize>,
    next: &dyn Fn(usize) -> Vec<usize>,
) {
    let mut see =
        |idx: usize| is_seen.get_mut(idx).is_some_and(|seen| !std::mem::replace(seen, true));
    if !see(start) {
        return;
    }
    let mut stack = vec![(start, next(start))];
    while let Some((idx, rest)) = stack.last_mut() {
        match rest.pop() {
            Some(to) if see(to) => stack.push((to, next(to))),
            Some(_) => {}
            None => {
                done.push(*idx);
                stack.pop();
            }
        }
    }
}
