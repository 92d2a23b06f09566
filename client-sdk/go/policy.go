package toolgate

import (
	"context"

	"google.golang.org/grpc"

	"toolgate.dev/go/toolgatev1"
)

// SetPolicy replaces the tenant's policy document, which is checked whole first.
func (c *Client) SetPolicy(ctx context.Context, request *toolgatev1.SetPolicyRequest, options ...grpc.CallOption) (*toolgatev1.SetPolicyResponse, error) {
	return invoke(ctx, c, c.policy.SetPolicy, request, options)
}

// GetPolicy reads the tenant's policy document; an empty one when none was ever set.
func (c *Client) GetPolicy(ctx context.Context, request *toolgatev1.GetPolicyRequest, options ...grpc.CallOption) (*toolgatev1.GetPolicyResponse, error) {
	return invoke(ctx, c, c.policy.GetPolicy, request, options)
}

// CheckPolicy gives a page of what the policy decides of each tool for a state; see [Client.AllPolicyVerdicts]. The first
// page says how far each rule reaches.
func (c *Client) CheckPolicy(ctx context.Context, request *toolgatev1.CheckPolicyRequest, options ...grpc.CallOption) (*toolgatev1.CheckPolicyResponse, error) {
	return invoke(ctx, c, c.policy.CheckPolicy, request, options)
}
