// Package realserver is for tests against a running `toolgate serve`, which TOOLGATE_TARGET names.
package realserver

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toolgate.dev/go"
	"toolgate.dev/go/internal/checkout"
)

// Target is the running server's; without one the test fails.
func Target(t *testing.T) string {
	t.Helper()
	target := os.Getenv("TOOLGATE_TARGET")
	if target == "" {
		t.Fatal("TOOLGATE_TARGET names no server: start `toolgate serve` and set it to host:port")
	}
	return target
}

// Client is a client with a tenant of its own.
func Client(t *testing.T) *toolgate.Client {
	t.Helper()
	tenant := "go-" + strings.ToLower(rand.Text())
	client, err := toolgate.New(Target(t), toolgate.WithTenant(tenant), toolgate.WithTimeout(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Catalog is the path of a real catalog.
func Catalog(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(checkout.Root(t), "tests", "data", "servers", name+".json")
}
