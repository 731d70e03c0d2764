package operator

import (
	_ "embed" // openapi.yaml
	"net/http"

	"github.com/environment-broker/environment-broker/internal/httpserver"
)

//go:embed openapi.yaml
var openAPI []byte

// describe answers GET /openapi.yaml.
func describe(*http.Request) (httpserver.Answer, error) {
	return httpserver.Answer{Status: http.StatusOK, Body: openAPI, Header: http.Header{"Content-Type": {"application/yaml"}}}, nil
}
