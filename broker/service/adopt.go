package service

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/adopt"
	"github.com/environment-broker/environment-broker/broker/reconcile"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/program/reload"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// AdoptCommand returns the `broker adopt` command.
func AdoptCommand() program.Command[Config] {
	var options AdoptOptions

	return program.Command[Config]{
		Name: "adopt", About: "takes over the instances of a stopped Kyma Environment Broker",
		Flags: func(flags *flag.FlagSet) {
			options.Register(flags)
			flags.StringVar(&options.Platform, "platform", auth.DefaultPlatform, "`name` of the platform that owns the instances, as in "+program.Prefix+"PLATFORMS_FILE")
		},
		Run: func(ctx context.Context, config Config, output io.Writer) error {
			log, err := logging.New("broker", config.Log, os.Stderr)
			if err != nil {
				return fmt.Errorf("%s%w", program.Prefix, err)
			}

			report, err := Adopt(ctx, config, options, log)
			if report.Program == "" {
				return err // the command did not start
			}

			if written := report.Write(output, options.JSON); err == nil {
				err = errors.Join(written, report.Err())
			}

			return err
		},
	}
}

// AdoptOptions are the flags of `broker adopt`.
type AdoptOptions struct {
	takeover.Options

	// Platform is the platform that owns the instances.
	Platform string
}

// Adopt takes over the instances of Kyma Environment Broker and returns the report. After an error, the report is incomplete. The
// Provisioner must be running; replicas of this broker may be running.
func Adopt(ctx context.Context, config Config, options AdoptOptions, log logrus.FieldLogger) (takeover.Report, error) {
	settings, err := options.Resolve(config.Former)
	if err != nil {
		return takeover.Report{}, err
	}

	platform, err := adoptingPlatform(config.PlatformsFile, options.Platform)
	if err != nil {
		return takeover.Report{}, err
	}

	cipher, err := takeover.NewCipher(settings.SecretKey)
	if err != nil {
		return takeover.Report{}, err
	}

	offer, err := loadCatalog(config)
	if err != nil {
		return takeover.Report{}, err
	}

	files := reload.NewWatcher(log, clock.RealClock{}, prometheus.NewRegistry())

	client, operatorAPI, err := provisionerClient(config.Provisioner, upstreamOf(config.Provisioner), files)
	if err != nil {
		return takeover.Report{}, err
	}

	adopter := adopt.Adopter{
		Cipher: cipher, Catalog: offer, Runtimes: runtimes{client, operatorAPI}, Periods: config.ExpirationPeriods, Platform: platform,
		Region: config.DefaultRequestRegion, Clock: clock.RealClock{},
	}

	if adopter.Former, err = takeover.Open(ctx, settings.DatabaseURL); err != nil {
		return takeover.Report{}, err
	}
	defer adopter.Former.Close() //nolint:errcheck // It only reads.

	if err := openForAdoption(ctx, config, &adopter, log); err != nil {
		return takeover.Report{}, err
	}
	defer adopter.DB.Close() //nolint:errcheck // All transactions have ended.

	return adopter.Run(ctx, options.Options)
}

// adoptingPlatform returns the platform with the given name, which is auth.DefaultPlatform if it is empty. The error says that the broker has
// no such platform: no client would reach the instances. path is the path of the file with the platforms, or empty.
func adoptingPlatform(path, name string) (auth.Platform, error) {
	var platforms auth.Platforms

	if path != "" {
		content, err := os.ReadFile(path)
		if err == nil {
			platforms, err = auth.ParsePlatforms(content)
		}

		if err != nil {
			return auth.Platform{}, fmt.Errorf("%sPLATFORMS_FILE: %w", program.Prefix, err)
		}
	}

	name = cmp.Or(name, auth.DefaultPlatform)
	if platform, found := platforms.Find(name); found {
		return platform, nil
	}

	var names []string
	for _, platform := range platforms.List() {
		names = append(names, platform.Name)
	}

	return auth.Platform{}, fmt.Errorf("the broker has no platform %q: choose one of %s with --platform", name, strings.Join(names, ", "))
}

// openForAdoption opens the broker's database and stores for the adopter.
func openForAdoption(ctx context.Context, config Config, adopter *adopt.Adopter, log logrus.FieldLogger) error {
	keys, err := config.Database.Keys()
	if err != nil {
		return err
	}

	location, err := config.Database.Storage()
	if err != nil {
		return err
	}

	if adopter.DB, err = storage.Open(ctx, location); err != nil {
		return err
	}

	if adopter.Operations, err = operations.Open(ctx, adopter.DB, keys); err == nil {
		adopter.Operations.KeepFor(config.AuditRetention)

		adopter.Instances, err = instances.Open(ctx, adopter.DB, keys)
	}

	if err == nil {
		adopter.Endpoints, err = endpoints.Open(ctx, adopter.DB, keys)
	}

	if err == nil {
		adopter.Objects, err = outsideobjects.Open(ctx, adopter.DB, keys)
	}

	var entries *auditlog.Store
	if err == nil {
		entries, err = auditlog.Open(ctx, adopter.DB, config.AuditRetention)
	}

	if err != nil {
		return errors.Join(err, adopter.DB.Close())
	}

	adopter.Recorder = audit.NewRecorder(entries, adopter.DB, clock.RealClock{}, log)

	return nil
}

// runtimes reads runtimes through both APIs of the Provisioner.
type runtimes struct {
	*provisionerclient.Client

	operator *reconcile.Provisioner
}

// Account implements adopt.Runtimes. The error is of kind NotFound if the Provisioner has no such runtime.
func (r runtimes) Account(ctx context.Context, runtimeID string) (string, error) {
	existing, err := r.operator.Existing(ctx, []string{runtimeID})
	if err != nil {
		return "", err
	}

	if !existing[runtimeID] {
		return "", failure.New(failure.NotFound, "the Provisioner has no runtime %s", runtimeID)
	}

	found, err := r.operator.Runtime(ctx, runtimeID)

	return found.GlobalAccountID, err
}

// Order implements adopt.Runtimes.
func (r runtimes) Order(ctx context.Context, runtimeID string) (any, error) {
	found, err := r.operator.Runtime(ctx, runtimeID)

	return found.Resolved, err
}
