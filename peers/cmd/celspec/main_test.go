package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	testpb "cel.dev/expr/conformance/test"
	"google.golang.org/protobuf/encoding/prototext"
)

// TestFileIsCurrent makes the lines again and compares them with those that
// the Rust tests read.
func TestFileIsCurrent(t *testing.T) {
	want, err := os.ReadFile("../../../crates/cel/testdata/cel-spec.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := run("", &got); err != nil {
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

// TestLines has a test of each shape, and the line that it becomes.
func TestLines(t *testing.T) {
	cases := []struct{ test, want string }{
		{
			`expr: "1 < 2"`,
			`{"expr":"1 \u003c 2","expect":{"value":{"bool":true}},"kubernetes":{"type":"bool","value":{"bool":true},"cost":1}}`,
		},
		{
			`expr: "x" disable_check: true bindings { key: "x" value { value { double_value: -inf } } } value { null_value: 0 }`,
			`{"expr":"x","disable_check":true,"variables":[{"name":"x","type":"dyn","value":{"double":"-Inf"}}],` +
				`"expect":{"value":{"null":true}},"kubernetes":{"type":"dyn","value":{"double":"-Inf"},"cost":1}}`,
		},
		{
			`expr: "[{2u: b'x'}]" typed_result { deduced_type { list_type { elem_type { dyn {} } } } } check_only: true`,
			`{"expr":"[{2u: b'x'}]","check_only":true,"expect":{"type":"list(dyn)"},"kubernetes":{"type":"list(map(uint, bytes))"}}`,
		},
		{
			`expr: "[{2u: b'x'}]" value { list_value { values { map_value { entries { key { uint64_value: 2 } value { bytes_value: "x" } } } } } }`,
			`{"expr":"[{2u: b'x'}]","expect":{"value":{"list":[{"map":[[{"uint":"2"},{"bytes":"78"}]]}]}},` +
				`"kubernetes":{"type":"list(map(uint, bytes))","value":{"list":[{"map":[[{"uint":"2"},{"bytes":"78"}]]}]},"cost":0}}`,
		},
		{
			`expr: "1 / 0" eval_error { errors { message: "divide by zero" } }`,
			`{"expr":"1 / 0","expect":{"error":["divide by zero"]},"kubernetes":{"stage":"eval","error":"division by zero","type":"int"}}`,
		},
		{
			`expr: "int('x')" eval_error {}`,
			`{"expr":"int('x')","expect":{"error":[""]},` +
				`"kubernetes":{"stage":"program","error":"type conversion error from 'string' to 'int'","type":"int"}}`,
		},
		{
			`expr: "f()" container: "a.b" type_env { name: "f" function {} } any_eval_errors { errors {} }`,
			`{"expr":"f()","container":"a.b","functions":["f"],"expect":{"error":[""]},` +
				`"kubernetes":{"stage":"compile","error":"ERROR: \u003cinput\u003e:1:2: undeclared reference to 'f' (in container '')\n | f()\n | .^"}}`,
		},
	}
	peer, err := newKubernetes()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		test := &testpb.SimpleTest{}
		if err := prototext.Unmarshal([]byte(c.test), test); err != nil {
			t.Fatal(err)
		}
		line, err := peer.line(test)
		if err != nil {
			t.Errorf("%s: %v", c.test, err)
			continue
		}
		got, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"file":"","section":"","name":"",` + c.want[1:]
		if string(got) != want {
			t.Errorf("%s\n  want %s\n  got  %s", c.test, want, got)
		}
	}
}

func TestTestMessagesAreSeen(t *testing.T) {
	cases := map[string]bool{
		`expr: "TestAllTypes{}"`:                             true,
		`expr: "x" container: "cel.expr.conformance.proto3"`: true,
		`expr: "x" value { object_value { [type.googleapis.com/cel.expr.conformance.proto2.TestAllTypes] {} } }`: true,
		`expr: "google.protobuf.Int32Value{}"`: false,
	}
	for text, want := range cases {
		test := &testpb.SimpleTest{}
		if err := prototext.Unmarshal([]byte(text), test); err != nil {
			t.Fatal(err)
		}
		if got := needsTestMessages(test); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
