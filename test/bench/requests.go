package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/test/bench/load"
)

const (
	// serviceID and planID are in resources/.
	serviceID = "47c9dcbf-ff30-448e-ab36-d3bad66ba281"
	planID    = "361c511f-f939-4621-b228-d0fb79a1fe15"

	// manyTenants is the number of tenants of the load.
	manyTenants = 100
)

// header returns the headers that Cloud Foundry sends. Requests share the result; do not modify it.
func header() http.Header {
	return http.Header{
		"Authorization":                     {"Basic " + base64.StdEncoding.EncodeToString([]byte(userName+":"+userPassword))},
		"Content-Type":                      {"application/json"},
		"X-Broker-Api-Version":              {"2.17"},
		"X-Broker-Api-Originating-Identity": {"cloudfoundry " + base64.StdEncoding.EncodeToString([]byte(`{"user_id":"7d1c02b5"}`))},
		"X-Broker-Api-Request-Identity":     {"5b1f0f70-9f1b-4a8b-8c8b-6f2f0e0d3c11"},
	}
}

// creates returns requests for new instances, distributed over tenants.
func creates(url string, tenants int) func(number int) load.Request {
	header := header()

	return func(number int) load.Request {
		return load.Request{
			Method: http.MethodPut, URL: url + "/v2/service_instances/" + uuid.NewString() + "?accepts_incomplete=true",
			Header: header, Body: createBody(number, tenants), Want: http.StatusAccepted,
		}
	}
}

// createBody returns an order as Cloud Foundry sends it.
func createBody(number, tenants int) []byte {
	tenant, space := fmt.Sprintf("tenant-%03d", number%tenants), fmt.Sprintf("space-%03d", number%tenants)

	body, err := json.Marshal(map[string]any{
		"service_id": serviceID, "plan_id": planID, "organization_guid": tenant, "space_guid": space,
		"context": map[string]any{
			"platform": "cloudfoundry", "organization_guid": tenant, "space_guid": space,
			"organization_name": "an organization", "space_name": "a space", "instance_name": fmt.Sprintf("runtime-%d", number),
		},
		"parameters": map[string]any{"name": fmt.Sprintf("runtime-%d", number), "autoScalerMax": 5},
	})
	if err != nil {
		panic(err) // strings always encode
	}

	return body
}

// gets makes one request for a path again and again.
func gets(url string) func(int) load.Request {
	request := load.Request{Method: http.MethodGet, URL: url, Header: header(), Want: http.StatusOK}

	return func(int) load.Request { return request }
}
