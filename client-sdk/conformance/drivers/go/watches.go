package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"toolgate.dev/go/toolgatev1"
)

var errNoWatch = errors.New("no such watch")

// maxUntaken is how many events of a watch may wait to be taken; its stream waits then.
const maxUntaken = 1024

// watch collects in the background.
type watch struct {
	stop   context.CancelFunc
	events chan *toolgatev1.WatchCatalogResponse
	// failed is closed once err is set.
	failed chan struct{}
	err    error
}

// watches are running, by number.
type watches map[string]*watch

func (w watches) stopAll() {
	for _, running := range w {
		running.stop()
	}
}

func watchStart(d *driver, asked request) (any, error) {
	var args callArgs[toolgatev1.WatchCatalogRequest]
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	client, err := d.clients.of(asked.Client)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	started := &watch{
		stop: stop, events: make(chan *toolgatev1.WatchCatalogResponse, maxUntaken), failed: make(chan struct{}),
	}
	go func() {
		defer close(started.failed)
		for answer, err := range client.WatchCatalog(ctx, args.Request.M) {
			if err != nil {
				started.err = err
				return
			}
			select {
			case started.events <- answer:
			case <-ctx.Done():
				return
			}
		}
	}()
	if d.watches == nil {
		d.watches = make(watches)
	}
	name := "w" + strconv.Itoa(len(d.watches)+1)
	d.watches[name] = started
	return map[string]any{"watch": name}, nil
}

type watchArgs struct {
	Watch   string  `json:"watch"`
	Count   int     `json:"count"`
	Timeout float64 `json:"timeout"`
}

func watchTake(d *driver, asked request) (any, error) {
	var args watchArgs
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	running := d.watches[args.Watch]
	if running == nil {
		return nil, badRequest{errNoWatch}
	}
	events, failure := running.take(args.Count, seconds(args.Timeout))
	written, err := messages(events)
	if err != nil {
		return nil, err
	}
	taken := map[string]any{"events": written}
	if failure != nil {
		taken["error"] = errorValue(failure)
	}
	return taken, nil
}

// take waits until so many events came or time is over, and gives an error that ended the watch once all events
// are taken.
func (w *watch) take(count int, timeout time.Duration) ([]*toolgatev1.WatchCatalogResponse, error) {
	var events []*toolgatev1.WatchCatalogResponse
	late := time.After(timeout)
	failed := w.failed
	for len(events) < count {
		select {
		case event := <-w.events:
			events = append(events, event)
			continue
		default:
		}
		select {
		case event := <-w.events:
			events = append(events, event)
		case <-failed:
			if len(w.events) == 0 {
				return events, w.err
			}
		case <-late:
			return events, nil
		}
	}
	return events, nil
}

func watchStop(d *driver, asked request) (any, error) {
	var args watchArgs
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	running := d.watches[args.Watch]
	if running == nil {
		return nil, badRequest{errNoWatch}
	}
	running.stop()
	<-running.failed
	return json.RawMessage("{}"), nil
}
