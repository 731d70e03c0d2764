package ha

import (
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
)

// node is a PostgreSQL server with its Patroni process. All connections to and from the node pass through its proxies: clients use
// ToPostgres, the other nodes replicate through ToReplicas, and the node itself calls etcd through ToEtcd.
type node struct {
	account

	Name                                   string
	ToPostgres, ToReplicas, ToREST, ToEtcd *postgrestest.Proxy
	// folder contains the node's configuration and data.
	folder string
	// postgres and rest are the ports of PostgreSQL and of Patroni's REST API, without a proxy.
	postgres, rest int
	patroni        *exec.Cmd
}

// server identifies a PostgreSQL server by its node and its process. A restart of PostgreSQL creates another server.
type server struct {
	node    string
	process int
}

// server returns the node's server. Its process is 0 after PostgreSQL was stopped, and that of the last server after a crash.
func (n *node) server() server {
	n.Helper()

	process, err := postmaster(filepath.Join(n.folder, "data"))
	if err != nil {
		n.Error(err)
	}

	return server{n.Name, process}
}

func (n *node) startPatroni() {
	n.Helper()

	n.patroni = n.start(n.Name, n.program("patroni"), filepath.Join(n.folder, "patroni.yml"))
}

// signalPostgres sends a signal to all PostgreSQL processes of the node.
func (n *node) signalPostgres(signal syscall.Signal) {
	n.Helper()

	ids, err := postgresIDs(filepath.Join(n.folder, "data"))
	if err != nil {
		n.Error(err)
	}

	for _, id := range ids {
		_ = syscall.Kill(id, signal) // the process may have ended
	}
}

// killPostgres kills PostgreSQL, as the kernel does when memory is exhausted. Patroni keeps running and notices this.
func (n *node) killPostgres() {
	n.Helper()
	n.signalPostgres(syscall.SIGSTOP) // no process may do more work while the others are killed
	n.signalPostgres(syscall.SIGKILL)
}

// kill kills Patroni and PostgreSQL, as if the machine had lost power. The other nodes notice this when the leader's lock expires.
func (n *node) kill() {
	n.Helper()
	kill(n.patroni)
	n.killPostgres()
}

// freeze stops Patroni and PostgreSQL until thaw is called, like a virtual machine that is paused. Connections stay open.
func (n *node) freeze() {
	n.Helper()

	_ = n.patroni.Process.Signal(syscall.SIGSTOP)

	n.signalPostgres(syscall.SIGSTOP)
}

// thaw continues a frozen node.
func (n *node) thaw() {
	n.Helper()
	n.signalPostgres(syscall.SIGCONT)

	_ = n.patroni.Process.Signal(syscall.SIGCONT)
}

// isolate drops all packets from and to the node until join is called.
func (n *node) isolate() {
	for _, proxy := range n.proxies() {
		proxy.Freeze()
	}
}

// join ends the isolation of the node.
func (n *node) join() {
	for _, proxy := range n.proxies() {
		proxy.Thaw()
	}
}

func (n *node) proxies() []*postgrestest.Proxy {
	return []*postgrestest.Proxy{n.ToPostgres, n.ToReplicas, n.ToREST, n.ToEtcd}
}
