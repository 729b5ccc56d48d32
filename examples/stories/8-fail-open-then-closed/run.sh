#!/bin/sh
# Story 8: the failure policy decides what happens while a webhook is unavailable.
. "$(dirname "$0")/../admission.sh"

policy() {
    echo "{\"webhooks\":[{\"name\":\"images.pods.example.com\",\"failurePolicy\":\"$1\"}]}"
}

certificate webhook IP:127.0.0.1
hook webhook 0 admission-webhook
server
fill webhooks.yaml
try kubectl apply -f webhooks.yaml
try kubectl run guest --image docker.io/library/nginx:1

echo "# While the webhook is stopped, the policy Ignore lets all requests pass. A metric counts them."
stop $hook_pid
try kubectl run guest --image docker.io/library/nginx:1
metric apiserver_admission_webhook_fail_open_count

echo "# The policy Fail refuses every request that matches the webhook. Other requests succeed."
try kubectl patch validatingwebhookconfiguration images -p "$(policy Fail)"
without_address try kubectl run web --image registry.example.com/web:1
try kubectl get pod web -o name
try kubectl create configmap other

echo "# The server calls no webhook for configurations, so an administrator can always change them."
try kubectl patch validatingwebhookconfiguration images -p "$(policy Ignore)"
try kubectl run web --image registry.example.com/web:1
try kubectl patch validatingwebhookconfiguration images -p "$(policy Fail)"

echo "# When the webhook runs again, the server calls it again."
hook webhook "$port" admission-webhook
try kubectl run api --image registry.example.com/api:1
try kubectl run stranger --image docker.io/library/nginx:1
asked webhook
