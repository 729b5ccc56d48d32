#!/bin/sh
# Initializers 3: the server is killed while a pod waits, so no server applies the timeout of its
# initializers. A read of the pod repairs it after --admission-initializers-global-timeout, which is one
# second here, not 10 minutes.
. "$(dirname "$0")/../initializers.sh"

server --admission-initializers-step-timeout=30s
quietly kubectl apply -f initializers.yaml
creating web
pending web

echo "# The server is killed, and another server starts on its data, with a later time."
kill -9 $server_pid
wait $server_pid 2>/dev/null || :
wait $creator || :
sleep 1
server --admission-initializers-step-timeout=1s --admission-initializers-global-timeout=1s

echo "# A list does not repair the pod and does not show it."
try kubectl get pods -o name
try kubectl get pods -o name
echo "# Each GET of the pod removes one pending initializer."
pending web
pending web
try kubectl get pods -o name
metric portcullis_initializer_read_repairs_total
