package toolgate

import (
	"encoding/json"
	"errors"
	"strings"

	"toolgate.dev/go/internal/ordered"
	"toolgate.dev/go/toolgatev1"
)

// ToolError is a refusal as the tool result to hand to the model in place of the call's own: a JSON object.
// `error` is the refusal code in lower case; other keys are there when they say something. It fails for a call
// that was allowed.
func ToolError(verdict *toolgatev1.GateVerdict) (json.RawMessage, error) {
	if verdict.GetAllowed() {
		return nil, errors.New("toolgate: an allowed call has no error: run it")
	}
	result := ordered.New("error", refusalName(verdict.GetCode()), "message", verdict.GetMessage())
	if len(verdict.GetAvailableTools()) > 0 || namesAlternatives(verdict.GetCode()) {
		result.Set("available", texts(verdict.GetAvailableTools()))
	}
	if verdict.GetSearchQuery() != "" {
		result.Set("search", verdict.GetSearchQuery())
	}
	if len(verdict.GetViolations()) > 0 {
		result.Set("violations", violations(verdict))
	}
	if schema := json.RawMessage(verdict.GetInputSchemaJson()); json.Valid(schema) {
		result.Set("input_schema", schema)
	}
	if len(verdict.GetUnlock()) > 0 {
		result.Set("unlock", texts(verdict.GetUnlock()))
	}
	return ordered.Write(result), nil
}

func violations(verdict *toolgatev1.GateVerdict) []any {
	listed := make([]any, len(verdict.GetViolations()))
	for i, violation := range verdict.GetViolations() {
		listed[i] = ordered.New("pointer", violation.GetPointer(), "message", violation.GetMessage())
	}
	return listed
}

// refusalName is a code in lower case; one that this version does not know is "unspecified".
func refusalName(code toolgatev1.RefusalCode) string {
	name, ok := toolgatev1.RefusalCode_name[int32(code)]
	if !ok {
		name = toolgatev1.RefusalCode_REFUSAL_CODE_UNSPECIFIED.String()
	}
	return strings.ToLower(strings.TrimPrefix(name, "REFUSAL_CODE_"))
}

func namesAlternatives(code toolgatev1.RefusalCode) bool {
	return code == toolgatev1.RefusalCode_REFUSAL_CODE_TOOL_NOT_AVAILABLE ||
		code == toolgatev1.RefusalCode_REFUSAL_CODE_UNKNOWN_TOOL
}
