package operator

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gorilla/mux"

	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// Sentences for people.
const (
	textNoInstance   = "There is no such instance."
	textNoRuntime    = "The instance has no runtime that could be reached: it is not ready, suspended, or being deleted."
	textNoOperation  = "There is no such operation."
	textTooManyCalls = "Too many kubeconfigs are asked for at this moment. Try again."
)

// coded gives every refusal a code: where it has none, that of its status.
func coded(endpoint httpserver.Endpoint) httpserver.Endpoint {
	return func(r *http.Request) (httpserver.Answer, error) {
		answer, err := endpoint(r)
		if err == nil {
			return answer, nil
		}

		refusal := *httpserver.RefusalOf(err)
		if refusal.Code == "" {
			refusal.Code = strings.ReplaceAll(http.StatusText(refusal.Status), " ", "")
		}

		return httpserver.Answer{}, &refusal
	}
}

func invalid(description string) error { return httpserver.Refuse(http.StatusBadRequest, description) }

func conflict(description string) error { return httpserver.Refuse(http.StatusConflict, description) }

func notFound(description string) error { return httpserver.Refuse(http.StatusNotFound, description) }

// segment returns a part of the path, decoded.
func segment(r *http.Request, name string) (string, error) {
	value, err := url.PathUnescape(mux.Vars(r)[name])
	if err != nil || strings.ContainsRune(value, 0) || strings.ToValidUTF8(value, "") != value {
		return "", invalid("The path cannot be read.")
	}

	return value, nil
}
