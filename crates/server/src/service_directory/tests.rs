use serde_json::json;

use super::*;

fn directory(routing: ServiceRouting, objects: &[(&str, Value)]) -> ServiceDirectory {
    let directory = ServiceDirectory::new(routing);
    for (path, object) in objects {
        directory.apply_service_or_endpoints(path, Some(object.to_string().as_bytes())).unwrap();
    }
    directory
}

fn resolve(directory: &ServiceDirectory, name: &str) -> String {
    resolve_port(directory, name, Some(443))
}

fn service_name(name: &str, port: Option<u16>) -> ServiceName {
    ServiceName { namespace: "ns".to_owned(), name: name.to_owned(), port }
}

fn resolve_port(directory: &ServiceDirectory, name: &str, port: Option<u16>) -> String {
    let service = service_name(name, port);
    match directory.resolve_service(&service) {
        Ok(HostPort { host, port }) => format!("{host}:{port}"),
        Err(error) => error.to_string(),
    }
}

fn service(spec: Value) -> Value {
    json!({"spec": spec})
}

fn slice(service: &str, addresses: &[(&str, Option<bool>)], port: u16) -> Value {
    let endpoints: Vec<Value> = addresses
        .iter()
        .map(|(ip, ready)| json!({"addresses": [ip], "conditions": {"ready": ready}}))
        .collect();
    json!({
        "metadata": {"labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "https", "port": port}, {"name": "other", "port": 1}],
    })
}

fn https() -> Value {
    json!([{"name": "https", "port": 443}])
}

/// The table has each type of service, with and without a cluster IP.
#[test]
fn cluster_ips_are_resolved() {
    let services = directory(
        ServiceRouting::ClusterIp,
        &[
            ("services/specs/ns/a", service(json!({"clusterIP": "10.0.0.1", "ports": https()}))),
            ("services/specs/ns/headless", service(json!({"clusterIP": "None", "ports": https()}))),
            (
                "services/specs/ns/out",
                service(json!({"type": "ExternalName", "externalName": "example.com"})),
            ),
            ("services/specs/ns/odd", service(json!({"type": "Odd"}))),
            (
                "services/specs/ns/port",
                service(json!({"clusterIP": "10.0.0.2", "ports": [{"port": 80}]})),
            ),
        ],
    );
    for (name, want) in [
        ("a", "10.0.0.1:443"),
        ("headless", "cannot route to service with ClusterIP \"None\""),
        ("out", "example.com:443"),
        ("odd", "unsupported service type \"Odd\""),
        ("port", "no service port 443 found for service \"port\""),
        ("unknown", "services \"unknown\" not found"),
    ] {
        assert_eq!(resolve(&services, name), want);
    }
}

#[test]
fn only_ready_endpoints_are_used() {
    let services = directory(
        ServiceRouting::Endpoints,
        &[
            ("services/specs/ns/a", service(json!({"clusterIP": "None", "ports": https()}))),
            (
                "endpointslices/ns/a-1",
                slice("a", &[("10.1.0.1", Some(false)), ("10.1.0.2", Some(true))], 8443),
            ),
            ("services/specs/ns/dead", service(json!({"ports": https()}))),
            ("endpointslices/ns/d-1", slice("dead", &[("10.1.0.3", Some(false))], 1)),
            ("services/specs/ns/out", service(json!({"type": "ExternalName"}))),
        ],
    );
    for (name, want) in [
        ("a", "10.1.0.2:8443"),
        ("dead", "no endpoints available for service \"dead\""),
        ("out", "unsupported service type \"ExternalName\""),
    ] {
        assert_eq!(resolve(&services, name), want);
    }
    // An endpoint that moves is resolved to its new address. Unknown readiness counts as ready.
    let moved = slice("a", &[("10.1.0.9", None)], 9443).to_string();
    services.apply_service_or_endpoints("endpointslices/ns/a-1", Some(moved.as_bytes())).unwrap();
    assert_eq!(resolve(&services, "a"), "10.1.0.9:9443");
    services.apply_service_or_endpoints("endpointslices/ns/a-1", None).unwrap();
    assert_eq!(resolve(&services, "a"), "no endpoints available for service \"a\"");
}

#[test]
fn all_ready_endpoints_are_used_and_the_first_family_is_preferred() {
    let mut six = slice("a", &[("fd00::1", Some(true))], 1);
    six["addressType"] = json!("IPv6");
    let spec = json!({"clusterIP": "None", "ports": https(), "ipFamilies": ["IPv4"]});
    let two = slice("a", &[("10.1.0.1", Some(true)), ("10.1.0.2", Some(true))], 1);
    let services = directory(
        ServiceRouting::Endpoints,
        &[
            ("services/specs/ns/a", service(spec)),
            ("endpointslices/ns/a-1", six),
            ("endpointslices/ns/a-2", two),
        ],
    );
    let mut seen: Vec<String> = (0..200).map(|_| resolve(&services, "a")).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["10.1.0.1:1", "10.1.0.2:1"]);
    services.apply_service_or_endpoints("endpointslices/ns/a-2", None).unwrap();
    assert_eq!(resolve(&services, "a"), "fd00::1:1");
}

#[test]
fn the_service_kubernetes_resolves_to_the_server() {
    let services = ServiceDirectory::new(ServiceRouting::ClusterIp);
    let service =
        ServiceName { namespace: "default".to_owned(), name: "kubernetes".to_owned(), port: None };
    assert!(services.resolve_service(&service).is_err());
    services.set_server_address("0.0.0.0:6443".parse().unwrap());
    let found = services.resolve_service(&service).unwrap();
    assert_eq!((found.host.as_str(), found.port), ("127.0.0.1", 6443));
}

#[test]
fn an_object_that_can_not_be_decoded_counts_as_absent() {
    let services = directory(
        ServiceRouting::ClusterIp,
        &[("services/specs/ns/a", service(json!({"clusterIP": "10.0.0.1", "ports": https()})))],
    );
    assert!(services.apply_service_or_endpoints("services/specs/ns/a", Some(b"{")).is_err());
    assert_eq!(resolve(&services, "a"), "services \"a\" not found");
}

/// A service with one port uses it; with several, 443 must be among them.
#[test]
fn the_port_of_a_service_follows_from_its_ports() {
    let ports = |numbers: &[u16]| {
        let ports = numbers.iter().map(|n| json!({"name": format!("p{n}"), "port": n}));
        service(json!({"clusterIP": "10.0.0.1", "ports": ports.collect::<Vec<Value>>()}))
    };
    let services = directory(
        ServiceRouting::ClusterIp,
        &[
            ("services/specs/ns/one", ports(&[8443])),
            ("services/specs/ns/two", ports(&[80, 443])),
            ("services/specs/ns/none", ports(&[80, 8443])),
        ],
    );
    for (name, port, want) in [
        ("one", None, "10.0.0.1:8443"),
        ("two", None, "10.0.0.1:443"),
        ("two", Some(80), "10.0.0.1:80"),
        ("none", None, "service \"none\" has several ports and none of them is 443"),
        ("none", Some(8443), "10.0.0.1:8443"),
        ("one", Some(443), "no service port 443 found for service \"one\""),
    ] {
        assert_eq!(resolve_port(&services, name, port), want, "{name} {port:?}");
    }
}

#[test]
fn endpoints_count_as_well_as_endpoint_slices() {
    let endpoints = |ready: &[&str], not_ready: &[&str]| {
        let list = |ips: &[&str]| ips.iter().map(|ip| json!({"ip": ip})).collect::<Vec<Value>>();
        json!({"subsets": [{
            "addresses": list(ready),
            "notReadyAddresses": list(not_ready),
            "ports": [{"name": "https", "port": 8443}],
        }]})
    };
    let path = "services/endpoints/ns/a";
    let services = directory(
        ServiceRouting::Endpoints,
        &[
            ("services/specs/ns/a", service(json!({"ports": https()}))),
            (path, endpoints(&["10.1.0.1"], &["10.1.0.2"])),
        ],
    );
    assert_eq!(resolve(&services, "a"), "10.1.0.1:8443");
    let at = |ip: &str| HostPort { host: ip.to_owned(), port: 8443 };
    let is_endpoint = |services: &ServiceDirectory, ip| {
        services.is_current_endpoint(&service_name("a", None), &at(ip))
    };
    assert!(is_endpoint(&services, "10.1.0.1") && !is_endpoint(&services, "10.1.0.2"));
    let put = |object: Value| {
        services.apply_service_or_endpoints(path, Some(object.to_string().as_bytes())).unwrap();
    };
    put(endpoints(&["10.1.0.2", "fd00::1"], &["10.1.0.1"]));
    assert!(!is_endpoint(&services, "10.1.0.1") && is_endpoint(&services, "fd00::1"));
    assert!(["10.1.0.2:8443", "fd00::1:8443"].contains(&resolve(&services, "a").as_str()));
    // Both kinds together.
    put(endpoints(&[], &["10.1.0.2"]));
    assert_eq!(resolve(&services, "a"), "no endpoints available for service \"a\"");
    let more = slice("a", &[("10.1.0.9", Some(true))], 9443).to_string();
    services.apply_service_or_endpoints("endpointslices/ns/a-1", Some(more.as_bytes())).unwrap();
    put(endpoints(&["10.1.0.2"], &[]));
    let mut seen: Vec<String> = (0..200).map(|_| resolve(&services, "a")).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["10.1.0.2:8443", "10.1.0.9:9443"]);
    services.apply_service_or_endpoints(path, None).unwrap();
    assert_eq!(resolve(&services, "a"), "10.1.0.9:9443");
}
