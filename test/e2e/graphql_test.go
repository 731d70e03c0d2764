package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// caller sends a tenant's requests to the GraphQL API of a Provisioner.
type caller struct {
	url, tenant string
	// key is the idempotency key of a mutation. It may be empty.
	key string
}

// rejection is a GraphQL error returned by the Provisioner.
type rejection struct {
	Message    string
	Extensions struct {
		Code int `json:"error_code"`
	}
}

// send sends a request and decodes the `result` field of the response into result. It returns the first GraphQL error as a
// rejection, and any other failure, such as a missing response, as an error.
func (c caller) send(ctx context.Context, query string, variables map[string]any, result any) (*rejection, error) {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return nil, err
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}

	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("tenant", c.tenant)

	if c.key != "" {
		request.Header.Set("Idempotency-Key", c.key)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()

	answer := struct {
		Data   struct{ Result json.RawMessage }
		Errors []rejection
	}{}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("decoding the response: %w", err)
	}

	if len(answer.Errors) > 0 {
		return &answer.Errors[0], nil
	}

	if err := json.Unmarshal(answer.Data.Result, result); err != nil {
		return nil, fmt.Errorf("%s: %w", answer.Data.Result, err)
	}

	return nil, nil
}
