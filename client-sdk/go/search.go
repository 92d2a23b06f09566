package toolgate

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"google.golang.org/grpc"

	"toolgate.dev/go/internal/ordered"
	"toolgate.dev/go/toolgatev1"
)

// SearchToolName is the name of [SearchTool]: calls of it are for [Client.AnswerSearch].
const SearchToolName = "toolgate_search_tools"

const (
	searchFinds = "Finds tools that are not defined here and makes them callable: once it has answered, call what it found."
	searchQuery = "`select:name,name` for tools by their names, a server's name for all of its tools, keywords, of which `+word` must match, or a sentence that says what you want to do."
	queryLimit  = "limits.max_intent_size"
)

// SearchTool is the search as a tool to define for the model, beside the active set in package layout; a request
// with `Render` and its `SearchTool` has the service define it. Put it first and leave it there, so that the cached prefix holds. [Client.Gate] does not know it.
func SearchTool() *toolgatev1.ActiveTool {
	schema := ordered.New(
		"type", "object",
		"properties", ordered.New(
			"query", ordered.New("type", "string", "description", searchQuery),
			"max_results", ordered.New(
				"type", "integer", "minimum", 1, "maximum", 100,
				"description", "The most tools to find. Default: 5.",
			),
		),
		"required", []any{"query"},
	)
	return &toolgatev1.ActiveTool{
		Name:            SearchToolName,
		ModelName:       SearchToolName,
		Description:     searchFinds + " Search before you say that something can't be done.",
		InputSchemaJson: string(ordered.Write(schema)),
		AnnotationsJson: `{"title":"Find tools","readOnlyHint":true}`,
		Signature:       SearchToolName + "(query: string, max_results?: integer) - " + searchFinds,
		SignatureLossy:  true,
		SchemaTokens:    145,
	}
}

// SearchAnswer is the answer to a model's call of [SearchTool].
type SearchAnswer struct {
	// Text is the content of the tool result: a JSON object.
	Text string
	// Failed is whether the call was mistaken; the text says how.
	Failed bool
	// Handle is the active-set handle to carry on with: what was found may be called with it, and the next Route
	// keeps it.
	Handle string
	// Found is what was found; nil when the call was mistaken.
	Found *toolgatev1.SearchToolsResponse
}

// Tools are the tools found.
func (a *SearchAnswer) Tools() []*toolgatev1.ActiveTool {
	return a.Found.GetTools()
}

// AnswerSearch runs a model's call of [SearchTool]. A mistake of the model's is an answer as well.
//
// The request has what the model does not say: the handle of this turn, to add the tools to, and the agent's
// state. Its query and count are the call's. Its detail is what the text says of each tool; absent, that is the
// name, since the next Route with the answer's handle brings the definition.
func (c *Client) AnswerSearch(ctx context.Context, call *toolgatev1.RequestedCall, request *toolgatev1.SearchToolsRequest, options ...grpc.CallOption) (*SearchAnswer, error) {
	handle := request.GetActiveSetHandle()
	asked := copied(request)
	if mistake := readSearch(call.GetArgumentsJson(), asked); mistake != "" {
		return mistaken(mistake, handle), nil
	}
	if asked.Detail == toolgatev1.Detail_DETAIL_UNSPECIFIED {
		asked.Detail = toolgatev1.Detail_DETAIL_REFERENCES
	}
	found, err := c.SearchTools(ctx, asked, options...)
	var failure *Error
	if errors.As(err, &failure) && failure.isTheModels() {
		return mistaken(failure.Message, handle), nil
	}
	if err != nil {
		return nil, err
	}
	return AnswerWith(found), nil
}

// AnswerWith is the answer with what SearchTools found. The service reads it again in the conversation.
func AnswerWith(found *toolgatev1.SearchToolsResponse) *SearchAnswer {
	return &SearchAnswer{Text: string(ToolResult(found)), Handle: found.GetActiveSetHandle(), Found: found}
}

// ToolResult is what SearchTools found as a JSON object for a model whose provider expands no references: `tools`
// with what the asked detail gave of each, `deferred_tools`, `message` and `pending_servers` when they say something.
func ToolResult(found *toolgatev1.SearchToolsResponse) json.RawMessage {
	tools := make([]any, len(found.GetTools()))
	for i, tool := range found.GetTools() {
		tools[i] = shown(tool)
	}
	result := ordered.New("tools", tools)
	if found.GetDeferredTools() > 0 {
		result.Set("deferred_tools", int(found.GetDeferredTools()))
	}
	if found.GetMessage() != "" {
		result.Set("message", found.GetMessage())
	}
	if len(found.GetPendingServers()) > 0 {
		result.Set("pending_servers", texts(found.GetPendingServers()))
	}
	return ordered.Write(result)
}

// ToolReferences is what SearchTools found as the content of a tool result for Anthropic's Messages API, which
// expands references to the definitions that were sent with `defer_loading`.
func ToolReferences(found *toolgatev1.SearchToolsResponse) json.RawMessage {
	references := make([]any, len(found.GetTools()))
	for i, tool := range found.GetTools() {
		references[i] = ordered.New("type", "tool_reference", "tool_name", tool.GetModelName())
	}
	return ordered.Write(references)
}

// shown is what the model is told of a tool: all that the asked detail gave.
func shown(tool *toolgatev1.ActiveTool) *ordered.Object {
	told := ordered.New("name", tool.GetModelName())
	if schema := json.RawMessage(tool.GetInputSchemaJson()); json.Valid(schema) {
		told.Set("description", tool.GetDescription())
		told.Set("input_schema", schema)
	} else if tool.GetSignature() != "" {
		told.Set("signature", tool.GetSignature())
	}
	return told
}

// readSearch reads the query and the count of a model's call into the request, or says what is wrong with it.
func readSearch(arguments string, into *toolgatev1.SearchToolsRequest) string {
	read, err := ordered.Parse([]byte(arguments))
	asked, isObject := read.(*ordered.Object)
	if err != nil || !isObject {
		return "the arguments must be a JSON object"
	}
	query, isText := asked.Get("query").(string)
	// A lone surrogate, which JSON can carry and the wire can't, is no text either.
	if !isText || !utf8.ValidString(query) {
		return "query: must be a text"
	}
	into.Query, into.MaxResults = query, nil
	if most := asked.Get("max_results"); most != nil {
		number, _ := most.(json.Number)
		count, err := strconv.ParseUint(string(number), 10, 32)
		if err != nil || count < 1 || count > 100 {
			return "max_results: must be a whole number from 1 to 100"
		}
		counted := uint32(count)
		into.MaxResults = &counted
	}
	return ""
}

func mistaken(message, handle string) *SearchAnswer {
	refusal := ordered.New("error", "arguments_invalid", "message", message)
	return &SearchAnswer{Text: string(ordered.Write(refusal)), Failed: true, Handle: handle}
}

// isTheModels reports whether the service refused what the model wrote, and not what the caller gave.
func (e *Error) isTheModels() bool {
	if e.Metadata["limit"] == queryLimit {
		return true
	}
	for _, violation := range e.FieldViolations {
		if violation.Field != "query" && violation.Field != "max_results" {
			return false
		}
	}
	return len(e.FieldViolations) > 0
}

func texts(list []string) []any {
	values := make([]any, len(list))
	for i, text := range list {
		values[i] = text
	}
	return values
}
