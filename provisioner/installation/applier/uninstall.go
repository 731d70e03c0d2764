package applier

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// Uninstall implements installation.Installer. Of each component the kinds go first, with all their objects, while what cares for these
// still runs; namespaces go at the end, but for those in which there is something else.
func (a *Applier) Uninstall(ctx context.Context, cluster *rest.Config, runtimeID string) (installation.Progress, error) {
	work, err := open(ctx, cluster, runtimeID)
	if err != nil {
		return installation.Progress{}, err
	}
	progress, err := a.uninstall(ctx, work)
	return work.end(ctx, progress, err)
}

func (a *Applier) uninstall(ctx context.Context, work *work) (installation.Progress, error) {
	began := a.now()
	entries := work.inventory.Entries
	for i, entry := range slices.Backward(entries) {
		where := fmt.Sprintf("component %d of %d (%s)", i+1, len(entries), entry.Name)
		if a.now().Sub(began) > a.budget {
			return installation.Progress{Message: "removing " + where + ": comes next"}, nil
		}
		definitions, rest, namespaces := split(union(entry.Objects, entry.Former))
		if len(definitions)+len(rest) == 0 {
			continue
		}
		for _, refs := range [][]ref{definitions, backwards(rest)} {
			waiting, err := work.remove(ctx, refs)
			if err != nil {
				return installation.Progress{}, explain(err, where+" cannot be removed", installation.Component{})
			}
			if waiting != "" {
				return installation.Progress{Message: "removing " + where + ": " + waiting}, nil
			}
		}
		entry.Objects, entry.Former, work.changed = namespaces, nil, true
		entry.Applied, entry.Ready = "", false
	}
	return work.removeNamespaces(ctx)
}

// removeNamespaces ends an uninstallation.
func (w *work) removeNamespaces(ctx context.Context) (installation.Progress, error) {
	var namespaces []ref
	for _, entry := range w.inventory.Entries {
		namespaces = union(namespaces, entry.Objects)
	}
	message := []string{"nothing is installed"}
	var going []ref
	for _, namespace := range namespaces {
		reason, err := w.foreign(ctx, namespace)
		if err != nil {
			return installation.Progress{}, explain(err, "namespaces cannot be removed", installation.Component{})
		}
		if reason != "" {
			message = append(message, fmt.Sprintf("%s stays: %s", namespace, reason))
			continue
		}
		going = append(going, namespace)
	}
	waiting, err := w.remove(ctx, going)
	if err != nil {
		return installation.Progress{}, explain(err, "namespaces cannot be removed", installation.Component{})
	}
	if waiting != "" {
		return installation.Progress{Message: "removing namespaces: " + waiting}, nil
	}
	if err := w.inventory.drop(ctx, w.client); err != nil {
		return installation.Progress{}, explain(err, "the inventory cannot be removed", installation.Component{})
	}
	w.changed = false
	return installation.Progress{Done: true, Message: strings.Join(message, "; ")}, nil
}
