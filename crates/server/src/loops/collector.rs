//! What becomes of dependents when their owner goes.
//!
//! One watch over everything keeps a list of who depends on whom; only objects that have owners are
//! in it. Three things make work: an owner that is gone, an owner that waits for its dependents to go
//! or to be let go, and a new object whose owner does not exist.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api_object::{
    DeleteOptions, FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Propagation, Status, Tree,
};
use api_resources::Resource;
use serde_json::Value;
use store::{Change, Entry, Event, Key, ListRequest, Prefix, Revision, Store, Watch};
use tokio::task::{Id, JoinSet};

use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;
use crate::undecodable;

/// How long to wait before work that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How much work is done at one time. Admission hooks are asked about deletions, so some of it is slow.
const WORKERS_MAX: usize = 64;
/// How much of it is in one namespace, so that slow hooks of one tenant leave workers for the others.
const WORKERS_PER_NAMESPACE_MAX: usize = 8;

/// Who depends on whom, by uid.
#[derive(Debug, Default)]
struct Dependents {
    by_owner: HashMap<String, BTreeSet<Key>>,
    owners_of: HashMap<Key, Vec<String>>,
    /// CreatePreconditions that are being deleted and wait for their dependents.
    waiting: HashMap<String, Key>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Work {
    /// Look whether the owners of this object exist.
    Check(Key),
    /// Do what this owner waits for.
    Serve(Key),
}

impl Work {
    fn key(&self) -> &Key {
        let (Self::Check(key) | Self::Serve(key)) = self;
        key
    }
}

/// The list of dependents, which the watch changes while work is done. It is never locked over an await.
#[derive(Debug, Clone, Default)]
struct SharedDependents(Arc<Mutex<Dependents>>);

impl SharedDependents {
    fn lock(&self) -> MutexGuard<'_, Dependents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The work that is being done.
struct Workers {
    tasks: JoinSet<Result<(), Status>>,
    /// Each with the namespace, or the prefix of other keys, that it is in.
    running: HashMap<Id, (Work, String)>,
}

impl Workers {
    fn is_room_for(&self, work: &Work, namespace: &str) -> bool {
        let is_alike = |own: &&(Work, String)| own.1 == namespace;
        self.running.len() < WORKERS_MAX
            && self.running.values().filter(is_alike).count() < WORKERS_PER_NAMESPACE_MAX
            && self.running.values().all(|(running, _)| running != work)
    }

    /// Begins what there is room for and leaves the rest.
    fn begin<S: Store>(
        &mut self,
        server: &Arc<ServerState<S>>,
        dependents: &SharedDependents,
        work: &mut HashSet<Work>,
    ) {
        work.retain(|item| {
            let namespace = api_resources::tenant_of_key(&server.prefix, item.key());
            if !self.is_room_for(item, namespace) {
                return true;
            }
            let (server, dependents, own) = (Arc::clone(server), dependents.clone(), item.clone());
            let task = self.tasks.spawn(async move { do_work(&server, &dependents, &own).await });
            self.running.insert(task.id(), (item.clone(), namespace.to_owned()));
            false
        });
    }

    /// Waits until some work is over, and returns it if it failed.
    async fn next_failed<S>(&mut self, server: &ServerState<S>) -> Option<Work> {
        let (id, why) = match self.tasks.join_next_with_id().await? {
            Ok((id, Ok(()))) => (id, None),
            Ok((id, Err(status))) => (id, Some(status.message)),
            Err(error) => (error.id(), Some(error.to_string())),
        };
        let (work, _) = self.running.remove(&id)?;
        let why = why?;
        server.log.warn("garbage can not be collected", &[("key", work.key()), ("why", &why)]);
        Some(work)
    }
}

/// Follows the store and does the work until the task is dropped.
pub(crate) async fn collect_garbage<S: Store>(server: Arc<ServerState<S>>) {
    loop {
        if let Err(why) = collect(&server).await {
            server.log.warn("dependents can not be followed", &[("why", &why)]);
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn collect<S: Store>(server: &Arc<ServerState<S>>) -> Result<(), String> {
    let prefix = Prefix::new(&format!("{}/", server.prefix)).map_err(|error| error.to_string())?;
    let dependents = SharedDependents::default();
    let mut work: HashSet<Work> = HashSet::new();
    let revision = load(server, &dependents, &prefix, &mut work).await?;
    let mut watch =
        server.store.watch(prefix, revision).await.map_err(|error| error.to_string())?;
    let mut workers = Workers { tasks: JoinSet::new(), running: HashMap::new() };
    let mut failed: Vec<Work> = Vec::new();
    let mut retry = tokio::time::interval(RETRY);
    loop {
        workers.begin(server, &dependents, &mut work);
        tokio::select! {
            batch = watch.next() => {
                let batch = batch.map_err(|error| error.to_string())?;
                let mut dependents = dependents.lock();
                for event in &batch.events {
                    dependents.learn(event, &mut work);
                }
            }
            ended = workers.next_failed(server), if !workers.running.is_empty() => {
                failed.extend(ended);
            }
            // What failed is tried again even if nothing happens meanwhile.
            _ = retry.tick(), if !failed.is_empty() => work.extend(failed.drain(..)),
        }
    }
}

async fn load<S: Store>(
    server: &ServerState<S>,
    dependents: &SharedDependents,
    prefix: &Prefix,
    work: &mut HashSet<Work>,
) -> Result<Revision, String> {
    let page = server.store.list(prefix, ListRequest::default()).await;
    let page = page.map_err(|error| error.to_string())?;
    let mut dependents = dependents.lock();
    for item in &page.items {
        dependents.put(&item.key, &item.entry, work);
    }
    Ok(page.revision)
}

impl Dependents {
    fn learn(&mut self, event: &Event, work: &mut HashSet<Work>) {
        match &event.change {
            Change::Create(entry) | Change::Update { entry, .. } => {
                self.put(&event.key, entry, work);
            }
            Change::Delete { prev } => {
                for owner in self.remove(&event.key) {
                    // Whoever waits for this one may go on.
                    if let Some(key) = self.waiting.get(&owner) {
                        work.insert(Work::Serve(key.clone()));
                    }
                }
                if let Some(uid) = uid_of(prev) {
                    self.waiting.remove(&uid);
                    let keys = self.by_owner.get(&uid).into_iter().flatten();
                    work.extend(keys.cloned().map(Work::Check));
                }
            }
        }
    }

    fn put(&mut self, key: &Key, entry: &Entry, work: &mut HashSet<Work>) {
        let value = &entry.value;
        let has = |needle: &str| memchr::memmem::find(value, needle.as_bytes()).is_some();
        let is_waiting = has(FOREGROUND_FINALIZER) || has("\"orphan\"");
        let before = self.remove(key);
        if !is_waiting && !has("\"ownerReferences\"") {
            return;
        }
        let Ok(tree) = codec::from_stored(value) else { return };
        let owners = owners(&tree);
        for owner in &owners {
            self.by_owner.entry(owner.clone()).or_default().insert(key.clone());
        }
        if !owners.is_empty() {
            if owners != before {
                work.insert(Work::Check(key.clone()));
            }
            self.owners_of.insert(key.clone(), owners);
        }
        if is_waiting && api_object::is_terminating(&tree) {
            self.waiting.insert(api_object::uid(&tree).to_owned(), key.clone());
            work.insert(Work::Serve(key.clone()));
        }
    }

    /// Forgets an object as a dependent and returns whose it was.
    fn remove(&mut self, key: &Key) -> Vec<String> {
        let owners = self.owners_of.remove(key).unwrap_or_default();
        for owner in &owners {
            if let Some(keys) = self.by_owner.get_mut(owner) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_owner.remove(owner);
                }
            }
        }
        owners
    }
}

fn uid_of(entry: &Entry) -> Option<String> {
    let tree: Tree = codec::from_stored(&entry.value).ok()?;
    Some(api_object::uid(&tree).to_owned()).filter(|uid| !uid.is_empty())
}

fn references(tree: &Tree) -> &[Value] {
    api_object::metadata(tree)
        .get("ownerReferences")
        .and_then(Value::as_array)
        .map_or(&[], |own| own)
}

fn group_of(reference: &Value) -> Option<String> {
    let version = reference["apiVersion"].as_str().unwrap_or_default();
    api_object::GroupVersion::parse(version).map(|version| version.group)
}

fn owners(tree: &Tree) -> Vec<String> {
    let uids = references(tree).iter().filter_map(|owner| owner["uid"].as_str());
    uids.map(str::to_owned).collect()
}

async fn do_work<S: Store>(
    server: &ServerState<S>,
    dependents: &SharedDependents,
    work: &Work,
) -> Result<(), Status> {
    let Some(found) = read(server, work.key()).await? else { return Ok(()) };
    match work {
        Work::Check(_) => check(server, found).await,
        Work::Serve(_) => serve(server, dependents, found).await,
    }
}

/// Deletes an object whose owners are all gone, or lets it forget those that are.
async fn check<S: Store>(server: &ServerState<S>, mut found: Found) -> Result<(), Status> {
    let tree = &mut found.tree;
    let namespace = api_object::namespace(tree).to_owned();
    let mut kept = Vec::new();
    let mut n_gone = 0;
    for owner in references(tree) {
        match owner_state(server, owner, &namespace).await? {
            OwnerState::Present | OwnerState::WaitsForDependents => kept.push(owner.clone()),
            OwnerState::Gone => n_gone += 1,
        }
    }
    if n_gone == 0 {
        return Ok(());
    }
    if kept.is_empty() {
        return delete(server, &found).await;
    }
    api_object::metadata_mut(tree).insert("ownerReferences".to_owned(), kept.into());
    found.update(server).await
}

/// Does what an owner that is being deleted waits for.
async fn serve<S: Store>(
    server: &ServerState<S>,
    dependents: &SharedDependents,
    mut found: Found,
) -> Result<(), Status> {
    let tree = &found.tree;
    if !api_object::is_terminating(tree) {
        return Ok(());
    }
    let uid = api_object::uid(tree).to_owned();
    let keys: Vec<Key> =
        dependents.lock().by_owner.get(&uid).into_iter().flatten().cloned().collect();
    let has = |finalizer: &str| api_object::finalizers(tree).contains(&finalizer);
    let done = if has(ORPHAN_FINALIZER) {
        for key in &keys {
            let Some(dependent) = read(server, key).await? else { continue };
            dependent.disown(server, &found).await?;
        }
        ORPHAN_FINALIZER
    } else if has(FOREGROUND_FINALIZER) {
        let mut is_blocked = false;
        for key in &keys {
            let Some(dependent) = read(server, key).await? else { continue };
            let Some(reference) = dependent.reference_to(&found) else { continue };
            let is_blocking = reference["blockOwnerDeletion"] == Value::Bool(true);
            if dependent.has_other_owner(server, &found).await? {
                dependent.disown(server, &found).await?;
                continue;
            }
            if !api_object::is_terminating(&dependent.tree) {
                delete(server, &dependent).await?;
            }
            is_blocked |= is_blocking && read(server, key).await?.is_some();
        }
        if is_blocked {
            return Ok(());
        }
        FOREGROUND_FINALIZER
    } else {
        return Ok(());
    };
    let mut kept: Vec<String> =
        api_object::finalizers(tree).into_iter().map(str::to_owned).collect();
    kept.retain(|finalizer| finalizer != done);
    api_object::metadata_mut(&mut found.tree).insert("finalizers".to_owned(), kept.into());
    found.update(server).await
}

/// What others do meanwhile makes new work by itself.
fn settled(result: Result<(), Status>) -> Result<(), Status> {
    match result {
        Err(status) if status.is_from_this_server() && matches!(status.code, 404 | 409) => Ok(()),
        result => result,
    }
}

async fn delete<S: Store>(server: &ServerState<S>, found: &Found) -> Result<(), Status> {
    let options = DeleteOptions {
        propagation: Some(Propagation::Background),
        uid: Some(api_object::uid(&found.tree).to_owned()),
        ..DeleteOptions::default()
    };
    settled(server.own_delete(found.reference(), &options).await.map(drop))
}

/// How an owner that a reference names is.
enum OwnerState {
    Present,
    /// It is being deleted in the foreground.
    WaitsForDependents,
    Gone,
}

/// Looks for an owner where the reference says that it is. One that the registry does not know may be
/// served again later, so it counts as present.
async fn owner_state<S: Store>(
    server: &ServerState<S>,
    owner: &Value,
    namespace: &str,
) -> Result<OwnerState, Status> {
    let text = |member: &str| owner[member].as_str().unwrap_or_default();
    let Some(own) = api_object::GroupVersion::parse(text("apiVersion")) else {
        return Ok(OwnerState::Present);
    };
    let cluster = server.snapshot_cache.snapshot();
    let resource = cluster.registry.resources().find(|resource| {
        resource.group == own.group && resource.kind == text("kind") && resource.is_stored()
    });
    let Some(resource) = resource else { return Ok(OwnerState::Present) };
    if resource.is_namespaced() && namespace.is_empty() {
        // An object of the cluster has no owner in a namespace; nobody can say where it would be.
        return Ok(OwnerState::Present);
    }
    let namespace = resource.is_namespaced().then_some(namespace);
    let key = api_resources::key(&server.prefix, resource, namespace, text("name"));
    let Some(key) = key.and_then(|key| Key::new(&key).ok()) else { return Ok(OwnerState::Gone) };
    let got = server.store.get(&key, store::At::Newest).await;
    let got = got.map_err(|error| Status::internal(&error.to_string()))?;
    let Some(entry) = got.entry else { return Ok(OwnerState::Gone) };
    // Nothing is deleted for an owner that can not be read.
    let Ok(tree) = codec::from_stored(&entry.value) else { return Ok(OwnerState::Present) };
    if api_object::uid(&tree) != text("uid") {
        return Ok(OwnerState::Gone);
    }
    let is_waiting = api_object::is_terminating(&tree)
        && api_object::finalizers(&tree).contains(&FOREGROUND_FINALIZER);
    Ok(if is_waiting { OwnerState::WaitsForDependents } else { OwnerState::Present })
}

/// An object that was read by its key.
struct Found {
    resource: Arc<Resource>,
    namespace: Option<String>,
    name: String,
    tree: Tree,
}

impl Found {
    fn reference(&self) -> ObjectRef<'_> {
        ObjectRef::of(&self.resource, self.namespace.as_deref(), &self.name)
    }

    async fn update<S: Store>(&self, server: &ServerState<S>) -> Result<(), Status> {
        settled(server.own_update(self.reference(), self.tree.clone()).await.map(drop))
    }

    /// The reference of this object to an owner. A uid alone makes no owner: the reference names the
    /// owner's group, kind and name, and an owner in a namespace owns nothing outside of it.
    fn reference_to(&self, owner: &Self) -> Option<&Value> {
        let is_within = owner.namespace.is_none() || owner.namespace == self.namespace;
        references(&self.tree).iter().find(|reference| {
            is_within
                && reference["uid"] == api_object::uid(&owner.tree)
                && reference["name"] == owner.name.as_str()
                && reference["kind"] == owner.resource.kind.as_str()
                && group_of(reference).is_some_and(|group| group == owner.resource.group)
        })
    }

    /// Whether somebody else who is not going owns this object.
    async fn has_other_owner<S: Store>(
        &self,
        server: &ServerState<S>,
        owner: &Self,
    ) -> Result<bool, Status> {
        let namespace = api_object::namespace(&self.tree);
        for other in references(&self.tree) {
            let is_other = other["uid"] != api_object::uid(&owner.tree);
            if is_other
                && matches!(owner_state(server, other, namespace).await?, OwnerState::Present)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes an owner off this object, if it is one.
    async fn disown<S: Store>(
        mut self,
        server: &ServerState<S>,
        owner: &Self,
    ) -> Result<(), Status> {
        if self.reference_to(owner).is_none() {
            return Ok(());
        }
        let mut kept = references(&self.tree).to_vec();
        kept.retain(|reference| reference["uid"] != api_object::uid(&owner.tree));
        let metadata = api_object::metadata_mut(&mut self.tree);
        metadata.insert("ownerReferences".to_owned(), kept.into());
        self.update(server).await
    }
}

/// Reads what is stored under a key, as a client would.
async fn read<S: Store>(server: &ServerState<S>, key: &Key) -> Result<Option<Found>, Status> {
    let cluster = server.snapshot_cache.snapshot();
    let found = cluster.registry.resources().find_map(|resource| {
        let (namespace, name) = api_resources::names(&server.prefix, resource, key)?;
        Some((resource, namespace, name))
    });
    let Some((resource, namespace, name)) = found else { return Ok(None) };
    match server.own_get(ObjectRef::of(resource, namespace, name)).await {
        Ok(shown) => Ok(Some(Found {
            resource: Arc::clone(resource),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            tree: shown.into_tree(),
        })),
        // Nothing depends on an object that can not be decoded, and its owners are not known.
        Err(status) if status.code == 404 || undecodable::is_failure(&status) => Ok(None),
        Err(status) => Err(status),
    }
}
