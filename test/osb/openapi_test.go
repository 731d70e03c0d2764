package osb

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

// Routes in the OpenAPI description of the Open Service Broker API.
const (
	routeCatalog      = "/v2/catalog"
	routeInstance     = "/v2/service_instances/{instance_id}"
	routeInstancePoll = routeInstance + "/last_operation"
	routeBinding      = routeInstance + "/service_bindings/{binding_id}"
	routeBindingPoll  = routeBinding + "/last_operation"
)

//go:embed testdata/openapi-2.17.yaml
var officialDescription []byte

// specification returns the official OpenAPI description with the overlay applied.
var specification = sync.OnceValues(func() (*openapi3.T, error) {
	openapi3.SchemaErrorDetailsDisabled = true // otherwise, every failure repeats the schema and the value

	document, err := openapi3.NewLoader().LoadFromData(officialDescription)
	if err != nil {
		return nil, err
	}

	overlay(document)

	return document, nil
})

// routeOf returns the route of a path, or "" if the protocol has no such route.
func routeOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	if _, after, found := strings.Cut(path, "/v2/"); found {
		path = after
	}

	switch parts := strings.Split(path, "/"); {
	case path == "catalog":
		return routeCatalog
	case len(parts) < 2 || parts[0] != "service_instances" || parts[1] == "":
		return ""
	case len(parts) == 2:
		return routeInstance
	case len(parts) == 3 && parts[2] == "last_operation":
		return routeInstancePoll
	case len(parts) < 4 || parts[2] != "service_bindings" || parts[3] == "":
		return ""
	case len(parts) == 4:
		return routeBinding
	case len(parts) == 5 && parts[4] == "last_operation":
		return routeBindingPoll
	default:
		return ""
	}
}

// validate checks a response against the OpenAPI description. It accepts any response on a path that the protocol does not
// define.
func validate(method, path string, status int, body string) error {
	document, err := specification()
	if err != nil {
		return err
	}

	if routeOf(path) == "" {
		return nil
	}

	operation := document.Paths.Find(routeOf(path)).GetOperation(method)
	if operation == nil {
		if status != http.StatusUnauthorized && status != http.StatusMethodNotAllowed {
			return fmt.Errorf("status %d for a method that the protocol does not define", status)
		}

		return nil
	}

	response := operation.Responses.Value(strconv.Itoa(status))
	if response == nil {
		return fmt.Errorf("the operation does not define status %d", status)
	}

	content := response.Value.Content.Get("application/json")
	if content == nil {
		if body != "" {
			return errors.New("unexpected body: the description defines none")
		}

		return nil
	}

	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		return err
	}

	return content.Schema.Value.VisitJSON(value, openapi3.MultiErrors())
}
