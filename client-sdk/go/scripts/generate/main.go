// Command generate rewrites toolgatev1 from proto/toolgate/v1; with -check it writes nothing and fails when what
// is committed differs. Run it in this folder: go run ./generate [-check].
//
// protoc is the one of Python's grpcio-tools: of the interpreter that $PYTHON names, else of the repository's
// .cache/venv. The plugins are those that this module's go.mod pins.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

const (
	protos    = "../../../proto"
	committed = "../toolgatev1"
)

// plugins are pinned by this module's go.mod.
var plugins = []string{
	"google.golang.org/protobuf/cmd/protoc-gen-go",
	"google.golang.org/grpc/cmd/protoc-gen-go-grpc",
}

func main() {
	log.SetFlags(0)
	check := flag.Bool("check", false, "write nothing; fail on a difference")
	flag.Parse()
	if err := run(*check); err != nil {
		log.Fatal(err)
	}
}

func run(check bool) error {
	folder, err := os.MkdirTemp("", "toolgate-generate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := generate(folder); err != nil {
		return err
	}
	fresh, err := read(folder)
	if err != nil {
		return err
	}
	if check {
		return compare(fresh)
	}
	return write(fresh)
}

// generate runs protoc into an empty folder.
func generate(folder string) error {
	tools := filepath.Join(folder, "tools")
	if err := execute("go", append([]string{"build", "-p", "1", "-o", tools + "/"}, plugins...)...); err != nil {
		return err
	}
	sources, err := filepath.Glob(filepath.Join(protos, "toolgate/v1/*.proto"))
	if err != nil || len(sources) == 0 {
		return fmt.Errorf("no .proto files in %s: run this in client-sdk/go/scripts", protos)
	}
	arguments := []string{
		"-m", "grpc_tools.protoc", "-I" + protos,
		"--plugin=" + filepath.Join(tools, "protoc-gen-go"),
		"--plugin=" + filepath.Join(tools, "protoc-gen-go-grpc"),
		"--go_out=" + folder, "--go_opt=module=toolgate.dev/go/toolgatev1",
		"--go-grpc_out=" + folder, "--go-grpc_opt=module=toolgate.dev/go/toolgatev1",
	}
	return execute(python(), append(arguments, sources...)...)
}

func python() string {
	if named := os.Getenv("PYTHON"); named != "" {
		return named
	}
	return "../../../.cache/venv/bin/python"
}

func execute(name string, arguments ...string) error {
	command := exec.Command(name, arguments...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// read gives the generated files of a folder by name.
func read(folder string) (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.pb.go"))
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte, len(paths))
	for _, path := range paths {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func compare(fresh map[string][]byte) error {
	held, err := read(committed)
	if err != nil {
		return err
	}
	var stale []string
	for name, text := range fresh {
		if !bytes.Equal(text, held[name]) {
			stale = append(stale, name)
		}
	}
	for name := range held {
		if _, ok := fresh[name]; !ok {
			stale = append(stale, name)
		}
	}
	if len(stale) > 0 {
		slices.Sort(stale)
		return fmt.Errorf("toolgatev1 is not current, run `go run ./generate`: %v", stale)
	}
	fmt.Printf("%d generated files are current\n", len(fresh))
	return nil
}

func write(fresh map[string][]byte) error {
	held, err := read(committed)
	if err != nil {
		return err
	}
	for name := range held {
		if err := os.Remove(filepath.Join(committed, name)); err != nil {
			return err
		}
	}
	for name, text := range fresh {
		if err := os.WriteFile(filepath.Join(committed, name), text, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("wrote %d files\n", len(fresh))
	return nil
}
