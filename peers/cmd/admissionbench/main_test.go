package main

import "testing"

func TestMeasure(t *testing.T) {
	for _, count := range []int{matching, 10} {
		if _, err := measure(1, count); err != nil {
			t.Error(err)
		}
	}
	if _, err := measure(1, 1); err == nil {
		t.Error("too few hooks are no error")
	}
	if err := run([]string{"x", "1"}); err == nil {
		t.Error("a word is no number")
	}
}
