package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/bench/program"
)

const (
	manyRuntimes = 500
	clusterTakes = 5 * time.Second
	// callsPerRuntime limits the calls to Gardener from a runtime's order to its end; polling every second would need more.
	callsPerRuntime = 12
)

// measureRuntimes measures a Provisioner that gets many orders at once. It and the fake garden run in this process.
func measureRuntimes(ctx context.Context, s *scope) ([]line, error) {
	database, err := s.newDatabase(ctx)
	if err != nil {
		return nil, err
	}

	memory, err := fakegarden.Open(ctx, fakegarden.Options{
		Dir: filepath.Join(s.folder, "garden"), ClusterCreation: clusterTakes, Log: logging.Discard(),
	})
	if err != nil {
		return nil, err
	}

	counted, calls := fakegarden.Counted(memory.Client())

	service, err := provisioner.New(ctx, provisionerSettings(database, s), counted, logging.Discard())
	if err != nil {
		return nil, err
	}

	for _, part := range []func(context.Context) error{memory.Run, service.Run} {
		s.background(ctx, part)
	}

	before, err := ownMemory()
	if err != nil {
		return nil, err
	}

	began := time.Now()

	if err := orderRuntimes(ctx, "http://"+service.Address()+"/graphql"); err != nil {
		return nil, err
	}

	db, err := s.open(database.Name)
	if err != nil {
		return nil, err
	}

	if err := waitForRows(ctx, db, allSucceeded, manyRuntimes); err != nil {
		return nil, err
	}

	took := time.Since(began)
	verbs := calls.Counts()

	after, err := ownMemory()
	if err != nil {
		return nil, err
	}

	total := 0
	for _, count := range verbs {
		total += count
	}

	each := float64(total) / manyRuntimes

	s.progress("%d runtimes: %s, calls %v, memory %s to %s", manyRuntimes, took, verbs, mebibytes(before.Resident), mebibytes(after.Resident))

	return []line{
		{
			what:     fmt.Sprintf("%d runtimes at once, Provisioner and a fake garden whose clusters take 5 s: all done (one run)", manyRuntimes),
			measured: inSeconds(took),
		},
		target("the same: calls to Gardener a runtime",
			fmt.Sprintf("%.1f: get %.1f, patch %.1f, create %.1f", each, per(verbs["get"]), per(verbs["patch"]), per(verbs["create"])),
			fmt.Sprintf("≤ %d", callsPerRuntime), each <= callsPerRuntime),
		{what: "the same: lists and watches for all of them", measured: strconv.Itoa(verbs["list"] + verbs["watch"])},
		{
			what:     "the same: memory a runtime, the garden's with it",
			measured: fmt.Sprintf("%d kB", (after.Resident-before.Resident)/manyRuntimes/1000),
		},
		{what: "the same: resident memory at its peak, of both and the load", measured: mebibytes(after.Peak)},
	}, nil
}

func per(count int) float64 { return float64(count) / manyRuntimes }

// ownMemory returns the memory of this process after a garbage collection.
func ownMemory() (program.Memory, error) {
	debug.FreeOSMemory()

	return program.MemoryOf(os.Getpid())
}

// background runs the part until the scope ends.
func (s *scope) background(ctx context.Context, part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)

	go func() { ended <- part(ctx) }()

	s.cleanup(func() error {
		cancel()

		return <-ended
	})
}

// provisionerSettings returns a configuration with free ports and without a delay at shutdown.
func provisionerSettings(database storage.Config, s *scope) provisioner.Config {
	settings := provisioner.DefaultConfig()
	settings.Address, settings.StatusAddress, settings.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	settings.Gardener.Project = fakegarden.DefaultProject
	settings.Database = replica.Database{
		Driver: database.Driver, User: database.User, Password: database.Password, Host: database.Host, Port: strconv.Itoa(database.Port),
		Name: database.Name, SSLMode: database.SSLMode, SecretKeys: s.keys,
	}

	return settings
}

// orderRuntimes orders all runtimes with clients concurrent requests.
func orderRuntimes(ctx context.Context, url string) error {
	client, err := provisionerclient.New(provisionerclient.Options{URL: url})
	if err != nil {
		return err
	}

	var (
		ordering sync.WaitGroup
		turns    = make(chan struct{}, clients)
		errs     = make([]error, manyRuntimes)
	)

	for i := range manyRuntimes {
		ordering.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()

			_, errs[i] = client.ProvisionRuntime(ctx, provisionerclient.Caller{Tenant: "bench"}, runtimeOrder("c-"+strconv.Itoa(i)))
		})
	}

	ordering.Wait()

	return errors.Join(errs...)
}

// runtimeOrder returns a valid order of a small AWS cluster.
func runtimeOrder(name string) *wire.ProvisionRuntimeInput {
	return &wire.ProvisionRuntimeInput{
		RuntimeInput: &wire.RuntimeInput{Name: name},
		ClusterConfig: &wire.ClusterConfigInput{GardenerConfig: &wire.GardenerConfigInput{
			Name: name, KubernetesVersion: "1.35.4", Provider: "aws", TargetSecret: "aws", Region: "eu-central-1",
			MachineType: "m6i.large", DiskType: new("gp3"), VolumeSizeGB: new(50), WorkerCidr: "10.250.0.0/16",
			AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1,
			ProviderSpecificConfig: &wire.ProviderSpecificInput{AwsConfig: &wire.AWSProviderConfigInput{
				VpcCidr: "10.250.0.0/16",
				AwsZones: []*wire.AWSZoneInput{{
					Name: "eu-central-1a", WorkerCidr: "10.250.0.0/19", PublicCidr: "10.250.32.0/20", InternalCidr: "10.250.48.0/20",
				}},
			}},
		}},
	}
}
