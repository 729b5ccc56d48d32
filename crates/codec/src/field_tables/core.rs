//! The field tables of the core group, of discovery and of coordination.

use super::meta::{CONDITION, OBJECT_META};
use crate::field_types::FieldType::{
    Bool, Bytes, Int32, IntOrString, List, Map, MicroTime, Object, Text, Time,
};
use crate::field_types::{Message, field};

pub(super) static CONFIG_MAP: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "data", Map(&Text)),
    field(3, "binaryData", Map(&Bytes)),
    field(4, "immutable", Bool).keeping_zero(),
]);

pub(super) static SECRET: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "data", Map(&Bytes)),
    field(3, "type", Text),
    field(4, "stringData", Map(&Text)),
    field(5, "immutable", Bool).keeping_zero(),
]);

pub(super) static NAMESPACE: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "spec", Object(&Message(&[field(1, "finalizers", List(&Text))]))),
    field(
        3,
        "status",
        Object(&Message(&[
            field(1, "phase", Text),
            field(
                2,
                "conditions",
                List(&Object(&Message(&[
                    field(1, "type", Text),
                    field(2, "status", Text),
                    field(4, "lastTransitionTime", Time),
                    field(5, "reason", Text),
                    field(6, "message", Text),
                ]))),
            ),
        ])),
    ),
]);

pub(super) static SERVICE_ACCOUNT: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "secrets", List(&Object(&OBJECT_REFERENCE))),
    field(3, "imagePullSecrets", List(&Object(&Message(&[field(1, "name", Text)])))),
    field(4, "automountServiceAccountToken", Bool).keeping_zero(),
]);

pub(super) static OBJECT_REFERENCE: Message = Message(&[
    field(1, "kind", Text),
    field(2, "namespace", Text),
    field(3, "name", Text),
    field(4, "uid", Text),
    field(5, "apiVersion", Text),
    field(6, "resourceVersion", Text),
    field(7, "fieldPath", Text),
]);

pub(super) static EVENT: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "involvedObject", Object(&OBJECT_REFERENCE)),
    field(3, "reason", Text),
    field(4, "message", Text),
    field(5, "source", Object(&Message(&[field(1, "component", Text), field(2, "host", Text)]))),
    field(6, "firstTimestamp", Time),
    field(7, "lastTimestamp", Time),
    field(8, "count", Int32),
    field(9, "type", Text),
    field(10, "eventTime", MicroTime),
    field(
        11,
        "series",
        Object(&Message(&[field(1, "count", Int32), field(2, "lastObservedTime", MicroTime)])),
    ),
    field(12, "action", Text),
    field(13, "related", Object(&OBJECT_REFERENCE)),
    field(14, "reportingComponent", Text),
    field(15, "reportingInstance", Text),
]);

pub(super) static SERVICE: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "spec", Object(&SERVICE_SPEC)),
    field(
        3,
        "status",
        Object(&Message(&[
            field(
                1,
                "loadBalancer",
                Object(&Message(&[field(
                    1,
                    "ingress",
                    List(&Object(&Message(&[
                        field(1, "ip", Text),
                        field(2, "hostname", Text),
                        field(3, "ipMode", Text),
                        field(
                            4,
                            "ports",
                            List(&Object(&Message(&[
                                field(1, "port", Int32),
                                field(2, "protocol", Text),
                                field(3, "error", Text),
                            ]))),
                        ),
                    ]))),
                )])),
            ),
            field(2, "conditions", List(&Object(&CONDITION))),
        ])),
    ),
]);

pub(super) static SERVICE_SPEC: Message = Message(&[
    field(
        1,
        "ports",
        List(&Object(&Message(&[
            field(1, "name", Text),
            field(2, "protocol", Text),
            field(3, "port", Int32),
            field(4, "targetPort", IntOrString),
            field(5, "nodePort", Int32),
            field(6, "appProtocol", Text),
        ]))),
    ),
    field(2, "selector", Map(&Text)),
    field(3, "clusterIP", Text),
    field(4, "type", Text),
    field(5, "externalIPs", List(&Text)),
    field(7, "sessionAffinity", Text),
    field(8, "loadBalancerIP", Text),
    field(9, "loadBalancerSourceRanges", List(&Text)),
    field(10, "externalName", Text),
    field(11, "externalTrafficPolicy", Text),
    field(12, "healthCheckNodePort", Int32),
    field(13, "publishNotReadyAddresses", Bool),
    field(
        14,
        "sessionAffinityConfig",
        Object(&Message(&[field(
            1,
            "clientIP",
            Object(&Message(&[field(1, "timeoutSeconds", Int32).keeping_zero()])),
        )])),
    ),
    field(17, "ipFamilyPolicy", Text),
    field(18, "clusterIPs", List(&Text)),
    field(19, "ipFamilies", List(&Text)),
    field(20, "allocateLoadBalancerNodePorts", Bool).keeping_zero(),
    field(21, "loadBalancerClass", Text),
    field(22, "internalTrafficPolicy", Text),
    field(23, "trafficDistribution", Text),
]);

pub(super) static ENDPOINTS: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(
        2,
        "subsets",
        List(&Object(&Message(&[
            field(1, "addresses", List(&Object(&ENDPOINT_ADDRESS))),
            field(2, "notReadyAddresses", List(&Object(&ENDPOINT_ADDRESS))),
            field(
                3,
                "ports",
                List(&Object(&Message(&[
                    field(1, "name", Text),
                    field(2, "port", Int32),
                    field(3, "protocol", Text),
                    field(4, "appProtocol", Text),
                ]))),
            ),
        ]))),
    ),
]);

pub(super) static ENDPOINT_ADDRESS: Message = Message(&[
    field(1, "ip", Text),
    field(2, "targetRef", Object(&OBJECT_REFERENCE)),
    field(3, "hostname", Text),
    field(4, "nodeName", Text),
]);

pub(super) static ENDPOINT_SLICE: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(
        2,
        "endpoints",
        List(&Object(&Message(&[
            field(1, "addresses", List(&Text)),
            field(
                2,
                "conditions",
                Object(&Message(&[
                    field(1, "ready", Bool).keeping_zero(),
                    field(2, "serving", Bool).keeping_zero(),
                    field(3, "terminating", Bool).keeping_zero(),
                ])),
            ),
            field(3, "hostname", Text),
            field(4, "targetRef", Object(&OBJECT_REFERENCE)),
            field(5, "deprecatedTopology", Map(&Text)),
            field(6, "nodeName", Text),
            field(7, "zone", Text),
            field(
                8,
                "hints",
                Object(&Message(&[
                    field(1, "forZones", List(&Object(&Message(&[field(1, "name", Text)])))),
                    field(2, "forNodes", List(&Object(&Message(&[field(1, "name", Text)])))),
                ])),
            ),
        ]))),
    ),
    field(
        3,
        "ports",
        List(&Object(&Message(&[
            field(1, "name", Text),
            field(2, "protocol", Text),
            field(3, "port", Int32).keeping_zero(),
            field(4, "appProtocol", Text),
        ]))),
    ),
    field(4, "addressType", Text),
]);

pub(super) static LEASE: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(
        2,
        "spec",
        Object(&Message(&[
            field(1, "holderIdentity", Text),
            field(2, "leaseDurationSeconds", Int32).keeping_zero(),
            field(3, "acquireTime", MicroTime),
            field(4, "renewTime", MicroTime),
            field(5, "leaseTransitions", Int32).keeping_zero(),
            field(6, "strategy", Text),
            field(7, "preferredHolder", Text),
        ])),
    ),
]);
