package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

const etcdName = "etcd"

// startEtcd starts the storage of the garden and of the runtimes. It does not wait for the disk: the data survives the death of every process,
// but not that of the machine.
func (c *ControlPlane) startEtcd(ctx context.Context) error {
	number, err := c.config.Ports.Port(etcdName)
	if err != nil {
		return err
	}
	c.EtcdURL = "http://" + freeport.Address(number)
	if err := process.WaitFree(ctx, number); err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	c.etcd, err = process.Start(process.Spec{
		Name: etcdName,
		Path: filepath.Join(c.config.Binaries, "etcd"),
		Args: []string{
			"--data-dir=" + filepath.Join(c.config.Dir, "etcd"),
			"--listen-client-urls=" + c.EtcdURL,
			"--advertise-client-urls=" + c.EtcdURL,
			"--listen-peer-urls=http://127.0.0.1:0", // etcd must listen for peers, though there are none
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
		Log: c.log(etcdName),
	})
	if err != nil {
		return err
	}
	c.watch(c.etcd)
	return c.etcd.WaitReady(ctx, process.Answers(http.DefaultClient, c.EtcdURL+"/health"))
}
