# What the stories about initializers share; they read it with `.`, and everything happens in $work.
# Wanted in PATH besides what the other stories want: pod-initializer.

. "$(dirname "$0")/../../stories/story.sh"
need pod-initializer \
    "build it with: cargo build --manifest-path examples/pod-initializer/Cargo.toml --target-dir target"
cd "$work"
cp "$story/initializers.yaml" .

# initializer NAME: starts the initializer NAME.example.com, which gives pods the container NAME.
initializer() {
    KUBECONFIG="$work/data/admin.kubeconfig" pod-initializer \
        --name "$1.example.com" --container "$1=registry.example.com/$1:1" >>"$1.log" 2>&1 &
    pids="$pids $!"
    until_ok "initializer $1" grep -q 'waiting for pods' "$1.log"
}

# creating POD: begins to create a pod, and goes on when it is stored.
creating() {
    try kubectl run "$1" --image "registry.example.com/$1:1" >"$1.created" &
    creator=$!
    pids="$pids $creator"
    until_ok "pod $1" quietly kubectl get pod "$1"
}

# created POD: waits for the answer that the creator gets, and shows it.
created() {
    wait "$creator" || :
    cat "$1.created"
}

# pending POD: shows the initializers that a pod waits for.
pending() {
    names=$(kubectl get pod "$1" -o 'jsonpath={.metadata.initializers.pending[*].name}')
    echo "# $1 waits for: ${names:-no initializer}"
}

# containers POD: shows the containers of a pod.
containers() {
    try kubectl get pod "$1" -o 'custom-columns=NAME:.metadata.name,CONTAINERS:.spec.containers[*].name'
}

# did NAME POD: shows the log lines of an initializer about a pod. It may log after the create request ended.
did() {
    until_ok "initializer $1" grep -q "/$2:" "$1.log"
    sed -n "/\/$2:/s/^/# /p" "$1.log"
}
