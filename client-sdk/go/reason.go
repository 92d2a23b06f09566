package toolgate

// Reason is why a call failed: the name of an ErrorReason of the contract. One that this version does not know
// is kept as the service wrote it.
type Reason string

// The reasons of the contract.
const (
	// ReasonInvalidField: a field is malformed or out of range. Carries `google.rpc.BadRequest`.
	// INVALID_ARGUMENT.
	ReasonInvalidField Reason = "INVALID_FIELD"
	// ReasonLimitExceeded: a size or count limit was passed; metadata: `limit`, `maximum`, `actual`.
	// INVALID_ARGUMENT when the request can never succeed, RESOURCE_EXHAUSTED when it is the tenant's stock
	// that is full.
	ReasonLimitExceeded Reason = "LIMIT_EXCEEDED"
	// ReasonMalformedCatalog: the body of `tools/list` is not JSON or not of MCP's shape; metadata: `line`,
	// `column`. INVALID_ARGUMENT.
	ReasonMalformedCatalog Reason = "MALFORMED_CATALOG"
	// ReasonTenantNotFound: no MCP server was ever registered for this tenant. NOT_FOUND.
	ReasonTenantNotFound Reason = "TENANT_NOT_FOUND"
	// ReasonServerNotFound: the tenant has no MCP server of this name. NOT_FOUND.
	ReasonServerNotFound Reason = "SERVER_NOT_FOUND"
	// ReasonEtagMismatch: the `etag` does not match the stored one: read again, then retry. ABORTED.
	ReasonEtagMismatch Reason = "ETAG_MISMATCH"
	// ReasonRequestIDReused: the `request_id` was used before for another request. ALREADY_EXISTS.
	ReasonRequestIDReused Reason = "REQUEST_ID_REUSED"
	// ReasonToolsRejected: `all_or_nothing` was set and a tool was rejected; nothing was stored.
	// FAILED_PRECONDITION.
	ReasonToolsRejected Reason = "TOOLS_REJECTED"
	// ReasonHandleInvalid: the active-set handle was not issued by this service for this tenant.
	// INVALID_ARGUMENT.
	ReasonHandleInvalid Reason = "HANDLE_INVALID"
	// ReasonPageTokenInvalid: the page token was not issued for this listing. INVALID_ARGUMENT.
	ReasonPageTokenInvalid Reason = "PAGE_TOKEN_INVALID"
	// ReasonOverloaded: the service is at capacity. Carries `google.rpc.RetryInfo`. RESOURCE_EXHAUSTED.
	ReasonOverloaded Reason = "OVERLOADED"
	// ReasonDeadlineExceeded: the caller's deadline passed, or cannot be met. DEADLINE_EXCEEDED.
	ReasonDeadlineExceeded Reason = "DEADLINE_EXCEEDED"
	// ReasonEncoderUnavailable: the encoder cannot take texts now. Carries `google.rpc.RetryInfo`.
	// UNAVAILABLE.
	ReasonEncoderUnavailable Reason = "ENCODER_UNAVAILABLE"
	// ReasonStoreUnavailable: the store cannot be read or written now. Carries `google.rpc.RetryInfo`.
	// UNAVAILABLE.
	ReasonStoreUnavailable Reason = "STORE_UNAVAILABLE"
	// ReasonDraining: the service is draining. Carries `google.rpc.RetryInfo`. UNAVAILABLE.
	ReasonDraining Reason = "DRAINING"
	// ReasonNotImplemented: this RPC is part of the contract but not served by this version. UNIMPLEMENTED.
	ReasonNotImplemented Reason = "NOT_IMPLEMENTED"
	// ReasonRevisionNotReached: `min_revision` is newer than anything this replica has seen before the
	// deadline. UNAVAILABLE.
	ReasonRevisionNotReached Reason = "REVISION_NOT_REACHED"
	// ReasonUnauthenticated: the call carries no valid credential. UNAUTHENTICATED.
	ReasonUnauthenticated Reason = "UNAUTHENTICATED"
	// ReasonPermissionDenied: the credential does not allow this RPC or this tenant. PERMISSION_DENIED.
	ReasonPermissionDenied Reason = "PERMISSION_DENIED"
	// ReasonInternal: a defect of the service; the log has the detail under the metadata's `request`.
	// INTERNAL.
	ReasonInternal Reason = "INTERNAL"
	// ReasonFingerprintMismatch: the worker's model is another one than the caller expects; metadata:
	// `expected`, `actual`. FAILED_PRECONDITION.
	ReasonFingerprintMismatch Reason = "FINGERPRINT_MISMATCH"
	// ReasonTenantLimited: the tenant calls as often, or has as many calls in progress, as it may; metadata:
	// `limit`. RESOURCE_EXHAUSTED.
	ReasonTenantLimited Reason = "TENANT_LIMITED"
)
