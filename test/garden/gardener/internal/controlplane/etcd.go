package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/await"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/child"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/port"
)

const etcdName = "etcd"

// startEtcd starts the store of everything, the runtimes included. It does not wait for the disk: what was written survives the
// death of every process, but not that of the machine, which is the right price for a garden to play in.
func (c *ControlPlane) startEtcd(ctx context.Context) error {
	number, err := c.config.Ports.Port(etcdName)
	if err != nil {
		return err
	}
	c.EtcdURL = "http://" + port.Address(number)
	if err := port.WaitFree(ctx, number); err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	c.etcd, err = child.Start(child.Spec{
		Name: etcdName,
		Path: filepath.Join(c.config.Binaries, "etcd"),
		Args: []string{
			"--data-dir=" + filepath.Join(c.config.Dir, "etcd"),
			"--listen-client-urls=" + c.EtcdURL,
			"--advertise-client-urls=" + c.EtcdURL,
			"--listen-peer-urls=http://127.0.0.1:0", // there are no peers, but etcd insists on listening for them
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
		Log: c.log(etcdName),
	})
	if err != nil {
		return err
	}
	c.watch(c.etcd)
	return c.etcd.WaitReady(ctx, await.Answer(http.DefaultClient, c.EtcdURL+"/health"))
}
