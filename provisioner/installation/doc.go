// Package installation defines how Kyma is installed on clusters, and reads manifests. Releases converts an order to a Plan, which
// lists the components with their values. An Installer applies the plan to a cluster, a bounded amount of work at a time. Package
// releases implements Releases; packages installer and bundles implement Installer.
//
// Manifests are YAML with placeholders: `${key}` is replaced by a value, and `$${key}` yields the literal text `${key}`.
// Placeholders are replaced after the YAML has been parsed, so that no value can change the structure of an object. A quoted
// placeholder is always a string. An unquoted placeholder becomes a number or a boolean if its value looks like one.
package installation
