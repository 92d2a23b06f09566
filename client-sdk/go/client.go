package toolgate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // Without it, the service config's health checks do nothing.
	"google.golang.org/grpc/keepalive"

	"toolgate.dev/go/toolgatev1"
)

// DefaultTimeout is how long a call whose context has no deadline may take, its retries included.
const DefaultTimeout = 5 * time.Second

// A page of 1,000 tools or 100 promoted schemas may pass gRPC's default of 4 MiB.
const maxReceivedBytes = 64 << 20

// Every address of the host is used, and one that says that it drains gets no new calls. Retries are not here,
// since gRPC's know nothing of RetryInfo: see retry.go.
const serviceConfig = `{
	"loadBalancingConfig": [{"round_robin": {}}],
	"healthCheckConfig": {"serviceName": ""}
}`

// A watch may be silent for days; a peer that is gone without a word is noticed all the same.
var aliveChecks = keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}

// ErrClosed is the error of calls on a client that was closed.
var ErrClosed = errors.New("toolgate: the client is closed")

// Client calls one Toolgate service, which may have many replicas. It is safe for concurrent use and connects
// with its first call. Close it when it is no longer needed.
type Client struct {
	conn     *grpc.ClientConn
	target   string
	tenant   string
	timeout  time.Duration
	throttle throttle
	closed   atomic.Bool
	// reconnected is when a connection was last asked for out of turn, in nanoseconds of Unix time.
	reconnected atomic.Int64

	router  toolgatev1.RouterServiceClient
	catalog toolgatev1.CatalogServiceClient
	policy  toolgatev1.PolicyServiceClient
	usage   toolgatev1.UsageServiceClient
	memory  toolgatev1.MemoryServiceClient
}

// New makes a client for a target: host:port, http://host:port, or https://host:port for TLS. Nothing is sent
// yet. Its errors say what is wrong with the target or with an option, and what would be right.
func New(target string, options ...Option) (*Client, error) {
	to, err := parseTarget(target)
	if err != nil {
		return nil, err
	}
	chosen, err := settingsOf(options)
	if err != nil {
		return nil, err
	}
	if chosen.tls != nil && !to.secure {
		return nil, fmt.Errorf("toolgate: %q asks for no encryption, but there are settings for TLS: say https://%s", target, to.address)
	}
	if err := checkCredentials(chosen, to); err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("dns:///"+to.address, dialOptions(chosen, to)...)
	if err != nil {
		return nil, fmt.Errorf("toolgate: %w", err)
	}
	return over(conn, to, chosen), nil
}

func over(conn *grpc.ClientConn, to target, chosen *settings) *Client {
	return &Client{
		conn:     conn,
		target:   to.address,
		tenant:   chosen.tenant,
		timeout:  chosen.timeout,
		throttle: throttle{tokens: maxTokens},
		router:   toolgatev1.NewRouterServiceClient(conn),
		catalog:  toolgatev1.NewCatalogServiceClient(conn),
		policy:   toolgatev1.NewPolicyServiceClient(conn),
		usage:    toolgatev1.NewUsageServiceClient(conn),
		memory:   toolgatev1.NewMemoryServiceClient(conn),
	}
}

func dialOptions(chosen *settings, to target) []grpc.DialOption {
	transport := insecure.NewCredentials()
	if to.secure {
		config := chosen.tls
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		transport = credentials.NewTLS(config)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceivedBytes)),
		grpc.WithKeepaliveParams(aliveChecks),
		grpc.WithConnectParams(reconnecting),
		grpc.WithUserAgent("toolgate-go/" + Version),
	}
	if chosen.credential != nil {
		sent := bearer{source: chosen.credential, secure: to.secure}
		options = append(options, grpc.WithPerRPCCredentials(sent))
	}
	return append(options, chosen.dialOptions...)
}

// Conn is the connection below the client, for the generated stubs of package toolgatev1. Calls through it have
// no deadline, tenant or retries but their own.
func (c *Client) Conn() grpc.ClientConnInterface {
	return c.conn
}

// Close closes the connections. Calls in progress fail with CANCELLED, later ones with [ErrClosed]. Closing again
// does nothing.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.conn.Close()
}
