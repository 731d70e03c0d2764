package osb

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"
)

// Headers of the protocol.
const (
	versionHeader    = "X-Broker-API-Version"
	identityHeader   = "X-Broker-API-Request-Identity"
	originatorHeader = "X-Broker-API-Originating-Identity"
)

const (
	user     = "tester"
	password = "secret"
	identity = "4f8d1c9e-0000-4000-8000-0123456789ab"

	// promptly is how long an answer may take, on a machine that is busy with other tests: platforms give up after a minute.
	promptly = 20 * time.Second
	// patience is how long anything may take before a test gives up on it.
	patience = 90 * time.Second
	// look is how often a test looks at what it waits for.
	look = 50 * time.Millisecond
)

// judge is who is told what is wrong: *testing.T or *rapid.T.
type judge interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// platform is where a broker is, and as whom it is called.
type platform struct {
	url            string
	user, password string
}

// call is a request. It carries what every request needs unless the header says otherwise; a header without values is left out.
type call struct {
	method, path, body string
	header             http.Header
}

// reply is an answer.
type reply struct {
	Status int
	Header http.Header
	Body   map[string]any
	Raw    string
}

// text returns a field of the body that is a string, empty when it is none.
func (r reply) text(field string) string {
	text, _ := r.Body[field].(string)

	return text
}

// object returns a field of the body that is an object, nil when it is none.
func (r reply) object(field string) map[string]any {
	object, _ := r.Body[field].(map[string]any)

	return object
}

// header is a set of headers with one value each.
func header(pairs ...string) http.Header {
	set := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		set[http.CanonicalHeaderKey(pairs[i])] = []string{pairs[i+1]}
	}

	return set
}

// without leaves headers out.
func without(names ...string) http.Header {
	set := http.Header{}
	for _, name := range names {
		set[http.CanonicalHeaderKey(name)] = nil
	}

	return set
}

// request makes the request of a call.
func (p platform) request(call call) (*http.Request, error) {
	request, err := http.NewRequest(call.method, p.url+call.path, strings.NewReader(call.body))
	if err != nil {
		return nil, err
	}

	if call.body == "" {
		request.Body = http.NoBody
	}

	request.SetBasicAuth(p.user, p.password)
	maps.Copy(request.Header, header(versionHeader, "2.17", identityHeader, identity, "Content-Type", "application/json"))
	maps.Copy(request.Header, call.header)

	return request, nil
}

// send sends the request and reads the answer.
func (p platform) send(call call) (reply, error) {
	request, err := p.request(call)
	if err != nil {
		return reply{}, err
	}

	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()

	content, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, err
	}

	got := reply{Status: response.StatusCode, Header: response.Header, Raw: string(content)}
	_ = json.Unmarshal(content, &got.Body) // what is no object is found by the check of the answer

	return got, nil
}
