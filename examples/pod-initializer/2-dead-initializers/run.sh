#!/bin/sh
# Initializers 2: an initializer does not run. Its timeout is one second here, not five.
. "$(dirname "$0")/../initializers.sh"

# timed COMMAND...: shows a command, what it prints, and whether it had to wait.
timed() {
    begun=$(date +%s%N)
    try "$@"
    milliseconds=$((($(date +%s%N) - begun) / 1000000))
    if [ $milliseconds -ge 1000 ]; then
        echo "# It took more than a second."
    else
        echo "# It took $milliseconds ms."
    fi
}

is_visible() {
    kubectl get pods -o name | grep -q "^pod/$1\$"
}

server --admission-initializers-step-timeout=1s

echo "# The server refuses a new initializer with the failure policy Fail."
try kubectl create -f initializers.yaml
sed -i 's/failurePolicy: Fail/failurePolicy: Ignore/' initializers.yaml
try kubectl create -f initializers.yaml

echo "# The initializer does not run. After the timeout the server skips it and creates the pod without it."
timed kubectl run web --image registry.example.com/web:1
containers web
pending web
metric portcullis_initializer_timeouts_total

echo "# With the failure policy Fail no pod is created without the proxy."
closed='{"initializers":[{"name":"proxy.example.com","failurePolicy":"Fail"}]}'
try kubectl patch initializerconfiguration sidecars -p "$closed"
timed kubectl run api --image registry.example.com/api:1
metric portcullis_initializer_timeouts_total

echo "# The server keeps the hidden pod for an initializer that starts late."
try kubectl get pods -o name
pending api
initializer proxy
until_ok "the pod" is_visible api
containers api
did proxy api
