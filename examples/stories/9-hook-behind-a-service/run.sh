#!/bin/sh
# Story 9: a hook behind a Service, which is registered before it runs.
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

echo "# The server refuses a new hook with the failure policy Fail."
try kubectl create -f hooks.yaml
echo "# It accepts the policy Ignore. The Service has no endpoint yet, and requests do not wait for it."
sed -i 's/failurePolicy: Fail/failurePolicy: Ignore/' hooks.yaml
try kubectl create -f hooks.yaml
try kubectl run early --image docker.io/library/nginx:1

echo "# The hook, a Python program, starts, and kubectl creates its endpoint."
hook images 0 python
fill endpoints.yaml
try kubectl apply -f endpoints.yaml
try kubectl run guest --image docker.io/library/nginx:1
try kubectl run web --image registry.example.com/web:1
asked images

echo "# The hook works, so an update sets the failure policy Fail."
closed='{"externalAdmissionHooks":[{"name":"images.pods.example.com","failurePolicy":"Fail"}]}'
try kubectl patch externaladmissionhookconfiguration images -p "$closed"
stop $hook_pid
without_address try kubectl run late --image registry.example.com/late:1

echo "# The endpoint changes to another program. The server sends the next request there."
hook images 0 admission-webhook
fill endpoints.yaml
try kubectl apply -f endpoints.yaml
try kubectl run late --image registry.example.com/late:1
asked images

echo "# The server finds v1 webhooks in the same way, and the Python program answers them too."
stop $hook_pid
hook images 0 python
fill endpoints.yaml
fill webhooks.yaml
quietly kubectl apply -f endpoints.yaml
try kubectl apply -f webhooks.yaml
try kubectl run labelled --image registry.example.com/web:1
try kubectl get pod labelled -o custom-columns=NAME:.metadata.name,TEAM:.metadata.labels.team
asked images
