package clusterclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/upstream/networks"
)

// hostOf returns the host and port of the API server for error messages. It omits the rest of the address, which may contain
// credentials.
func hostOf(config *rest.Config) string {
	address, err := url.Parse(config.Host)
	if err != nil || address.Host == "" {
		return "an unknown address"
	}

	return address.Host
}

// causeOf describes to users why a call to an API server failed. The result is a clause that follows a colon. causeOf uses fixed
// texts, because the errors of the transport may quote the address with its credentials.
func causeOf(err error) string {
	var (
		answer    apierrors.APIStatus
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)

	switch {
	case errors.As(err, &answer) && (answer.Status().Code == http.StatusUnauthorized || answer.Status().Code == http.StatusForbidden):
		return fmt.Sprintf("it rejects the credentials of the kubeconfig (status %d)", answer.Status().Code)
	case errors.As(err, &answer):
		return fmt.Sprintf("it responds with status %d", answer.Status().Code)
	case errors.Is(err, networks.ErrRefused):
		return "its address is not public, and the broker's APP_OWN_CLUSTER_NETWORKS does not allow it"
	case errors.As(err, &name):
		return "the host name cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to the host"
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &invalid):
		return "the kubeconfig does not trust its certificate"
	case errors.As(err, &record):
		return "it does not use TLS"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("no response within %s", probeTimeout)
	default:
		return "the connection failed"
	}
}

// reported returns the API server's message in the error, or an empty string if the error comes from the transport.
func reported(err error) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Message
	}

	return ""
}
