package runtimes

import (
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What an API server allows as the lifetime of a token, in seconds.
const (
	shortestToken = 600
	defaultToken  = 3600
)

// createToken issues a token for an account.
func (s *Server) createToken(w http.ResponseWriter, r *http.Request, to served) {
	accounts, _ := kindOf(corev1.GroupName, "serviceaccounts")
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	if !to.caller.may(r.Method, accounts) {
		refuse(w, apierrors.NewForbidden(accounts.path().GroupResource(), name, fmt.Errorf("user %s has no role that allows it", to.caller.name)))
		return
	}
	account := &corev1.ServiceAccount{}
	if err := to.objects.Lookup(client.ObjectKey{Namespace: namespace, Name: name}, account); err != nil {
		refuse(w, err)
		return
	}
	request := &authenticationv1.TokenRequest{}
	if err := to.objects.read(r, request); err != nil {
		refuse(w, err)
		return
	}
	seconds := int64(defaultToken)
	if request.Spec.ExpirationSeconds != nil {
		seconds = *request.Spec.ExpirationSeconds
	}
	if seconds < shortestToken {
		refuse(w, apierrors.NewBadRequest(fmt.Sprintf("spec.expirationSeconds: may not specify a duration less than %d seconds", shortestToken)))
		return
	}
	now := time.Now()
	expires := now.Add(time.Duration(seconds) * time.Second).Truncate(time.Second)
	token, err := s.issue(claims{
		Audience: []string{to.technicalID}, Subject: "system:serviceaccount:" + namespace + ":" + name,
		Issued: now.Unix(), Expires: expires.Unix(),
		Account: tokenFrom{Namespace: namespace, Account: reference{Name: name, UID: string(account.UID)}},
	})
	if err != nil {
		refuse(w, err)
		return
	}
	request.TypeMeta = metav1.TypeMeta{Kind: "TokenRequest", APIVersion: authenticationv1.SchemeGroupVersion.String()}
	request.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: namespace, CreationTimestamp: metav1.NewTime(now)}
	request.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expires)}
	reply(w, http.StatusCreated, request)
}
