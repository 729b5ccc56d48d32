package main

import (
	"bytes"
	"reflect"
	"testing"
)

// TestEveryLineIsAnswered covers what the vectors do not: lines that make no
// sense, and expressions of any type.
func TestEveryLineIsAnswered(t *testing.T) {
	cases := []struct {
		line string
		want object
	}{
		{`nonsense`, object{"badRequest": "invalid character 'o' in literal null (expecting 'u')"}},
		{``, object{"badRequest": "unexpected end of JSON input"}},
		{`{"op":"fly"}`, object{"badRequest": `unknown op "fly"`}},
		{`{"op":"request","method":"GET","target":"/\r\nX: y"}`, object{"badRequest": "a request line has no line break"}},
		{`{"op":"config","text":"","files":{"/etc/x":"regular"}}`, object{"badRequest": `file "/etc/x" is not a clean path below /conformance`}},
		{`{"op":"cel","requests":[{"user":"a"}]}`, object{"compile": "ok", "cases": []any{object{"result": "match"}}}},
		{`{"op":"celraw","expression":"1 +"}`, object{"compile": "error", "stage": "compile",
			"error": "ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 1 +\n | ...^"}},
		{`{"op":"celraw","expression":"int('x')"}`, object{"compile": "error", "stage": "program", "type": "int",
			"error": "type conversion error from 'string' to 'int'"}},
		{`{"op":"celraw","expression":"request.groups[9]"}`, object{"compile": "ok", "stage": "eval", "type": "string", "cost": 3.0,
			"error": "index out of bounds: 9"}},
		{`{"op":"celraw","expression":"request.user","request":{"user":"bob"}}`, object{"compile": "ok", "type": "string", "cost": 2.0,
			"value": object{"kind": "string", "text": `"bob"`}}},
		{`{"op":"celraw","expression":"[1 + 1]","ast":true}`, object{"compile": "ok", "type": "list(int)", "cost": 11.0,
			"value": object{"kind": "list", "text": "[2]"},
			"ast":   "[\n  _+_(\n    1~int,\n    1~int\n  )~int^add_int64\n]~list(int)"}},
	}
	var input bytes.Buffer
	for _, c := range cases {
		input.WriteString(c.line + "\n")
	}
	answers := ask(t, &input)
	if len(answers) != len(cases) {
		t.Fatalf("%d answers to %d lines", len(answers), len(cases))
	}
	for i, c := range cases {
		if !reflect.DeepEqual(c.want, answers[i]) {
			t.Errorf("%s\n  want %v\n  got  %v", c.line, c.want, answers[i])
		}
	}
}

func TestPanicIsAnswered(t *testing.T) {
	operations := map[string]operation{"boom": func([]byte) (any, error) { panic("ouch") }}
	want := map[string]string{"panic": "ouch"}
	if got := answer(operations, []byte(`{"op":"boom"}`)); !reflect.DeepEqual(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
}

// TestValueTexts has one value of every kind.
func TestValueTexts(t *testing.T) {
	cases := map[string]string{
		`true`:          `true`,
		`-7`:            `-7`,
		`7u`:            `7u`,
		`2.0`:           `2.0`,
		`1e100`:         `1e+100`,
		`double('NaN')`: `NaN`,
		`'a"\n'`:        `"a\"\n"`,
		`b'\xff'`:       `b"\xff"`,
		`null`:          `null`,
		`timestamp('2024-02-29T12:00:00.5+01:00')`: `2024-02-29T11:00:00.5Z`,
		`duration('90s')`:                          `1m30s`,
		`type(1u)`:                                 `uint`,
		`optional.none()`:                          `optional.none()`,
		`optional.of([1])`:                         `optional.of([1])`,
		`{'b': 2, 'a': 1}`:                         `{"a": 1, "b": 2}`,
		`url('https://x/y')`:                       `https://x/y`,
		`quantity('1500m')`:                        `1500m`,
		`ip('::1')`:                                `::1`,
		`cidr('10.0.0.0/8')`:                       `10.0.0.0/8`,
		`semver('1.2.3-a')`:                        `1.2.3-a`,
		`format.dns1123Label()`:                    `DNS1123Label`,
		`{'k': request.extra['scopes']}`:           `{"k": ["red", "blue"]}`,
	}
	var expressions []string
	var input bytes.Buffer
	for expression := range cases {
		expressions = append(expressions, expression)
		if err := write(&input, object{"op": "celraw", "expression": expression}); err != nil {
			t.Fatal(err)
		}
	}
	for i, got := range ask(t, &input) {
		value, _ := got["value"].(object)
		if value["text"] != cases[expressions[i]] {
			t.Errorf("%s: want %s, got %v", expressions[i], cases[expressions[i]], got)
		}
	}
}
