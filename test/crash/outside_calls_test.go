package crash

import (
	"context"
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/edp"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/ias"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeias"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/crashtest"
)

// edpConfig connects the broker to the simulated EDP behind the proxy.
func edpConfig() edp.Config {
	config := edp.DefaultConfig()
	config.AuthURL, config.AdminURL, config.Secret = "http://edp.example.com", "http://edp.example.com", fakeedp.Secret

	return config
}

// iasConfig connects the broker to the simulated IAS behind the proxy.
func iasConfig() ias.Config {
	config := ias.DefaultConfig()
	config.URL, config.UserID, config.UserSecret = "http://ias.example.com", fakeias.User, fakeias.Secret

	return config
}

// iasOperation names a call to IAS.
func iasOperation(request *http.Request) string { return "IAS" + request.Method }

// edpOperation names a call to EDP, without the names of objects.
func edpOperation(request *http.Request) string {
	name := "EDP" + request.Method

	for _, part := range []string{"token", "metadata", "dataTenants"} {
		if strings.Contains(request.URL.Path, part) {
			return name + part
		}
	}

	return name
}

// proxiedObjects reaches the records of objects in other systems through the proxy of a replica.
type proxiedObjects struct {
	service.Objects

	proxy *crashtest.Proxy
}

func (o proxiedObjects) rows() proxiedRows { return proxiedRows{proxy: o.proxy} }

func (o proxiedObjects) FindObject(ctx context.Context, instanceID, system, kind string) (environment.OutsideObject, error) {
	return readRow(ctx, o.rows(), "FindObject", func(ctx context.Context) (environment.OutsideObject, error) {
		return o.Objects.FindObject(ctx, instanceID, system, kind)
	})
}

func (o proxiedObjects) SetObject(ctx context.Context, by process.Record, object environment.OutsideObject) error {
	return o.rows().call(ctx, "SetObject", func(ctx context.Context) error { return o.Objects.SetObject(ctx, by, object) })
}

func (o proxiedObjects) RemoveObject(ctx context.Context, by process.Record, object environment.OutsideObject) error {
	return o.rows().call(ctx, "RemoveObject", func(ctx context.Context) error { return o.Objects.RemoveObject(ctx, by, object) })
}

func (o proxiedObjects) Sharing(ctx context.Context, object environment.OutsideObject) ([]environment.OutsideObject, error) {
	return readRow(ctx, o.rows(), "Sharing", func(ctx context.Context) ([]environment.OutsideObject, error) {
		return o.Objects.Sharing(ctx, object)
	})
}
