// Package kyma decides which Kyma the Provisioner installs on a runtime: the version, the components and their configuration.
//
// The version comes from the order, else from the configuration of the account in the control plane, else it is the default. The
// components come from the plan, from its configuration in the control plane, and from the modules that the user has chosen.
// The configuration values of the components come from the plan and from overrides in the control plane.
//
// Only the version and the names of the modules are stored. All other parts are added to an order when it is sent, because the
// configuration can contain secrets.
package kyma
