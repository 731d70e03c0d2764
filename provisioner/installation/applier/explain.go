package applier

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	ssaerrors "github.com/fluxcd/pkg/ssa/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// explain says what an error means. But for what the API server finds wrong with an object, all may pass: a cluster that has just been
// made, or whose webhooks start, may answer anything for a while. What it says may quote a value: those that are secret are masked, and the
// error itself is not kept.
func explain(err error, where string, component installation.Component) error {
	if known, ok := errors.AsType[*failure.Error](err); ok {
		masked := *known
		masked.Text = mask(known.Text, component)
		if known.Cause != nil {
			masked.Cause = errors.New(mask(known.Cause.Error(), component))
		}
		return &masked
	}
	kind, text := failure.Transient, "the API server of the cluster does not answer"
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		text = status.Status().Message
		if object := involved(err); object != "" {
			text = object + ": " + text
		}
		if refuses(err) {
			kind = failure.Permanent
		}
	}
	if known, ok := errors.AsType[*unchangeableError](err); ok {
		kind, text = failure.Permanent, known.Error()
	}
	return failure.Wrap(kind, errors.New(mask(err.Error(), component)), "%s: %s", where, mask(text, component)).
		WithReason(failure.ReasonInternal, failure.ComponentRuntime)
}

// involved names the object that was tried.
func involved(err error) string {
	dry, ok := errors.AsType[*ssaerrors.DryRunErr](err)
	if !ok || dry.InvolvedObject() == nil {
		return ""
	}
	return refOf(dry.InvolvedObject()).String()
}

// refuses tells whether the API server, or a webhook that answers, does not want the object as it is.
func refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// mask takes secret values out of a text, also where they stand as Go and JSON quote them or as Secrets hold them.
func mask(text string, component installation.Component) string {
	for _, key := range component.SecretKeys {
		value := component.Values[key]
		if value == "" {
			continue
		}
		quoted := strings.Trim(strconv.Quote(value), `"`)
		held := base64.StdEncoding.EncodeToString([]byte(value))
		text = strings.NewReplacer(value, secret.Mask, quoted, secret.Mask, held, secret.Mask).Replace(text)
	}
	return text
}

func goingAway(ref ref, finalizers []string) string {
	if len(finalizers) == 0 {
		return fmt.Sprintf("waiting until %s is gone", ref)
	}
	return fmt.Sprintf("waiting until %s is gone: it has the finalizers %s", ref, strings.Join(finalizers, ", "))
}
