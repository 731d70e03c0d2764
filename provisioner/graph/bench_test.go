package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// plainBody returns a JSON object with ordinary fields, of at least the given size.
func plainBody(size int) []byte {
	var body bytes.Buffer

	body.WriteString(`{"parameters":{"name":"mine","autoScalerMax":10}`)

	for i := 0; body.Len() < size; i++ {
		fmt.Fprintf(&body, `,"field-%d":{"name":"value of field %d","enabled":true,"count":%d,"zones":["eu-central-1a","eu-central-1b"]}`, i, i, i)
	}

	body.WriteString("}")

	return body.Bytes()
}

// benchmarkRequest alternately measures a request and the decoding of a plain body of the same size, and reports the ratio.
func benchmarkRequest(b *testing.B, handler http.Handler, query string) {
	b.Helper()

	text, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		b.Fatal(err)
	}

	body := plainBody(len(text))

	var plain, hostile time.Duration

	for b.Loop() {
		start := time.Now()

		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			b.Fatal(err)
		}

		decoded := time.Now()

		request := httptest.NewRequest(http.MethodPost, "/graphql", bytes.NewReader(text))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Tenant", "acme")
		handler.ServeHTTP(httptest.NewRecorder(), request)

		plain, hostile = plain+decoded.Sub(start), hostile+time.Since(decoded)
	}

	b.ReportMetric(float64(hostile)/float64(plain), "plain-bodies/op")
	b.ReportMetric(float64(len(text)), "request-bytes")
}
