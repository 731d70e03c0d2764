package fakedirector

import "fmt"

// ErrorCode is what Director tells in extensions.error_code.
type ErrorCode int

// The codes.
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

// String is the name of the code, which Director tells in extensions.error.
func (c ErrorCode) String() string {
	names := map[ErrorCode]string{
		InternalError: "InternalError", UnknownError: "UnknownError", NotFound: "NotFound", NotUnique: "NotUnique",
		InvalidData: "InvalidData", InsufficientScopes: "InsufficientScopes", TenantRequired: "TenantRequired",
		TenantNotFound: "TenantNotFound", Unauthorized: "Unauthorized", InvalidOperation: "InvalidOperation",
	}
	if name, known := names[c]; known {
		return name
	}

	return fmt.Sprintf("Error%d", int(c))
}

// refusal is an error of an operation.
type refusal struct {
	code ErrorCode
	text string
}

func refuse(code ErrorCode, format string, args ...any) error {
	return &refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (r *refusal) Error() string { return r.text }
