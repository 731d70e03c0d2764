package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/bench/floor"
	"github.com/environment-broker/environment-broker/test/bench/program"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const userName, userPassword = "bench", "bench"

// users returns the users of broker and floor.
func users() string { return userName + ":" + userPassword + ":osb+admin" }

// server is a running broker or floor, with the base URL of its API.
type server struct {
	*program.Program

	url string
}

// startBroker runs a broker with the database and the Provisioner of the environment, and waits until it is ready.
func (s *scope) startBroker(ctx context.Context, e env) (server, error) {
	address, first := program.FreeAddress(ctx)
	status, second := program.FreeAddress(ctx)

	if err := errors.Join(first, second); err != nil {
		return server{}, err
	}

	environment := []string{
		"APP_ADDRESS=" + address,
		"APP_STATUS_ADDRESS=" + status,
		"APP_AUTH_BASIC_USERS=" + users(),
		"APP_PROVISIONER_URL=" + e.provisioner.URL(),
		"APP_DATABASE_DRIVER=" + e.database.Driver,
		"APP_DATABASE_USER=" + e.database.User,
		"APP_DATABASE_PASSWORD=" + e.database.Password.Reveal(),
		"APP_DATABASE_HOST=" + e.database.Host,
		"APP_DATABASE_PORT=" + strconv.Itoa(e.database.Port),
		"APP_DATABASE_NAME=" + e.database.Name,
		"APP_DATABASE_SSL_MODE=" + e.database.SSLMode,
		"APP_DATABASE_SECRET_KEYS=" + s.keys.Reveal(),
	}

	if e.paused {
		environment = append(environment, "APP_WORKERS=0")
	}

	return s.start(ctx, "http://"+address, program.Options{
		Path: s.broker, Environment: environment, Log: filepath.Join(s.folder, "broker.log"), Ready: "http://" + status + "/readyz",
	})
}

// startFloor runs the floors of the broker's requests. The catalog's response has fixedBytes bytes.
func (s *scope) startFloor(ctx context.Context, database storage.Config, fixedBytes int) (server, error) {
	own, err := os.Executable()
	if err != nil {
		return server{}, fmt.Errorf("finding the program: %w", err)
	}

	address, first := program.FreeAddress(ctx)
	dsn, second := s.postgres.DSN(database.Name)

	if err := errors.Join(first, second); err != nil {
		return server{}, err
	}

	config := floor.Config{Address: address, DSN: dsn, Users: users(), FixedBytes: fixedBytes}
	url := "http://" + address

	return s.start(ctx, url, program.Options{
		Path: own, Arguments: []string{floorCommand}, Environment: config.Environment(),
		Log: filepath.Join(s.folder, "floor.log"), Ready: url + floor.ReadyPath,
	})
}

// start runs a program until the scope ends.
func (s *scope) start(ctx context.Context, url string, options program.Options) (server, error) {
	running, err := program.Start(ctx, options)
	if err != nil {
		return server{}, err
	}

	s.cleanup(running.Stop)

	return server{Program: running, url: url}, nil
}

// startProvisioner runs a simulated Provisioner.
func (s *scope) startProvisioner(ctx context.Context, behaviour simulated.Behaviour) (*simulated.Provisioner, error) {
	running, err := simulated.Start(ctx, behaviour)
	if err != nil {
		return nil, err
	}

	s.cleanup(running.Stop)

	return running, nil
}

// newDatabase creates an empty database and drops it when the scope ends.
func (s *scope) newDatabase(ctx context.Context) (storage.Config, error) {
	s.databases++
	name := "bench_" + strconv.Itoa(s.databases)

	config, err := s.postgres.Create(ctx, name)
	if err != nil {
		return storage.Config{}, err
	}

	s.cleanup(func() error { return s.postgres.Drop(context.WithoutCancel(ctx), name) })

	return config, nil
}
