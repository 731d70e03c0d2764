// Package tenancy converts the IDs of tenants and subaccounts to valid Kubernetes labels. The broker sends the IDs in this form,
// and the Provisioner stores, compares and uses them as labels of Shoots. The conversion is needed because platforms can choose
// any ID; for example, the open-source Service Manager sends "-". Both services use the same conversion, so it does not matter
// which service converts an ID.
//
// The converted form is called the label. The services also store the original ID, for people and for Director.
package tenancy
