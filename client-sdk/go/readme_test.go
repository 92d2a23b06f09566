package toolgate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// blocks are the README's blocks of Go.
func blocks(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, match := range goBlock.FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1])
	}
	if len(found) != 4 {
		t.Fatalf("%d blocks", len(found))
	}
	return found
}

func TestTheReadmesConversationIsTheExamples(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("examples", "agent", "conversation.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks(t)[1:] {
		if !strings.Contains(string(text), block) {
			t.Errorf("not in the example:\n%s", block)
		}
	}
}
