package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// readLines decodes each line of a file of JSON lines into a new T.
func readLines[T any](path string, each func(*T) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	decoder := json.NewDecoder(bufio.NewReaderSize(file, 1<<20))
	for line := 1; ; line++ {
		value := new(T)
		err := decoder.Decode(value)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = each(value)
		}
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", path, line, err)
		}
	}
}
