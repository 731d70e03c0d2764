package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
)

// Values of the outcome label in metrics.
const (
	answered    = "answered"
	serverError = "server_error"
	timedOut    = "timed_out"
	unreachable = "unreachable"
	canceled    = "canceled"
)

func outcomes() []string { return []string{answered, serverError, timedOut, unreachable, canceled} }

// outcome is the result of a call for the metrics and the circuit breaker.
type outcome struct {
	label string
	// fault describes the failure of the system, as a clause that can follow "because". It is empty if the system works. Users
	// see the text, so it contains neither an address nor any part of a response.
	fault string
}

// ServerFault is the Fault function of most systems. Only statuses of 500 or more are failures, because a system that rejects a
// request is working.
func ServerFault(response *http.Response) string {
	if response.StatusCode < http.StatusInternalServerError {
		return ""
	}

	return fmt.Sprintf("it returned HTTP status %d %s", response.StatusCode, http.StatusText(response.StatusCode))
}

// outcomeOf classifies the result of an HTTP request.
func (s *System) outcomeOf(response *http.Response, err error) outcome {
	if err != nil {
		return outcomeOfError(err)
	}

	if fault := s.options.Fault(response); fault != "" {
		return outcome{serverError, fault}
	}

	return outcome{label: answered}
}

// outcomeOfError classifies an error of net/http by the errors that it wraps.
func outcomeOfError(err error) outcome {
	var (
		network     net.Error
		name        *net.DNSError
		certificate *tls.CertificateVerificationError
	)

	switch {
	case errors.Is(err, context.Canceled):
		return outcome{label: canceled}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return outcome{timedOut, "it did not respond in time"}
	case errors.As(err, &name):
		return outcome{unreachable, "its host name could not be resolved"}
	case errors.As(err, &certificate):
		return outcome{unreachable, "its certificate is not trusted"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return outcome{unreachable, "it refused the connection"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return outcome{unreachable, "the connection was lost"}
	default:
		return outcome{unreachable, "it could not be reached"}
	}
}
