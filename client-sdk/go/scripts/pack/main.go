// Command pack writes the module as the Go proxy serves it: a folder that GOPROXY=file://FOLDER reads. Run it in
// scripts: go run ./pack FOLDER. The version is that of the constant Version in doc.go.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	source = ".."
	path   = "toolgate.dev/go"
)

var constant = regexp.MustCompile(`(?m)^const Version = "([0-9.]+)"$`)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run ./pack FOLDER")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(proxy string) error {
	text, err := os.ReadFile(filepath.Join(source, "doc.go"))
	if err != nil {
		return err
	}
	found := constant.FindSubmatch(text)
	if found == nil {
		return fmt.Errorf("%s/doc.go has no constant Version", source)
	}
	packed := module.Version{Path: path, Version: "v" + string(found[1])}
	definition, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := zip.CreateFromDir(&archive, packed, source); err != nil {
		return err
	}
	return write(filepath.Join(proxy, filepath.FromSlash(path), "@v"), map[string][]byte{
		"list":                   []byte(packed.Version + "\n"),
		packed.Version + ".info": fmt.Appendf(nil, "{\"Version\":%q}\n", packed.Version),
		packed.Version + ".mod":  definition,
		packed.Version + ".zip":  archive.Bytes(),
	})
}

func write(folder string, files map[string][]byte) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: %d bytes\n", filepath.Join(folder, name), len(content))
	}
	return nil
}
