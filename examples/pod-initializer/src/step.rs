//! Decides what an initializer does with a pod, as a function of the pod alone.
//!
//! The types of kube-rs do not have `metadata.initializers`, so pods are JSON here.

use std::fmt;

use serde_json::{Value, json};

/// The name of an initializer and the container that it adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Initializer {
    /// The name in the configuration and in the pending lists of pods.
    pub(crate) name: String,
    /// The container that every pod gets.
    pub(crate) container: Container,
}

/// The name and the image of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) image: String,
}

/// The next action on a pod.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Nothing: the pod does not wait for this initializer, or waits for another one first.
    Wait,
    /// Store this pod: it has the container, and no entry of this initializer.
    Change(Value),
    /// Fail the pod for this reason, which the server returns to its creator.
    Refuse(String),
}

/// Why the container cannot be added to a pod.
#[derive(Debug)]
enum ContainerConflict {
    NoContainers,
    OtherImage { name: String, image: String },
}

impl fmt::Display for ContainerConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoContainers => f.write_str("the pod has no containers"),
            Self::OtherImage { name, image } => {
                write!(f, "the container {name} has another image than {image}")
            }
        }
    }
}

impl Initializer {
    /// Decides the next action on a pod.
    pub(crate) fn step(&self, pod: &Value) -> Step {
        let initializers = &pod["metadata"]["initializers"];
        let pending = initializers["pending"].as_array().map_or(&[][..], Vec::as_slice);
        let place = pending.iter().position(|entry| entry["name"] == *self.name);
        let Some(place) = place.filter(|place| is_runnable(pending, *place)) else {
            return Step::Wait;
        };
        if !initializers["result"].is_null() {
            return Step::Wait;
        }
        let mut pod = pod.clone();
        if let Err(why) = self.container.add_to(&mut pod) {
            return Step::Refuse(why.to_string());
        }
        remove_entry(&mut pod, place);
        Step::Change(pod)
    }
}

impl Container {
    /// Adds the container to a pod that does not have it yet.
    fn add_to(&self, pod: &mut Value) -> Result<(), ContainerConflict> {
        let Self { name, image } = self;
        let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
        let containers = containers.ok_or(ContainerConflict::NoContainers)?;
        match containers.iter().find(|own| own["name"] == **name) {
            None => containers.push(json!({"name": name, "image": image})),
            Some(own) if own["image"] == **image => {}
            Some(_) => {
                let (name, image) = (name.clone(), image.clone());
                return Err(ContainerConflict::OtherImage { name, image });
            }
        }
        Ok(())
    }
}

/// Whether it is the turn of an entry. An entry with an `after` list waits only for the initializers in that
/// list. Other entries are processed in the order of the pending list.
fn is_runnable(pending: &[Value], place: usize) -> bool {
    let Some(after) = pending[place]["after"].as_array() else { return place == 0 };
    !after.iter().any(|name| pending.iter().any(|entry| entry["name"] == *name))
}

/// Removes an entry. If the list becomes empty, the pod is initialized, and the member is removed too.
fn remove_entry(pod: &mut Value, place: usize) {
    let pending = pod.pointer_mut("/metadata/initializers/pending").and_then(Value::as_array_mut);
    let is_empty = pending.is_some_and(|pending| {
        pending.remove(place);
        pending.is_empty()
    });
    if is_empty && let Some(metadata) = pod["metadata"].as_object_mut() {
        metadata.remove("initializers");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn initializer() -> Initializer {
        let container = Container { name: "proxy".to_owned(), image: "r/proxy:1".to_owned() };
        Initializer { name: "b.example.com".to_owned(), container }
    }

    fn pod(initializers: Value) -> Value {
        json!({
            "metadata": {"name": "web", "initializers": initializers},
            "spec": {"containers": [{"name": "web", "image": "r/web:1"}]},
        })
    }

    fn acts(pending: Value) -> bool {
        initializer().step(&pod(json!({"pending": pending}))) != Step::Wait
    }

    #[test]
    fn it_acts_when_it_is_its_turn() {
        let (a, b) = (json!({"name": "a.example.com"}), json!({"name": "b.example.com"}));
        assert!(acts(json!([b])));
        assert!(acts(json!([b, a])));
        assert!(!acts(json!([a, b])));
        assert!(!acts(json!([a])));
        assert!(!acts(json!([])));
    }

    #[test]
    fn with_an_order_it_waits_for_nobody_else() {
        let a = json!({"name": "a.example.com", "after": []});
        let b = |after: Value| json!({"name": "b.example.com", "after": after});
        assert!(acts(json!([a, b(json!([]))])));
        assert!(!acts(json!([a, b(json!(["a.example.com"]))])));
        assert!(acts(json!([b(json!(["a.example.com"]))])));
    }

    #[test]
    fn pods_that_are_initialized_failed_or_none_are_left_alone() {
        let failed =
            json!({"pending": [{"name": "b.example.com"}], "result": {"status": "Failure"}});
        for strange in [json!({}), json!(1), json!([]), pod(Value::Null), pod(failed)] {
            assert_eq!(initializer().step(&strange), Step::Wait, "{strange}");
        }
    }

    #[test]
    fn one_change_adds_the_container_and_removes_the_entry() {
        let both = [
            json!({"name": "web", "image": "r/web:1"}),
            json!({"name": "proxy", "image": "r/proxy:1"}),
        ];
        let (own, other) = (json!({"name": "b.example.com"}), json!({"name": "a.example.com"}));
        let last = pod(json!({"pending": [own]}));
        let Step::Change(changed) = initializer().step(&last) else { panic!() };
        assert_eq!(changed, json!({"metadata": {"name": "web"}, "spec": {"containers": both}}));
        let Step::Change(changed) = initializer().step(&pod(json!({"pending": [own, other]})))
        else {
            panic!()
        };
        assert_eq!(changed["metadata"]["initializers"], json!({"pending": [other]}));
        // A pod that already has the container stays otherwise unchanged.
        let mut again = last;
        again["spec"]["containers"] = json!(both);
        let Step::Change(changed) = initializer().step(&again) else { panic!() };
        assert_eq!(changed["spec"]["containers"], json!(both));
    }

    #[test]
    fn a_pod_that_can_not_have_the_container_is_refused() {
        let mut taken = pod(json!({"pending": [{"name": "b.example.com"}]}));
        taken["spec"]["containers"][0]["name"] = json!("proxy");
        let why = "the container proxy has another image than r/proxy:1".to_owned();
        assert_eq!(initializer().step(&taken), Step::Refuse(why));
        taken["spec"] = Value::Null;
        let why = "the pod has no containers".to_owned();
        assert_eq!(initializer().step(&taken), Step::Refuse(why));
    }
}
