// Package conformance reads the cases that every client of Toolgate runs, for tests.
package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolgate.dev/go/internal/checkout"
	"toolgate.dev/go/internal/ordered"
)

// Run runs each case of the files that a pattern names, in client-sdk/conformance. No file is a failure.
func Run[C any](t *testing.T, pattern string, check func(t *testing.T, file string, given C)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(checkout.Root(t), "client-sdk", "conformance", filepath.FromSlash(pattern)))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %s (%v)", pattern, err)
	}
	for _, path := range paths {
		stem := strings.TrimSuffix(filepath.Base(path), ".json")
		for _, text := range cases(t, path) {
			var named struct{ Name string }
			var given C
			if err := json.Unmarshal(text, &named); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &given); err != nil {
				t.Fatalf("%s: %s: %v", stem, named.Name, err)
			}
			t.Run(stem+"/"+named.Name, func(t *testing.T) { check(t, stem, given) })
		}
	}
}

// Equal fails the test unless a value encodes to the expected JSON value.
func Equal(t *testing.T, want json.RawMessage, got any) {
	t.Helper()
	written, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	expected, err := ordered.Parse(want)
	if err != nil {
		t.Fatalf("the expected value: %v", err)
	}
	found, err := ordered.Parse(written)
	if err != nil {
		t.Fatal(err)
	}
	if !ordered.Equal(expected, found) {
		t.Errorf("got  %s\nwant %s", written, ordered.Write(expected))
	}
}

func cases(t *testing.T, path string) []json.RawMessage {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []json.RawMessage }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if len(file.Cases) == 0 {
		t.Fatalf("%s holds no cases", path)
	}
	return file.Cases
}
