package fakedirector

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// TokenOperation is the name of the token endpoint in faults and calls. All other operations have the names in the schema. Requests
// that do not match the schema are not recorded.
const TokenOperation = simulator.TokenOperation

// Fault is an injected failure. Rejection returns the body of a response with an error code of Director.
type Fault = simulator.Fault

// Rejection returns the body of the response with which Director reports an error code.
func Rejection(code ErrorCode) string {
	encoded, _ := json.Marshal(errorBody(refuse(code, "injected: %s", code))) //nolint:errchkjson // only strings and numbers

	return string(encoded)
}

// ErrorCode is a Director error code, sent in extensions.error_code of a response.
type ErrorCode int

// Error codes of Director.
const (
	InternalError      ErrorCode = 10
	UnknownError       ErrorCode = 11
	NotFound           ErrorCode = 20
	NotUnique          ErrorCode = 21
	InvalidData        ErrorCode = 22
	InsufficientScopes ErrorCode = 23
	TenantRequired     ErrorCode = 24
	TenantNotFound     ErrorCode = 25
	Unauthorized       ErrorCode = 26
	InvalidOperation   ErrorCode = 27
)

// String returns the name of the code, which Director sends in extensions.error. The name of an unknown code is "Error" followed
// by its number.
func (c ErrorCode) String() string {
	names := map[ErrorCode]string{
		InternalError: "InternalError", UnknownError: "UnknownError", NotFound: "NotFound", NotUnique: "NotUnique",
		InvalidData: "InvalidData", InsufficientScopes: "InsufficientScopes", TenantRequired: "TenantRequired",
		TenantNotFound: "TenantNotFound", Unauthorized: "Unauthorized", InvalidOperation: "InvalidOperation",
	}
	return cmp.Or(names[c], fmt.Sprintf("Error%d", int(c)))
}

// refusal is an error with a Director code. Errors without a code come from GraphQL itself.
type refusal struct {
	code ErrorCode
	text string
}

// refuse returns an error with a Director code and a formatted message.
func refuse(code ErrorCode, format string, args ...any) error {
	return &refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// Error returns the message of the response.
func (r *refusal) Error() string { return r.text }

// errorBody returns the body of an error response. Errors from Director's rules have a code; errors of GraphQL itself have none. The
// code is in the extensions error_code (the number) and error (its name), where Director's clients look for it.
func errorBody(err error) map[string]any {
	problem := map[string]any{"message": err.Error()}
	if refused, ok := errors.AsType[*refusal](err); ok {
		problem["extensions"] = map[string]any{"error_code": int(refused.code), "error": refused.code.String()}
	}

	return map[string]any{"data": map[string]any{"result": nil}, "errors": []any{problem}}
}
