#!/bin/sh
# Story 9: a hook that is known by a service, registered before it is there.
. "$(dirname "$0")/../admission.sh"

python() {
    # Some people have a Python first in their PATH that does not pass signals on.
    exec python3 -B "$story/../../admission-webhook-python/webhook.py" "$@"
}

certificate images DNS:images.hooks.svc
server
port=0
fill hooks.yaml
quietly kubectl apply -f "$story/service.yaml"

echo "# A new hook may not fail closed: nobody has seen it at work."
try kubectl create -f hooks.yaml
echo "# It fails open, then. The service has no endpoint yet, and nobody waits for it."
sed -i 's/failurePolicy: Fail/failurePolicy: Ignore/' hooks.yaml
try kubectl create -f hooks.yaml
try kubectl run early --image docker.io/library/nginx:1

echo "# The hook is started. It is in Python, and its endpoint is stored as any object is."
hook images 0 python
fill endpoints.yaml
try kubectl apply -f endpoints.yaml
try kubectl run guest --image docker.io/library/nginx:1
try kubectl run web --image registry.example.com/web:1
asked images

echo "# It has proved itself, and is made to fail closed."
closed='{"externalAdmissionHooks":[{"name":"images.pods.example.com","failurePolicy":"Fail"}]}'
try kubectl patch externaladmissionhookconfiguration images -p "$closed"
stop $hook_pid
without_address try kubectl run late --image registry.example.com/late:1

echo "# Another program takes its place elsewhere. The next request goes there."
hook images 0 admission-webhook
fill endpoints.yaml
try kubectl apply -f endpoints.yaml
try kubectl run late --image registry.example.com/late:1
asked images

echo "# Hooks of today are found in the same way, and Python answers those as well."
stop $hook_pid
hook images 0 python
fill endpoints.yaml
fill webhooks.yaml
quietly kubectl apply -f endpoints.yaml
try kubectl apply -f webhooks.yaml
try kubectl run labelled --image registry.example.com/web:1
try kubectl get pod labelled -o custom-columns=NAME:.metadata.name,TEAM:.metadata.labels.team
asked images
