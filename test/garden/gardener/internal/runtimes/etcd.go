package runtimes

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func etcdPrefix(host string) string { return "/runtimes/" + host }

// wipe deletes what an API server stored.
func wipe(ctx context.Context, etcdURL, host string) (err error) {
	client, err := clientv3.New(clientv3.Config{Context: ctx, Endpoints: []string{etcdURL}})
	if err != nil {
		return fmt.Errorf("connect to etcd: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if _, err := client.Delete(ctx, etcdPrefix(host)+"/", clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("delete what %s stored: %w", host, err)
	}
	return nil
}
