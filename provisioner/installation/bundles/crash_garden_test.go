//go:build garden

package bundles_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// errDead is the error of every call by a crashed replica.
var errDead = errors.New("the replica is dead")

// mortal is a transport that crashes at its n-th write. If done is true, the write still takes effect.
type mortal struct {
	next http.RoundTripper
	n    int
	done bool

	mu    sync.Mutex
	count int
	dead  bool
}

func (m *mortal) RoundTrip(request *http.Request) (*http.Response, error) {
	m.mu.Lock()
	if request.Method != http.MethodGet {
		m.count++
	}

	dying := !m.dead && m.count == m.n
	m.dead = m.dead || dying
	dead := m.dead
	m.mu.Unlock()

	if dying && m.done {
		if response, err := m.next.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
	}

	if dead {
		return nil, errDead
	}

	return m.next.RoundTrip(request)
}

// TestCrashAtEachWrite kills the Provisioner at each write to the hub during an installation, an upgrade and a removal. The next
// replica finishes the work, and leaves nothing behind.
func TestCrashAtEachWrite(t *testing.T) {
	on := startHub(t)

	for name, done := range map[string]bool{"before the write": false, "after the write": true} {
		for n := 1; n <= 10; n++ {
			t.Run(name, func(t *testing.T) {
				t.Parallel()

				c := newCluster(t, on, false)
				dead := &mortal{n: n, done: done}

				c.via = func(manifests installation.Manifests) installation.Installer {
					dead.mu.Lock()
					defer dead.mu.Unlock()

					if dead.dead {
						return c.bundles(manifests)
					}

					config := rest.CopyConfig(c.hub.config)
					config.Wrap(func(next http.RoundTripper) http.RoundTripper {
						dead.next = next

						return dead
					})

					return c.installer(manifests, config)
				}

				c.install(release{"a": configMap("one", "1"), "b": configMap("two", "1")}, c.part("a"), c.part("b"))
				c.want("installed", map[string]string{"one": "1", "two": "1"})
				c.install(release{"a": configMap("one", "2"), "c": configMap("three", "2")}, c.part("a"), c.part("c"))
				c.want("upgraded", map[string]string{"one": "2", "two": "", "three": "2"})
				c.uninstall()
				c.want("removed", map[string]string{"one": "", "three": ""})

				if left := c.onHub(); len(left) > 0 {
					c.Errorf("write %d: on the hub: %v", n, left)
				}

				if !dead.dead {
					c.Errorf("there is no write %d", n)
				}
			})
		}
	}
}

// TestFrozenReplica freezes a replica after it has read the hub, while another one installs an upgrade.
func TestFrozenReplica(t *testing.T) {
	c := newCluster(t, startHub(t), false)
	c.install(release{"a": configMap("one", "1")}, c.part("a"))

	config, upgraded := rest.CopyConfig(c.hub.config), false
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPut && !upgraded {
				upgraded = true

				c.install(release{"a": configMap("one", "2")}, c.part("a"))
			}

			return next.RoundTrip(request)
		})
	})

	late := c.target()
	late.OperationID = "late"

	_, err := c.installer(release{"a": configMap("one", "0")}, config).Install(t.Context(), late, installation.Plan{Version: "0", Components: []installation.Component{c.part("a")}})
	if !upgraded || !failure.Is(err, failure.Transient) {
		t.Errorf("the frozen replica continues: %v", err)
	}

	c.want("the upgrade stays", map[string]string{"one": "2"})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// TestRemovalOrder removes components, each after those that depend on it.
func TestRemovalOrder(t *testing.T) {
	c := newCluster(t, startHub(t), false)
	components := []installation.Component{c.part("b"), c.part("a"), c.part("c")}

	var removed []string

	config := rest.CopyConfig(c.hub.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodDelete && strings.Contains(request.URL.Path, "/bundledeployments/") {
				removed = append(removed, request.URL.Path[len(request.URL.Path)-1:])
			}

			return next.RoundTrip(request)
		})
	})

	c.via = func(manifests installation.Manifests) installation.Installer { return c.installer(manifests, config) }
	c.install(release{"a": configMap("one", "1"), "b": configMap("two", "1"), "c": configMap("three", "1")}, components...)
	c.uninstall()

	if want := []string{"c", "a", "b"}; !slices.Equal(removed, want) {
		t.Errorf("removed in the order %v, want %v", removed, want)
	}
}

// TestForget removes a runtime whose cluster is gone: its objects stay, and the hub forgets it at once.
func TestForget(t *testing.T) {
	c := newCluster(t, startHub(t), false)
	c.install(release{"a": configMap("one", "1"), "b": configMap("two", "1")}, c.part("a"), c.part("b"))

	progress, err := c.repeat(func() (installation.Progress, error) {
		return c.installer(nil, c.hub.config).Forget(t.Context(), c.runtime)
	})
	if err != nil || !progress.Done {
		t.Fatalf("%+v, %v", progress, err)
	}

	if left := c.onHub(); len(left) > 0 {
		t.Errorf("on the hub: %v", left)
	}

	c.want("the cluster is not changed", map[string]string{"one": "1", "two": "1"})
}

// TestDirectClusterStaysDirect continues an installation that the direct Installer has begun.
func TestDirectClusterStaysDirect(t *testing.T) {
	c := newCluster(t, startHub(t), true)
	c.install(release{"a": configMap("one", "1")}, c.part("a"))
	c.via = c.bundles
	c.install(release{"a": configMap("one", "2")}, c.part("a"))
	c.want("upgraded", map[string]string{"one": "2"})

	if left := c.onHub(); len(left) > 0 {
		t.Errorf("on the hub: %v", left)
	}

	c.uninstall()
	c.want("removed", map[string]string{"one": ""})
	c.install(release{"a": configMap("one", "3")}, c.part("a"))

	if left := c.onHub(); !slices.ContainsFunc(left, func(text string) bool { return text != "" }) {
		t.Error("after its removal, the runtime is not installed through the bundle provisioner")
	}
}
