// Package kyma decides which Kyma the Provisioner installs on a runtime: the version, the components and their configuration.
//
// The version comes from the order or is the default. The components come from the plan and from the modules that the user has chosen.
// Nothing of this is stored except the version and the names of the modules; each order for the Provisioner is completed when it is sent,
// because the configuration can contain secrets.
package kyma
