// Command driver runs the Go SDK for the conformance suite: one JSON request a line on stdin, one JSON answer a
// line on stdout, in order. The protocol is that of client-sdk/conformance.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// request is one line of stdin.
type request struct {
	Op     string          `json:"op"`
	Client json.RawMessage `json:"client"`
	Args   json.RawMessage `json:"args"`
}

// operation answers one request.
type operation func(d *driver, asked request) (any, error)

// driver keeps what outlives a request.
type driver struct {
	clients clients
	watches watches
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	d := &driver{}
	defer d.close()
	operations := allOperations()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := writeLine(out, d.answer(operations, line)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (d *driver) close() {
	d.watches.stopAll()
	d.clients.closeAll()
}

func (d *driver) answer(operations map[string]operation, line []byte) (answer map[string]any) {
	defer func() {
		if cause := recover(); cause != nil {
			answer = fails("crash", fmt.Sprintf("%v\n%s", cause, debug.Stack()))
		}
	}()
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return fails("driver", "a line that is no request: "+err.Error())
	}
	operate := operations[asked.Op]
	if operate == nil {
		return fails("driver", fmt.Sprintf("no operation %q", asked.Op))
	}
	value, err := operate(d, asked)
	if err != nil {
		return map[string]any{"error": errorValue(err)}
	}
	return map[string]any{"ok": value}
}

func fails(kind, message string) map[string]any {
	return map[string]any{"error": map[string]any{"kind": kind, "message": message}}
}

func writeLine(out io.Writer, answer map[string]any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(answer)
}

// badRequest is a mistake of whoever drives.
type badRequest struct{ error }

func read(text json.RawMessage, into any) error {
	if len(text) == 0 {
		text = json.RawMessage("{}")
	}
	if err := json.Unmarshal(text, into); err != nil {
		return badRequest{fmt.Errorf("args: %w", err)}
	}
	return nil
}

func isBadRequest(err error) bool {
	var bad badRequest
	return errors.As(err, &bad)
}
