#!/bin/sh
# Story 1: protecting installed CustomResourceDefinitions.
. "$(dirname "$0")/../story.sh"

webhook system-crd-protector protect-crds
protector=$!
configure "$story/authorization.yaml"
server --authorization-config "$work/authorization.yaml"
quietly kubectl apply -f "$story/objects.yaml"

echo "# jane holds cluster-admin. Her own definition she may change and delete."
try kubectl --as jane label crd toys.example.com owner=jane
try kubectl --as jane delete crd toys.example.com --wait=false

echo "# One of the system she may read, and nothing more."
try kubectl --as jane get crd clusters.system.example.com -o name
try kubectl --as jane delete crd clusters.system.example.com --wait=false
try kubectl --as jane delete crd --all --wait=false

echo "# Those who own it may change it."
keeper=system:serviceaccount:kube-superuser:keeper
try kubectl --as $keeper label crd clusters.system.example.com kept=true
calls system-crd-protector

echo "# Without the webhook nobody changes a definition; all else goes on."
kill $protector
wait $protector 2>/dev/null || :
try kubectl --as jane label crd clusters.system.example.com owner=jane 2>&1 | sed 's/: Post .*/: .../'
try kubectl --as jane get crd clusters.system.example.com -o name
