package operator

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// The audit lines.
const (
	auditGiven   = "audit: admin kubeconfig handed out"
	auditRefused = "audit: admin kubeconfig refused"
)

// adminKubeconfig answers POST /runtimes/{instance_id}/adminkubeconfig. Who asked, for what, and what came of it is in the
// audit trail and in the log in every case.
func (a *api) adminKubeconfig(r *http.Request) (httpserver.Answer, error) {
	line := a.Log.WithField(logging.User, auth.FromContext(r.Context()).Name)

	if identity := r.Header.Get(httpserver.RequestIdentity); identity != "" {
		line = line.WithField(logging.RequestID, identity)
	}

	instance, err := a.reachable(r)
	line = line.WithFields(logrus.Fields{logging.InstanceID: instance.ID, logging.RuntimeID: instance.RuntimeID})

	var kubeconfig secret.String
	if err == nil {
		kubeconfig, err = a.Kubeconfigs.AdminKubeconfig(r.Context(), instance)
	}

	// None is handed out of which nobody knows afterwards.
	if err == nil {
		err = a.Trail.RecordAlone(r.Context(), auditlog.Entry{
			Action: auditlog.ActionAdminKubeconfig, InstanceID: instance.ID, Status: http.StatusOK, After: auditlog.Fields{"runtimeID": instance.RuntimeID},
		})
	}

	if err != nil {
		line.WithError(err).Warn(auditRefused)

		return httpserver.Answer{}, err
	}

	line.Info(auditGiven)

	return httpserver.Answer{
		Status: http.StatusOK,
		Body:   operatorapi.AdminKubeconfig{Kubeconfig: kubeconfig.Reveal(), ExpiresAt: expiry(kubeconfig)},
		Header: http.Header{"Cache-Control": {"no-store"}},
	}, nil
}

// expiry returns the end of the kubeconfig's client certificate, or nil where it has none.
func expiry(kubeconfig secret.String) *time.Time {
	parsed, err := clientcmd.Load([]byte(kubeconfig.Reveal()))
	if err != nil {
		return nil
	}

	for _, user := range parsed.AuthInfos {
		block, _ := pem.Decode(user.ClientCertificateData)
		if block == nil {
			continue
		}

		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			return &certificate.NotAfter
		}
	}

	return nil
}
