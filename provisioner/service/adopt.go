package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/provisioner/adopt"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// recordShown replaces the record of a runtime in previews, because sealing gives a different result each time.
const recordShown = "(the sealed row of the runtime)"

// AdoptCommand returns the command `provisioner adopt`.
func AdoptCommand() program.Command[Config] {
	var options takeover.Options

	return program.Command[Config]{
		Name: "adopt", About: "takes over the runtimes of a stopped Kyma Provisioner",
		Flags: options.Register,
		Run: func(ctx context.Context, config Config, output io.Writer) error {
			log, err := logging.New("provisioner", config.Log, os.Stderr)
			if err != nil {
				return fmt.Errorf("%s%w", program.Prefix, err)
			}

			api, err := gardener.Connect(config.Gardener.KubeconfigPath, bounds.Responses(largestAnswer))
			if err != nil {
				return err
			}

			report, err := Adopt(ctx, config, api, options, log)
			if written := report.Write(output, options.JSON); err == nil {
				err = errors.Join(written, report.Err())
			}

			return err
		},
	}
}

// Adopt takes over the runtimes of Kyma Provisioner and returns the report, which is complete only if there is no error. Replicas of this
// Provisioner may run at the same time.
func Adopt(ctx context.Context, config Config, garden client.WithWatch, options takeover.Options, log logrus.FieldLogger) (takeover.Report, error) {
	settings, err := options.Resolve(config.Former)
	if err = errors.Join(err, config.Gardener.Shoots.check()); err != nil {
		return takeover.Report{}, err
	}

	cipher, err := takeover.NewCipher(settings.SecretKey)
	if err != nil {
		return takeover.Report{}, err
	}

	files, err := readShootFiles(config.Gardener.Shoots)
	if err != nil {
		return takeover.Report{}, err
	}

	keys, err := config.Database.Keys()
	if err != nil {
		return takeover.Report{}, err
	}

	location, err := config.Database.Storage()
	if err != nil {
		return takeover.Report{}, err
	}

	db, err := storage.Open(ctx, location)
	if err != nil {
		return takeover.Report{}, err
	}
	defer db.Close() //nolint:errcheck // All transactions have ended.

	adopter := adopt.Adopter{
		Cipher: cipher, DB: db, Shoots: gardener.New(garden, namespace(config.Gardener.Project)), Registered: config.Director.Enabled,
		Build: shootBuilder(config, files, func(runtimes.Runtime) (string, error) { return recordShown, nil }), Clock: clock.RealClock{},
		Validate: func(order spec.Runtime) error {
			return validation.Provision(order, validation.Rules{Project: config.Gardener.Project})
		},
	}

	if adopter.Operations, err = operations.Open(ctx, db, keys); err != nil {
		return takeover.Report{}, err
	}

	adopter.Operations.KeepFor(config.AuditRetention)

	if adopter.Runtimes, err = runtimes.Open(ctx, db, keys); err != nil {
		return takeover.Report{}, err
	}

	entries, err := auditlog.Open(ctx, db, config.AuditRetention)
	if err != nil {
		return takeover.Report{}, err
	}

	adopter.Recorder = audit.NewRecorder(entries, db, clock.RealClock{}, log)

	if adopter.Former, err = takeover.Open(ctx, settings.DatabaseURL); err != nil {
		return takeover.Report{}, err
	}
	defer adopter.Former.Close() //nolint:errcheck // It only reads.

	return adopter.Run(ctx, options)
}
