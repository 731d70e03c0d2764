package operator

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/tools/clientcmd"
	kubeconfigv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

const (
	textNoRuntime = "The instance has no reachable runtime: it is not ready, is suspended, or is being deleted."
	// textNoKubeconfig is the same for all reasons, so that anonymous clients cannot find out which instances exist.
	textNoKubeconfig = "There is no kubeconfig for this ID: the instance does not exist, is not ready, is suspended, or is being deleted."
)

// reachable returns the instance. It rejects instances without a runtime, and instances that are being created, suspended,
// resumed or deleted. If it fails, it still returns the known fields of the instance, so that the caller can log them.
func (o *Options) reachable(ctx context.Context, instanceID string) (environment.Instance, error) {
	instance, err := o.existing(ctx, instanceID)
	if err != nil {
		return instance, err
	}

	past, err := o.Operations.OfInstance(ctx, o.DB.Reader(), instance.ID)

	switch {
	case err != nil:
		return instance, err
	case environment.PhaseOf(past) != environment.Active || instance.RuntimeID == "":
		return instance, operatorserver.NotFound(textNoRuntime)
	default:
		return instance, nil
	}
}

// CreateAdminKubeconfig returns a kubeconfig with cluster-admin rights. The log and the audit log contain the user
// and the result of every request. If the audit entry cannot be written, the request fails and the kubeconfig is
// discarded: nobody may get access without an entry.
func (a *API) CreateAdminKubeconfig(r *http.Request) (httpserver.Response, error) {
	line := a.Log.WithField(logging.User, auth.FromContext(r.Context()).Name)

	if identity := r.Header.Get(httpserver.RequestIdentity); identity != "" {
		line = line.WithField(logging.RequestID, identity)
	}

	id, err := operatorserver.Segment(r, "instance_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	httpserver.Note(r.Context(), logging.InstanceID, id)

	instance, err := a.reachable(r.Context(), id)
	line = line.WithFields(logrus.Fields{logging.InstanceID: instance.ID, logging.RuntimeID: instance.RuntimeID})

	var kubeconfig secret.String
	if err == nil {
		kubeconfig, err = a.Kubeconfigs.AdminKubeconfig(r.Context(), instance)
	}

	if err == nil {
		err = a.Recorder.RecordAlone(r.Context(), auditlog.Entry{
			Action: auditlog.ActionAdminKubeconfig, InstanceID: instance.ID, Status: http.StatusOK, After: auditlog.Fields{"runtimeID": instance.RuntimeID},
		})
	}

	if err != nil {
		line.WithError(err).Warn("audit: admin kubeconfig refused")

		return httpserver.Response{}, err
	}

	line.Info("audit: admin kubeconfig issued")

	return httpserver.Response{
		Status: http.StatusOK,
		Body:   operatorapi.AdminKubeconfig{Kubeconfig: kubeconfig.Reveal(), ExpiresAt: expiry(kubeconfig)},
		Header: http.Header{"Cache-Control": {"no-store"}},
	}, nil
}

// expiry returns the time at which the client certificate in the kubeconfig expires, or zero if there is no
// certificate.
func expiry(kubeconfig secret.String) time.Time {
	parsed, err := clientcmd.Load([]byte(kubeconfig.Reveal()))
	if err != nil {
		return time.Time{}
	}

	for _, user := range parsed.AuthInfos {
		block, _ := pem.Decode(user.ClientCertificateData)
		if block == nil {
			continue
		}

		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			return certificate.NotAfter
		}
	}

	return time.Time{}
}

// GetKubeconfig responds with the kubeconfig that UserKubeconfig returns. The kubeconfig contains no secrets. The request
// therefore needs no credentials by default, and scripts of other websites may read the response.
func (a *API) GetKubeconfig(r *http.Request) (httpserver.Response, error) {
	id, err := operatorserver.Segment(r, "instance_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	httpserver.Note(r.Context(), logging.InstanceID, id)

	content, err := a.UserKubeconfig(r.Context(), id)
	if err != nil {
		return httpserver.Response{}, err
	}

	return httpserver.Response{Status: http.StatusOK, Body: content, Header: http.Header{
		"Content-Type":                {"application/x-yaml"},
		"Content-Disposition":         {`attachment; filename="kubeconfig.yaml"`},
		"Access-Control-Allow-Origin": {"*"},
	}}, nil
}

// UserKubeconfig returns a kubeconfig with which users log in at the OIDC issuer. All of its content comes from the database, so
// no other system is called. Its errors do not reveal whether the instance exists.
func (o *Options) UserKubeconfig(ctx context.Context, instanceID string) ([]byte, error) {
	instance, err := o.reachable(ctx, instanceID)

	var endpoint environment.Endpoint
	if err == nil {
		endpoint, err = o.Endpoints.Get(ctx, instance)
	}

	if errors.Is(err, storage.ErrNotFound) || err != nil && httpserver.RefusalOf(err).Status == http.StatusNotFound {
		return nil, operatorserver.NotFound(textNoKubeconfig)
	}

	if err != nil {
		return nil, err
	}

	oidc := o.OIDC
	if own := instance.Request.Cluster.OIDC; own != nil {
		oidc = *own
	}

	content, err := yaml.Marshal(userKubeconfig(instance, endpoint, oidc))
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig: %w", err)
	}

	return content, nil
}

// userKubeconfig returns a kubeconfig with one context, named after the runtime. kubectl gets the user's token from its
// oidc-login plugin, kubelogin. If there is no issuer, the kubeconfig contains no user.
func userKubeconfig(instance environment.Instance, endpoint environment.Endpoint, oidc environment.OIDC) kubeconfigv1.Config {
	const user = "oidc"

	config := kubeconfigv1.Config{
		Kind:           "Config",
		APIVersion:     "v1",
		CurrentContext: instance.Name,
		Clusters: []kubeconfigv1.NamedCluster{{Name: instance.ShootName, Cluster: kubeconfigv1.Cluster{
			Server: endpoint.Server, CertificateAuthorityData: endpoint.CA,
		}}},
		Contexts: []kubeconfigv1.NamedContext{{Name: instance.Name, Context: kubeconfigv1.Context{Cluster: instance.ShootName}}},
	}

	if oidc.IssuerURL == "" {
		return config
	}

	config.Contexts[0].Context.AuthInfo = user
	config.AuthInfos = []kubeconfigv1.NamedAuthInfo{{Name: user, AuthInfo: kubeconfigv1.AuthInfo{Exec: &kubeconfigv1.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1",
		Command:    "kubectl",
		Args: []string{
			"oidc-login", "get-token",
			"--oidc-issuer-url=" + oidc.IssuerURL,
			"--oidc-client-id=" + oidc.ClientID,
			"--oidc-extra-scope=email",
			"--oidc-extra-scope=openid",
		},
		InteractiveMode: kubeconfigv1.IfAvailableExecInteractiveMode,
		InstallHint:     "Install kubelogin: kubectl krew install oidc-login",
	}}}}

	return config
}
