#!/bin/sh
# Story 8: what happens when a webhook is away is up to who registers it.
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

echo "# Without the webhook, Ignore lets everything pass, which is counted."
stop $hook_pid
try kubectl run guest --image docker.io/library/nginx:1
metric apiserver_admission_webhook_fail_open_count

echo "# Fail lets nothing pass that the webhook would have been asked about. All else goes on."
try kubectl patch validatingwebhookconfiguration images -p "$(policy Fail)"
without_address try kubectl run web --image registry.example.com/web:1
try kubectl get pod web -o name
try kubectl create configmap other

echo "# Nobody is locked out: configurations are never asked about, so it can be taken back."
try kubectl patch validatingwebhookconfiguration images -p "$(policy Ignore)"
try kubectl run web --image registry.example.com/web:1
try kubectl patch validatingwebhookconfiguration images -p "$(policy Fail)"

echo "# When it is back, it is asked again."
hook webhook "$port" admission-webhook
try kubectl run api --image registry.example.com/api:1
try kubectl run stranger --image docker.io/library/nginx:1
asked webhook
