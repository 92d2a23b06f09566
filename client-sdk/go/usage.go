package toolgate

import (
	"context"

	"google.golang.org/grpc"

	"toolgate.dev/go/toolgatev1"
)

// GetUsage adds up the tenant's token ledger over a span of time.
func (c *Client) GetUsage(ctx context.Context, request *toolgatev1.GetUsageRequest, options ...grpc.CallOption) (*toolgatev1.GetUsageResponse, error) {
	return invoke(ctx, c, c.usage.GetUsage, request, options)
}
