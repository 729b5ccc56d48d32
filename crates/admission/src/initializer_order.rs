//! The order in which initializers act.
//!
//! The dependencies between the initializers that match an object form a graph. Sequential initializers form a chain in
//! global order; the others add the dependencies that they name.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};

use crate::initializer::{Initializer, InitializerOrdering};

/// The maximum number of initializers in the pending list of an object.
pub const PENDING_INITIALIZERS_MAX: usize = 64;

/// An entry of `metadata.initializers.pending`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingInitializer {
    /// The name of the initializer that has to act.
    pub name: String,
    /// The entries of the list that must act before this one. `None` if no initializer of the list is ordered by a graph;
    /// then all entries before this one must act first.
    pub after_initializers: Option<Vec<String>>,
}

/// The sorted pending list of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingInitializers {
    /// The entries in topological order.
    pub ordered_entries: Vec<PendingInitializer>,
    /// The names of initializers with cyclic dependencies. Validation refuses cycles, so the caller logs them; these
    /// initializers act in global order.
    pub dependency_cycles: Vec<Vec<String>>,
}

/// Makes the pending list of an object from the initializers that match it, which are in global order.
#[must_use]
pub fn order_pending_initializers(matched: &[&Initializer]) -> PendingInitializers {
    let mut graph = DependencyGraph::from_initializers(matched);
    let cycles = graph.break_cycles();
    let order = graph.topological_order();
    let mut position_of = vec![0; order.len()];
    for (at, idx) in order.iter().enumerate() {
        if let Some(position) = position_of.get_mut(*idx) {
            *position = at;
        }
    }
    let is_graph = matched
        .iter()
        .any(|it| matches!(it.initializer_ordering, InitializerOrdering::Graph { .. }));
    let name = |idx: usize| matched.get(idx).map(|it| it.name.clone()).unwrap_or_default();
    let reversed = graph.predecessors();
    let after = |idx: usize| {
        let mut before = reversed.get(idx).cloned().unwrap_or_default();
        before.sort_unstable_by_key(|idx| position_of.get(*idx).copied());
        before.into_iter().map(name).collect()
    };
    let entry = |idx: usize| PendingInitializer {
        name: name(idx),
        after_initializers: is_graph.then(|| after(idx)),
    };
    PendingInitializers {
        ordered_entries: order.iter().map(|idx| entry(*idx)).collect(),
        dependency_cycles: cycles
            .into_iter()
            .map(|cycle| cycle.into_iter().map(name).collect())
            .collect(),
    }
}

/// Returns the positions of the entries that may act now. The first entry always may.
#[must_use]
pub fn runnable_initializers(pending: &[PendingInitializer]) -> Vec<usize> {
    let names: HashSet<&str> = pending.iter().map(|entry| entry.name.as_str()).collect();
    let may_act = |idx: usize, entry: &PendingInitializer| match &entry.after_initializers {
        _ if idx == 0 => true,
        None => false,
        Some(after) => !after.iter().any(|name| names.contains(name.as_str())),
    };
    let entries = pending.iter().enumerate();
    entries.filter(|(idx, entry)| may_act(*idx, entry)).map(|(idx, _)| idx).collect()
}

/// The dependencies between initializers, by position in global order.
#[derive(Debug)]
pub(crate) struct DependencyGraph {
    /// For each initializer, those that act after it.
    successors: Vec<BTreeSet<usize>>,
}

impl DependencyGraph {
    /// Makes the graph of all configured initializers. Their rules are ignored.
    pub(crate) fn new(initializers: &[Initializer]) -> Self {
        Self::from_initializers(&initializers.iter().collect::<Vec<_>>())
    }

    /// Makes the graph of these initializers. A constraint on a name that is not among them adds no dependency.
    fn from_initializers(initializers: &[&Initializer]) -> Self {
        let mut graph = Self { successors: vec![BTreeSet::new(); initializers.len()] };
        let named = initializers.iter().enumerate().map(|(idx, it)| (it.name.as_str(), idx));
        let places: HashMap<&str, usize> = named.collect();
        let place = |name: &String| places.get(name.as_str()).copied();
        let mut previous = None;
        for (idx, initializer) in initializers.iter().enumerate() {
            match &initializer.initializer_ordering {
                InitializerOrdering::Sequential => {
                    if let Some(previous) = previous.replace(idx) {
                        graph.add_edge(previous, idx);
                    }
                }
                InitializerOrdering::Graph { after, before } => {
                    after.iter().filter_map(place).for_each(|other| graph.add_edge(other, idx));
                    before.iter().filter_map(place).for_each(|other| graph.add_edge(idx, other));
                }
            }
        }
        graph
    }

    /// Adds a dependency, except of an initializer on itself.
    fn add_edge(&mut self, from: usize, to: usize) {
        if from != to
            && let Some(next) = self.successors.get_mut(from)
        {
            next.insert(to);
        }
    }

    fn successors_of(&self, idx: usize) -> impl Iterator<Item = usize> {
        self.successors.get(idx).into_iter().flatten().copied()
    }

    /// For each initializer, those that act before it.
    fn predecessors(&self) -> Vec<Vec<usize>> {
        let mut reversed = vec![Vec::new(); self.successors.len()];
        for (from, next) in self.successors.iter().enumerate() {
            for to in next {
                if let Some(own) = reversed.get_mut(*to) {
                    own.push(from);
                }
            }
        }
        reversed
    }

    /// Sorts the graph topologically; independent initializers are in global order. Members of cycles are left out.
    fn topological_order(&self) -> Vec<usize> {
        let mut n_waiting = vec![0_usize; self.successors.len()];
        for to in self.successors.iter().flatten() {
            if let Some(n) = n_waiting.get_mut(*to) {
                *n += 1;
            }
        }
        let free = n_waiting.iter().enumerate().filter(|(_, n)| **n == 0);
        let mut free: BinaryHeap<Reverse<usize>> = free.map(|(idx, _)| Reverse(idx)).collect();
        let mut order = Vec::with_capacity(self.successors.len());
        while let Some(Reverse(idx)) = free.pop() {
            order.push(idx);
            for to in self.successors_of(idx) {
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
        let mut components = self.strongly_connected_components();
        components.retain(|component| component.len() > 1);
        for component in &mut components {
            component.sort_unstable();
            let members: HashSet<usize> = component.iter().copied().collect();
            for idx in component.iter() {
                if let Some(next) = self.successors.get_mut(*idx) {
                    next.retain(|to| !members.contains(to));
                }
            }
            for (from, to) in component.iter().zip(component.iter().skip(1)) {
                self.add_edge(*from, *to);
            }
        }
        components.sort();
        components
    }

    /// Finds the strongly connected components with Kosaraju's algorithm, without recursion: the first depth-first search
    /// gives the finishing order, the second follows reversed edges in the reverse of that order.
    fn strongly_connected_components(&self) -> Vec<Vec<usize>> {
        let against = self.predecessors();
        let mut is_visited = vec![false; self.successors.len()];
        let mut finished = Vec::new();
        for start in 0..self.successors.len() {
            depth_first_search(start, &mut is_visited, &mut finished, &|idx| {
                self.successors_of(idx).collect()
            });
        }
        let mut is_visited = vec![false; self.successors.len()];
        let mut components = Vec::new();
        for start in finished.into_iter().rev() {
            let mut component = Vec::new();
            let back = |idx: usize| against.get(idx).cloned().unwrap_or_default();
            depth_first_search(start, &mut is_visited, &mut component, &back);
            if !component.is_empty() {
                components.push(component);
            }
        }
        components
    }

    /// Returns the members of all cycles, in global order.
    pub(crate) fn members_of_cycles(&self) -> BTreeSet<usize> {
        self.strongly_connected_components()
            .into_iter()
            .filter(|component| component.len() > 1)
            .flatten()
            .collect()
    }

    /// Finds a shortest cycle through a vertex, beginning with it; `None` if there is none.
    pub(crate) fn find_cycle_through(&self, start: usize) -> Option<Vec<usize>> {
        let mut came_from: HashMap<usize, usize> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(idx) = queue.pop_front() {
            for to in self.successors_of(idx) {
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

/// Runs a depth-first search from a vertex that is not visited yet, and pushes each vertex after all its successors.
fn depth_first_search(
    start: usize,
    is_visited: &mut [bool],
    finished: &mut Vec<usize>,
    next: &dyn Fn(usize) -> Vec<usize>,
) {
    let mut visit =
        |idx: usize| is_visited.get_mut(idx).is_some_and(|seen| !std::mem::replace(seen, true));
    if !visit(start) {
        return;
    }
    let mut stack = vec![(start, next(start))];
    while let Some((idx, rest)) = stack.last_mut() {
        match rest.pop() {
            Some(to) if visit(to) => stack.push((to, next(to))),
            Some(_) => {}
            None => {
                finished.push(*idx);
                stack.pop();
            }
        }
    }
}
