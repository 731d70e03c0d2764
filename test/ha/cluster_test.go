package ha

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// password is the password of the superuser postgres in testdata/patroni.yml.
const password = "postgres"

// nodeCount is the number of PostgreSQL servers.
const nodeCount = 3

// cluster is a PostgreSQL cluster under Patroni, with one etcd and HAProxy in front.
type cluster struct {
	account

	nodes []*node
	// haproxy is the port at which HAProxy forwards connections to the primary.
	haproxy int
	// synchronous is true if a commit returns only after a second server has stored it.
	synchronous bool
}

// startCluster starts a cluster and waits until all nodes have joined.
func startCluster(t *testing.T, synchronous bool) *cluster {
	t.Helper()

	began := time.Now()
	c := &cluster{account: newAccount(t), synchronous: synchronous, haproxy: freePort(t)}
	etcd := c.startEtcd()

	for i := range nodeCount {
		c.nodes = append(c.nodes, c.newNode(fmt.Sprintf("node%d", i+1), etcd))
	}

	c.render("haproxy.cfg", "haproxy.cfg", map[string]any{"Port": c.haproxy, "Nodes": c.nodes})
	c.start("haproxy", c.program("haproxy"), "-db", "-f", filepath.Join(c.folder, "haproxy.cfg"))
	c.waitForMembers()
	t.Logf("the cluster started within %s", time.Since(began).Round(time.Millisecond))

	return c
}

// startEtcd starts etcd and returns the address of its API.
func (c *cluster) startEtcd() string {
	c.Helper()

	api, peers := freeport.Address(freePort(c.TB)), freeport.Address(freePort(c.TB))
	c.start("etcd", c.program("etcd"), "--data-dir", c.mkdir("etcd"), "--enable-v2", // patroni.yml explains why
		"--listen-client-urls", "http://"+api, "--advertise-client-urls", "http://"+api,
		"--listen-peer-urls", "http://"+peers, "--initial-advertise-peer-urls", "http://"+peers,
		"--initial-cluster", "default=http://"+peers)
	c.until("etcd to start", func() bool {
		status, _ := c.get("http://"+api+"/health", nil)

		return status == http.StatusOK
	})

	return api
}

// newNode starts a node. The first node that starts creates the database, and the others copy it.
func (c *cluster) newNode(name, etcd string) *node {
	c.Helper()

	postgres, err := postgrestest.Binary("postgres")
	if err == nil {
		postgres, err = filepath.EvalSymlinks(postgres) // Patroni also needs programs beside it that may not be linked on PATH
	}

	if err != nil {
		c.Fatal(err)
	}

	n := &node{account: c.account, Name: name, folder: c.mkdir(name), postgres: freePort(c.TB), rest: freePort(c.TB)}
	n.ToPostgres = postgrestest.NewProxy(c.TB, freeport.Address(n.postgres))
	n.ToReplicas = postgrestest.NewProxy(c.TB, freeport.Address(n.postgres))
	n.ToREST = postgrestest.NewProxy(c.TB, freeport.Address(n.rest))
	n.ToEtcd = postgrestest.NewProxy(c.TB, etcd)
	c.render("patroni.yml", filepath.Join(name, "patroni.yml"), map[string]any{
		"Name": name, "Folder": n.folder, "Binaries": filepath.Dir(postgres), "Synchronous": c.synchronous,
		"Postgres": n.postgres, "ToReplicas": n.ToReplicas.Port, "REST": n.rest, "ToREST": n.ToREST.Port, "ToEtcd": n.ToEtcd.Port,
	})
	c.Cleanup(n.kill)
	n.startPatroni()

	return n
}

// member is a node in the response of Patroni's /cluster endpoint.
type member struct{ Name, Role, State string }

// members returns the members of the cluster as Patroni on the primary reports them, or nil while there is no primary.
func (c *cluster) members() []member {
	c.Helper()

	primary := c.primary()
	if primary == nil {
		return nil
	}

	var response struct{ Members []member }
	if status, err := c.get("http://"+freeport.Address(primary.rest)+"/cluster", &response); err != nil || status != http.StatusOK {
		return nil
	}

	return response.Members
}

// waitForMembers waits until there is a primary, all nodes replicate, and the synchronous standby is chosen.
func (c *cluster) waitForMembers() {
	c.Helper()
	c.until("every node to join the cluster", func() bool {
		roles := map[string]int{}

		for _, each := range c.members() {
			if each.State == "running" || each.State == "streaming" {
				roles[each.Role]++
			}
		}

		if c.synchronous && roles["sync_standby"] != 1 {
			return false
		}

		return roles["leader"] == 1 && roles["replica"]+roles["sync_standby"] == nodeCount-1
	})
}

// primary returns the node that is the primary, or nil.
func (c *cluster) primary() *node { return c.primaryAfter(server{}) }

// primaryAfter returns the node that is the primary, or nil. It skips the failed server, which may still consider itself the primary
// after it was replaced. Its node is the primary again once PostgreSQL has been started again: Patroni does that after a crash if no
// other node responds in time.
func (c *cluster) primaryAfter(failed server) *node {
	c.Helper()

	for _, n := range c.nodes {
		if own := n.server(); own.process == 0 || own == failed {
			continue
		}

		if status, err := c.get("http://"+freeport.Address(n.rest)+"/primary", nil); err == nil && status == http.StatusOK {
			return n
		}
	}

	return nil
}

// waitForPrimary waits until a server other than failed is the primary, and returns its node.
func (c *cluster) waitForPrimary(failed server) (found *node) {
	c.Helper()
	c.until("a new primary", func() bool {
		found = c.primaryAfter(failed)

		return found != nil
	})

	return found
}

// get sends a request to a local server and decodes the response unless into is nil.
func (c *cluster) get(url string, into any) (status int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()

	if into != nil {
		err = json.NewDecoder(response.Body).Decode(into)
	}

	return response.StatusCode, err
}

func (c *cluster) until(what string, condition func() bool) {
	c.Helper()
	harness.Until(c, what, condition)
}

func freePort(t testing.TB) int {
	t.Helper()

	port, err := freeport.Draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return port
}
