package main

import (
	"bytes"
	"os"
	"testing"
)

// TestFileIsCurrent makes the answers again and compares them with those that
// the Rust tests read.
func TestFileIsCurrent(t *testing.T) {
	want, err := os.ReadFile("../../../crates/cel/testdata/authorizer.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := run(want, &got); err != nil {
		t.Fatal(err)
	}
	wantLines, gotLines := bytes.Split(want, []byte("\n")), bytes.Split(got.Bytes(), []byte("\n"))
	if len(wantLines) != len(gotLines) {
		t.Fatalf("the file has %d lines and should have %d", len(wantLines), len(gotLines))
	}
	for i := range gotLines {
		if !bytes.Equal(wantLines[i], gotLines[i]) {
			t.Errorf("line %d\n  has  %s\n  want %s", i+1, wantLines[i], gotLines[i])
		}
	}
}

// TestLines has a line of each shape.
func TestLines(t *testing.T) {
	for _, want := range []string{
		`{"expr":"authorizer.path('/x').check('errdeny').error()","type":"string","value":{"string":"broken: errdeny"},"cost":350003,"asked":[{"verb":"errdeny","path":"/x"}]}`,
		`{"expr":"authorizer.serviceAccount('a', 'b').group('g').resource('r').check('none').allowed()","type":"bool","value":{"bool":false},"cost":350005,"asked":[{"user":"system:serviceaccount:a:b","verb":"none","group":"g","resource":"r"}]}`,
		`{"expr":"authorizer.requestResource.check('get')","type":"kubernetes.authorization.Decision","value":{"object":"kubernetes.authorization.Decision"},"cost":350001,"asked":[{"verb":"get","group":"apps","resource":"deployments","subresource":"scale","namespace":"shop","name":"web"}]}`,
		`{"expr":"[authorizer.path('')]","type":"list(kubernetes.authorization.PathCheck)","error":"expression '[authorizer.path('')]' resulted in error: path must not be empty","cost":12}`,
		`{"expr":"nope","error":"compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')\n | nope\n | ^"}`,
		`{"expr":"[1].includes(1)","type":"bool","value":{"bool":true},"cost":1,"new":"compilation failed: ERROR: <input>:1:13: undeclared reference to 'includes' (in container '')\n | [1].includes(1)\n | ............^"}`,
	} {
		var got bytes.Buffer
		if err := run([]byte(want), &got); err != nil {
			t.Fatal(err)
		}
		if got.String() != want+"\n" {
			t.Errorf("has  %swant %s", got.String(), want)
		}
	}
}
