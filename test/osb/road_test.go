package osb

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// Calls that a broker makes to its Provisioner, as the requests name them.
const (
	callOrder      = "ProvisionRuntime"
	callStatus     = "OperationStatus"
	callRemoval    = "DeprovisionRuntime"
	callUpgrade    = "UpgradeShoot"
	callKubeconfig = "Kubeconfig"
)

// road leads from the broker to the Provisioner. It can be blocked for the calls of one tenant, so that trouble is nobody else's.
type road struct {
	target http.Handler

	mutex  sync.Mutex
	blocks map[block]*trouble
	held   map[block]int
}

// block is where the road is blocked.
type block struct{ tenant, call string }

// trouble is what a block does: it holds calls until it is lifted, or refuses them for good.
type trouble struct {
	lifted  chan struct{}
	refuses bool
}

func newRoad(provisioner string) (*road, error) {
	target, err := url.Parse(provisioner)
	if err != nil {
		return nil, err
	}

	return &road{
		target: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host}),
		blocks: map[block]*trouble{},
		held:   map[block]int{},
	}, nil
}

// hold keeps the tenant's calls from arriving until the returned function lifts the block.
func (r *road) hold(tenant, call string) (lift func()) {
	return r.put(block{tenant, call}, &trouble{lifted: make(chan struct{})})
}

// refuse has the tenant's calls answered with an error that is no use to try again, until the returned function lifts the block.
func (r *road) refuse(tenant, call string) (lift func()) {
	return r.put(block{tenant, call}, &trouble{lifted: make(chan struct{}), refuses: true})
}

func (r *road) put(where block, what *trouble) (lift func()) {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	r.blocks[where] = what

	return sync.OnceFunc(func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()

		close(what.lifted)

		if r.blocks[where] == what {
			delete(r.blocks, where)
		}
	})
}

// ServeHTTP lets a call pass unless it is blocked.
func (r *road) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)

		return
	}

	var call struct {
		OperationName string `json:"operationName"`
	}

	_ = json.Unmarshal(body, &call) // what is no call is no concern of the road

	where := block{request.Header.Get("tenant"), call.OperationName}
	met := r.meet(where)

	switch {
	case met == nil:
	case met.refuses:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":null,"errors":[{"message":"ordered fault","extensions":{"error_code":400}}]}`)

		return
	default:
		r.count(where, +1)

		select {
		case <-met.lifted:
			r.count(where, -1)
		case <-request.Context().Done():
			r.count(where, -1)

			return
		}
	}

	request.Body = io.NopCloser(bytes.NewReader(body))
	r.target.ServeHTTP(w, request)
}

func (r *road) meet(where block) *trouble {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	return r.blocks[where]
}

func (r *road) count(where block, change int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	r.held[where] += change
}

// waiting is how many calls of the tenant are held at the moment.
func (r *road) waiting(tenant, call string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	return r.held[block{tenant, call}]
}
