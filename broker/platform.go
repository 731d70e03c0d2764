package broker

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// unusedID is an ID that no instance or operation has, because IDs in paths are not empty.
const unusedID = ""

type regionKey struct{}

// checkRegion is router middleware. It rejects requests for a region that the platform may not use, and stores the
// region of the request in its context, where callerOf finds it.
func (a *api) checkRegion(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		region, err := a.region(r)

		// Platforms without a list of regions may send any region. Endpoints that need a valid region check it themselves.
		if platform := auth.PlatformOf(r.Context()); !platform.AllowsRegion(region) {
			if err == nil {
				err = forbidden(textOtherRegion)
			}

			httpserver.Endpoint(func(*http.Request) (httpserver.Response, error) { return httpserver.Response{}, err }).ServeHTTP(w, r)

			return
		}

		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), regionKey{}, region)))
	})
}

// caller is the sender of a request: a platform, and the region in the path of the request.
type caller struct {
	auth.Platform

	region string
}

func callerOf(ctx context.Context) caller {
	region, _ := ctx.Value(regionKey{}).(string)

	return caller{auth.PlatformOf(ctx), region}
}

// reaches reports whether the caller may use the instance. Its platform must own the instance, or the instance must
// be shared with it. If the platform is limited to regions or tenants, the instance must be in the region of the
// request and belong to one of the tenants.
func (c caller) reaches(instance environment.Instance) bool {
	return slices.Contains(instance.Platforms(), c.Name) &&
		(len(c.Regions) == 0 || instance.PlatformRegion == c.region) && c.AllowsTenant(instance.GlobalAccountID)
}

// sees reports whether the caller may see an operation. owner is the instance that now has the operation's instance ID,
// or zero if there is no such instance. If the operation belongs to an earlier instance with this ID, which was deleted,
// the platforms that could use the deleted instance see the operation.
func (c caller) sees(record process.Record, owner environment.Instance) bool {
	if owner.ID == "" || record.CreatedAt.Before(owner.CreatedAt) {
		return slices.Contains(strings.Fields(cmp.Or(record.VisibleTo, auth.DefaultPlatform)), c.Name)
	}

	return c.reaches(owner)
}

// lookupID returns the second result of lookup.
func (a *api) lookupID(ctx context.Context, tx storage.Tx, id string) (string, error) {
	_, id, err := a.lookup(ctx, tx, id)

	return id, err
}

// lookup returns the owner of the instance in the path of a request, see instances.Store.Owner, and the ID under which the request
// looks up the instance: the same ID, or unusedID if the instance belongs to another platform. The owner is zero if the platform has
// no such instance. A request of another platform thereby runs the same queries and gets the same response as for a
// missing instance, so neither content nor duration reveals that the instance exists.
//
// A deleted instance belongs to the platforms that could see its last operation. The audit log records the requests that do not
// find the instance.
func (a *api) lookup(ctx context.Context, tx storage.Tx, id string) (environment.Instance, string, error) {
	caller := callerOf(ctx)

	owner, err := a.Instances.Owner(ctx, tx, id)

	switch {
	case err == nil && caller.reaches(owner):
		return owner, id, nil
	case err == nil:
		audit.Mark(ctx, auditlog.CodeOtherPlatform)

		id = unusedID
	case !errors.Is(err, storage.ErrNotFound):
		return environment.Instance{}, "", err
	case a.Platforms().Configured():
		audit.Mark(ctx, "") // records missing instances too: the time for an entry must not reveal which instances exist
	}

	newest, used, err := a.latest(ctx, tx, id, environment.Kinds()...)
	if err != nil || used && !caller.sees(newest, environment.Instance{}) {
		return environment.Instance{}, unusedID, err
	}

	return environment.Instance{}, id, nil
}

// checkReached returns errLostRace if the caller may not use the instance. Decisions call it after they have locked the instance,
// because a concurrent transaction may have replaced the instance or given it to another platform since lookupID.
func checkReached(ctx context.Context, instance environment.Instance) error {
	if !callerOf(ctx).reaches(instance) {
		return errLostRace
	}

	return nil
}
