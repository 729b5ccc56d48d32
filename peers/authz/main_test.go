package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// files of a small run: each kind of policy, and questions of which one says
// of each contest what upstream would not.
var files = map[string]string{
	"abac-1/policy.jsonl": `{"user":"ana","namespace":"web","resource":"pods"}`,
	"rbac-1/roles.jsonl": `{"kind":"ClusterRole","metadata":{"name":"reader"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}
{"kind":"Role","metadata":{"namespace":"web","name":"own"},"rules":[{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]}`,
	"rbac-1/bindings.jsonl": `{"kind":"ClusterRoleBinding","metadata":{"name":"a"},"subjects":[{"kind":"User","name":"ana"}],"roleRef":{"kind":"ClusterRole","name":"reader"}}
{"kind":"RoleBinding","metadata":{"namespace":"web","name":"a"},"subjects":[{"kind":"Group","name":"dev"}],"roleRef":{"kind":"Role","name":"own"}}`,
	"node/objects.jsonl": `{"kind":"Pod","metadata":{"namespace":"web","name":"p"},"spec":{"nodeName":"n","containers":[{"envFrom":[{"secretRef":{"name":"own"}}]}],"volumes":[{"persistentVolumeClaim":{"claimName":"c"}}]}}
{"kind":"PersistentVolume","metadata":{"name":"v"},"spec":{"claimRef":{"namespace":"web","name":"c"}}}`,
	"users/askers.jsonl": `{"name":"ana","groups":["dev"]}
{"name":"bob","groups":["dev"]}
{"name":"system:node:n","groups":["system:nodes"]}
{"name":"root","groups":["system:masters"]}`,
	"abac-questions/questions.jsonl": `{"asker":0,"verb":"get","namespace":"web","resource":"pods","allow":true}
{"asker":1,"verb":"get","namespace":"web","resource":"pods","allow":true}
{"asker":0,"verb":"get","path":"/version","allow":false}`,
	"rbac-questions/questions.jsonl": `{"asker":0,"verb":"get","namespace":"other","resource":"pods","allow":true}
{"asker":1,"verb":"list","namespace":"web","resource":"pods","allow":true}
{"asker":1,"verb":"get","namespace":"web","resource":"pods","allow":true}`,
	"node-questions/questions.jsonl": `{"asker":2,"verb":"get","namespace":"web","resource":"secrets","name":"own","allow":true}
{"asker":2,"verb":"get","resource":"persistentvolumes","name":"v","allow":true}
{"asker":2,"verb":"get","namespace":"web","resource":"secrets","name":"other","allow":true}`,
	"chain-questions/questions.jsonl": `{"asker":2,"verb":"get","namespace":"web","resource":"secrets","name":"own","allow":true}
{"asker":0,"verb":"get","namespace":"web","resource":"pods","allow":true}
{"asker":3,"verb":"get","path":"/metrics","allow":false}`,
	"plan.json": `{"contests":[
		{"name":"a","authorizer":"abac","policies":["abac-1"],"questions":"abac-questions"},
		{"name":"r","authorizer":"rbac","policies":["rbac-1"],"questions":"rbac-questions"},
		{"name":"c","authorizer":"chain","policies":["rbac-1","node"],"questions":"chain-questions"},
		{"name":"n","authorizer":"node","policies":["node"],"questions":"node-questions"}]}`,
}

func write(t *testing.T, changes map[string]string) string {
	t.Helper()
	root := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		put(name, text)
		if strings.HasSuffix(name, "/questions.jsonl") {
			put(filepath.Join(filepath.Dir(name), "askers.jsonl"), files["users/askers.jsonl"])
		}
	}
	for name, text := range changes {
		put(name, text)
	}
	return filepath.Join(root, "plan.json")
}

func TestEveryAuthorizerIsAskedAndItsDisagreementsAreCounted(t *testing.T) {
	var out bytes.Buffer
	if err := run(write(t, nil), time.Minute, &out); err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(&out)
	for _, name := range []string{"a", "r", "c", "n"} {
		var got answer
		if err := decoder.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if got.Name != name || got.Decisions != 3 || got.Disagreements != 1 || len(got.Shown) != 1 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestFaultsAreNamed(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"plan.json", `{"contests":[{"name":"x","authorizer":"odd","policies":[],"questions":""}]}`, `contest "x": no authorizer "odd" of 0 policies`},
		{"plan.json", `[]`, "reading the plan"},
		{"node/objects.jsonl", `{"kind":"Job"}`, `no object of kind "Job" counts`},
		{"rbac-questions/questions.jsonl", `{"asker":9}`, "line 1: there is no asker 9"},
	} {
		err := run(write(t, map[string]string{c.file: c.text}), time.Minute, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %s, got %v", c.file, c.want, err)
		}
	}
}

func TestPercentile(t *testing.T) {
	times := make([]time.Duration, 101)
	for i := range times {
		times[i] = time.Duration(i)
	}
	if percentile(times, 50) != 50 || percentile(times, 99) != 99 || percentile(nil, 50) != 0 {
		t.Errorf("got %d, %d, %d", percentile(times, 50), percentile(times, 99), percentile(nil, 50))
	}
}
