//! Configurations of admission as objects: what the author of one is told, and how initializers of
//! several objects fit together.

use admission::ConfigurationKind;
use api_object::{Status, Tree};
use store::{At, Expect, ListRequest, Store};

use crate::rest::Call;

impl<S: Store> Call<'_, S> {
    /// The last look at the next state of a configuration, which is valid by itself; any other object
    /// passes.
    ///
    /// 1. Initializers must not wait for each other, those of other objects included. Only who changes
    ///    them can be blamed for that: whoever finds a circle must be able to label and to delete it.
    /// 2. What is accepted and still deserves a word becomes a warning.
    pub(crate) async fn check_configuration(
        &mut self,
        new: &Tree,
        old: Option<&Tree>,
    ) -> Result<(), Status> {
        let Some(kind) = api_resources::configuration_kind(self.resource) else { return Ok(()) };
        self.expected_mark = None;
        let mut warnings = admission::configuration_warnings(kind, new, old);
        let policy = self.server.hook_addresses;
        let refusal = |address| policy.check(address).err().map(|refused| refused.to_string());
        warnings.extend(admission::refused_address_warnings(kind, new, &refusal));
        let is_changed =
            old.is_none_or(|old| api_resources::is_content_changed(self.resource, new, old));
        if kind == ConfigurationKind::Initializer && is_changed {
            let stored = self.stored_configurations().await?;
            let stored: Vec<&Tree> = stored.iter().collect();
            let errors = admission::initializer_ordering_errors(new, &stored);
            if !errors.is_empty() {
                return Err(Status::invalid(&self.group_kind(), api_object::name(new), &errors));
            }
            warnings.extend(admission::initializer_ordering_warnings(new, &stored));
        }
        self.warnings.extend(warnings.iter().map(ToString::to_string));
        Ok(())
    }

    /// All objects of the resource as they are stored, that of the request included. What can not be
    /// read has no say here, as it has none when requests are admitted.
    ///
    /// The mark is looked at first, and the object of the request is only written if it is still
    /// there then. So whatever is decided from these objects holds when the write happens.
    async fn stored_configurations(&mut self) -> Result<Vec<Tree>, Status> {
        let mark = self.server.mark_key().map_err(|why| Status::internal(&why))?;
        let mark = self.timed("get", self.server.store.get(&mark, At::Newest)).await;
        let mark = mark.map_err(|error| self.read_failed("list", &error))?.entry;
        self.expected_mark = Some(mark.map_or(Expect::Absent, |mark| Expect::At(mark.mod_rev)));
        let prefix = self.key_prefix()?;
        let list = self.server.store.list(&prefix, ListRequest::default());
        let page = self.timed("list", list).await;
        let page = page.map_err(|error| self.read_failed("list", &error))?;
        Ok(page.items.iter().filter_map(|item| self.parse(&item.entry).ok()).collect())
    }
}
