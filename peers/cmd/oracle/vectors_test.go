package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// vectorsDir holds the recorded answers of kube-apiserver that the oracle has
// to give again.
const vectorsDir = "../../../conformance"

// object is a JSON object of which only some fields matter.
type object = map[string]any

// disagreements are the vectors that the oracle answers otherwise, and why.
var disagreements = map[string]string{
	"cfg-connection-info-006": "mentions /conformance/dir/../authz.kubeconfig, a file that it does not list",
}

func TestMatchConditionVectors(t *testing.T) {
	checkVectors(t, "match-conditions.jsonl",
		func(vector object) object {
			request := object{"op": "cel", "expressions": vector["expressions"]}
			var requests []any
			for _, c := range list(vector["cases"]) {
				requests = append(requests, c.(object)["request"])
			}
			request["requests"] = requests
			return request
		},
		func(vector, got object) object {
			want := object{"compile": vector["compile"]}
			if errs := vector["errors"]; errs != nil {
				want["errors"] = errs
			}
			if cases := list(vector["cases"]); cases != nil {
				want["cases"] = cases
				forgetCosts(cases, list(got["cases"]))
			}
			return want
		})
}

// forgetCosts makes the cases of a vector comparable with an answer. Besides
// the requests, it drops the costs that a vector leaves out: Go walks maps in
// random order, so what it costs to search `extra` is not always the same.
func forgetCosts(want, got []any) {
	for i, c := range want {
		delete(c.(object), "request")
		if _, known := c.(object)["cost"]; !known && i < len(got) {
			delete(got[i].(object), "cost")
		}
	}
}

func TestConfigLoadVectors(t *testing.T) {
	checkVectors(t, "config-load.jsonl",
		func(vector object) object {
			return object{"op": "config", "text": vector["text"], "files": vector["files"]}
		},
		expected)
}

func TestRequestAttributeVectors(t *testing.T) {
	checkVectors(t, "request-attributes.jsonl",
		func(vector object) object {
			return object{"op": "request", "method": vector["method"], "target": vector["target"]}
		},
		expected)
}

func expected(vector, _ object) object {
	return vector["expect"].(object)
}

func list(value any) []any {
	items, _ := value.([]any)
	return items
}

// checkVectors asks about every vector of a suite. `request` says what to ask,
// `want` what should come back.
func checkVectors(t *testing.T, suite string, request func(vector object) object, want func(vector, got object) object) {
	t.Helper()
	vectors := readVectors(t, suite)
	var input bytes.Buffer
	for _, vector := range vectors {
		if err := write(&input, request(vector)); err != nil {
			t.Fatal(err)
		}
	}
	answers := ask(t, &input)
	if len(answers) != len(vectors) {
		t.Fatalf("%d answers to %d vectors", len(answers), len(vectors))
	}
	for i, vector := range vectors {
		id := vector["id"].(string)
		agrees := reflect.DeepEqual(want(vector, answers[i]), answers[i])
		if reason, excepted := disagreements[id]; excepted && agrees {
			t.Errorf("%s agrees, although it %s", id, reason)
		} else if !excepted && !agrees {
			t.Errorf("%s\n  want %v\n  got  %v", id, want(vector, answers[i]), answers[i])
		}
	}
}

func readVectors(t *testing.T, suite string) []object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(vectorsDir, suite))
	if err != nil {
		t.Fatal(err)
	}
	vectors := decodeLines(t, text)
	if len(vectors) == 0 {
		t.Fatalf("%s is empty", suite)
	}
	return vectors
}

// ask sends lines through the oracle.
func ask(t *testing.T, input *bytes.Buffer) []object {
	t.Helper()
	var output bytes.Buffer
	if err := run(input, &output); err != nil {
		t.Fatal(err)
	}
	return decodeLines(t, output.Bytes())
}

func decodeLines(t *testing.T, text []byte) []object {
	t.Helper()
	var objects []object
	for decoder := json.NewDecoder(bytes.NewReader(text)); decoder.More(); {
		var o object
		if err := decoder.Decode(&o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}
