package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"toolgate.dev/go"
	"toolgate.dev/go/toolgatev1"
)

// soak makes many calls at the same time.
func soak(d *driver, asked request) (any, error) {
	var args struct {
		Request     wired[toolgatev1.RouteRequest] `json:"request"`
		Calls       int                            `json:"calls"`
		Concurrency int                            `json:"concurrency"`
	}
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	client, err := d.clients.of(asked.Client)
	if err != nil {
		return nil, err
	}
	numbers := make(chan int)
	var mutex sync.Mutex
	failed := map[string]int{}
	var workers sync.WaitGroup
	started := time.Now()
	for range max(args.Concurrency, 1) {
		workers.Go(func() {
			for range numbers {
				if _, err := client.Route(context.Background(), args.Request.M); err != nil {
					mutex.Lock()
					failed[codeName(err)]++
					mutex.Unlock()
				}
			}
		})
	}
	for number := range args.Calls {
		numbers <- number
	}
	close(numbers)
	workers.Wait()
	return map[string]any{"calls": args.Calls, "failed": failed, "seconds": time.Since(started).Seconds()}, nil
}

func codeName(err error) string {
	var failed *toolgate.Error
	if errors.As(err, &failed) {
		return code.Code(failed.Code).String()
	}
	return "USAGE"
}

// openClose opens a client, makes a call and closes it, over and over.
func openClose(_ *driver, asked request) (any, error) {
	var args struct {
		Request wired[toolgatev1.GetServerRequest] `json:"request"`
		Times   int                                `json:"times"`
	}
	var spec clientSpec
	if err := errors.Join(read(asked.Args, &args), read(asked.Client, &spec)); err != nil {
		return nil, err
	}
	for range args.Times {
		client, err := spec.open()
		if err != nil {
			return nil, err
		}
		_, failed := client.GetServer(context.Background(), args.Request.M)
		if err := errors.Join(failed, client.Close()); err != nil {
			return nil, err
		}
	}
	return map[string]any{"times": args.Times}, nil
}

// bench times calls one after another, the connection being open.
func bench(d *driver, asked request) (any, error) {
	var args struct {
		Request wired[toolgatev1.RouteRequest] `json:"request"`
		Calls   int                            `json:"calls"`
		Raw     bool                           `json:"raw"`
	}
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	client, err := d.clients.of(asked.Client)
	if err != nil {
		return nil, err
	}
	call := func(ctx context.Context) error {
		_, err := client.Route(ctx, args.Request.M)
		return err
	}
	if args.Raw {
		conn, err := rawConn(asked.Client)
		if err != nil {
			return nil, err
		}
		defer func() { _ = conn.Close() }()
		stub := toolgatev1.NewRouterServiceClient(conn)
		call = func(ctx context.Context) error {
			_, err := stub.Route(ctx, args.Request.M)
			return err
		}
	}
	if err := call(context.Background()); err != nil {
		return nil, err
	}
	micros := make([]int64, args.Calls)
	for i := range micros {
		started := time.Now()
		if err := call(context.Background()); err != nil {
			return nil, err
		}
		micros[i] = time.Since(started).Microseconds()
	}
	return map[string]any{"micros": micros}, nil
}

// rawConn is a connection as whoever uses the stubs alone makes it: unencrypted, with gRPC's defaults.
func rawConn(description json.RawMessage) (*grpc.ClientConn, error) {
	var spec clientSpec
	if err := read(description, &spec); err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(strings.TrimPrefix(spec.target(), "http://"), "/")
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
}
