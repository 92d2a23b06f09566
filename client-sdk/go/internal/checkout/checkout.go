// Package checkout finds files of the repository, for tests.
package checkout

import (
	"os"
	"path/filepath"
	"testing"
)

// Root is the repository's root. Outside of it the test fails.
func Root(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(here, "client-sdk", "conformance")); err == nil {
			return here
		}
		above := filepath.Dir(here)
		if above == here {
			t.Fatal("this test runs within the repository: client-sdk/conformance is missing")
		}
		here = above
	}
}
